"""Sealed frames on their way: what another process opens is what would have been opened here."""

from __future__ import annotations

import pickle
from itertools import islice

import pytest

from kafkawire.capture.engine import decode_capture, located, read_raw_frames
from kafkawire.capture.frames.decoding import InFlightRequest, RawFrame
from kafkawire.capture.frames.serialised import LocatedItem, SerialisedFrames, pack, unpack
from kafkawire.capture.rows import Status
from tests.conftest import FIXTURES

CAPTURES = sorted((FIXTURES / "captures").glob("*.pcap*"))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_real_traffic_is_the_same_behind_a_parcel(path: object) -> None:
    told = list(read_raw_frames(str(path)))
    wanted = list(decode_capture(str(path)))
    assert [located(one) for one in told] == wanted
    parcels: list[SerialisedFrames] = []
    rest = iter(told)
    while some := list(islice(rest, 17)):
        parcels.append(pickle.loads(pickle.dumps(pack(some))))
    assert [located(one) for parcel in parcels for one in unpack(parcel)] == wanted


def test_a_sealed_frame_pickles_by_itself() -> None:
    for told in read_raw_frames(str(CAPTURES[0])):
        copy = pickle.loads(pickle.dumps(told))
        assert located(copy) == located(told)


def test_extreme_numbers_and_frames_without_a_header_survive() -> None:
    asked = InFlightRequest(-(1 << 15), (1 << 15) - 1, -(1 << 31), None, 1, -(1 << 63))
    sealed = [
        RawFrame(True, b"", 1, 0, None, -1, "too short"),
        RawFrame(False, b"\0\0\0\1x", (1 << 40), (1 << 62), asked, 4, ""),
        RawFrame(True, b"\x80\0\x7f\xff\x80\0\0\0\xff\xffrest", 2, -1, asked, 10, ""),
        RawFrame(True, b"", 3, 0, None, -1, "too short"),
    ]
    told = [LocatedItem(at, "c" * at, None, one) for at, one in enumerate(sealed)]
    rows = [located(one) for one in told]
    assert [one.row.status for one in rows] == [
        Status.MALFORMED,
        Status.UNKNOWN_API,
        Status.UNKNOWN_API,
        Status.MALFORMED,
    ]
    assert [located(one) for one in unpack(pack(told))] == rows
