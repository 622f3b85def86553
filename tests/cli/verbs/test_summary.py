"""`summary`, `latency`, `topics`, `clients`: every recording against what others saw in it."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from kafkawire.protocol.error_code import ErrorCode
from tests.capture import truth
from tests.capture.recordings import segments
from tests.capture.written import Scenario
from tests.cli import outside
from tests.cli.reports import on_a_terminal, report, run, text
from tests.conftest import FIXTURES, ROOT
from tests.recordings import own, recording

PATHS = truth.captures()
NAMES = [path.name.split(".truth")[0] for path in PATHS]
every = pytest.mark.parametrize("path", PATHS, ids=NAMES)


def calls(path: Path) -> dict[str, dict[str, Any]]:
    made = report("latency", truth.capture_of(path))
    return {call["api_name"]: call for call in made["calls"]}


@every
def test_calls_are_counted(path: Path) -> None:
    made = calls(path)
    wanted = outside.counts(path, "req")
    assert {api: call["requests"] for api, call in made.items()} == wanted
    responded = outside.counts(path, "resp")
    assert {api: n for api, call in made.items() if (n := call["responses"])} == responded
    open_ = {api: n - responded[api] for api, n in wanted.items()}
    without = {api: call["unanswered"] for api, call in made.items()}
    if path.name.startswith("ck-acks0"):  # its producer expects no response
        assert open_.pop("Produce") > without.pop("Produce") == 0
    assert without == open_


@every
def test_latencies_are_those_of_the_packets(path: Path) -> None:
    made = calls(path)
    for api, took in outside.latencies(path).items():
        call = made[api]
        assert (call["min_ns"], call["max_ns"]) == (took[0], took[-1])
        for key, share in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
            wanted = outside.quantile(took, share)
            assert abs(call[key] - wanted) <= 0.01 * abs(wanted) + 0.5, (api, key)


@every
def test_error_codes_are_those_that_another_implementation_reads(path: Path) -> None:
    made = calls(path)
    for api, codes in outside.errors(path).items():
        named = {ErrorCode.name_of(code): count for code, count in codes.items()}
        assert made[api]["error_codes"] == named, api
        rate = made[api]["errors"] / made[api]["responses"]
        assert made[api]["error_rate"] == pytest.approx(rate)
        assert max(named.values(), default=0) <= made[api]["errors"] <= sum(named.values())


@every
def test_topics_have_the_records_that_another_implementation_reads(path: Path) -> None:
    made = report("topics", truth.capture_of(path))
    found = {
        (topic["topic"] or topic["topic_id"], way): (one["bytes"], one["batches"], one["records"])
        for topic in made["topics"]
        for way in ("produced", "fetched")
        if (one := topic[way])["bytes"]
    }
    if not truth.records_of(path).exists():
        assert found == {}
        return
    wanted, codecs = outside.amounts(path)
    assert found == {key: tuple(amount) for key, amount in wanted.items() if amount.bytes}
    counted: Counter[str] = Counter()
    for topic in made["topics"]:
        counted.update(topic["codecs"])
    assert counted == codecs
    sizes = [topic["bytes"] for topic in made["topics"]]
    assert sizes == sorted(sizes, reverse=True)


@every
def test_clients_are_who_they_say(path: Path) -> None:
    """Their requests, by client id and software, in each version."""
    output = outside.software(path)
    wanted: dict[tuple[Any, Any], Counter[tuple[int, int]]] = defaultdict(Counter)
    known: dict[Any, set[Any]] = defaultdict(set)
    requests = [row for row in outside.rows(path) if row["dir"] == "req"]
    for row in requests:
        known[row["client_id"]].add(output.get(row["stream"]))
    for row in requests:
        software, others = output.get(row["stream"]), known[row["client_id"]] - {None}
        if software is None and len(others) == 1:
            software = next(iter(others))
        wanted[row["client_id"], software][row["api_key"], row["api_version"]] += 1
    made = report("clients", truth.capture_of(path))
    found = {
        (
            one["client_id"],
            one["software_name"] and (one["software_name"], one["software_version"]),
        ): {(call["api_key"], call["api_version"]): call["requests"] for call in one["calls"]}
        for one in made["clients"]
    }
    assert found == wanted
    assert sum(one["requests"] for one in made["clients"]) == len(requests)
    assert sum(one["request_bytes"] for one in made["clients"]) == sum(
        row["len"] + 4 for row in requests
    )


@every
def test_a_summary_has_all_of_it_from_one_reading(path: Path) -> None:
    capture = truth.capture_of(path)
    made = report("summary", capture)
    assert made["calls"] == report("latency", capture)["calls"]
    assert made["topics"] == report("topics", capture)["topics"]
    assert made["clients"] == report("clients", capture)["clients"]
    assert made["connections"]["protocols"]["kafka"] == len(
        {row["stream"] for row in outside.rows(path)}
    )
    assert made["packets"] == len(outside.times(capture))
    assert made["file_bytes"] == capture.stat().st_size
    messages = sum(row["len"] + 4 for row in outside.rows(path))
    assert made["payload"]["messages"] == messages
    assert made["payload"]["unaccounted"] == made["payload"]["missing"] == 0
    assert sum(broker["connections"] for broker in made["brokers"]) == len(
        {row["stream"] for row in outside.rows(path)}
    )


ETHERNET = ["kcat-kf", "kcat-kf--loss", "kcat-kf--mid", "kcat-kf--ooo", "kcat-kf--snap200"]


@pytest.mark.parametrize("name", [*ETHERNET, "kcat-kf--tinyloss", "kcat-kf--tinymid"])
def test_every_payload_byte_is_accounted_for(name: str) -> None:
    """What is captured is counted here from the packets' headers alone."""
    path = recording(f"{name}.pcap")
    payload = dict(report("summary", path)["payload"])
    assert payload.pop("captured") == sum(one.size for one in segments(path))
    assert payload.pop("unaccounted") == 0
    assert (payload.pop("missing") > 0) is name.endswith(("loss", "snap200"))
    assert sum(payload.values()) == sum(one.size for one in segments(path))


