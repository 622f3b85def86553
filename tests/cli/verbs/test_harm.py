"""What lists show first; normal errors, long polls and requests without a response apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.protocol import ErrorCode
from kafkawire.reports.exchanges import Slowest
from kafkawire_cli.input.options import DEFAULTS
from kafkawire_cli.input.sources import reading
from tests.capture.written import Scenario
from tests.cli.reports import report, run, text
from tests.conftest import FIXTURES
from tests.recordings import recording

MIXED = recording("mixed-a.pcap")
GROUP = recording("ck-group-range.pcap")
SWEEP = recording("fg-sweep-a.pcap")


def section(shown: str, title: str) -> list[list[str]]:
    """Return the cells of a section's rows, without its heading."""
    block = next(block for block in shown.split("\n\n") if block.startswith(f"{title}\n"))
    return [line.split() for line in block.splitlines()[2:]]


# -- order


def test_what_failed_comes_first() -> None:
    calls = report("latency", GROUP, options=("--by", "client"))["calls"]
    first = calls[0]
    assert (first["api_name"], first["client"]) == ("OffsetCommit", "cons-A")
    assert first["errors"] - first["expected_errors"] == 1
    assert [one["api_name"] for one in report("summary", GROUP)["calls"][:1]] == ["OffsetCommit"]


ORDERS: dict[str, Callable[[dict[str, Any]], int]] = {
    "requests": lambda one: one["requests"],
    "latency": lambda one: one["p99_ns"] or 0,
    "unanswered": lambda one: one["unanswered"],
    "errors": lambda one: one["errors"] - one["expected_errors"],
}


@pytest.mark.parametrize("order", ORDERS)
def test_entries_are_sorted_by_what_is_asked_for(order: str) -> None:
    calls = report("latency", MIXED, options=("--sort", order))["calls"]
    values = [ORDERS[order](one) for one in calls]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 1 or order == "errors"


def test_by_api_entries_have_the_order_of_their_keys() -> None:
    keys = [one["api_key"] for one in report("latency", MIXED, options=("--sort", "api"))["calls"]]
    assert keys == sorted(keys)


def test_clients_with_errors_come_before_busy_ones() -> None:
    clients = report("clients", GROUP)["clients"]
    harm = [(one["errors"] - one["expected_errors"], one["requests"]) for one in clients]
    assert harm == sorted(harm, reverse=True)
    assert harm[0][0] == 1
    busy = report("clients", MIXED, options=("--sort", "requests"))["clients"]
    requests = [one["requests"] for one in busy]
    assert requests == sorted(requests, reverse=True)


def test_groups_that_stood_still_longest_come_first() -> None:
    groups = report("groups", MIXED)["groups"]
    stopped = [one["stopped_ns"] for one in groups]
    assert stopped == sorted(stopped, reverse=True)
    assert stopped[0] > 0
    names = [
        one["group_id"] for one in report("groups", MIXED, options=("--sort", "group"))["groups"]
    ]
    assert names == sorted(names)


def transacted(folder: Path) -> Path:
    """Capture an id with many transactions, and those with an aborted, a long and an open one."""
    scenario = Scenario()
    commits: dict[str, list[int | None]] = {
        "many": [0, 0, 0],
        "aborted": [1],
        "long": [5],
        "open": [None],
    }
    for producer, (name, durations) in enumerate(commits.items()):
        for seconds in durations:
            scenario.request(
                "AddPartitionsToTxn", 3, v3AndBelowTransactionalId=name,
                v3AndBelowProducerId=producer,
                v3AndBelowTopics=[{"name": "orders", "partitions": [0]}],
            )  # fmt: skip
            results = [{"name": "orders", "resultsByPartition": [{"partitionIndex": 0}]}]
            scenario.respond("AddPartitionsToTxn", 3, resultsByTopicV3AndBelow=results)
            if seconds is None:
                continue
            scenario.wait(seconds)
            committed = name != "aborted"
            ended: dict[str, Any] = {
                "transactionalId": name,
                "producerId": producer,
                "committed": committed,
            }
            scenario.request("EndTxn", 3, **ended).respond("EndTxn", 3)
    return scenario.save(folder / "a.pcap")


