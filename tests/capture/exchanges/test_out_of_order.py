"""Responses that do not come in the order of their requests: every way to pair them agrees."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.capture.exchanges import in_flight, waiting
from kafkawire.capture.exchanges.exchanges import exchanges
from kafkawire.capture.exchanges.in_flight import IN_QUEUE, InFlightRequests, Total
from kafkawire.capture.exchanges.message_pairs import MessagePairs, exchange_key
from kafkawire.capture.exchanges.waiting import WaitingResponse, WaitingResponses
from kafkawire.capture.frames.framing import Mark
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.snapshot import attributes
from tests.capture.shuffled import (
    BROKER,
    CLIENT,
    fetch,
    request,
    response,
    shuffled,
    written,
)
from tests.capture.tables.table_tasks import Split, whole
from tests.cli.reports import run
from tests.conftest import FIXTURES

FIELD: Final = FIXTURES / "field" / "04-out-of-order.pcap"
PRODUCE: Final = ("Produce", 7)
Pairs = Counter[tuple[int | None, int | None]]


@pytest.fixture
def capture(tmp_path: Path) -> Callable[..., Path]:
    def write(*given: Any, **options: Any) -> Path:
        path = tmp_path / "shuffled.pcap"
        path.write_bytes(written(*given, **options))
        return path

    return write


def rows_of(path: Path) -> list[Row]:
    return [one.row for one in Traffic([path]) if isinstance(one, Located)]


def of_rows(path: Path) -> Pairs:
    """The pairs that the rows of a capture state."""
    rows = [row for row in rows_of(path) if row.is_message]
    pairs = Counter((row.request_packet, row.packet) for row in rows if row.direction == "response")
    paired = {request for request, _ in pairs}
    alone = [r.packet for r in rows if r.direction == "request" and r.packet not in paired]
    return pairs + Counter((packet, None) for packet in alone)


def of_exchanges(path: Path) -> Pairs:
    found = exchanges(Traffic([path]))
    return Counter(
        (one.request and one.request.packet, one.response and one.response.packet) for one in found
    )


def of_table(rows: list[dict[str, Any]]) -> Pairs:
    return Counter((row["packet"], row["response_packet"]) for row in rows)


def paired(path: Path) -> Pairs:
    """The pairs of a capture, which are the same in every way to find them."""
    pairs = of_rows(path)
    assert of_exchanges(path) == pairs
    tables = whole([path], ["exchanges", "partitions"])
    assert of_table(tables["exchanges"]) == pairs
    for max_bytes in (1, 300, 1 << 20):
        assert Split([path], ["exchanges", "partitions"], max_bytes).rows == tables
    return pairs


def exchange(id: int) -> list[tuple[int, bytes]]:
    return [(CLIENT, request(id)), (BROKER, response(id))]


def notes(path: Path) -> list[Row]:
    return [row for row in rows_of(path) if row.status is Status.OUT_OF_ORDER]


def test_the_case_from_the_field() -> None:
    assert paired(FIELD) == Counter({(4, 9): 1, (5, 8): 1, (6, 11): 1, (7, 10): 1})
    assert Counter(row.status for row in rows_of(FIELD)) == {Status.OK: 8, Status.OUT_OF_ORDER: 2}
    assert [(row.packet, row.length) for row in notes(FIELD)] == [(8, 0), (10, 0)]
    assert "no response" not in run("latency", str(FIELD)).stdout
    assert run("decode", str(FIELD), "--strict").exit_code == 1
    problems = whole([FIELD], ["problems"])["problems"]
    assert [row["kind"] for row in problems] == ["out_of_order"] * 2
    assert "out of order" in run("summary", str(FIELD)).stdout


@pytest.mark.parametrize("where", ["latency >= 0ms", "packet == 9", "error == none"])
def test_reports_of_a_selection_pair_alike(where: str) -> None:
    done = run("latency", str(FIELD), "--filter", where)
    assert done.exit_code == 0, done.stderr
    assert "no response" not in done.stdout
    assert "without a request" not in done.stdout


@pytest.mark.parametrize("seed", range(6))
def test_any_order_is_paired_by_correlation_id(seed: int, capture: Callable[..., Path]) -> None:
    rng = random.Random(seed)
    frames = shuffled(rng, 60, window=rng.choice((2, 9, 60)))
    path = capture(frames)
    ids = [int.from_bytes(frame[8:12] if side == CLIENT else frame[4:8]) for side, frame in frames]
    first = 4  # the packets of the handshake are before
    asked = {id: first + at for at, id in enumerate(ids) if frames[at][0] == CLIENT}
    answered = {id: first + at for at, id in enumerate(ids) if frames[at][0] == BROKER}
    assert paired(path) == Counter((asked[id], answered[id]) for id in asked)
    assert notes(path)


@pytest.mark.parametrize("seed", range(4))
def test_lost_packets_never_pair_wrongly(seed: int, capture: Callable[..., Path]) -> None:
    rng = random.Random(seed)
    frames = shuffled(rng, 60)
    path = capture(frames, lost=rng.sample(range(120), 12))
    found = {row.packet: row for row in rows_of(path) if row.is_message}
    for sent, received in paired(path):
        if sent in found and received in found:
            assert found[sent].correlation_id == found[received].correlation_id


@pytest.mark.parametrize("seed", range(4))
def test_a_capture_from_the_middle_with_swapped_directions(
    seed: int, capture: Callable[..., Path]
) -> None:
    """Responses are captured before their requests, as where each direction has its own tap."""
    rng = random.Random(seed)
    frames = [pair for id in range(1, 30) for pair in exchange(id)]
    for at in sorted(rng.sample(range(0, 56, 2), 9)):
        frames[at], frames[at + 1] = frames[at + 1], frames[at]
    frames[0], frames[1] = (BROKER, response(1)), (CLIENT, request(1))
    path = capture(frames, begins=False)
    assert all(sent and received for sent, received in paired(path))
    assert not notes(path)
    assert "no response" not in run("latency", str(path)).stdout


def test_a_lost_response_is_concluded_with_the_next_one(capture: Callable[..., Path]) -> None:
    frames = [(CLIENT, request(1)), (CLIENT, request(2)), (BROKER, response(1))]
    path = capture([*frames, (BROKER, response(2)), (CLIENT, request(3))], lost=[2])
    assert paired(path) == Counter({(4, None): 1, (5, 6): 1, (7, None): 1})
    assert not notes(path)
    done = [(one.request and one.request.correlation_id) for one in exchanges(Traffic([path]))]
    assert done == [1, 2, 3]


def test_produce_without_acks_has_no_response_and_breaks_no_order(
    capture: Callable[..., Path],
) -> None:
    for version in (0, 2, 3, 8, 9, 11):
        silent = request(1, "Produce", version, acks=0, timeoutMs=1)
        path = capture([(CLIENT, silent), (CLIENT, request(2)), (BROKER, response(2))])
        assert paired(path) == Counter({(4, None): 1, (5, 6): 1})
        assert not notes(path)
        loud = request(1, "Produce", version, acks=-1, timeoutMs=1)
        path = capture([(CLIENT, loud), (CLIENT, request(2)), (BROKER, response(2))])
        assert len(notes(path)) == 1


def test_an_overtaken_request_is_given_up_some_responses_later(
    capture: Callable[..., Path],
) -> None:
    later = [pair for id in range(2, waiting.MAX_LATE + 9) for pair in exchange(id)]
    path = capture([(CLIENT, request(1)), *later, (BROKER, response(1))])
    pairs = paired(path)
    assert pairs[4, None] == 1
    assert pairs[None, 4 + len(later) + 1] == 1
    assert [row.correlation_id for row in notes(path)] == [2]


def test_an_id_that_is_used_again_is_not_that_of_an_overtaken_request(
    capture: Callable[..., Path],
) -> None:
    frames = [(CLIENT, request(1)), (CLIENT, request(2)), (BROKER, response(2))]
    path = capture([*frames, (CLIENT, request(1)), (BROKER, response(1))])
    assert paired(path) == Counter({(4, None): 1, (5, 6): 1, (7, 8): 1})


def test_one_id_for_all_is_paired_in_order(capture: Callable[..., Path]) -> None:
    path = capture([(CLIENT, request(5))] * 20 + [(BROKER, response(5))] * 20)
    assert paired(path) == Counter((4 + at, 24 + at) for at in range(20))


def test_more_in_flight_than_the_limit_is_given_up_alike(capture: Callable[..., Path]) -> None:
    count = in_flight.MAX_IN_FLIGHT + 50
    frames = [(CLIENT, request(id)) for id in range(count)]
    path = capture(frames + [(BROKER, response(id)) for id in range(count)])
    pairs = paired(path)
    assert sum(sent is not None and received is not None for sent, received in pairs) == count - 50
    assert sum(received is None for _, received in pairs) == 50


def test_fetch_sessions_go_on_behind_a_response_out_of_order(capture: Callable[..., Path]) -> None:
    sent, received = zip(*(fetch(id) for id in range(1, 4)), strict=True)
    frames = [*((CLIENT, each) for each in sent), *((BROKER, received[at]) for at in (1, 0, 2))]
    assert len(paired(capture(frames))) == 3


def test_the_oldest_of_all_connections_are_given_up() -> None:
    pairs: MessagePairs[Row] = MessagePairs()
    count, connections = 4_000, 20
    done = []
    for number in range(count):
        for connection in range(connections):
            row = Row(number + 1, 0, "request", 10, Status.OK, correlation_id=number)
            pairs.request(connection, "c", "b", exchange_key(number + 1, number), 10, row)
            done += pairs.take()
    over = count * connections - in_flight.MAX_TOTAL
    assert [(one.ends.connection, one.request and one.request.packet) for one in done] == [
        (at % connections, at // connections + 1) for at in range(over)
    ]
    assert len(pairs.in_flight()) == in_flight.MAX_TOTAL
    pairs.finish()
    assert len(pairs.take()) == in_flight.MAX_TOTAL


def test_memory_does_not_grow_with_requests_behind_one_without_a_response() -> None:
    total: Total[int] = Total()
    idle: InFlightRequests[int] = InFlightRequests(total)
    idle.add(1, 10, 1)
    busy: InFlightRequests[int] = InFlightRequests(total)
    for number in range(10_000):
        busy.add(number, 10, number)
        assert busy.complete(number) == number
    assert len(attributes(total)["_order"]) < 100
    assert (len(idle), len(busy), attributes(total)["_count"]) == (1, 0, 1)


# -- work


def one_id(count: int) -> InFlightRequests[int]:
    """Requests with one correlation id, of which most exceed the limit, and responses to all."""
    requests: InFlightRequests[int] = InFlightRequests(Total())
    for number in range(count):
        requests.add(number << 33, 10, number)
    for number in range(count):
        requests.complete(number << 33)
        requests.overtake(number << 33 | 1)
    return requests


def reversed_order(count: int) -> InFlightRequests[int]:
    """Requests in blocks whose responses come in reverse."""
    requests: InFlightRequests[int] = InFlightRequests(Total())
    for start in range(0, count, 500):
        for number in range(start, start + 500):
            requests.add(number, 10, number)
        for number in reversed(range(start, start + 500)):
            requests.overtake(number)
            assert requests.complete(number) == number
    return requests


def never_empty(count: int) -> InFlightRequests[int]:
    """Many requests in flight, each response to the second of them, and to unknown ones."""
    requests: InFlightRequests[int] = InFlightRequests(Total())
    for number in range(count):
        requests.add(number, 10, number)
        if number > 1000:
            requests.overtake(number - 900)
            requests.complete(number - 900)
            assert requests.complete(-number) is None
    return requests


@pytest.mark.parametrize("work", [one_id, reversed_order, never_empty])
def test_work_for_each_message_is_constant(work: Callable[[int], InFlightRequests[int]]) -> None:
    some, more = int(work(6_000).visited), int(work(60_000).visited)
    assert more <= 10.5 * some + 10
    assert more <= 4 * 60_000


def test_work_for_responses_that_wait_is_constant() -> None:
    def visited(count: int) -> int:
        kept = WaitingResponses()
        for number in range(count):
            id = (1_000_000 + number).to_bytes(4, "big")
            kept.add(WaitingResponse(id, Mark(0, 1, 1), number, 0))
            kept.take_surplus()
            kept.take_passed(5, 0)
            if number % 3 == 0:
                assert kept.take(1_000_000 + number) is not None
        return int(kept.visited)

    assert visited(30_000) <= 10.5 * visited(3_000)


@pytest.mark.parametrize("seed", range(5))
def test_requests_that_are_restored_go_on_alike(seed: int) -> None:
    rng = random.Random(seed)
    ours: InFlightRequests[int] = InFlightRequests(Total())
    theirs: InFlightRequests[int] = InFlightRequests(Total())
    for number in range(3_000):
        id = rng.randrange(number + 3)
        for each in (ours, theirs):
            each.add(number, 10, number)
            if number % 3 == 0:
                each.overtake(id)
            each.complete(id)
        if number % 50 == 0:
            restored: InFlightRequests[int] = InFlightRequests(Total())
            for request, age in theirs.requests():
                restored.restore(request, 10, request, age)
            restored.given_up = theirs.given_up
            theirs = restored
        assert len(ours) == len(theirs)
    assert ours.take_given_up() == theirs.take_given_up()
    assert ours.requests() == theirs.requests()
    assert any(age != IN_QUEUE for _, age in ours.requests())
