"""The work of each report grows as its input does, and its output is bounded.

Of ten times as many connections, clients, groups, members, partitions, ... a report takes at
most ten times the work, and some. Work is counted in lines run by the reports and by what they
read captures with (each round of a loop is one, of a comprehension too), not in seconds.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import typer

import kafkawire_cli
from kafkawire import reports
from kafkawire.capture import tables
from kafkawire.capture.exchanges import exchanges, topic_ids
from kafkawire.protocol.json_form import uuid_text
from kafkawire_cli.input.options import SHOWN, Form, ReportOptions
from kafkawire_cli.render.report import Section, print_sections
from kafkawire_cli.render.sections import By
from kafkawire_cli.verbs.captures import (
    capture_groups as groups,
)
from kafkawire_cli.verbs.captures import (
    capture_topics as topics,
)
from kafkawire_cli.verbs.captures import (
    capture_transactions as transactions,
)
from kafkawire_cli.verbs.captures import (
    clients,
    diagnose,
    latency,
    readiness,
    summary,
)
from tests.capture.written import BROKER, Scenario, response

from .reports import report, run, text

SMALL, LARGE = 12, 120
MARGIN = 1.1
"""How much more than ten times the work ten times the input may take."""


# -- captures of so many of one thing


def many_connections(n: int, scenario: Scenario) -> None:
    for at in range(n):
        scenario.request("Metadata", 1, at).respond("Metadata", 1, at).close(at)


def many_clients(n: int, scenario: Scenario) -> None:
    """Each with software, and on a second connection without."""
    for at in range(n):
        named = {"clientSoftwareName": f"s{at}", "clientSoftwareVersion": "1"}
        scenario.request("ApiVersions", 3, 2 * at, client_id=f"c{at}", **named)
        scenario.respond("ApiVersions", 3, 2 * at).close(2 * at)
        scenario.request("Metadata", 1, 2 * at + 1, client_id=f"c{at}").respond(
            "Metadata", 1, 2 * at + 1
        )


def many_software(n: int, scenario: Scenario) -> None:
    """One client id with ever another software."""
    for at in range(n):
        named = {"clientSoftwareName": f"s{at}", "clientSoftwareVersion": "1"}
        scenario.request("ApiVersions", 3, at, **named).respond("ApiVersions", 3, at)


def many_brokers(n: int, scenario: Scenario) -> None:
    """One client whose connections each make another call of ever more versions."""
    for at in range(n):
        scenario.request("Metadata", at % 12, at).respond("Metadata", at % 12, at)


def many_unread(n: int, scenario: Scenario) -> None:
    for at in range(n):
        scenario.send(BROKER, response("Metadata", 1, 7), at).close(at)


def many_groups(n: int, scenario: Scenario) -> None:
    for at in range(n):
        joined(scenario, f"g{at}", "m", 1, ["m"])


def many_members(n: int, scenario: Scenario) -> None:
    """All join, one waiting for the other; then the leader gets all of them."""
    members = [f"m{at}" for at in range(n)]
    for at, member in enumerate(members):
        joined(scenario, "g", member, 1, members if not at else [], at)
    for at, member in enumerate(members):
        scenario.request("Heartbeat", 3, at, groupId="g", memberId=member, generationId=1)
        scenario.respond("Heartbeat", 3, at, errorCode=27)


def many_rebalances(n: int, scenario: Scenario) -> None:
    """Of a group whose other members never get a response."""
    for at in range(n):
        scenario.request(
            "JoinGroup", 5, at + 1, groupId="g", protocolType="consumer", memberId=f"w{at}"
        )
        joined(scenario, "g", "m", at + 1, ["m"])


def many_leaves(n: int, scenario: Scenario) -> None:
    for at in range(n):
        joined(scenario, "g", f"m{at}", at + 1, [f"m{at}"], at)
        scenario.request("LeaveGroup", 1, at, groupId="g", memberId=f"m{at}")
        scenario.respond("LeaveGroup", 1, at)


def many_epochs(n: int, scenario: Scenario) -> None:
    """Each member that joins raises the epoch of all."""
    for at in range(n):
        name = "ConsumerGroupHeartbeat"
        scenario.request(name, 0, at, groupId="g", memberId=f"m{at}", memberEpoch=0)
        scenario.respond(name, 0, at, memberId=f"m{at}", memberEpoch=at + 1)


def many_commits(n: int, scenario: Scenario) -> None:
    """Each of another partition, by one member."""
    for at in range(n):
        committed(scenario, "t", at)


def many_topics(n: int, scenario: Scenario) -> None:
    """Fetched by id, committed by name, named only at the end."""
    for at in range(n):
        topic_id = uuid_text(bytes([1, *at.to_bytes(15, "big")]))
        there = {"partitionIndex": 0, "highWatermark": 100, "errorCode": 0}
        scenario.request(
            "Fetch", 13, topics=[{"topicId": topic_id, "partitions": [{"partition": 0}]}]
        )
        scenario.respond("Fetch", 13, responses=[{"topicId": topic_id, "partitions": [there]}])
        committed(scenario, f"t{at}", 0)
    for at in range(n):
        topic_id = uuid_text(bytes([1, *at.to_bytes(15, "big")]))
        scenario.request("Metadata", 12)
        scenario.respond("Metadata", 12, topics=[{"name": f"t{at}", "topicId": topic_id}])


def many_partitions(n: int, scenario: Scenario) -> None:
    """Refused, so that each partition counts."""
    refused = [{"index": at, "errorCode": 3} for at in range(n)]
    sent = [{"index": at} for at in range(n)]
    scenario.request("Produce", 8, acks=1, topicData=[{"name": "t", "partitionData": sent}])
    scenario.respond("Produce", 8, responses=[{"name": "t", "partitionResponses": refused}])


def many_errors(n: int, scenario: Scenario) -> None:
    for at in range(n):
        scenario.request("Heartbeat", 3, groupId="g", memberId="m", generationId=1)
        scenario.respond("Heartbeat", 3, errorCode=200 + at)


def many_transactional_ids(n: int, scenario: Scenario) -> None:
    """Each with a transaction that hangs, and one with an unknown end."""
    for at in range(n):
        same: Any = {"transactionalId": f"tx{at}", "producerId": at, "producerEpoch": 0}
        scenario.request("AddOffsetsToTxn", 3, **same, groupId="g").respond("AddOffsetsToTxn", 3)
        scenario.request("EndTxn", 3, **same).respond("EndTxn", 3, errorCode=48)
        scenario.request("AddOffsetsToTxn", 3, **same, groupId="g").respond("AddOffsetsToTxn", 3)


def many_transactions(n: int, scenario: Scenario) -> None:
    for at in range(n):
        same: Any = {"transactionalId": "tx", "producerId": 7, "producerEpoch": 0}
        scenario.request("AddOffsetsToTxn", 3, **same, groupId=f"g{at}")
        scenario.respond("AddOffsetsToTxn", 3)
        scenario.request("EndTxn", 3, **same, committed=at % 2 == 0).respond("EndTxn", 3)


def joined(
    scenario: Scenario, group: str, member: str, generation: int, members: list[str], at: int = 0
) -> None:
    scenario.request("JoinGroup", 5, at, groupId=group, memberId=member, protocolType="consumer")
    scenario.respond(
        "JoinGroup", 5, at, generationId=generation, memberId=member, protocolName="range",
        leader=member, members=[{"memberId": one} for one in members],
    )  # fmt: skip
    scenario.request("SyncGroup", 3, at, groupId=group, memberId=member, generationId=generation)
    scenario.respond("SyncGroup", 3, at)


def committed(scenario: Scenario, topic: str, partition: int) -> None:
    one = {"partitionIndex": partition, "committedOffset": 5}
    topics = [{"name": topic, "partitions": [one]}]
    scenario.request("OffsetCommit", 7, groupId="g", memberId="m", topics=topics)
    scenario.respond(
        "OffsetCommit", 7, topics=[{"name": topic, "partitions": [{"partitionIndex": partition}]}]
    )


DIMENSIONS: dict[str, Callable[[int, Scenario], None]] = {
    name.removeprefix("many_"): made
    for name, made in list(globals().items())
    if name.startswith("many_")
}
REPORTS: dict[str, Callable[[list[str], ReportOptions], None]] = {
    "summary": summary.summary,
    "diagnose": lambda given, options: diagnose.diagnose(given, options=options),
    "latency": lambda given, options: latency.latency(given, By.CLIENT, options),
    "topics": lambda given, options: topics.topics(given, options=options),
    "clients": clients.clients,
    "groups": lambda given, options: groups.groups(given, options=options),
    "transactions": transactions.transactions,
    "readiness": lambda given, options: readiness.readiness(given, "4.0", options),
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """Make a capture of so many of something, once."""
    folder = tmp_path_factory.mktemp("growth")

    def made(dimension: str, n: int) -> Path:
        path = folder / f"{dimension}-{n}.pcap"
        if not path.exists():
            scenario = Scenario()
            DIMENSIONS[dimension](n, scenario)
            scenario.save(path)
        return path

    return made


WATCHED = (
    *(package.__path__[0] for package in (kafkawire_cli, reports, tables)),
    topic_ids.__file__,
    exchanges.__file__,
)
"""Where the code is whose lines are counted: what is compiled, is compiled for its speed."""


@cache
def is_watched(file: str) -> bool:
    return file.startswith(WATCHED)


@contextlib.contextmanager
def counted() -> Iterator[list[int]]:
    """Count the lines that are run of the code that is watched."""
    made = [0]

    def line(_frame: FrameType, event: str, _argument: object) -> Any:
        made[0] += event == "line"
        return line

    def call(frame: FrameType, _event: str, _argument: object) -> Any:
        return line if is_watched(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield made
    finally:
        sys.settrace(before)


def make(name: str, path: Path, form: Form) -> None:
    """Make a report, with all entries of all lists."""
    code = 0
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            REPORTS[name]([str(path)], ReportOptions(every=True, form=form))
        except typer.Exit as error:
            code = error.exit_code
    assert code in (0, 1)  # 1: clients are not ready


def work(name: str, path: Path, form: Form) -> int:
    """Count the lines that a report takes to make."""
    with counted() as lines:
        make(name, path, form)
    return lines[0]


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("name", REPORTS)
def test_work_grows_as_the_input_does(
    name: str, dimension: str, captures: Callable[[str, int], Path]
) -> None:
    small, large = captures(dimension, SMALL), captures(dimension, LARGE)
    for form in Form:
        make(name, small, form)  # what is made once
        ten_times = work(name, large, form) / work(name, small, form)
        assert ten_times <= 10 * MARGIN, form


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(
    "name", ["summary", "diagnose", "latency", "topics", "clients", "groups", "transactions"]
)
def test_text_reports_are_bounded(
    name: str, dimension: str, captures: Callable[[str, int], Path]
) -> None:
    lines = text(name, captures(dimension, LARGE)).splitlines()
    # a clients report has up to 7 lines for each, a groups report its members and timeline
    assert len(lines) <= (50 * SHOWN if name == "groups" else 15 * SHOWN)


def test_omitted_entries_are_counted(captures: Callable[[str, int], Path]) -> None:
    path = captures("clients", LARGE)
    more = LARGE - SHOWN
    assert f"... and {more} more clients (--top {LARGE} or --all shows them)" in text(
        "clients", path
    )
    assert f"... and {more} more clients (--top {LARGE} or --all shows them)" in text(
        "summary", path
    )
    path = captures("groups", LARGE)
    assert f"... and {more} more groups (--top {LARGE} or --all shows them)" in text("groups", path)
    path = captures("members", LARGE)
    made = text("groups", path)
    assert f"... and {more} more members (--top {LARGE} or --all shows them)" in made
    assert "joins" in next(line for line in made.splitlines() if line.startswith("  ...  "))
    path = captures("unread", LARGE)
    assert "Not decoded" in text("clients", path)


@pytest.mark.parametrize(
    ("name", "dimension", "key"),
    [("clients", "clients", "clients"), ("groups", "groups", "groups"), ("topics", "topics", "")],
)
def test_json_is_complete_unless_top_bounds_it(
    name: str, dimension: str, key: str, captures: Callable[[str, int], Path]
) -> None:
    path = captures(dimension, LARGE)
    whole, bounded = report(name, path), report(name, path, options=("--top", "3"))
    if not key:
        assert whole["left_out"] == bounded["left_out"] == 0  # nothing was produced or fetched
        return
    assert (len(whole[key]), whole["left_out"]) == (LARGE, 0)
    assert (len(bounded[key]), bounded["left_out"]) == (3, LARGE - 3)
    assert bounded[key] == whole[key][:3]
    assert report(name, path, options=("--all",)) == whole


def test_all_shows_all(captures: Callable[[str, int], Path]) -> None:
    path = captures("members", LARGE)
    made = run("groups", path, "--all")
    assert made.exit_code == 0
    assert "--all" not in made.stdout
    for at in range(LARGE):
        assert f"m{at}" in made.stdout
    wrong = run("groups", path, "--all", "--top", "3")
    assert wrong.exit_code == 2
    assert "not allowed together with --top" in wrong.output


def test_printing_takes_work_as_there_are_rows() -> None:
    def printing(rows: int) -> int:
        section = Section("T", ("a", ">b"), [(f"name {at}", str(at)) for at in range(rows)])
        with contextlib.redirect_stdout(io.StringIO()), counted() as lines:
            print_sections([section])
        return lines[0]

    printing(1)
    assert printing(1000) <= 10 * MARGIN * printing(100)


def test_json_stays_json(captures: Callable[[str, int], Path]) -> None:
    for dimension in ("members", "epochs"):
        json.dumps(report("groups", captures(dimension, SMALL)), allow_nan=False)
