"""The data of the page that `kafkawire report` writes, and what it sums up in bounded memory."""

from __future__ import annotations

import json
import random
import re
import stat
import sys
from base64 import b64decode
from collections import Counter
from gzip import decompress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.reports import buckets, distributions, time_scale
from kafkawire.reports.buckets import OTHERS, Buckets, Counts
from kafkawire.reports.clients import Clients
from kafkawire.reports.distributions import Distributions
from kafkawire.reports.exchanges import Slowest
from kafkawire.reports.groups.assignments import assignments
from kafkawire.reports.groups.commits import MAX_POINTS, LagSeries
from kafkawire.reports.groups.histories import Groups
from kafkawire.reports.groups.silences import Silences
from kafkawire.reports.reading import Reading
from kafkawire.reports.watermarks import Watermarks
from kafkawire_cli.input.captures.progress import Progress
from kafkawire_cli.render.page import data as data_of_page
from kafkawire_cli.render.page import document
from tests.capture import truth
from tests.capture.written import Scenario
from tests.cli.reports import report, run
from tests.conftest import FIXTURES

CAPTURE: Final = FIXTURES / "captures" / "ck-group-range.pcap"
MS: Final = 10**6


def page(path: Path) -> tuple[str, Any]:
    """Return the text and the data of a page."""
    text = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">([^<>&]*)</script>', text)
    assert found is not None
    return text, json.loads(found[1])


def written(tmp_path: Path, *arguments: object) -> tuple[str, Any]:
    out = tmp_path / "report.html"
    result = run("report", *arguments, "-o", out)
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r".*report.html: \d\.\d MB\n", result.stderr)
    return page(out)


# -- the file


@pytest.mark.parametrize("path", truth.captures(), ids=lambda path: path.name.split(".truth")[0])
def test_the_page_has_what_the_reports_have(path: Path, tmp_path: Path) -> None:
    capture = truth.capture_of(path)
    text, data = written(tmp_path, capture)
    assert len(text) < 10_000_000
    calls = report("latency", capture)["calls"]
    series = data["series"]
    for value, at in (("requests", 4), ("responses", 5), ("errors", 6)):
        counted: Counter[str] = Counter()
        for cell in series["cells"]:
            counted[series["apis"][cell[1]]] += cell[at]
        assert (
            +counted == +Counter({one["api_name"] or "unknown": one[value] for one in calls})
            or series["without_time"]
        )
    assert data["overview"]["requests"] == sum(one["requests"] for one in calls)
    by_api = {one["name"]: one for one in data["distributions"]["api"]["rows"]}
    for one in calls:
        found = by_api[one["api_name"] or "unknown"]
        assert [found[key] for key in ("p50_ns", "p99_ns", "max_ns")] == [
            one[key] for key in ("p50_ns", "p99_ns", "max_ns")
        ]
    took = {one["api_name"]: one["max_ns"] for one in calls if one["max_ns"] is not None}
    slowest = max((ns for api, ns in took.items() if api not in WAITING), default=None)
    listed = [one["latency_ns"] for one in data["slowest"] if one["api"] not in WAITING]
    assert listed[:1] == ([] if slowest is None else [slowest])
    groups = report("groups", capture)["groups"]
    assert {one["group"] for one in data["groups"]["rows"]} == {one["group_id"] for one in groups}


WAITING = ("Fetch", "JoinGroup", "ShareFetch")
"""APIs whose responses wait, so that slow ones are listed only where they waited too long."""


def test_nothing_but_two_scripts_may_run(tmp_path: Path) -> None:
    text, _ = written(tmp_path, CAPTURE)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy[1].split(";"))
    assert rules.pop("default-src") == "'none'"
    assert set(rules) == {"script-src", "style-src", "img-src", "base-uri", "form-action"}
    own = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    packed = re.search(r'id="library">([A-Za-z0-9+/=]*)</script>', text)
    assert own is not None
    assert packed is not None
    library = decompress(b64decode(packed[1]))
    hashes = re.findall(r"'sha256-([^']*)'", rules["script-src"])
    assert [b64decode(one) for one in hashes] == [
        sha256(script).digest() for script in (own[1].encode(), library)
    ]
    assert library.startswith(b"/**\n* plotly.js"), "with its licence"
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text)


