"""Real Kafka traffic through a faulty network and capture: every byte is accounted for, and no
message is invented.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, given, settings

from kafkawire.capture.engine import Engine
from kafkawire.capture.files.source import Capture, read_capture
from kafkawire.capture.frames.decoding import located
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.tcp.connection import Connection, Run
from kafkawire.capture.tcp.reassembly import Reassembler
from tests.conftest import FIXTURES
from tests.fuzzing import examples
from tests.recordings import ANY_CAPTURE, own, third_party

from .dialogue import Sent, goodbye, hello, packets
from .tcp.test_reassembly_properties import BLOCKS, FAULTS, Faults
from .wire import pcap

RECORDINGS = ["kcat-kf", "ck-group-range", "kjs-all", "ck-sll1"]
RUN_STATUSES = {Status.UNPARSED, Status.OTHER_PROTOCOL}
"""Statuses of rows with captured bytes of the streams that are not frames."""


class PartitionReference(NamedTuple):
    """A recorded connection: the bytes of each side in order, and their messages."""

    pieces: tuple[tuple[int, bytes], ...]
    rows: tuple[Row, ...]


@cache
def spoken(name: str) -> list[PartitionReference]:
    """Return the complete connections of a recording that are small enough to repeat."""
    path = FIXTURES / "captures" / f"{name}.pcap"
    parser, reassembler = PacketParser(), Reassembler()
    events = [e for block in read_capture(path) for e in reassembler.handle(parser.parse(block))]
    sent_by: dict[int, list[tuple[int, bytes]]] = {}
    for event in events + reassembler.handle(None):
        if isinstance(event, Run):
            sent_by.setdefault(event.connection.id, []).append((event.side, bytes(event.data)))
    rows: dict[int, list[Row]] = {}
    for found in decoded(path)[0]:
        if found.connection is not None:
            rows.setdefault(found.connection, []).append(found.row)
    return [
        PartitionReference(tuple(pieces), tuple(rows[number]))
        for number, pieces in sent_by.items()
        if all(row.is_message for row in rows[number])
        and 200 < sum(len(data) for _, data in pieces) < 4_000
    ]


class Ending:
    """Count the bytes of each side of each connection."""

    def __init__(self) -> None:
        self.sides: dict[tuple[int, int], Connection] = {}
        self.clients: dict[int, int] = {}

    def __call__(self, connection: Connection, client: int) -> None:
        self.clients[connection.id] = client
        for side in (0, 1):
            self.sides[connection.id, side] = connection


def decoded(source: Path | bytes, step: int = 1 << 15) -> tuple[list[Located], Ending, int]:
    """Decode a capture in blocks of `step` packets; also return its captured payload bytes."""
    capture = Capture([source]) if isinstance(source, bytes) else read_capture(source)
    ending = Ending()
    parser, engine = PacketParser(), Engine(on_end=ending)
    found: list[Located] = []
    payload = 0
    for block in capture:
        for at in range(0, len(block), step):
            segments = parser.parse(block[at : at + step])
            payload += int(segments.captured.sum())
            found += [located(one) for batch in engine.handle(segments) for one in batch]
    found += [located(one) for batch in engine.handle(None) for one in batch]
    return found, ending, payload


def account(found: list[Located], ending: Ending, payload: int) -> None:
    """Check that every payload byte is in exactly one row, or a retransmission."""
    result: Counter[tuple[int, int, str]] = Counter()
    for one in found:
        row, connection = one.row, one.connection
        assert connection is not None
        client = ending.clients[connection]
        side = client if row.direction == "request" else 1 - client
        if row.is_message:
            result[connection, side, "delivered"] += row.length + 4
        elif row.status is Status.TRUNCATED:
            size = 4 if row.length > len(row.raw) else 0  # of a frame, else of a size cut off
            result[connection, side, "delivered"] += size + len(row.raw)
        elif row.status in RUN_STATUSES:
            result[connection, side, "delivered"] += row.length
        elif row.status is Status.GAP:
            result[connection, side, "missing"] += row.length
        elif row.status is Status.DISCARDED:
            result[connection, side, "discarded"] += row.length
        elif row.status is Status.OUT_OF_ORDER:  # the response before it was lost
            assert row.length == 0
        else:
            assert row.status is Status.CONFLICT
            result[connection, side, "conflicting"] += row.length
    captured = 0
    for (connection, side), ended in ending.sides.items():
        totals = ended.totals[side]
        captured += totals.captured
        for kind in ("delivered", "missing", "discarded", "conflicting"):
            assert result.pop((connection, side, kind), 0) == getattr(totals, kind), (
                connection,
                side,
                kind,
            )
    assert not result
    assert captured == payload


def suffer(one: PartitionReference, faults: Faults) -> bytes:
    """Send the bytes in other segments over a faulty network, captured with faults."""
    rng = random.Random(faults.seed)
    at = [0, 0]
    sent: list[Sent] = []
    for side, data in one.pieces:
        rest = data
        while rest:
            size = rng.randint(1, max(faults.largest, len(data) // 40))
            acked = at[1 - side] if faults.acknowledged else 0
            sent.append(Sent(side, at[side], rest[:size], acked))
            at[side] += len(rest[:size])
            rest = rest[size:]
    seen: list[Sent] = []
    for each in sent:
        if rng.randrange(100) >= faults.lost:
            copies = 2 if rng.randrange(100) < faults.duplicated else 1
            if rng.randrange(100) < faults.cut:
                each = each._replace(captured=rng.randint(0, len(each.payload)))
            seen += [each] * copies
    order = sorted(range(len(seen)), key=lambda i: i + rng.random() * faults.reordered)
    result = [*hello(), *(seen[i] for i in order), *goodbye(*at)]
    return pcap(packets(result), magic=0xA1B23C4D)


def names(row: Row) -> tuple[object, ...]:
    return row.direction, row.length, row.correlation_id


def check_truth(one: PartitionReference, found: list[Located]) -> None:
    """Each reported message was sent, with the reported API and version."""
    sent = Counter(names(row) for row in one.rows)
    known = [(names(row), row.api_key, row.api_version, row.message) for row in one.rows]
    messages = [located.row for located in found if located.row.is_message]
    assert not Counter(map(names, messages)) - sent
    for row in messages:
        if row.status is Status.UNPAIRED or row.api_version is None:
            continue
        assert (names(row), row.api_key, row.api_version, row.message) in known, row


CONNECTIONS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name in RECORDINGS
    for number in range(len(spoken(name)))
]


def test_there_are_recordings() -> None:
    assert len(CONNECTIONS) >= 8


@settings(max_examples=examples(2), phases=[Phase.generate])
@given(FAULTS, BLOCKS)
@pytest.mark.parametrize(("name", "number"), CONNECTIONS)
def test_nothing_disappears_and_nothing_is_invented(
    name: str, number: int, faults: Faults, step: int
) -> None:
    one = spoken(name)[number]
    found, ending, payload = decoded(suffer(one, faults), step)
    account(found, ending, payload)
    check_truth(one, found)


@settings(max_examples=examples(2))
@given(FAULTS, BLOCKS)
@pytest.mark.parametrize(("name", "number"), CONNECTIONS)
def test_complete_captures_are_decoded_completely(
    name: str, number: int, faults: Faults, step: int
) -> None:
    one = spoken(name)[number]
    found, *_ = decoded(suffer(one, faults._replace(lost=0, cut=0, overlapping=0)), step)
    assert Counter(names(f.row) for f in found) == Counter(names(row) for row in one.rows)
    check_truth(one, found)


def everything() -> list[Path]:
    return [*own(ANY_CAPTURE), *third_party("public", ANY_CAPTURE)]


@pytest.mark.parametrize("path", everything(), ids=lambda path: path.name)
def test_every_payload_byte_of_every_capture_is_accounted_for(path: Path) -> None:
    found, ending, payload = decoded(path)
    account([one for one in found if one.connection is not None], ending, payload)
