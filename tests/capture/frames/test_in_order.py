"""Connections in order give the same rows as those whose segments are handled one by one; and their
state is the same when they are no longer in order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.varied import capture
from benchmarks.varied.cluster import Scale
from benchmarks.varied.network import Damage
from kafkawire.capture.engine import Engine
from kafkawire.capture.exchanges.endings import as_ended
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.files.pcap import PcapDecoder
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.frames import in_order
from kafkawire.capture.frames.decoding import located
from kafkawire.capture.frames.framing import Stream
from kafkawire.capture.frames.tracked_state import TrackedState
from kafkawire.capture.multifile import PacketReader
from kafkawire.capture.packets.segment_rows import KEY_BYTES, NUMBERS_BYTES, SegmentRows
from kafkawire.capture.snapshot import attributes
from kafkawire.capture.snapshot_classes import STATE
from kafkawire.capture.tcp.connection import Connection
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from kafkawire.capture.tcp.retransmission import DeliveredBytes
from kafkawire.primitives import DEFAULT_LIMITS
from tests.conftest import FIXTURES, missing
from tests.fuzzing import examples
from tests.twins import twin

CAPTURES = sorted((FIXTURES / "captures").glob("*.pcap*"))
SEEDS = st.integers(0, 1 << 32)
SMALL = Scale(groups=3, producers=4, administrators=1)
LIMITS = {
    "default": DEFAULT_REASSEMBLY,
    "few bytes": replace(DEFAULT_REASSEMBLY, max_total_bytes=1 << 12, remembered_bytes=700),
    "none stored": replace(DEFAULT_REASSEMBLY, remembered_bytes=0),
    "few connections": replace(DEFAULT_REASSEMBLY, max_connections=4),
    "small window": replace(DEFAULT_REASSEMBLY, max_window_bytes=3000),
}


@pytest.fixture(autouse=True)
def _compiled() -> None:
    if not in_order.AVAILABLE:
        missing("in_order.c")


def segments(blocks: Iterator[Any], size: int) -> list[SegmentRows]:
    """Parse the segments of blocks, and divide them into blocks of so many segments."""
    packets = PacketReader()
    found = []
    for block in blocks:
        rows = packets.read(block)
        for at in range(0, len(rows), size):
            keys = rows.keys[at * KEY_BYTES : (at + size) * KEY_BYTES]
            numbers = rows.numbers[at * NUMBERS_BYTES : (at + size) * NUMBERS_BYTES]
            found.append(SegmentRows(rows.data, keys, numbers))
    return found


@cache
def varied(seed: int, loss: float, reordering: float, size: int = 300_000) -> bytes:
    return b"".join(capture(size, seed, Damage(loss, reordering), SMALL))


class Decoded:
    """The rows and ends of connections of an engine."""

    def __init__(self, limits: ReassemblyLimits, *, is_fast: bool, may_end: bool = True) -> None:
        self.rows: list[Any] = []
        self.engine = Engine(reassembly=limits, on_end=self.end if may_end else None)
        if not is_fast:
            engine: Any = self.engine
            engine._in_order = None

    def end(self, connection: Connection, client: int) -> None:
        self.rows.append(as_ended(connection, client, connection.id))

    def handle(self, rows: SegmentRows | None) -> None:
        for batch in self.engine.handle(rows):
            self.rows += [(located(each), each.known_at) for each in batch]


def both(blocks: list[SegmentRows], limits: ReassemblyLimits) -> list[Any]:
    """Decode blocks with connections in order, and without; return the rows, which are equal."""
    for may_end in (True, False):
        fast = Decoded(limits, is_fast=True, may_end=may_end)
        slow = Decoded(limits, is_fast=False, may_end=may_end)
        for rows in [*blocks, None]:
            fast.handle(rows)
            slow.handle(rows)
        assert fast.rows == slow.rows
    return fast.rows


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
@pytest.mark.parametrize("size", [7, 1 << 15])
def test_recordings(path: Path, size: int) -> None:
    assert both(segments(iter(read_capture(path)), size), DEFAULT_REASSEMBLY)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("loss", "reordering"), [(0, 0), (0.002, 0.01), (0.05, 0.1)])
def test_varied_traffic(limits: str, loss: float, reordering: float) -> None:
    blocks = segments(PcapDecoder().feed(varied(3, loss, reordering)), 501)
    assert len(both(blocks, LIMITS[limits])) > 50


def changed(rows: SegmentRows, rng: random.Random) -> SegmentRows:
    """Change bytes of payloads, and numbers, flags and order of segments."""
    data, numbers = bytearray(rows.data), bytearray(rows.numbers)
    for _ in range(rng.randrange(6)):
        row = rng.randrange(len(rows)) * NUMBERS_BYTES
        kind = rng.randrange(6)
        payload = int.from_bytes(numbers[row + 32 : row + 40], "little")
        size = int.from_bytes(numbers[row + 40 : row + 48], "little")
        if kind == 0 and size:
            at = payload + rng.randrange(min(size, 12))
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            numbers[row + 16] ^= 1 << rng.randrange(8)  # sequence number
        elif kind == 2:
            numbers[row + 24] ^= 1 << rng.randrange(8)  # acknowledgment
        elif kind == 3:
            numbers[row + 56] ^= rng.choice([0, 1, 2, 4, 16])  # FIN, SYN, RST, ACK
            numbers[row + 58 : row + 60] = rng.choice([b"\0\0", b"\1\0"])  # window
        elif kind == 4 and size:
            numbers[row + 40 : row + 48] = rng.randrange(size).to_bytes(8, "little")  # captured
        elif row:
            before = row - NUMBERS_BYTES
            one = numbers[before:row]
            numbers[before:row] = numbers[row : row + NUMBERS_BYTES]
            numbers[row : row + NUMBERS_BYTES] = one
    return SegmentRows(bytes(data), rows.keys, bytes(numbers))


@settings(max_examples=examples(40), deadline=None)
@given(SEEDS, st.sampled_from(sorted(LIMITS)), st.sampled_from([13, 200, 1 << 15]))
def test_malformed_segments(seed: int, limits: str, size: int) -> None:
    rng = random.Random(seed)
    blocks = segments(PcapDecoder().feed(varied(seed % 3, 0, 0, 60_000)), size)
    both([changed(rows, rng) for rows in blocks], LIMITS[limits])


# -- state


def plain(value: Any, seen: set[int]) -> Any:
    """Return a state as values that can be compared; bytes in pieces are joined."""
    if id(value) in seen:
        return "again"
    if type(value) in STATE:
        seen.add(id(value))
        found = attributes(value)
        if isinstance(value, Stream):
            held = bytes(value.peek()) if value.held else b""
            marks = [vars_of(mark) for mark in found["_marks"] if mark.end > value.position]
            names = "in_sync", "position", "skip", "skipped", "held"
            return [found[name] for name in names], held, marks if held else []
        return {name: plain(each, seen) for name, each in found.items() if name != "_limits"}
    if isinstance(value, dict):
        return [(plain(key, seen), plain(each, seen)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return [plain(each, seen) for each in value]
    return value if isinstance(value, int | bytes | str | None) else repr(type(value))


def vars_of(mark: Any) -> tuple[int, int, int]:
    return mark.end, mark.packet, mark.time_ns


def state(engine: Any) -> Any:
    """Return the state of an engine."""
    assert engine.connections is not None  # all connections are handled by flows again
    seen: set[int] = set()
    conversations = [each.conversation for each in engine._conversations.values()]
    return plain([engine._reassembler, *conversations], seen)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("size", [31, 700])
def test_the_state_is_that_of_flows(limits: str, size: int) -> None:
    fast, slow = Decoded(LIMITS[limits], is_fast=True), Decoded(LIMITS[limits], is_fast=False)
    for at, rows in enumerate(segments(PcapDecoder().feed(varied(4, 0.001, 0.004)), size)):
        fast.handle(rows)
        slow.handle(rows)
        if at % 3 == 2:
            assert state(fast.engine) == state(slow.engine)


def test_a_snapshot_continues() -> None:
    blocks = segments(PcapDecoder().feed(varied(5, 0.001, 0)), 97)
    whole, first = (Decoded(DEFAULT_REASSEMBLY, is_fast=True) for _ in range(2))
    for rows in [*blocks, None]:
        whole.handle(rows)
    for rows in blocks[: len(blocks) // 2]:
        first.handle(rows)
    second = Decoded(DEFAULT_REASSEMBLY, is_fast=True)
    second.engine.restore(first.engine.snapshot())
    for rows in [*blocks[len(blocks) // 2 :], None]:
        second.handle(rows)
    assert [*first.rows, *second.rows] == whole.rows


# -- work


def new_frames(limits: ReassemblyLimits = DEFAULT_REASSEMBLY) -> in_order.InOrderFrames:
    return in_order.InOrderFrames(
        DEFAULT_LIMITS.max_frame_bytes, limits.remembered_bytes, limits.max_window_bytes
    )


def key(number: int) -> bytes:
    return number.to_bytes(18, "little") + bytes(18)


def int64s(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "little", signed=True) for value in values)


NUMBERS_OF_NEW = int64s(1, 1, *[100, 0, 0, 0, 0, 0] * 2)


def tracked(frames: in_order.InOrderFrames, number: int) -> int:
    state = TrackedState(NUMBERS_OF_NEW, b"", b"", b"", b"", b"", b"")
    return frames.track(key(number), 0, state)


def segment(
    payload: bytes, seq: int, packet: int = 2, flags: int = 16, ns: int = 2, window: int = 1
) -> bytes:
    """Make the row of a segment whose payload is the data."""
    return int64s(packet, ns, seq, 100, 0, len(payload), len(payload), flags | window << 16)


def cut(frames: in_order.InOrderFrames, data: bytes, row: bytes, left: int = 9999) -> in_order.Cut:
    """Handle a segment of connection 1."""
    return frames.cut(data, key(1), row, 0, 9, 999, left)


def test_most_bytes_of_open_connections_are_in_order() -> None:
    """Nine tenths of their bytes are not delivered by flows."""
    engine: Any = Engine()
    for rows in segments(PcapDecoder().feed(varied(3, 0, 0, 2_000_000)), 1 << 15):
        for _ in engine.handle(rows):
            pass
    tracked_states = [*engine._tracked.values()]
    assert len(tracked_states) > 10
    by_flows = sum(total.delivered for each in tracked_states for total in each.connection.totals)
    engine._untrack_all()
    every = sum(total.delivered for each in tracked_states for total in each.connection.totals)
    assert by_flows < every / 10


@pytest.mark.parametrize("count", [3, 3000])
def test_connections_are_found_and_removed(count: int) -> None:
    frames = new_frames()
    slots = [tracked(frames, number) for number in range(1, count + 1)]
    assert sorted(slots) == list(range(count))
    assert tracked(frames, 1) == in_order.UNTRACKED  # twice
    for number in range(1, count + 1, 2):
        frames.untrack(slots[number - 1])
    frame = b"\0\0\0\x08requests"
    for number in range(1, count + 1):
        cut = frames.cut(frame, key(number), segment(frame, 100), 0, 9, 999, 9999)
        assert cut[0] == 1 - number % 2
        assert cut[3] == [] if number % 2 else [b"requests"]
    with pytest.raises(KeyError):
        frames.untrack(slots[0])


def test_the_room_of_a_frame_grows_with_its_bytes() -> None:
    """A frame that claims 90 MB takes no more memory than its bytes, but for a constant."""
    import tracemalloc

    frames = new_frames()
    slot = tracked(frames, 1)
    piece = (90 << 20).to_bytes(4, "big") + bytes(60)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    assert frames.cut(piece, key(1), segment(piece, 100), 0, 9, 999, 9999)[0] == 1
    assert tracemalloc.get_traced_memory()[0] - before < 1 << 18
    tracemalloc.stop()
    assert frames.untrack(slot).held == piece


@pytest.mark.parametrize("size", [7, -1, (1 << 31) - 1])
def test_invalid_sizes_are_declined(size: int) -> None:
    frames = new_frames()
    slot = tracked(frames, 1)
    data = b"\0\0\0\x08requests" + size.to_bytes(4, "big", signed=True) + b"more"
    before = cut(frames, data, segment(data, 100))
    assert before[:4] == (0, 1, slot, [])
    assert frames.untrack(slot).numbers == NUMBERS_OF_NEW


@pytest.mark.parametrize("flags", [0, 16 | 1, 16 | 2, 16 | 4, 8])
def test_other_segments_are_declined(flags: int) -> None:
    frames = new_frames()
    slot = tracked(frames, 1)
    data = b"\0\0\0\x08requests"
    assert cut(frames, data, segment(data, 100, flags=flags))[:4] == (0, 1, slot, [])
    assert cut(frames, data, segment(data, 100, window=0))[:4] == (0, 1, slot, [])
    assert cut(frames, data, segment(data, 100, flags=16 | 8))[:4] == (
        1,
        1,
        in_order.FULL,
        [data[4:]],
    )


def test_bytes_beyond_the_limit_are_declined() -> None:
    frames = new_frames()
    slot = tracked(frames, 1)
    data = b"\0\0\0\x08requests"
    assert cut(frames, data, segment(data, 100), left=11)[:3] == (0, 1, slot)
    assert cut(frames, data, segment(data, 100), left=12)[5] == 0


def test_a_segment_without_a_time() -> None:
    frames = new_frames()
    slot = tracked(frames, 1)
    data = b"\0\0\0\x08requests"
    assert cut(frames, data, segment(data, 100, packet=7, ns=NO_TIME))[0] == 1
    assert frames.untrack(slot).numbers[:16] == int64s(7, 1)


@pytest.mark.parametrize("limit", [0, 50, 4096])
@pytest.mark.parametrize("sizes", [(8,), (8, 20, 100), (8, 20, 100, 3000, 9000)])
def test_delivered_bytes_are_kept_as_flows_keep_them(sizes: tuple[int, ...], limit: int) -> None:
    """The oldest bytes are dropped now and then; a large segment replaces all of them."""
    rng = random.Random(5)
    frames = new_frames(replace(DEFAULT_REASSEMBLY, remembered_bytes=limit))
    expected = DeliveredBytes(limit)
    slot, seq = tracked(frames, 1), 100
    for size in rng.choices(sizes, k=300):
        data = size.to_bytes(4, "big") + rng.randbytes(size)
        assert frames.cut(data, key(1), segment(data, seq), 0, 9, 1 << 20, 1 << 20)[0] == 1
        expected.deliver(data)
        seq += len(data)
    assert frames.untrack(slot).delivered == expected.save()


def test_packets_of_frames_that_are_complete_are_forgotten() -> None:
    frames = new_frames()
    slot = tracked(frames, 1)
    data = b"\0\0\0\x08requests"
    for number in range(20):
        seq = 100 + number * len(data)
        assert cut(frames, data[:7], segment(data[:7], seq))[3] == []
        assert cut(frames, data[7:], segment(data[7:], seq + 7))[3] == [data[4:]]
    assert frames.untrack(slot)[3:] == (b"", b"", b"", b"")


def test_a_state_is_given_back_as_it_came() -> None:
    """Each part is where it was; a plain tuple is not a state."""
    frames: Any = new_frames()
    held, other_held = b"\0\0\0\x09ab", b"\0\0\0\x08c"
    marks, other_marks = int64s(6, 3, 4), int64s(5, 7, 8)
    state = TrackedState(
        NUMBERS_OF_NEW, b"delivered", b"other", held, other_held, marks, other_marks
    )
    assert frames.untrack(frames.track(key(1), 0, state)) == state
    with pytest.raises(TypeError):
        frames.track(key(1), 0, tuple(state))


def test_segments_beside_the_data_are_refused() -> None:
    frames = new_frames()
    tracked(frames, 1)
    row = segment(bytes(20), 100)
    with pytest.raises(IndexError):
        frames.cut(bytes(19), key(1), row, 0, 9, 999, 9999)
    with pytest.raises(ValueError, match="different segments"):
        frames.cut(bytes(20), key(1) * 2, row, 0, 9, 999, 9999)


def test_the_twin_tracks_nothing() -> None:
    frames = twin(in_order).InOrderFrames(1, 2, 3)
    assert tracked(frames, 1) == in_order.UNTRACKED
    assert frames.cut(b"", b"", b"", 5, 9, 999, 7) == (5, 5, in_order.UNTRACKED, [], b"", 7)
    with pytest.raises(KeyError):
        frames.untrack(0)
