"""Filters of messages: exchanges, order, bounds, names of topics."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.exchanges.exchanges import Ended, exchanges
from kafkawire.capture.filters import parse
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.selection import selecting
from kafkawire.capture.selection.selecting import Selection
from kafkawire.capture.tables import read, read_tables
from kafkawire.errors import FilterError
from tests.conftest import FIXTURES

CAPTURES = FIXTURES / "captures"
GROUP, NEW_GROUP, KCAT = (
    CAPTURES / f"{name}.pcap" for name in ("ck-group-range", "ck-848", "kcat-kf")
)


def is_part(part: list[Any], whole: list[Any]) -> bool:
    rest = iter(whole)
    return all(any(one == other for other in rest) for one in part)


def number_of(row: Row | None) -> tuple[Any, ...] | None:
    return None if row is None else (row.packet, row.direction, row.correlation_id)


def by_exchange(path: Path, holds: Callable[[Row, Row], bool]) -> set[Any]:
    """The messages of exchanges for which a condition holds."""
    found: set[Any] = set()
    for one in exchanges(Traffic([path])):
        a, b = one.request, one.response
        if a is not None and b is not None and holds(a, b):
            found |= {(one.connection, *(number_of(row) or ())) for row in (a, b)}
    return found


def selected(path: Path, where: str) -> list[Located]:
    found = list(decode_capture(path, where=where))
    assert is_part(found, list(decode_capture(path)))
    return found


def identified(found: list[Located]) -> set[Any]:
    return {(one.connection, *(number_of(one.row) or ())) for one in found}


def test_both_messages_of_an_exchange_match() -> None:
    slow = by_exchange(GROUP, lambda a, b: b.time_ns - a.time_ns > 100_000_000)
    found = selected(GROUP, "latency > 100ms")
    assert len(slow) > 50
    assert identified(found) == slow
    requests = selected(GROUP, "latency > 100ms and direction == request")
    assert 2 * len(requests) == len(found)
    failed = selected(GROUP, "error == REBALANCE_IN_PROGRESS")
    assert {one.row.direction for one in failed} == {"request", "response"}
    assert {one.row.api_name for one in failed} == {"Heartbeat", "OffsetCommit"}


def test_fields_of_the_other_message() -> None:
    """A Heartbeat response does not state its group, nor an OffsetCommit response."""
    found = selected(GROUP, "group == grp-range and direction == response")
    assert {"Heartbeat", "OffsetCommit"} <= {one.row.api_name for one in found}
    assert not selected(GROUP, "group == grp-range and group == other")


def test_conditions_on_messages_are_about_one_message() -> None:
    found = selected(KCAT, "size > 500 and direction == response")
    assert found
    assert all(one.row.length > 500 and one.row.direction == "response" for one in found)
    window = selected(KCAT, "packet >= 100 and packet < 120 and status == ok")
    assert [one.row.packet for one in window] == [
        one.row.packet for one in decode_capture(KCAT) if 100 <= one.row.packet < 120
    ]
    first = Traffic([KCAT])
    rows = list(first)
    assert first.first_ns is not None
    early = [
        one for one in rows if isinstance(one, Located) and one.row.time_ns < first.first_ns + 10**9
    ]
    assert 0 < len(early) < len(rows)
    assert selected(KCAT, "time < +1s") == early


def test_topics_by_names_that_are_stated_later() -> None:
    """Fetch requests of new clients have topic ids; a stream knows the names that it has seen."""
    names = {
        topic
        for batch in read(NEW_GROUP, "exchanges")
        for row in batch.to_pylist()
        if row["api_name"] == "ConsumerGroupHeartbeat"
        for topic in row["topics"]
    }
    for name in names:
        found = selected(NEW_GROUP, f"api == ConsumerGroupHeartbeat and topic == '{name}'")
        assert found
    stream = io.BytesIO(NEW_GROUP.read_bytes())
    assert identified(list(decode_capture(stream, where="topic ~ '*'"))) == identified(
        selected(NEW_GROUP, "topic ~ '*'")
    )


def test_what_is_in_no_exchange_matches_by_itself() -> None:
    path = CAPTURES / "ck-txn.pcap"
    every = list(decode_capture(path))
    assert selected(path, "latency > 1s or not latency > 1s") == every
    assert selected(path, "error == NONE or error != NONE") == every


# -- bounds


def made(packet: int, direction: str, *, api: str = "Fetch", request: int | None = None) -> Located:
    row = Row(packet, packet * 10**6, direction, 100, Status.OK, "", 1, api, 4, request or packet)
    if request is not None:
        row = row._replace(request_packet=request, request_time_ns=request * 10**6)
    return Located(0, "a:1", "b:2", row)


def test_requests_wait_for_responses_in_order() -> None:
    selection: Selection[Located] = Selection(parse("latency > 3ms or api == Produce"))
    first, second = made(1, "request"), made(2, "request")
    assert selection.handle([first]) == []
    assert selection.handle([second, made(3, "request", api="Produce")]) == []
    slow = made(7, "response", request=1)
    assert selection.handle([slow]) == [first]  # the second request is not decided
    fast = made(4, "response", request=2)
    assert selection.handle([fast]) == [made(3, "request", api="Produce"), slow]
    assert selection.finish() == []


def test_the_end_of_a_connection_decides() -> None:
    end = Ended(0, "a:1", "b:2", 1, 9, 1, 9, False)
    selection: Selection[Located] = Selection(parse("not latency > 3ms"))
    assert selection.handle([made(1, "request")]) == []
    assert selection.handle([end]) == [made(1, "request"), end]
    selection = Selection(parse("latency > 3ms"))
    assert selection.handle([made(1, "request"), end]) == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits too long is judged without its response, which knows its request."""
    monkeypatch.setattr(selecting, "MAX_WAITING", 10)
    selection: Selection[Located] = Selection(parse("latency > 3ms or api == Produce"))
    waiting = 0
    found: list[Any] = selection.handle([made(1, "request")])
    for packet in range(2, 1000):
        found += selection.handle([made(packet, "request", api="Produce")])
        waiting = max(waiting, packet - 1 - len(found))
    assert 5 < waiting <= 12
    late = made(2000, "response", request=1)
    found += selection.handle([late]) + selection.finish()
    assert found == [*(made(packet, "request", api="Produce") for packet in range(2, 1000)), late]


