"""Two known streams through a faulty network and capture: the right bytes, or a gap."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.tcp.connection import Run
from kafkawire.capture.tcp.events import Discarded
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY
from tests.capture.dialogue import ReassembledEvents, Sent, hello, packets, reassemble
from tests.fuzzing import examples

STREAMS = tuple(random.Random(side).randbytes(4000) for side in (0, 1))


class Faults(NamedTuple):
    """Network and capture faults: shares of 100 packets, and how far packets are reordered."""

    seed: int
    largest: int
    lost: int
    duplicated: int
    overlapping: int
    cut: int
    reordered: int
    acknowledged: bool


FAULTS = st.builds(
    Faults,
    seed=st.integers(0, 1 << 32),
    largest=st.sampled_from([1, 3, 50, 1460]),
    lost=st.sampled_from([0, 0, 5, 30]),
    duplicated=st.sampled_from([0, 10, 100]),
    overlapping=st.sampled_from([0, 20]),
    cut=st.sampled_from([0, 0, 10]),
    reordered=st.sampled_from([0, 2, 20]),
    acknowledged=st.booleans(),
)
BLOCKS = st.sampled_from([1, 2, 7, 50, 1 << 15])


def scenario(faults: Faults) -> tuple[list[Sent], list[Sent]]:
    """Return the sent packets (without the handshake), and the captured ones."""
    rng = random.Random(faults.seed)
    size = 100 * min(faults.largest, 40)
    at = [0, 0]
    sent = []
    while min(at) < size:
        side = rng.randrange(2)
        if at[side] >= size:
            continue
        start = at[side]
        at[side] = min(size, start + rng.randint(1, faults.largest))
        if start and rng.randrange(100) < faults.overlapping:
            start -= rng.randint(1, min(start, 40))
        acked = at[1 - side] if faults.acknowledged else 0
        sent.append(Sent(side, start, STREAMS[side][start : at[side]], acked))
    seen = []
    for one in sent:
        if rng.randrange(100) >= faults.lost:
            copies = 2 if rng.randrange(100) < faults.duplicated else 1
            if rng.randrange(100) < faults.cut:
                one = one._replace(captured=rng.randint(0, len(one.payload)))
            seen += [one] * copies
    order = sorted(range(len(seen)), key=lambda i: i + rng.random() * faults.reordered)
    return sent, [seen[i] for i in order]


def captured(seen: list[Sent], side: int) -> set[int]:
    """The captured stream positions of a side."""
    return {
        one.at + i
        for one in seen
        if one.side == side
        for i in range(len(one.payload) if one.captured is None else one.captured)
    }


def check_bytes(result: ReassembledEvents) -> None:
    for side in (0, 1):
        data = result.data(side)
        assert all(STREAMS[side][at] == byte for at, byte in data.items())


def check_totals(result: ReassembledEvents, seen: list[Sent]) -> None:
    for side, totals in enumerate(result.connections[0].totals):
        sizes = [
            len(one.payload) if one.captured is None else one.captured
            for one in seen
            if one.side == side
        ]
        assert totals.captured == sum(sizes)
        assert totals.delivered == len(result.joined(side))
        assert totals.missing == len(result.missing(side))


@pytest.mark.fuzz
@settings(max_examples=examples(30), deadline=None)
@given(FAULTS, BLOCKS)
def test_the_right_bytes_or_a_gap(faults: Faults, step: int) -> None:
    _, seen = scenario(faults)
    result = reassemble(packets([*hello(), *seen]), step=step)
    check_bytes(result)
    check_totals(result, seen)
    assert result.conflicts == []
    for side in (0, 1):
        late = late_bytes(result, side)
        assert set(result.data(side)) | probes(result, seen, side) | late == captured(seen, side)
        assert result.missing(side).isdisjoint(result.data(side))
        if not faults.cut and not (faults.lost and faults.overlapping):
            # Packets are reordered by less than what is waited for, and nothing is sent again.
            assert late == set()


def probes(result: ReassembledEvents, seen: list[Sent], side: int) -> set[int]:
    """Single bytes that are indistinguishable from keep-alive probes."""
    if not result.connections[0].totals[side].keep_alive:
        return set()
    return {one.at for one in seen if one.side == side and len(one.payload) == 1}


def late_bytes(result: ReassembledEvents, side: int) -> set[int]:
    return {
        at
        for event in result.discarded
        if event.side == side
        for at in range(event.position, event.position + event.length)
    }


@pytest.mark.fuzz
@settings(max_examples=examples(20), deadline=None)
@given(FAULTS, st.integers(1, 60))
def test_blocks_do_not_matter(faults: Faults, step: int) -> None:
    _, seen = scenario(faults)
    altered = packets([*hello(), *seen])
    slow, fast = reassemble(altered, step=1), reassemble(altered, step=step)
    for side in (0, 1):
        assert fast.data(side) == slow.data(side)
        assert fast.missing(side) == slow.missing(side)
        assert fast.arrivals(side) == slow.arrivals(side)


@pytest.mark.fuzz
@settings(max_examples=examples(20), deadline=None)
@given(FAULTS, BLOCKS, st.integers(0, 5000), st.integers(1, 30))
def test_tight_limits_lose_nothing_silently(
    faults: Faults, step: int, held: int, segments: int
) -> None:
    limits = replace(
        DEFAULT_REASSEMBLY,
        max_held_bytes=held,
        max_held_segments=segments,
        max_total_bytes=held,
        remembered_bytes=held // 10,
        gap_timeout_ns=5_000_000,
        reorder_ns=1_000_000,
    )
    _, seen = scenario(faults)
    result = reassemble(packets([*hello(), *seen]), limits, step)
    check_bytes(result)
    check_totals(result, seen)


@pytest.mark.fuzz
@settings(max_examples=examples(20), deadline=None)
@given(FAULTS, st.integers(0, 200), BLOCKS)
def test_a_capture_that_begins_in_the_middle(faults: Faults, skipped: int, step: int) -> None:
    _, seen = scenario(faults)
    seen = seen[skipped:]
    result = reassemble(packets(seen), step=step)
    for connection in result.connections:
        for side, totals in enumerate(connection.totals):
            events = [e for e in result.events if e.connection is connection]
            runs = [e for e in events if isinstance(e, Run) and e.side == side]
            lost = [e for e in events if isinstance(e, Discarded) and e.side == side]
            assert totals.delivered == sum(len(run.data) for run in runs)
            assert totals.discarded == sum(event.length for event in lost)
            stream = STREAMS[connection.endpoints[side].port == 9092]
            assert any(
                all(stream[at + run.position :].startswith(run.data) for run in runs)
                for at in range(len(stream))
            )


@pytest.mark.fuzz
@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 1 << 32).map(random.Random), BLOCKS)
def test_random_segments_break_nothing(rng: random.Random, step: int) -> None:
    scenario = []
    for _ in range(rng.randint(1, 120)):
        near = rng.random() < 0.8
        at = rng.randint(-200, 4000) if near else rng.randint(-(1 << 31), 1 << 31)
        acked = rng.choice([None, 0, rng.randint(0, 4000), rng.randint(0, 1 << 31)])
        payload = rng.randbytes(rng.choice([0, 0, 1, 1, 10, 100, 1000]))
        flags = rng.choice([0] * 6 + [1, 2, 4, 0x12, 0xFF])
        cut = rng.randint(0, len(payload)) if rng.random() < 0.1 else None
        after = rng.choice([0, 1, 1, 100, 100_000, 1_000_000])
        ports = (rng.choice([1, 2]), 9092)
        scenario.append(Sent(rng.randrange(2), at, payload, acked, flags, after, cut, ports=ports))
    result = reassemble(packets(scenario), step=step)
    there = sum(len(one.payload) if one.captured is None else one.captured for one in scenario)
    sides = [side for connection in result.connections for side in connection.totals]
    assert sum(side.captured for side in sides) == there
    assert sorted(number for number, _ in result.closed) == list(range(len(result.connections)))
