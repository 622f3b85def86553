"""The fast paths of the engine give the results of the slow ones: segments in order, frames of one
packet, ordinary request headers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.frames.decoding import RawFrame
from kafkawire.capture.frames.framing import Mark, RequestHeads, Stream, raw_request
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.rows import Row
from kafkawire.capture.tcp.connection import Connection, Run
from kafkawire.capture.tcp.events import Closed, Gap
from kafkawire.capture.tcp.reassembly import Reassembler
from tests.conftest import FIXTURES

from .machine import feed, finish, gap

CAPTURES = sorted((FIXTURES / "captures").glob("*.pcap*"))
FLIPS = st.integers(0, 1 << 32).map(random.Random)


@cache
def events(path: Path) -> list[Run | Gap | Closed]:
    """Return the runs, gaps and closes of a capture."""
    reassembler, parser = Reassembler(), PacketParser()
    found = [e for block in read_capture(path) for e in reassembler.handle(parser.parse(block))]
    found += reassembler.handle(None)
    return [event for event in found if isinstance(event, Run | Gap | Closed)]


def new_conversation(connection: Connection) -> Conversation:
    """Create a conversation as the engine does."""
    in_sync = tuple(connection.syn_seen)
    return Conversation(client=connection.client, in_sync=in_sync)


Pieces = Callable[[Run, Conversation], list[bytes]]
"""Divides the bytes of a run into those that one call handles."""


def rows(path: Path, pieces: Pieces, *, fast: bool) -> list[Row]:
    """Decode a capture, with the fast path or without."""
    conversations: dict[Connection, Conversation] = {}
    found: list[Row] = []
    for event in events(path):
        conversation = conversations.get(event.connection)
        if conversation is None:
            conversation = conversations[event.connection] = new_conversation(event.connection)
        if isinstance(event, Gap):
            found += gap(conversation, event.side, event.length, event.packet, event.time_ns)
        elif isinstance(event, Closed):
            found += finish(conversation)
        else:
            for piece in pieces(event, conversation):
                run = event.side, piece, event.packet, event.time_ns
                if fast:
                    found += feed(conversation, *run)
                    continue
                for item in conversation._take(*run):
                    found.append(item.decode() if isinstance(item, RawFrame) else item)
    return found


def whole(run: Run, _: Conversation) -> list[bytes]:
    return [run.data]


def flipped(rng: random.Random, share: float) -> Pieces:
    """Flip a bit in a share of the runs."""

    def pieces(run: Run, _: Conversation) -> list[bytes]:
        data = run.data
        if rng.random() < share:
            at = rng.randrange(min(len(data), 24))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        return [data]

    return pieces


def cut(rng: random.Random) -> Pieces:
    """Cut runs into pieces of the same packet, once the client is known: before, few bytes may be
    of any protocol.
    """

    def pieces(run: Run, conversation: Conversation) -> list[bytes]:
        size = len(run.data)
        cuts = rng.choices(range(size), k=rng.randrange(4)) if conversation.detected else []
        return [run.data[start:end] for start, end in pairwise(sorted({0, size, *cuts}))]

    return pieces


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_frame_that_is_a_packet(path: Path) -> None:
    assert rows(path, whole, fast=True) == rows(path, whole, fast=False)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(CAPTURES), st.sampled_from([0.01, 0.1, 0.5]))
def test_a_frame_that_is_a_packet_and_wrong(seed: int, path: Path, share: float) -> None:
    fast = rows(path, flipped(random.Random(seed), share), fast=True)
    assert fast == rows(path, flipped(random.Random(seed), share), fast=False)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_frames_in_pieces(path: Path) -> None:
    assert rows(path, cut(random.Random(5)), fast=True) == rows(path, whole, fast=False)


def test_a_frame_in_pieces_is_of_the_packet_of_its_last_byte() -> None:
    frame = bytes.fromhex("0000000f0003000c0000000700026162000100")
    conversation = Conversation(client=0, in_sync=(True, True))
    assert feed(conversation, 0, frame, 1, 1)[0].correlation_id == 7
    assert feed(conversation, 0, frame[:8], 2, 2) == []
    assert feed(conversation, 0, frame[8:10], 3, 3) == []
    rows_of_two = feed(conversation, 0, frame[10:] + frame, 4, 4)
    assert [(row.packet, row.correlation_id) for row in rows_of_two] == [(4, 7), (4, 7)]


def values(raw_frame: RawFrame) -> tuple[object, ...]:
    request = raw_frame.request
    assert request is not None
    return (
        raw_frame.__reduce__()[1][:4],
        request.__reduce__()[1],
        raw_frame.body,
        raw_frame.error,
    )


def head(rng: random.Random) -> bytes:
    """Make bytes that mostly begin like a request."""
    key = rng.choice([rng.randrange(-2, 100), 0, 1, 3, 7, 18])
    version = rng.choice([rng.randrange(-2, 20), 0, 1, 3, 12])
    client = rng.choice(
        [b"", b"client", b"a" * 300, "größe".encode(), b"\xff\xfe", rng.randbytes(5)]
    )
    length = rng.choice([len(client)] * 5 + [-1, -2, -11, 3, 32767])
    numbers = (key, version), (rng.randrange(-(1 << 31), 1 << 31),), (length,)
    made = b"".join(
        number.to_bytes(size, "big", signed=True)
        for size, some in zip((2, 4, 2), numbers, strict=True)
        for number in some
    )
    rest = rng.choice([b"\0", b"\0\0\0\0\0", b"\1\0\1x", rng.randbytes(8), b""])
    whole = made + client + rest
    return whole[: rng.choice([len(whole)] * 4 + [rng.randrange(len(whole) + 1)])]


@settings(max_examples=1000, deadline=None)
@given(FLIPS)
def test_a_valid_header(rng: random.Random) -> None:
    heads = RequestHeads()
    for _ in range(3):
        frame = head(rng)
        fast = heads.read(frame, 5, 1 << 60)
        if fast is not None:
            assert values(fast) == values(raw_request(frame, Mark(0, 5, 1 << 60)))


def test_most_headers_take_the_fast_path() -> None:
    frame = bytes.fromhex("0003000c0000000700026162000100")
    raw_frame = RequestHeads().read(frame, 1, 2)
    assert raw_frame is not None
    assert values(raw_frame) == values(raw_request(frame, Mark(0, 1, 2)))


@settings(max_examples=300, deadline=None)
@given(FLIPS)
def test_bytes_taken_of_pieces(rng: random.Random) -> None:
    """Frames and other bytes are those that were added, however they were cut into pieces."""
    data = rng.randbytes(rng.randrange(1, 200))
    stream, added, taken = Stream(True), 0, 0
    while taken < len(data):
        for _ in range(rng.randrange(1, 6)):
            size = rng.choice([1, 2, 3, rng.randrange(1, 40)])
            piece = data[added : added + size]
            if piece:
                stream.add(piece, added, 0)
            added += len(piece)
        size = rng.randrange(min(added - taken, 60) + 1)
        if size >= 4 and rng.random() < 0.7:
            assert stream.take_frame(size - 4) == data[taken + 4 : taken + size]
        else:
            assert stream.take(size) == data[taken : taken + size]
        taken += size
        assert (stream.held, stream.position) == (added - taken, taken)
        if rng.random() < 0.3:
            assert stream.peek() == data[taken:added]
