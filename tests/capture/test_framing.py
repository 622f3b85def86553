"""Frames cut from runs: whole, byte by byte, behind gaps, out of step; nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture.bounds import Budget, ReassemblyLimits
from kafkawire.capture.connections import Connection, Endpoint
from kafkawire.capture.events import Arrival, Gap, GapReason, Run
from kafkawire.capture.framing import (
    MAX_SEARCH,
    Framed,
    Framer,
    StreamFrame,
    Stretch,
    StretchReason,
)

LIMIT = 1 << 20
ENDS = Endpoint(1, 1), Endpoint(2, 2)
CONNECTION = Connection(0, ENDS, ReassemblyLimits(), Budget(), Arrival(1, 0))


def frame(size: int, fill: int = 0x41) -> bytes:
    return size.to_bytes(4, "big") + bytes([fill]) * size


def run(position: int, data: bytes, packet: int = 1, released: int = 0) -> Run:
    ends = [position + len(data)]
    return Run(CONNECTION, 0, position, data, ends, [packet], [packet * 10], released)


def gap(position: int, length: int, packet: int = 1) -> Gap:
    return Gap(CONNECTION, 0, position, length, GapReason.LOST, packet, packet * 10)


STREAM = b"".join(frame(size, size & 0xFF) for size in (0, 10, 1, 300, 4, 5000, 0, 7))


def feed(step: int) -> list[Framed]:
    framer = Framer(max_frame_bytes=LIMIT)
    out: list[Framed] = []
    for packet, at in enumerate(range(0, len(STREAM), step)):
        out += framer.feed(run(at, STREAM[at : at + step], packet))
    assert framer.held == 0
    assert framer.finish() == []
    return out


@pytest.mark.parametrize("step", [1, 2, 3, 5, 1000, 1 << 20])
def test_any_chunking_gives_the_same_frames(step: int) -> None:
    frames = feed(step)
    assert all(isinstance(found, StreamFrame) for found in frames)
    assert b"".join(found.data for found in frames) == STREAM
    assert [len(found.data) - 4 for found in frames] == [0, 10, 1, 300, 4, 5000, 0, 7]
    for found in frames:
        assert isinstance(found, StreamFrame)
        assert found.packet == (found.end - 1) // step
        assert found.last_ns == found.packet * 10
        assert found.first_ns == found.start // step * 10
        assert found.known == found.packet


def test_a_run_of_many_segments() -> None:
    ends, packets = [6, 14, 20, 28], [3, 5, 9, 11]
    data = frame(10) + frame(10)
    joined = Run(CONNECTION, 0, 0, data, ends, packets, [30, 50, 90, 110], 0)
    first, second = Framer(max_frame_bytes=LIMIT).feed(joined)
    assert isinstance(first, StreamFrame)
    assert isinstance(second, StreamFrame)
    assert (first.packet, first.first_ns, first.last_ns) == (5, 30, 50)
    assert (second.packet, second.first_ns, second.last_ns) == (11, 90, 110)


def test_a_frame_known_only_after_a_gap_was_waited_out() -> None:
    framer = Framer(max_frame_bytes=LIMIT, in_step=True)
    framer.gap(gap(0, 100, 9))
    (found,) = framer.feed(run(100, frame(10), 4, released=9))
    assert isinstance(found, StreamFrame)
    assert (found.start, found.packet, found.known) == (100, 4, 9)


def test_a_gap_inside_a_frame_loses_only_that_frame() -> None:
    framer = Framer(max_frame_bytes=LIMIT)
    data = frame(100) + frame(50)
    assert framer.feed(run(0, data[:30])) == []
    (broken,) = framer.gap(gap(30, 20))
    assert isinstance(broken, Stretch)
    assert (broken.start, broken.data, broken.size) == (0, data[:30], 100)
    rest, found = framer.feed(run(50, data[50:]))
    assert (rest.start, rest.data) == (50, data[50:104])
    assert isinstance(rest, Stretch)
    assert rest.reason is StretchReason.BROKEN
    assert isinstance(found, StreamFrame)
    assert found.data == frame(50)


def test_two_gaps_inside_a_frame_and_one_to_its_end() -> None:
    framer = Framer(max_frame_bytes=LIMIT)
    data = frame(100) + frame(7)
    framer.feed(run(0, data[:30]))
    framer.gap(gap(30, 20))
    framer.feed(run(50, data[50:60]))
    framer.gap(gap(60, 44))
    assert framer.in_step
    (found,) = framer.feed(run(104, data[104:]))
    assert found.data == frame(7)


def find_none(_data: bytes, _start: int) -> int | None:
    return None


def test_a_gap_over_a_frame_edge_is_out_of_step() -> None:
    framer = Framer(max_frame_bytes=LIMIT, find=find_none)
    framer.feed(run(0, frame(100)[:30]))
    framer.gap(gap(30, 80))
    assert not framer.in_step
    assert framer.feed(run(110, b"abc")) == []
    (lost,) = framer.finish()
    assert isinstance(lost, Stretch)
    assert lost.reason is StretchReason.OUT_OF_STEP


@pytest.mark.parametrize("size", [-1, LIMIT + 1])
def test_a_size_that_cannot_be(size: int) -> None:
    framer = Framer(max_frame_bytes=LIMIT)
    data = frame(3) + size.to_bytes(4, "big", signed=True) + b"whatever"
    (found,) = framer.feed(run(0, data))
    assert found.data == frame(3)
    assert not framer.in_step
    (lost,) = framer.finish()
    assert lost.data == data[7:]


def find_aaaa(data: bytes, start: int) -> int | None:
    at = data.find(b"AAAA", start + 4)
    return None if at < 0 else at - 4


def test_coming_into_step_again() -> None:
    framer = Framer(max_frame_bytes=LIMIT, in_step=False, find=find_aaaa)
    assert framer.feed(run(0, b"rest of something")) == []
    lost, found = framer.feed(run(17, frame(20)))
    assert isinstance(lost, Stretch)
    assert lost.data == b"rest of something"
    assert found.data == frame(20)
    assert framer.in_step


def test_searching_keeps_little() -> None:
    framer = Framer(max_frame_bytes=LIMIT, in_step=False, find=find_none)
    position, given_up = 0, 0
    for _ in range(10):
        for lost in framer.feed(run(position, bytes(MAX_SEARCH // 2))):
            assert lost.start == given_up
            given_up += len(lost.data)
        position += MAX_SEARCH // 2
        assert framer.held <= MAX_SEARCH
    assert given_up == position - framer.held


PARTS = st.lists(
    st.one_of(
        st.integers(0, 40).map(frame),
        st.binary(min_size=1, max_size=30),
        st.integers(1, 30),
    ),
    max_size=20,
)


@given(PARTS, st.integers(1, 60), st.booleans())
def test_every_byte_comes_out_once(parts: list[bytes | int], step: int, in_step: bool) -> None:
    framer = Framer(max_frame_bytes=100, in_step=in_step, find=find_aaaa)
    out: list[Framed] = []
    fed: dict[int, int] = {}
    position = 0
    for part in parts:
        if isinstance(part, int):
            out += framer.gap(gap(position, part))
            position += part
            continue
        for at in range(0, len(part), step):
            piece = part[at : at + step]
            out += framer.feed(run(position, piece))
            fed |= {position + i: byte for i, byte in enumerate(piece)}
            position += len(piece)
    out += framer.finish()
    seen: dict[int, int] = {}
    end = 0
    for found in out:
        assert found.start >= end
        end = found.start + len(found.data)
        seen |= {found.start + i: byte for i, byte in enumerate(found.data)}
        if isinstance(found, StreamFrame):
            assert int.from_bytes(found.data[:4], "big") == len(found.data) - 4
    assert seen == fed