def test_whole_exchanges() -> None:
    where = parse("direction == response and size > 1")
    selection: Selection[Located] = Selection(where, whole=True)
    pair = [made(1, "request"), made(2, "response", request=1)]
    assert selection.handle(pair) == pair
    assert selection.handle([made(3, "request")]) + selection.finish() == []


# -- tables

TABLES = [
    ("exchanges", "latency > 100ms and api == Fetch", lambda r: (r["latency_ns"] or 0) > 10**8),
    ("exchanges", "error != NONE", lambda r: r["errors"]),
    ("exchanges", "size > 300", lambda r: max(r["request_bytes"], r["response_bytes"] or 0) > 300),
    ("messages", "direction == request and size > 50", lambda r: r["length"] > 50),
    ("records", "partition == 1 and api == Produce", lambda r: r["direction"] == "produce"),
    ("partitions", "error == NONE and topic ~ '*'", lambda r: r["error_code"] in (0, None)),
    ("connections", "client ~ 'cons*' and api == Fetch", lambda r: r["requests"] > 1),
    ("group_events", "group == grp-range and error == NONE", lambda r: not r["error_code"]),
    ("problems", "broker == 127.0.0.1", lambda r: r["broker"].startswith("127.0.0.1:")),
]


@pytest.mark.parametrize(("table", "where", "holds"), TABLES)
def test_rows_of_tables(table: str, where: str, holds: Callable[[Any], Any]) -> None:
    every = [row for batch in read(GROUP, table) for row in batch.to_pylist()]
    found = [row for batch in read(GROUP, table, where=where) for row in batch.to_pylist()]
    rest = [
        row for batch in read(GROUP, table, where=f"not ({where})") for row in batch.to_pylist()
    ]
    assert len(found) + len(rest) == len(every)
    assert is_part(found, every)
    assert all(holds(row) for row in found)
    assert found or table == "problems"


def test_several_tables_are_filtered_in_one_pass() -> None:
    names, where = ["exchanges", "records", "messages"], "client == cons-A"
    alone = {
        name: [row for batch in read(GROUP, name, where=where) for row in batch.to_pylist()]
        for name in names
    }
    together: dict[str, list[Any]] = {name: [] for name in names}
    for name, batch in read_tables(GROUP, names, where=where):
        together[name] += batch.to_pylist()
    assert together == alone
    assert alone["messages"]


def test_fields_that_a_table_lacks() -> None:
    message = (
        "table records has no latency; tables that have it: exchanges, messages (at character 17"
    )
    with pytest.raises(FilterError) as caught:
        read(GROUP, "records", where="topic == a and (latency > 1s)")
    assert str(caught.value).startswith(message)
    assert caught.value.text[caught.value.at :].startswith("latency")