@pytest.mark.parametrize(
    ("order", "ids"),
    [
        ("harm", ["open", "aborted", "long", "many"]),
        ("duration", ["long", "aborted", "many", "open"]),
        ("transactions", ["many", "aborted", "long", "open"]),
        ("id", ["aborted", "long", "many", "open"]),
    ],
)
def test_transactions_that_are_open_and_aborted_ones_come_first(
    order: str, ids: list[str], tmp_path: Path
) -> None:
    shown = report("transactions", transacted(tmp_path), options=("--sort", order))
    assert [one["transactional_id"] for one in shown["transactional_ids"]] == ids


INCIDENTS: Final = [
    FIXTURES / "incidents" / f"{name}.pcap.gz"
    for name in ("controlled-shutdowns", "disk-failures", "fenced-producers")
]
FINDING_ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "harm": lambda one: ["critical", "warning", "notice"].index(one["severity"]),
    "first": lambda one: one["first_time"],
    "time": lambda one: -one["cost"]["time_ns"],
    "count": lambda one: -one["count"],
}


@pytest.mark.parametrize("order", FINDING_ORDERS)
def test_findings_are_sorted_by_what_is_asked_for(order: str) -> None:
    findings = report("diagnose", *INCIDENTS, options=("--sort", order))["findings"]
    values = [FINDING_ORDERS[order](one) for one in findings]
    assert values == sorted(values)
    assert len(set(values)) > 1


def test_clients_of_which_most_requests_are_refused_come_first() -> None:
    clients = report("readiness", SWEEP, options=("--target", "4.0"), code=1)["not_ready"]
    refused = [sum(call["requests"] for call in one["calls"]) for one in clients]
    assert refused == sorted(refused, reverse=True)
    assert len(set(refused)) > 1


@pytest.mark.parametrize(
    "arguments", [("groups", "--sort", "lag"), ("transactions", "--sort", "id")]
)
def test_a_live_cluster_has_no_such_order(arguments: tuple[str, ...]) -> None:
    shown = run(*arguments, "-b", "localhost:1")
    assert shown.exit_code == 2
    assert "only allowed with captures" in shown.stderr


# -- errors


def test_errors_that_are_normal_are_apart() -> None:
    shown = text("latency", GROUP)
    assert section(shown, "Errors") == [["OffsetCommit", "REBALANCE_IN_PROGRESS", "1"]]
    assert section(shown, "Normal errors") == [
        ["ApiVersions", "UNSUPPORTED_VERSION", "11"],
        ["Heartbeat", "REBALANCE_IN_PROGRESS", "1"],
    ]


def test_a_mixture_of_codes_is_no_normal_error(tmp_path: Path) -> None:
    story = Scenario()
    for code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
        story.request("JoinGroup", 5, groupId="g", memberId="", protocolType="consumer")
        story.respond("JoinGroup", 5, errorCode=int(code), memberId="m", generationId=-1)
    [call] = report("latency", story.save(tmp_path / "join.pcap"))["calls"]
    assert (call["errors"], call["expected_errors"]) == (2, 1)


# -- requests without a response


def test_requests_without_a_response_are_listed() -> None:
    found = report("latency", MIXED)
    listed = found["unanswered"]
    assert [one["api_name"] for one in listed] == ["Metadata", "Metadata"]
    assert all(one["reset"] and one["waited_ns"] > 0 for one in listed)
    assert found["unanswered_polls"] == 5
    assert [row[0] for row in section(text("latency", MIXED), "No response")[:2]] == [
        "Metadata"
    ] * 2
    total = sum(one["unanswered"] for one in found["calls"])
    assert total == len(listed) + found["unanswered_polls"]