def test_files_of_a_rotated_set_are_one_capture() -> None:
    parts = own("mixed-a--rot?.pcap")
    whole = report("summary", recording("mixed-a.pcap"))
    made = report("summary", *reversed(parts))
    assert len(parts) == 8
    assert made["packets"] == whole["packets"]
    for key in ("connections", "calls", "topics", "clients", "groups", "payload", "codecs"):
        assert made[key] == whole[key], key


def test_a_stream_is_read_as_a_file_is() -> None:
    path = FIXTURES / "captures" / "ck-848.pcap"
    result = run("summary", "-", "--format", "json", stdin=path.read_bytes())
    assert result.exit_code == 0
    whole = run("summary", path, "--format", "json").stdout.replace(str(path), "-")
    assert result.stdout == whole


def test_problems_say_where_they_show_first() -> None:
    path = FIXTURES / "captures" / "kjs-all.pcap"
    (problem,) = report("summary", path)["problems"]
    error = "LeaveGroupResponse.members: 4 bytes wanted, 0 left (at byte 10)"
    first = {"file": str(path), "packet": 196, "error": error}
    assert problem == {"kind": "malformed", "count": 1, "bytes": 10, "first": first}


def test_top_cuts_lists_and_says_so() -> None:
    path = recording("mixed-a.pcap")
    made = report("summary", path, options=("--top", "2"))
    whole = report("summary", path)
    for kind in ("topics", "clients", "groups"):
        assert made[kind] == whole[kind][:2]
        assert made["left_out"][kind] == len(whole[kind]) - 2
        assert whole["left_out"][kind] == 0
    assert "... and 3 more topics (--top 13" in text("topics", path)
    by_records = report("topics", path, options=("--sort", "records"))["topics"]
    counts = [topic["records"] for topic in by_records]
    assert counts == sorted(counts, reverse=True) != [t["records"] for t in whole["topics"]]


@pytest.mark.parametrize("by", ["version", "client", "broker"])
def test_requests_are_grouped(by: str) -> None:
    path = recording("mixed-a.pcap")
    made = report("latency", path, options=("--by", by))
    added: Counter[str] = Counter()
    for call in made["calls"]:
        added[call["api_name"]] += call["requests"]
    assert added == outside.counts(recording("mixed-a.truth.jsonl.gz"), "req")
    keys = [(call["api_name"], call[by]) for call in made["calls"]]
    assert len(set(keys)) == len(keys) > len(added)


