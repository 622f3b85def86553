"""What is said of a connection depends on its own packets alone: not on how the capture is cut into
blocks, nor on what lies between them. It is what lets Spark move packets by connection.
"""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.packets.parser import PacketParser, Segments
from kafkawire.capture.tcp.events import Closed, Event
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from kafkawire.capture.tcp.reassembly import Reassembler
from kafkawire.capture.tcp.run import Run

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

Said = list[tuple[Any, ...]]


def parsed(story: list[Sent]) -> Segments:
    (block,) = read(pcap(packets(story), magic=0xA1B23C4D))[0]
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
    """Give all that an event says, but for the connection."""
    if isinstance(event, Run):
        return event.side, event.position, event.data, event.packet, event.time_ns, event.known
    return event[1:]


def said(segments: Segments, steps: list[int], limits: ReassemblyLimits) -> dict[int, Said]:
    """What is said of each connection, in order, by its first packet; `steps`: sizes of blocks."""
    reassembler = Reassembler(limits)
    found: dict[int, Said] = {}
    at = turn = 0
    batches = []
    while at < len(segments):
        step = steps[turn % len(steps)]
        batches.append(reassembler.feed(rows(segments, slice(at, at + step))))
        at, turn = at + step, turn + 1
    batches.append(reassembler.finish())
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


def a_story(lots: random.Random) -> list[Sent]:
    """Connections that speak, are heard badly, reset and opened again, all at the same time."""
    at = {(port, side): 0 for port in PORTS for side in (0, 1)}
    story: list[Sent] = []
    order = lots.random() < 0.5
    for _ in range(lots.randint(1, 150)):
        port, side = lots.choice(PORTS), lots.randrange(2)
        mine = (port, side)
        chance = lots.random()
        payload = lots.randbytes(lots.choice([0, 1, 30, 30, 500]))
        acked = lots.choice([at[port, 1 - side], at[port, 1 - side], lots.randint(0, 4000)])
        after = lots.choice([0, 1, 1, 1, 20, 1200 if lots.random() < 0.2 else 1])
        where, flags = at[mine], 0
        if not order and chance < 0.25:
            where += lots.choice([-400, -30, -1, 30, 500, 200_000, -(1 << 30)])
        elif chance < 0.29:
            flags = lots.choice([1, 2, 0x12, 4])
        else:
            at[mine] += len(payload)
        if lots.random() < 0.1 and not order:
            continue
        story.append(Sent(side, where, payload, acked, flags, after, ports=(port, 9092)))
    if not order and lots.random() < 0.3:
        places = sorted(range(len(story)), key=lambda i: i + lots.random() * 4)
        story = [story[i] for i in places]
    return story or [Sent(0, 0, b"x", ports=(PORTS[0], 9092))]


@settings(max_examples=300)
@given(st.integers(0, 1 << 48).map(random.Random))
def test_blocks_and_other_connections_do_not_matter(lots: random.Random) -> None:
    segments = parsed(a_story(lots))
    one_by_one = said(segments, [1], QUICK)
    assert said(segments, [1 << 15], QUICK) == one_by_one
    assert said(segments, [lots.randint(1, 40) for _ in range(5)], QUICK) == one_by_one
    apart: dict[int, Said] = {}
    for port in PORTS:
        own = ((segments.ports >> 16) == port) | ((segments.ports & 0xFFFF) == port)
        if own.any():
            apart |= said(rows(segments, own), [lots.randint(1, 40)], QUICK)
    assert apart == one_by_one
