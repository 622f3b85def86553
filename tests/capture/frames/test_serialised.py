"""Serialised raw frames decode in another process to the same rows as here."""

from __future__ import annotations

import pickle
from itertools import islice
from mmap import mmap
from pathlib import Path

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.frames.decoding import InFlightRequest, LocatedItem, RawFrame, located
from kafkawire.capture.frames.serialised import (
    SerialisedFrames,
    pack,
    pack_apart,
    unpack,
    unpack_apart,
)
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Status
from tests.conftest import FIXTURES

CAPTURES = sorted((FIXTURES / "captures").glob("*.pcap*"))


def items_of(path: Path) -> list[LocatedItem]:
    return [item for batch in Traffic([path]).item_batches() for item in batch]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_real_traffic_survives_serialisation(path: Path) -> None:
    items = items_of(path)
    wanted = list(decode_capture(str(path)))
    assert [located(item) for item in items] == wanted
    serialised: list[SerialisedFrames] = []
    rest = iter(items)
    while some := list(islice(rest, 17)):
        serialised.append(pickle.loads(pickle.dumps(pack(some))))
    assert [located(item) for each in serialised for item in unpack(each)] == wanted


@pytest.mark.parametrize("path", CAPTURES[:5], ids=lambda path: path.name)
def test_frames_apart_from_their_items(path: Path) -> None:
    items = items_of(path)
    header, frames = pack_apart(items)
    assert header == pack(items)._replace(frames=b"")
    joined = b"".join(frames)
    with mmap(-1, 7 + len(joined) + 7) as memory:
        memory[7:-7] = joined
        unpacked = unpack_apart(pickle.loads(pickle.dumps(header)), memory, 7)
        assert [located(item) for item in unpacked] == [located(item) for item in items]


def test_a_raw_frame_pickles() -> None:
    for items in items_of(CAPTURES[0]):
        copy = pickle.loads(pickle.dumps(items))
        assert located(copy) == located(items)


def test_extreme_numbers_and_frames_without_a_header_survive() -> None:
    request = InFlightRequest(-(1 << 15), (1 << 15) - 1, -(1 << 31), None, 1, -(1 << 63))
    raw_frames = [
        RawFrame(True, b"", 1, 0, None, -1, "too short"),
        RawFrame(False, b"\0\0\0\1x", (1 << 40), (1 << 62), request, 4, ""),
        RawFrame(True, b"\x80\0\x7f\xff\x80\0\0\0\xff\xffrest", 2, -1, request, 10, ""),
        RawFrame(True, b"", 3, 0, None, -1, "too short"),
    ]
    items = [LocatedItem(at, "c" * at, None, item) for at, item in enumerate(raw_frames)]
    rows = [located(item) for item in items]
    assert [item.row.status for item in rows] == [
        Status.MALFORMED,
        Status.UNKNOWN_API,
        Status.UNKNOWN_API,
        Status.MALFORMED,
    ]
    assert [located(item) for item in unpack(pack(items))] == rows