def test_connections_have_the_numbers_that_filters_select() -> None:
    calls = report("latency", MIXED, options=("--by", "connection"))["calls"]
    by_connection: Counter[str] = Counter()
    for one in calls:
        by_connection[one["connection"]] += one["requests"]
    number, requests = by_connection.most_common(1)[0]
    chosen = report("latency", MIXED, options=("--filter", f"connection == {number}"))["calls"]
    assert sum(one["requests"] for one in chosen) == requests
    listed = report("latency", MIXED)["unanswered"]
    shown = section(text("latency", MIXED), "No response")
    for one, row in zip(listed, shown, strict=False):
        assert str(one["connection"]) in row
        assert "(reset)" in row


def test_a_fetch_that_waited_too_long_is_one_of_them(tmp_path: Path) -> None:
    story = Scenario()
    story.request("Fetch", 4, replicaId=-1, maxWaitMs=1, minBytes=1, topics=[])
    for _ in range(5):  # five milliseconds go by
        story.request("Metadata", 1, 1, topics=[]).respond("Metadata", 1, 1)
    story.close()
    found = report("latency", story.save(tmp_path / "fetch.pcap"))
    assert [one["api_name"] for one in found["unanswered"]] == ["Fetch"]
    assert found["unanswered_polls"] == 0


def test_a_filter_finds_them() -> None:
    shown = run("decode", MIXED, "--filter", "answered == no", "--format", "jsonl").stdout
    rows = [json.loads(line) for line in shown.splitlines()]
    assert {row["direction"] for row in rows} == {"request"}
    calls = report("latency", MIXED)["calls"]
    assert len(rows) == sum(one["unanswered"] for one in calls)
    answered = run(
        "decode", MIXED, "--filter", "answered == yes and api == Metadata", "-f", "jsonl"
    )
    metadata = next(one for one in calls if one["api_name"] == "Metadata")
    assert len(answered.stdout.splitlines()) == 2 * metadata["responses"]
    table = run("decode", MIXED, "--table", "exchanges", "--filter", "answered == no").stdout
    assert len(table.splitlines()) == len(rows)


# -- long polls


def slowest(path: Path) -> list[tuple[str, int]]:
    """Return the APIs and latencies of the slowest exchanges."""
    collector = Slowest(
        5, 1, lambda exchange, _, latency: (exchange.main_row.api_name or "", latency)
    )
    with reading([str(path)], DEFAULTS) as captures:
        captures.read(collector)
    return collector.all


def test_long_polls_are_not_slow() -> None:
    assert "Fetch" in {one["api_name"] for one in report("latency", MIXED)["calls"]}
    apis = [api for api, _ in slowest(MIXED)]
    assert "Fetch" not in apis
    assert "JoinGroup" not in apis
    assert "Produce" in apis


def test_a_fetch_that_is_late_is_slow(tmp_path: Path) -> None:
    story = Scenario()
    story.request("Fetch", 4, replicaId=-1, maxWaitMs=1, minBytes=1, topics=[])
    late = story.last_request
    for _ in range(20):
        story.request("Metadata", 1, 1, topics=[]).respond("Metadata", 1, 1)
    story.last_request = late
    story.respond("Fetch", 4, responses=[])
    assert slowest(story.save(tmp_path / "late.pcap"))[0][0] == "Fetch"


# -- a long history


def test_the_middle_of_a_history_is_summarised() -> None:
    shown = run("groups", MIXED, "--group", "bulk-g", "--top", "3").stdout
    [middle] = [line for line in shown.splitlines() if line.startswith("  ...  ")]
    events = report("groups", MIXED, options=("--group", "bulk-g"))["groups"][0]["timeline"]
    kinds = [one["event"] for one in events[3:-3]]
    assert f"{len(kinds)} events" in middle
    assert f"{kinds.count('joined')} joins" in middle
    assert "the longest rebalance" in middle
