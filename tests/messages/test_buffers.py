"""Messages and frames in pieces: large bytes fields are not copied."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import kafkawire
from kafkawire import Message
from kafkawire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.net.sockets.buffers import write_buffers
from kafkawire.primitives.writer import LARGE

MEGABYTES = bytes(range(256)) * 8192


def produce(*values: bytes | None) -> ProduceRequest:
    parts = [PartitionProduceData(index=at, records=each) for at, each in enumerate(values)]
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=parts)])


def fetched(*values: bytes | None) -> FetchResponse:
    parts = [PartitionData(partition_index=at, records=each) for at, each in enumerate(values)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])


SIZES = (0, 1, LARGE - 1, LARGE, LARGE + 1)


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("first", SIZES)
@pytest.mark.parametrize("second", SIZES)
def test_pieces_are_what_is_encoded(version: int, first: int, second: int) -> None:
    message = produce(b"a" * first, None, b"b" * second)
    pieces = message.encode_buffers(version)
    assert b"".join(pieces) == message.encode(version)
    assert ProduceRequest.decode(b"".join(pieces), version) == message
    assert all(pieces)
    first_part, _, second_part = message.topic_data[0].partition_data
    values = [first_part.records, second_part.records]
    kept = [piece for piece in pieces if any(piece is value for value in values)]
    assert kept == [value for value in values if value is not None and len(value) >= LARGE]
    ends_with_value = version < 9 and second >= LARGE
    assert len(pieces) == 2 * len(kept) + 1 - ends_with_value


def test_a_large_piece_is_the_value_itself() -> None:
    values = [bytes([at]) * (LARGE + at) for at in range(1, 4)]
    pieces = fetched(values[0], b"small", *values[1:]).encode_buffers(12)
    for value in values:
        assert any(piece is value for piece in pieces)
    assert [len(piece) < LARGE for piece in pieces] == [True, False] * 3 + [True]


def test_bytes_after_the_end_are_the_last_piece() -> None:
    data = produce(b"r" * LARGE).encode(9) + b"more"
    message = ProduceRequest.decode(data, 9, lenient=True)
    pieces = message.encode_buffers(9, lenient=True)
    assert b"".join(pieces) == message.encode(9, lenient=True) == data
    assert pieces[-1] == b"more"


def test_a_large_value_in_a_tagged_field_is_written_where_it_belongs() -> None:
    message = produce(b"r" * LARGE)
    message.unknown_tags = [(9, b"t" * LARGE)]
    message.topic_data[0].unknown_tags = [(3, b"u" * LARGE)]
    assert b"".join(message.encode_buffers(9)) == message.encode(9)
    assert ProduceRequest.decode(message.encode(9), 9) == message


def test_what_cannot_be_encoded_names_its_field() -> None:
    message = produce(b"r" * LARGE)
    message.topic_data[0].name = "n" * 40_000
    for encode in (message.encode, message.encode_buffers):
        with pytest.raises(kafkawire.EncodeError) as caught:
            encode(9)
        assert caught.value.path == "ProduceRequest.topic_data[0].name"
    with pytest.raises(kafkawire.UnsupportedVersion):
        message.encode_buffers(99)


@pytest.mark.parametrize("message", [produce(MEGABYTES, b"s"), fetched(b"s", MEGABYTES)])
def test_a_frame_in_pieces_is_the_frame(message: Message) -> None:
    version = 9 if isinstance(message, ProduceRequest) else 12
    frame = kafkawire.encode_frame(message, version, 7, client_id="me")
    pieces = kafkawire.encode_frame_buffers(message, version, 7, client_id="me")
    assert b"".join(pieces) == frame
    assert int.from_bytes(pieces[0][:4], "big") == len(frame) - 4
    assert any(piece is MEGABYTES for piece in pieces)


def peak(call: Callable[[], object]) -> int:
    """Measure the most memory that a call holds beyond what was there."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_large_values_are_copied_once_or_not_at_all() -> None:
    message = produce(MEGABYTES)
    once: list[Callable[[], object]] = [
        lambda: message.encode(9),
        lambda: kafkawire.encode_frame(message, 9, 1, client_id="me"),
    ]
    for call in once:
        assert len(MEGABYTES) <= peak(call) < 1.01 * len(MEGABYTES)
    never: list[Callable[[], object]] = [
        lambda: message.encode_buffers(9),
        lambda: kafkawire.encode_frame_buffers(message, 9, 1, client_id="me"),
    ]
    for call in never:
        assert peak(call) < 10_000


class Transport(asyncio.WriteTransport):
    """Takes what is written, until it is closed."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.written: list[Any] = []

    def write(self, data: Any) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return len(self.written) >= self.room


def test_pieces_are_written_in_order_and_not_joined() -> None:
    pieces = [b"size and header", MEGABYTES, b"tags"]
    transport = Transport(9)
    write_buffers(transport, pieces)
    assert b"".join(transport.written) == b"".join(pieces)
    assert transport.written[1].obj is MEGABYTES
    write_buffers(transport, [b"one"])
    assert transport.written[3:] == [b"one"]


@pytest.mark.parametrize("room", range(3))
def test_nothing_is_written_to_a_transport_that_closes(room: int) -> None:
    transport = Transport(room)
    write_buffers(transport, [b"a", b"b", b"c"])
    assert len(transport.written) == room
    write_buffers(Transport(0), [b"a"])
