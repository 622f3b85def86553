"""The events of a connection depend on its own packets alone: not on how the capture is split into
blocks, nor on what lies between them. It is what lets Spark move packets by connection.
"""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segments import Segments
from kafkawire.capture.tcp.connection import Run
from kafkawire.capture.tcp.events import Closed, Event
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from kafkawire.capture.tcp.reassembly import Reassembler
from tests.fuzzing import examples

from .dialogue import Sent, packets
from .wire import pcap, read

PORTS = (50001, 50002, 50003)
QUICK = replace(
    DEFAULT_REASSEMBLY,
    gap_timeout_ns=30_000_000,
    reorder_ns=3_000_000,
    silence_ns=5_000_000_000,
    max_window_bytes=100_000,
)

ConnectionEvents = list[tuple[Any, ...]]


def parsed(scenario: list[Sent]) -> Segments:
    (block,) = read(pcap(packets(scenario), magic=0xA1B23C4D))[0]
    return PacketParser().parse(block)


def rows(segments: Segments, which: Any) -> Segments:
    """Select segments."""
    columns = {
        field.name: getattr(segments, field.name)[which]
        for field in fields(segments)
        if field.name != "data"
    }
    return Segments(segments.data, **columns)


TOTALS = ("delivered", "duplicate", "conflicting", "keep_alive", "discarded", "missing")


def values(event: Event) -> tuple[Any, ...]:
    """Return all fields of an event except the connection."""
    if isinstance(event, Run):
        return event.side, event.position, event.data, event.packet, event.time_ns, event.known
    return event[1:]


def events_by_connection(
    segments: Segments, steps: list[int], limits: ReassemblyLimits
) -> dict[int, ConnectionEvents]:
    """The events of each connection, by its first packet; `steps`: sizes of blocks."""
    reassembler = Reassembler(limits)
    found: dict[int, ConnectionEvents] = {}
    at = turn = 0
    batches = []
    while at < len(segments):
        step = steps[turn % len(steps)]
        batches.append(reassembler.handle(rows(segments, slice(at, at + step))))
        at, turn = at + step, turn + 1
    batches.append(reassembler.handle(None))
    for batch in batches:
        for event in batch:
            mine = found.setdefault(event.connection.first_packet, [])
            mine.append((type(event).__name__, *values(event)))
            if isinstance(event, Closed):
                ended = event.connection
                mine.append((ended.last_packet, ended.last_ns))
                mine.append((ended.first_ns, ended.client, ended.reset))
                mine += [tuple(getattr(side, name) for name in TOTALS) for side in ended.totals]
    return found


def a_story(rng: random.Random) -> list[Sent]:
    """Interleaved connections with loss, disorder, resets and port reuse."""
    at = {(port, side): 0 for port in PORTS for side in (0, 1)}
    scenario: list[Sent] = []
    order = rng.random() < 0.5
    for _ in range(rng.randint(1, 150)):
        port, side = rng.choice(PORTS), rng.randrange(2)
        mine = (port, side)
        chance = rng.random()
        payload = rng.randbytes(rng.choice([0, 1, 30, 30, 500]))
        acked = rng.choice([at[port, 1 - side], at[port, 1 - side], rng.randint(0, 4000)])
        after = rng.choice([0, 1, 1, 1, 20, 1200 if rng.random() < 0.2 else 1])
        where, flags = at[mine], 0
        if not order and chance < 0.25:
            where += rng.choice([-400, -30, -1, 30, 500, 200_000, -(1 << 30)])
        elif chance < 0.29:
            flags = rng.choice([1, 2, 0x12, 4])
        else:
            at[mine] += len(payload)
        if rng.random() < 0.1 and not order:
            continue
        scenario.append(Sent(side, where, payload, acked, flags, after, ports=(port, 9092)))
    if not order and rng.random() < 0.3:
        places = sorted(range(len(scenario)), key=lambda i: i + rng.random() * 4)
        scenario = [scenario[i] for i in places]
    return scenario or [Sent(0, 0, b"x", ports=(PORTS[0], 9092))]


@pytest.mark.fuzz
@settings(max_examples=examples(100))
@given(st.integers(0, 1 << 48).map(random.Random))
def test_blocks_and_other_connections_do_not_matter(rng: random.Random) -> None:
    segments = parsed(a_story(rng))
    one_by_one = events_by_connection(segments, [1], QUICK)
    assert events_by_connection(segments, [1 << 15], QUICK) == one_by_one
    assert (
        events_by_connection(segments, [rng.randint(1, 40) for _ in range(5)], QUICK) == one_by_one
    )
    apart: dict[int, ConnectionEvents] = {}
    for port in PORTS:
        own = ((segments.ports >> 16) == port) | ((segments.ports & 0xFFFF) == port)
        if own.any():
            apart |= events_by_connection(rows(segments, own), [rng.randint(1, 40)], QUICK)
    assert apart == one_by_one
