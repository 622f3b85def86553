"""The output of one transport."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from kafkawire.net.brokers.output import PIECE_BYTES, SMALL_BYTES, Output


class Transport:
    """A transport whose socket takes `room` bytes, then none until `drain`."""

    def __init__(self, room: int) -> None:
        self.room = self.left = room
        self.taken = bytearray()
        self.buffer = b""
        self.copied = 0
        self.written: list[bytes | memoryview] = []
        self.output = Output(cast(asyncio.Transport, self))

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def write(self, data: bytes | memoryview) -> None:
        assert not self.buffer, "written while the socket takes nothing"
        self.written.append(data)
        at = min(self.left, len(data))
        self.taken += data[:at]
        self.left -= at
        self.buffer = bytes(data[at:])
        self.copied += len(self.buffer)
        if self.buffer:
            self.output.pause()

    def drain(self) -> None:
        self.taken += self.buffer
        self.buffer = b""
        self.left = self.room
        self.output.resume()


@pytest.mark.parametrize("room", [1_000, 100_000, 1 << 30])
def test_all_parts_are_sent_in_order(room: int) -> None:
    rng = random.Random(room)
    transport = Transport(room)
    sent = b""
    for _ in range(20):
        sizes = [rng.choice([0, 1, 500, SMALL_BYTES, 70_000]) for _ in range(rng.randrange(8))]
        parts = [rng.randbytes(size) for size in sizes]
        sent += b"".join(parts)
        transport.output.put(parts)
        if rng.random() < 0.5 and transport.buffer:
            transport.drain()
    while transport.buffer:
        assert not transport.output.is_flushed
        transport.drain()
    assert transport.output.is_flushed
    assert transport.taken == sent


def test_large_parts_are_not_copied_and_small_ones_are_joined() -> None:
    transport = Transport(1 << 30)
    large = bytes(3 * PIECE_BYTES)
    batch = bytes(SMALL_BYTES)
    transport.output.put([b"head", b"more", batch, large, b"end"])
    assert transport.written[0] == b"headmore"
    assert transport.written[1] is batch
    pieces = transport.written[2:5]
    assert all(isinstance(each, memoryview) and each.obj is large for each in pieces)
    assert transport.written[5:] == [b"end"]


@pytest.mark.parametrize("scale", [1, 10])
def test_what_a_slow_socket_makes_the_transport_copy_is_bounded(scale: int) -> None:
    """The transport copies less than one piece each time the socket is full."""
    transport = Transport(2 * PIECE_BYTES + 1)
    transport.output.put([bytes(PIECE_BYTES)] * 9 * scale)
    times = 0
    while transport.buffer:
        times += 1
        assert len(transport.buffer) < PIECE_BYTES
        transport.drain()
    assert transport.copied < PIECE_BYTES * times
    assert len(transport.taken) == 9 * scale * PIECE_BYTES