def test_the_pages_script_makes_no_markup_of_text() -> None:
    for name in document.SCRIPTS:
        script = document._own(name)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval", script)


def test_data_leaves_neither_json_nor_its_element() -> None:
    hostile = "</script><!-- <script> & \u2028 \ud800 \x00 é"
    text = document.json_text({hostile: [hostile]})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {hostile: [hostile]}


def test_secrets_are_hidden_unless_requested(tmp_path: Path) -> None:
    scenario = Scenario().request("SaslHandshake", 1, mechanism="PLAIN")
    scenario.respond("SaslHandshake", 1, mechanisms=["PLAIN"])
    scenario.request("SaslAuthenticate", 2, authBytes="AHVzZXIAaHVudGVyMg==")
    scenario.respond("SaslAuthenticate", 2)
    capture = scenario.save(tmp_path / "c.pcap")
    text, data = written(tmp_path, capture)
    bodies = [one["request"]["body"] for one in data["slowest"]]
    assert any("authBytes" in body for body in bodies)
    assert "AHVzZXIAaHVudGVyMg" not in text
    text, _ = written(tmp_path, capture, "--show-secrets")
    assert "AHVzZXIAaHVudGVyMg" in text
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600


def test_clients_are_checked_against_a_release(tmp_path: Path) -> None:
    capture = FIXTURES / "captures" / "kp22-old-0.9.pcap"
    _, data = written(tmp_path, capture, "--target", "4.0")
    wanted = report("readiness", capture, options=("--target", "4.0"), code=1)
    verdicts = Counter(one["ready"] for one in data["clients"]["rows"])
    assert verdicts["not ready"] == len(wanted["not_ready"])
    assert verdicts["ready"] == len(wanted["ready_clients"])
    _, data = written(tmp_path, capture)
    assert re.fullmatch(r"\d+\.\d+", data["clients"]["target"])
    assert run("report", capture, "--target", "9.9", "-o", tmp_path / "x").exit_code == 2


def test_findings_are_those_of_diagnose(tmp_path: Path) -> None:
    capture = FIXTURES / "incidents" / "poll-timeouts.pcap.gz"
    _, data = written(tmp_path, capture)
    wanted = report("diagnose", capture)["findings"]
    assert [one["rule"] for one in data["findings"]["rows"]] == [one["rule"] for one in wanted]
    assert data["findings"]["rows"][0]["who"] == "client thumbnails, group billing"
    assert data["findings"]["left_out"] == 0


def test_rules_are_changed_as_in_diagnose(tmp_path: Path) -> None:
    options = "--disable", "old-versions", "--set", "unsupported-versions.errors=1000"
    capture = FIXTURES / "captures" / "kp22-old-0.9.pcap"
    _, usual = written(tmp_path, capture)
    _, changed = written(tmp_path, capture, *options)
    rules = [{one["rule"] for one in page["findings"]["rows"]} for page in (usual, changed)]
    assert rules[0] - rules[1] == {"old-versions", "unsupported-versions"}
    assert rules[1] < rules[0]


def test_problems_have_places(tmp_path: Path) -> None:
    capture = FIXTURES / "captures" / "kcat-kf--loss.pcap"
    _, data = written(tmp_path, capture)
    kinds = {one["kind"]: one["count"] for one in report("summary", capture)["problems"]}
    assert {one["kind"].replace(" ", "_"): one["count"] for one in data["problems"]} == kinds
    for one in data["problems"]:
        assert len(one["places"]) == min(one["count"], 20)
        assert all(place["file"] == str(capture) and place["error"] for place in one["places"])


