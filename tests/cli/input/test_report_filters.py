"""`--filter` of each verb that counts: what does not match is not counted."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.filters import Values, parse
from kafkawire.capture.filters.unmatched import Unmatched
from kafkawire.capture.frames.decoding import located
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located
from kafkawire.capture.selection.selecting import Selection
from tests.cli.reports import COMMAND, run
from tests.conftest import FIXTURES

CAPTURE = str(FIXTURES / "captures" / "kjs-all.pcap")
TXN = str(FIXTURES / "captures" / "ck-txn.pcap")
HEARTBEATS = ("--filter", "api == Heartbeat")


def counted(*words: str) -> Any:
    done = run(*words, "-f", "json")
    assert done.exit_code in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("verb", ["summary", "latency"])
def test_apis(verb: str) -> None:
    assert len(counted(verb, CAPTURE)["calls"]) > 5
    [call] = counted(verb, CAPTURE, *HEARTBEATS)["calls"]
    assert (call["api_name"], call["requests"], call["responses"]) == ("Heartbeat", 10, 10)
    assert counted(verb, CAPTURE, *HEARTBEATS, "--filter", "latency > 1min")["calls"] == []


def test_topics() -> None:
    assert [each["topic"] for each in counted("topics", CAPTURE)["topics"]] == ["kjs", "kjs-c"]
    [topic] = counted("topics", CAPTURE, "--filter", "api == Produce and topic == kjs")["topics"]
    assert topic["records"] == 24
    assert counted("topics", CAPTURE, "--filter", "topic == others")["topics"] == []


def test_clients() -> None:
    [client] = counted("clients", CAPTURE, *HEARTBEATS)["clients"]
    assert [each["api_name"] for each in client["calls"]] == ["Heartbeat"]
    assert counted("clients", CAPTURE, "--filter", "client == others")["clients"] == []


def test_groups() -> None:
    assert counted("groups", CAPTURE, "--filter", "group ~ 'KJS*'")["groups"]
    assert counted("groups", CAPTURE, "--filter", "not group ~ 'kjs*'")["groups"] == []


def test_readiness() -> None:
    words = ("readiness", CAPTURE, "--target", "4.0")
    assert counted(*words, *HEARTBEATS)["ready_clients"]
    assert counted(*words, "--filter", "client == others")["ready_clients"] == []


def test_transactions() -> None:
    assert counted("transactions", TXN)["transactional_ids"]
    assert counted("transactions", TXN, "--filter", "topic == others")["transactional_ids"] == []


def test_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("report", CAPTURE, *HEARTBEATS, "-o", str(page))
    assert done.exit_code == 0, done.stderr
    data = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text())
    assert data
    assert "Heartbeat" in data[0]
    assert "OffsetCommit" not in data[0]


def test_live_rates() -> None:
    busiest = {line.split()[-1] for line in run("top", CAPTURE).stdout.splitlines()[1:]}
    assert "Metadata" in busiest
    done = run("top", CAPTURE, "--filter", "api == Produce")
    assert {line.split()[-1] for line in done.stdout.splitlines()[1:]} == {"Produce"}


@pytest.mark.parametrize(
    "words",
    [
        *((verb, CAPTURE) for verb in ("summary", "latency", "topics", "clients", "groups", "top")),
        ("readiness", CAPTURE, "--target", "4.0"),
        ("transactions", CAPTURE),
        ("report", CAPTURE, "-o", "/nowhere/page.html"),
    ],
    ids=lambda words: words[0],
)
def test_a_misspelt_name_is_a_usage_error(words: tuple[str, ...]) -> None:
    done = run(*words, "--filter", "api == Heartbat")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "unknown API 'Heartbat'; did you mean Heartbeat?" in done.stderr


REPORTS = ["diagnose", "summary", "latency", "topics", "clients", "groups", "transactions"]


@pytest.mark.parametrize("verb", REPORTS)
def test_a_filter_that_matches_nothing_is_named(verb: str) -> None:
    path = FIXTURES / "captures" / "ck-group-range.pcap"
    assert "nothing matches the filter" in run(verb, path, "--filter", "client == 'x'").stderr
    assert "nothing matches" not in run(verb, path, "--filter", "api == Fetch").stderr
    assert "nothing matches" not in run(verb, path).stderr


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("topic == kjz", "no topic 'kjz' among kjs, kjs-c, kjsa; did you mean kjs?"),
        ("api == Produce and topic == kjs-d", "no topic 'kjs-d' among "),
        ("topic ~ 'other*'", "no topic matches 'other*' among kjs, kjs-c"),
        ("topic in (a1, b1)", "no topic 'a1' or 'b1' among kjs, kjs-c"),
        ("api == DeleteTopics", "no API 'DeleteTopics' among "),
        ("group == kjs-grp", "no group 'kjs-grp' among "),
        ("error == NOT_CONTROLLER", "no error code 'NOT_CONTROLLER' among NONE, "),
        ("topic == kjs and not topic == kjs", ""),
        ("size > 1GB", ""),
    ],
)
def test_what_nothing_matches_has_the_names_that_there_are(where: str, hint: str) -> None:
    [note] = run("summary", CAPTURE, "--filter", where).stderr.splitlines()
    assert note.startswith(f"kafkawire summary: nothing matches the filter{hint and f': {hint}'}")
    assert hint or note.endswith("filter")


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("form", ["jsonl", "table", "tree"])
def test_decode_says_that_nothing_matches(tmp_path: Path, form: str, jobs: int) -> None:
    """With four jobs and files, each worker reads files of its own."""
    copies = [str(tmp_path / f"{number}.pcap") for number in range(4)]
    for copy in copies[1:]:
        Path(copy).write_bytes(Path(TXN).read_bytes())
    Path(copies[0]).write_bytes(Path(CAPTURE).read_bytes())
    read = ("decode", *copies, "-f", form, "-j", str(jobs))
    [note] = run(*read, "--filter", "topic == kjz").stderr.splitlines()
    assert note.startswith("kafkawire decode: nothing matches the filter: no topic 'kjz' among ")
    assert note.endswith("did you mean kjs?")
    assert run(*read, "--filter", "topic == kjs").stderr == ""
    assert run(*read).stderr == ""


def test_decode_of_frames_and_rotated_files_says_that_nothing_matches(tmp_path: Path) -> None:
    frame = "0000001500000001000000070004636c6931" + "0002673100000005"  # ListOffsets, cut off
    where = ("--filter", "client == cli2")
    note = "nothing matches the filter: no client 'cli2' among "
    assert note in run("decode", frame, *where).stderr
    assert note in run("decode", CAPTURE, "--rotated", *where).stderr
    source = tmp_path / "stdin.pcap"
    source.write_bytes(Path(CAPTURE).read_bytes())
    with source.open("rb") as stream:
        done = subprocess.run([*COMMAND, "decode", "-", *where], stdin=stream, capture_output=True)
    assert note in done.stderr.decode()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_empty_table_says_that_nothing_matches(tmp_path: Path, jobs: str) -> None:
    read = ("decode", CAPTURE, "--table", "exchanges", "-j", jobs, "-o", str(tmp_path / "a.csv"))
    assert "nothing matches the filter" in run(*read, "--filter", "topic == kjz").stderr
    strict = run(*read, "--strict", "--filter", "api == DeleteTopics")  # problems are not shown
    assert "nothing matches the filter" in strict.stderr
    assert run(*read, "--filter", "topic == kjs").stderr == ""


def test_rates_of_nothing_have_a_reason() -> None:
    done = run("top", CAPTURE, "--filter", "topic == kjz")
    assert done.stderr.startswith("kafkawire top: nothing matches the filter: no topic 'kjz' ")
    assert run("top", CAPTURE, "--filter", "topic == kjs").stderr == ""


def test_values_are_kept_until_something_matches() -> None:
    """They cost nothing then."""
    where = parse("topic == kjs-c")
    kept: list[str] = []

    class Counted(Unmatched):
        def add(self, field: str, values: Values) -> Values:
            kept.extend(values.found)
            return super().add(field, values)

    traffic = Traffic([CAPTURE])
    selection = Selection[Located](where, traffic, unmatched=Counted(where))
    matched = 0
    for batch in traffic.batches():
        for item in batch:
            before, has_matched = len(kept), matched > 0
            matched += len(selection.handle([item if isinstance(item, Ended) else located(item)]))
            assert not has_matched or len(kept) == before
    assert matched