# -- as a person sees it


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("verb", ["summary", "latency", "topics", "clients", "groups"])
def test_lines_fit_the_terminal(verb: str, columns: int) -> None:
    path = recording("mixed-a.pcap")
    output = on_a_terminal(verb, path, columns=columns, NO_COLOR="1")
    lines = output.replace("\r\n", "\n").splitlines()
    plain = (re.sub(r"\x1b\[[012]*m", "", line) for line in lines)  # bold and dim are no colours
    assert 60 < max(map(len, plain)) <= columns


def test_titles_stand_out_on_a_terminal_and_only_there() -> None:
    path = FIXTURES / "captures" / "ck-848.pcap"
    assert "\x1b[1mRequests\x1b[0m" in on_a_terminal("summary", path)
    assert "\x1b" not in text("summary", path)


def test_in_a_pipe_nothing_is_folded() -> None:
    made = text("summary", FIXTURES / "captures" / "ck-848.pcap")
    line = next(line for line in made.splitlines() if line.startswith("  c848-A"))
    wanted = "c848-A confluent-kafka-python 2.16.1-rdkafka-2.16.0 127.0.0.1 4 107"
    assert " ".join(line.split()) == wanted


def test_untrusted_text_is_escaped(tmp_path: Path) -> None:
    evil = "\x1b]0;gotcha\x07"
    scenario = Scenario().request("Metadata", 1, topics=[{"name": evil}]).respond("Metadata", 1)
    scenario.request("JoinGroup", 5, groupId=evil, memberId=evil, protocolType="consumer")
    scenario.respond("JoinGroup", 5, memberId=evil, generationId=1).close()
    path = scenario.save(tmp_path / "evil.pcap")
    for verb in ("summary", "groups", "clients", "topics", "latency"):
        assert "\x1b" not in text(verb, path)
    assert "\\x1b]0;gotcha\\x07" in text("groups", path)


# -- the contract


def documented() -> dict[str, list[str]]:
    """Read the keys that the docs promise: those of a summary, and those of each verb's list."""
    page = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8").partition("### As JSON")[2]
    made: dict[str, list[str]] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and (of := re.fullmatch(r"`(\w+)` of `(\w+)`", cells[0])):
            keys = re.sub(r"\([^)]*\)", "", cells[1].partition(";")[0])
            made[of[2]] = re.findall(r"`(\w+)`", keys)
        elif line.startswith("| `"):
            made.setdefault("summary", []).extend(re.findall(r"`(\w+)`", cells[0]))
    return made


def test_json_has_the_keys_that_are_documented() -> None:
    path = recording("mixed-a.pcap")
    wanted = documented()
    assert list(report("summary", path)) == wanted["summary"]
    for verb, kind in (
        ("latency", "calls"),
        ("topics", "topics"),
        ("clients", "clients"),
        ("groups", "groups"),
    ):
        for one in report(verb, path)[kind]:
            assert sorted(one) == sorted(wanted[verb]), verb
    old = FIXTURES / "captures" / "kp22-old-0.9.pcap"
    made = report("readiness", old, options=("--target", "4.0"), code=1)
    assert sorted(made["not_ready"][0]) == sorted(wanted["readiness"])
    wanted_keys = ["target", "ready", "not_ready", "ready_clients", "not_judged", "left_out"]
    assert list(made) == wanted_keys


def test_json_is_json() -> None:
    """No NaN, no key that is none."""
    for verb in ("summary", "groups"):
        result = run(verb, FIXTURES / "captures" / "kp22-old-0.9.pcap", "--format", "json")
        json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))


def test_what_is_lenient_is_explained() -> None:
    """It stands under the problems of captures without any trouble."""
    explained = {
        name: "lenient:" in run("summary", FIXTURES / "captures" / f"{name}.pcap").stdout
        for name in ("ck-group-range", "kcat-kf")
    }
    kinds = {
        name: {
            each["kind"]
            for each in report("summary", FIXTURES / "captures" / f"{name}.pcap")["problems"]
        }
        for name in explained
    }
    assert explained == {name: "lenient" in found for name, found in kinds.items()}
    assert explained["ck-group-range"]