def test_without_its_library_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    result = run("report", CAPTURE, "-o", tmp_path / "x.html")
    assert result.exit_code == 2
    assert "pip install 'kafkawire[report]'" in result.stderr
    assert not (tmp_path / "x.html").exists()


def test_a_capture_is_not_overwritten(tmp_path: Path) -> None:
    copy = tmp_path / "c.pcap"
    copy.write_bytes(CAPTURE.read_bytes())
    result = run("report", copy, "-o", tmp_path / "." / "c.pcap")
    assert result.exit_code == 2
    assert "is one of the inputs" in result.stderr
    assert copy.read_bytes() == CAPTURE.read_bytes()


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no capture")
    out = tmp_path / "report.html"
    assert run("report", text, "-o", out).exit_code == 2
    assert not out.exists()
    both = run("report", text, CAPTURE, "-o", out)
    assert both.exit_code == 2, "one of them was refused, and the page has the other"
    assert page(out)[1]["overview"]["requests"] == 139
    missing = run("report", CAPTURE, "-o", tmp_path / "none" / "report.html")
    assert missing.exit_code == 2
    assert "No such file" in missing.stderr


def test_large_groups_and_bodies_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = FIXTURES / "captures" / "ck-848.pcap"
    _, whole = written(tmp_path, CAPTURE, many)
    assert (len(whole["groups"]["rows"]), whole["groups"]["left_out"]) == (2, 0)
    monkeypatch.setattr(data_of_page, "MAX_BYTES", 1000)
    _, data = written(tmp_path, CAPTURE, many)
    assert (len(data["groups"]["rows"]), data["groups"]["left_out"]) == (1, 1)
    assert len(data["slowest"]) == len(whole["slowest"])
    assert data["slowest"][0] == whole["slowest"][0]
    assert data["slowest"][-1]["request"]["body"].startswith("(left out")


# -- exchanges over time


def exchange(
    time_ns: int, client: str, latency_ns: int = MS, api: str = "Fetch", broker: str = "b:9092"
) -> Exchange:
    request = Row(1, time_ns, "request", 96, Status.OK, api_key=1, api_name=api, client_id=client)
    answer = request._replace(
        direction="response", time_ns=time_ns + latency_ns, request_time_ns=time_ns
    )
    return Exchange(0, "a:1", broker, request, answer)


def entities(*topics: str) -> Entities:
    made = Entities(TopicNames())
    for topic in topics:
        made.topic(topic)
    return made


def totals(counts: Counts) -> tuple[int, int, int]:
    cells = counts.cells.values()
    return (
        sum(cell.requests for cell in cells),
        sum(cell.request_bytes for cell in cells),
        sum(cell.latency.total() for cell in cells),
    )


def test_buckets_widen_with_the_time_covered() -> None:
    rng = random.Random(1)
    for span_ns in (1, MS, 10**9, 3600 * 10**9, 10**17, 9 * 10**18):
        found = Buckets()
        for _ in range(500):
            found.exchange(exchange(1 + rng.randrange(span_ns), "c"), entities("t"))
        counts = found.counts(12, 10_000)
        assert totals(counts) == (500, 50_000, 500)
        used = [key.bucket for key in counts.cells]
        assert max(used) - min(used) <= time_scale.MAX_BUCKETS
        assert len(set(used)) > 30 or span_ns <= 10 * MS


def test_every_width_divides_the_next() -> None:
    widths = time_scale.WIDTHS
    assert all(wide % narrow == 0 for narrow, wide in pairwise(widths))


