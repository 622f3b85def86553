"""The bytes that retransmissions are compared with: how many are stored, and which."""

from __future__ import annotations

import random

import pytest

from kafkawire.capture.tcp.retransmission import DeliveredBytes


def test_comparing_leaves_what_is_stored() -> None:
    """The limit on memory counts `stored`; bytes dropped elsewhere would be counted forever."""
    delivered = DeliveredBytes(100)
    for _ in range(19):
        delivered.deliver(b"ten bytes!")
    assert delivered.stored == len(delivered.save()) == 190
    repeated = delivered.compare(delivered.position - 10, b"ten bytes!")
    assert (repeated.duplicate, repeated.conflicting) == (10, 0)
    assert delivered.last(1) == b"!"
    assert delivered.stored == len(delivered.save()) == 190


@pytest.mark.parametrize("limit", [0, 1, 50, 4096])
def test_the_last_bytes_are_stored(limit: int) -> None:
    rng = random.Random(limit)
    delivered, stream = DeliveredBytes(limit), b""
    for _ in range(300):
        data = rng.randbytes(rng.choice((1, 7, 40, 60, 5000)))
        stream += data
        delivered.deliver(data)
        assert delivered.position == len(stream)
        assert delivered.stored == len(delivered.save()) <= 2 * limit
        assert stream.endswith(delivered.save())
        assert delivered.recent() == stream[max(0, len(stream) - limit) :]


def test_a_gap_drops_what_is_stored() -> None:
    delivered = DeliveredBytes(10)
    delivered.deliver(b"abc")
    delivered.skip(7)
    assert (delivered.position, delivered.stored, delivered.recent()) == (7, 0, b"")
    assert delivered.compare(2, b"cdef").late == [(3, 3)]
