"""Serialised raw frames decode in another process to the same rows as here."""

from __future__ import annotations

import pickle
from itertools import islice
from pathlib import Path

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.frames.decoding import InFlightRequest, LocatedItem, RawFrame, located
from kafkawire.capture.frames.serialised import (
    MAX_KNOWN,
    Packer,
    SerialisedFrames,
    SerialisedReader,
    Shared,
    pack,
    unpack,
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
    header, frames = Packer().pack_apart(items)
    assert header == pack(items)._replace(frames=b"")
    copy = pickle.loads(pickle.dumps(header))._replace(frames=b"".join(frames))
    assert [located(item) for item in unpack(copy)] == [located(item) for item in items]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_fields_of_an_item_that_is_not_created(path: Path) -> None:
    items = items_of(path)
    reader = SerialisedReader(pack(items))
    for item in items:
        raw_frame = item.item
        assert reader.next()
        if not isinstance(raw_frame, RawFrame) or raw_frame.request is None:
            assert reader.other is item
            continue
        request = raw_frame.request
        assert reader.other is None
        assert (reader.connection, reader.client, reader.broker) == (
            item.connection,
            item.client,
            item.broker,
        )
        assert reader.frames[reader.start : reader.end] == raw_frame.frame
        assert (reader.packet, reader.time_ns) == (raw_frame.packet, raw_frame.time_ns)
        assert (reader.is_request, reader.body) == (raw_frame.is_request, raw_frame.body)
        assert (reader.api_key, reader.api_version) == (request.api_key, request.api_version)
        assert (reader.correlation_id, reader.client_id) == (
            request.correlation_id,
            request.client_id,
        )
        assert reader.error == raw_frame.error
        assert reader.apis is request.apis
        assert located(reader.item()) == located(item)
    assert not reader.next()


def test_what_a_connection_has_in_common_is_sent_once() -> None:
    def item(
        connection: int, client: str, client_id: str | None, broker: str = "b:9092"
    ) -> LocatedItem:
        request = InFlightRequest(3, 1, 7, client_id, 1, 1)
        return LocatedItem(connection, client, broker, RawFrame(True, b"", 1, 1, request, -1, ""))

    one, swapped = item(1, "c:1", "me"), item(1, "b:9092", "me")
    two, other = item(2, "c:2", None), item(1, "c:1", "somebody else")
    packer, known = Packer(), list[Shared]()

    def shared(items: list[LocatedItem], delivered: bool = True) -> list[Shared]:
        packed, frames = packer.pack_apart(items)
        packer.delivered = delivered
        if delivered:
            reader = SerialisedReader(packed._replace(frames=b"".join(frames)), known)
            assert [located(each) for each in reader.items()] == [located(each) for each in items]
        return packed.shared

    assert shared([one, two, one]) == [(1, "c:1", "b:9092", "me"), (2, "c:2", "b:9092", None)]
    assert shared([one, two]) == []
    assert shared([one, swapped, two, swapped]) == [(1, "b:9092", "b:9092", "me")]
    assert shared([swapped, other]) == [(1, "c:1", "b:9092", "somebody else")]
    of_next_file = item(2, "c:2", None, "b:9093")
    assert shared([two, of_next_file, of_next_file]) == [(2, "c:2", "b:9093", None)]
    shared([item(3, "c:3", "")], delivered=False)
    assert len(shared([two, swapped])) == 2, "as if nothing had been sent"
    assert len(known) == 2
    many = [item(at, f"c:{at}", "") for at in range(MAX_KNOWN - 1)]
    assert len(shared(many)) == MAX_KNOWN - 1
    assert len(shared([two])) == 1
    assert len(known) == 1, "more would have been too many"


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