def test_memory_is_bounded_and_named_entries_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "MAX_CELLS", 500)
    monkeypatch.setattr(buckets, "MAX_NAMES", 100)
    rng = random.Random(2)
    found, sent = Buckets(), Counter[str]()
    by_topic: Counter[str] = Counter()
    for at in range(5000):
        client = "busy" if rng.random() < 0.5 else f"c{rng.randrange(1000)}"
        topics = {f"t{rng.randrange(300)}", "orders"} if rng.random() < 0.5 else {"orders"}
        found.exchange(exchange(1 + at * MS, client), entities(*topics))
        assert len(found._cells) <= 501
        sent[client] += 1
        by_topic.update(topics)
    counts = found.counts(4, 200)
    assert totals(counts)[0] == 5000
    assert len(counts.cells) <= 200
    shown: Counter[str] = Counter()
    of_topic: Counter[str] = Counter()
    for key, cell in counts.cells.items():
        if key.client != OTHERS:
            shown[counts.clients[key.client]] += cell.requests
        of_topic.update({counts.topics[one]: cell.requests for one in key.topics if one != OTHERS})
    assert "busy" in shown
    assert shown == {name: sent[name] for name in shown}
    assert of_topic["orders"] == by_topic["orders"] == 5000


def test_latency_classes() -> None:
    for ns in (-5, 0, 1, 2, 1000, 10**6, 10**9, 2**62):
        number = buckets.latency_class(ns)
        if ns > 1:
            assert 2 ** ((number - 1) / 4) < ns * 1.0001
            assert ns <= 2 ** (number / 4) * 1.0001
        else:
            assert number == int(ns == 1)


def test_distributions_name_so_many_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "MAX_NAMES", 3)
    found = Distributions()
    for at in range(10):
        found.exchange(exchange(1, f"c{at}", at * MS), entities("t", f"t{at}"))
    clients = found.of("client")
    assert [(one.name, one.exchanges) for one in clients] == [
        ("c0", 1), ("c1", 1), ("c2", 1), (None, 7)
    ]  # fmt: skip
    assert clients[-1].latency.max == 9 * MS
    assert next((one.name, one.exchanges) for one in found.of("topic")) == ("t", 10)


def test_the_slowest_are_those_of_a_sort() -> None:
    rng = random.Random(3)
    rendered = 0

    def render(one: Exchange, _: Entities, latency: int) -> tuple[int, str]:
        nonlocal rendered
        rendered += 1
        return latency, one.main_row.api_name or ""

    found = Slowest(10, 2, render)
    made = [(rng.randrange(10**9), rng.choice(["Fetch", "Produce"])) for _ in range(3000)]
    made += [(5, "Rare"), (7, "Rare"), (6, "Rare")]
    for latency, api in made:
        found.exchange(exchange(1, "c", latency, api), entities())
    wanted = sorted(made, reverse=True)
    assert found.all[:10] == wanted[:10]
    assert found.all[-2:] == [(7, "Rare"), (6, "Rare")]
    assert rendered < 300


# -- groups


def test_assignments_end_with_rebalances_and_leaves() -> None:
    captures = Reading(Traffic([CAPTURE]), Progress(0))
    clients, watermarks = Clients(), Watermarks(captures)
    silences = Silences()
    groups = Groups(captures, watermarks, silences)
    captures.read(clients, watermarks, silences, groups)
    (group,) = groups.all
    found = assignments(group, clients.last_ns)
    shown = [
        (group.members[one.member_id].client_id, [numbers for _, numbers in one.partitions])
        for one in found
    ]
    assert shown == [("cons-A", [[0, 1, 2, 3]]), ("cons-A", [[0, 1]]), ("cons-B", [[2, 3]])]
    assert found[0].until_ns == group.rebalances[1].noticed_ns
    assert all(one.from_ns < one.until_ns <= clients.last_ns for one in found)


def test_a_long_series_of_lags_keeps_its_maximum() -> None:
    rng = random.Random(4)
    for length in (1, 10, MAX_POINTS, MAX_POINTS + 1, 7777):
        lags = [rng.randrange(1000) for _ in range(length)]
        found = LagSeries()
        for at, lag in enumerate(lags):
            found.add(at, lag)
        assert len(found.points) <= MAX_POINTS
        assert max(lag for _, lag in found.points) == max(lags)
        assert all(lags[at] == lag for at, lag in found.points)
        assert [at for at, _ in found.points] == sorted(at for at, _ in found.points)
