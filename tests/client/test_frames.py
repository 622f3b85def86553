"""Response frames from received bytes."""

from __future__ import annotations

import tracemalloc

import pytest

from kafkawire.client.network.frames import FrameBuffer
from kafkawire.errors import RemoteProtocolError
from kafkawire.primitives import Limits

FRAMES = [b"one", b"", b"three" * 10, b"4"]
STREAM = b"".join(len(each).to_bytes(4, "big") + each for each in FRAMES)


def taken(chunks: list[bytes], *, extends: bool = False, whole: bool = False) -> list[bytes]:
    """Feed chunks; take frames whenever there are some.

    extends: add those that complete no frame by `extend`. whole: take those that are one at once.
    """
    buffer = FrameBuffer(Limits())
    found = []
    for at, chunk in enumerate(chunks):
        frame = buffer.whole(chunk) if whole else None
        if frame is not None:
            found.append(frame)
        elif not (extends and buffer.extend(chunk)):
            buffer.feed(chunk)
            while (frame := buffer.take()) is not None:
                found.append(frame)
        fed = sum(map(len, chunks[: at + 1]))
        assert len(buffer) == fed - sum(4 + len(each) for each in found)
    return found


@pytest.mark.parametrize("size", range(1, len(STREAM) + 1))
def test_frames_may_be_split_anywhere(size: int) -> None:
    chunks = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert taken(chunks) == FRAMES
    assert taken(chunks, extends=True) == FRAMES
    assert taken(chunks, whole=True) == FRAMES


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_frames_may_be_split_once(at: int) -> None:
    assert taken([STREAM[:at], STREAM[at:]]) == FRAMES
    assert taken([STREAM[:at], STREAM[at:]], whole=True) == FRAMES


def test_bytes_that_are_one_frame_are_taken_at_once() -> None:
    frames = [len(each).to_bytes(4, "big") + each for each in FRAMES]
    assert taken(frames, whole=True) == FRAMES
    buffer = FrameBuffer(Limits(max_frame_bytes=3))
    assert buffer.whole(frames[0]) == b"one"
    for other in (b"", b"\0\0\0", frames[0][:-1], frames[0] + b"x", b"\0\0\0\x04four"):
        assert buffer.whole(other) is None
    buffer.feed(b"\0")
    assert buffer.whole(frames[0]) is None, "it is part of a frame that has begun"
    assert len(buffer) == 1


def test_an_invalid_size_is_an_error_before_its_bytes_are_there() -> None:
    buffer = FrameBuffer(Limits(max_frame_bytes=100))
    buffer.feed(b"\0\0\0")
    assert buffer.take() is None
    buffer.feed(b"\x65")
    with pytest.raises(RemoteProtocolError):
        buffer.take()


def test_only_bytes_inside_a_frame_extend_it() -> None:
    buffer = FrameBuffer(Limits(max_frame_bytes=100))
    assert not buffer.extend(b"\0\0")  # the size is not known
    buffer.feed(b"\0\0\0\x06a")
    assert buffer.take() is None
    assert buffer.extend(b"bcd")
    assert not buffer.extend(b"ef")  # the last ones
    assert not buffer.extend(b"efg")
    buffer.feed(b"efg")
    assert (buffer.take(), buffer.take()) == (b"abcdef", None)
    assert not buffer.extend(b"\0")  # the next size


def test_received_bytes_are_copied_once() -> None:
    """While a frame is incomplete nothing is copied; then there is one copy of it."""
    chunk, count = bytes(1 << 16), 64
    buffer = FrameBuffer(Limits())
    buffer.feed((len(chunk) * count).to_bytes(4, "big"))
    tracemalloc.start()
    try:
        for _ in range(count - 1):
            buffer.feed(chunk)
            assert buffer.take() is None
        assert tracemalloc.get_traced_memory()[1] < len(chunk)
        buffer.feed(chunk)
        frame = buffer.take()
        assert frame is not None
        assert len(frame) == len(chunk) * count
        assert tracemalloc.get_traced_memory()[1] < len(frame) + len(chunk)
    finally:
        tracemalloc.stop()
