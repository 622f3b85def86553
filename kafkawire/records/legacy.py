"""Reads messages of magic 0 and 1, and the message sets inside compressed messages.

A message is a batch of one record, unless it is compressed: then it wraps a message set.
Wrapped messages are not compressed again. Messages before a corrupt one are returned.

    offset: int64 │ message size: int32 │ crc: uint32 │ magic: int8 │ attributes: int8 │
    [timestamp: int64, magic 1] │ key length: int32, key │ value length: int32, value

Offsets of wrapped messages are absolute in magic 0; in magic 1 they count from 0, and the wrapper
has the last one's absolute offset (KIP-31). With log append time all messages have the wrapper's
timestamp (KIP-32).
"""

from typing import Final, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64, mypyc_attr

from ..errors import (
    CorruptBatch,
    InvalidLength,
    LimitExceeded,
    Truncated,
    UnsupportedMagic,
    WireError,
)
from .checksum import crc32
from .compression.codecs import COMPRESSION_BITS, codec_of
from .compression.decompression import opened
from .decoding import located
from .limits import Budget
from .record import Record

LOG_APPEND_TIME_BIT: Final = 0x08
LOG_OVERHEAD: Final = 12
"""Offset and size, which precede every batch of any magic and are not part of its size."""
SMALLEST: Final = (26, 34)
"""Bytes of a message without key and value, log overhead included, by magic."""


@final
@mypyc_attr(acyclic=True)
class Span:
    """Positions of a message's parts; lengths are -1 for null."""

    def __init__(self, offset: i64, timestamp: i64, attributes: i64) -> None:
        self.offset: i64 = offset
        self.timestamp: i64 = timestamp
        self.attributes: i64 = attributes
        self.key_start: i64 = 0
        self.key_length: i64 = -1
        self.value_start: i64 = 0
        self.value_length: i64 = -1

    def record(self, data: bytes) -> Record:
        """Return the record."""
        key = value = None
        if self.key_length >= 0:
            key = data[self.key_start : self.key_start + self.key_length]
        if self.value_length >= 0:
            value = data[self.value_start : self.value_start + self.value_length]
        return Record(int(self.offset), int(self.timestamp), key, value)


def read_span(data: bytes, start: i64, end: i64, check_crcs: bool) -> Span:
    """Find the parts of the message at `data[start:end]`."""
    magic = magic_at(data, start, end)
    if check_crcs:
        stored = i64(read_i32_be(data, start + 12)) & 0xFFFFFFFF
        computed = crc32(data, int(start) + 16, int(end))
        if computed != stored:
            raise CorruptBatch(
                f"CRC-32 is {computed:08x}, stored {stored:08x}", "", int(start) + 12
            )
    attributes: i64 = data[start + 17]
    timestamp = read_i64_be(data, start + 18) if magic == 1 else -1
    span = Span(read_i64_be(data, start), timestamp, attributes)
    pos = start + (26 if magic == 1 else 18)
    span.key_length = field_length(data, pos, end)
    span.key_start = pos + 4
    pos = span.key_start + max(span.key_length, 0)
    span.value_length = field_length(data, pos, end)
    span.value_start = pos + 4
    if span.value_start + max(span.value_length, 0) != end:
        raise CorruptBatch("the fields take less than the message's size", "", int(pos))
    return span


def magic_at(data: bytes, start: i64, end: i64) -> i64:
    """Read the magic of a message; raise if the message is too small for it."""
    if end - start < SMALLEST[0]:
        raise InvalidLength(f"a message of {end - start} bytes", "", int(start))
    magic: i64 = data[start + 16]
    if magic > 1:
        raise UnsupportedMagic(f"magic {magic} in a message set", "", int(start) + 16)
    if magic == 1 and end - start < SMALLEST[1]:
        raise InvalidLength(f"a message of {end - start} bytes", "", int(start))
    return magic


def field_length(data: bytes, pos: i64, end: i64) -> i64:
    """Read the length at `pos`, -1 for null; InvalidLength if it exceeds the message."""
    if pos + 4 > end:
        raise InvalidLength("the message ends inside a length", "", int(pos))
    length = i64(read_i32_be(data, pos))
    if length > end - pos - 4:
        raise InvalidLength(f"a field of {length} bytes, {end - pos - 4} left", "", int(pos))
    return max(length, -1)


@final
@mypyc_attr(acyclic=True)
class MessageSet:
    """The messages of a batch: the message itself, or those wrapped in it.

    data: the bytes that `spans` point into. fault: why reading stopped; None if all were read.
    last_offset: the stored offset of the last complete message, valid or corrupt.
    """

    def __init__(self, data: bytes) -> None:
        self.data: bytes = data
        self.spans: list[Span] = []
        self.fault: WireError | None = None
        self.last_offset: i64 = -1


def read_message_set(data: bytes, most: int, check_crcs: bool, batch_index: int) -> MessageSet:
    """Find the messages of a decompressed set, up to a fault.

    LimitExceeded if there are more than `most`.
    """
    message_set = MessageSet(data)
    spans = message_set.spans
    pos: i64 = 0
    try:
        while pos < len(data):
            end = message_end(data, pos)
            if len(spans) >= most:
                raise LimitExceeded(f"more than the {most} records allowed", "", int(pos))
            span = read_span(data, pos, end, check_crcs)
            if span.attributes & COMPRESSION_BITS != 0:
                raise CorruptBatch("a compressed message inside a compressed one", "", int(pos))
            spans.append(span)
            message_set.last_offset = span.offset
            pos = end
    except WireError as error:
        message_set.fault = located(error, batch_index, len(spans))
        if isinstance(error, LimitExceeded):
            raise message_set.fault from None
        message_set.last_offset = last_offset(data, pos, message_set.last_offset)
    if not spans and message_set.fault is None:
        raise CorruptBatch("a compressed message without messages inside")
    return message_set


def message_end(data: bytes, pos: i64) -> i64:
    """Return the end of the message at `pos`; Truncated if `data` ends inside it."""
    left = len(data) - pos
    if left >= LOG_OVERHEAD:
        length = i64(read_i32_be(data, pos + 8))
        if length <= left - LOG_OVERHEAD:
            return pos + LOG_OVERHEAD + length
    raise Truncated("the message set ends inside a message", "", int(pos))


def last_offset(data: bytes, pos: i64, before: i64) -> i64:
    """Read the offset of the last complete message from `pos` on; `before` if there is none.

    A corrupt message has a length, so the next one can be found.
    """
    last = before
    try:
        while pos < len(data):
            end = message_end(data, pos)
            if end - pos < SMALLEST[0]:
                return last
            last = read_i64_be(data, pos)
            pos = end
    except Truncated:
        pass  # the fault is already recorded
    return last


def unwrap(
    data: bytes,
    start: int,
    end: int,
    check_crcs: bool,
    budget: Budget,
    batch_index: int,
    partial: bool,
) -> MessageSet:
    """Find the messages of the batch at `data[start:end]`, up to a fault.

    The caller verifies its own checksum; `check_crcs` is for the messages inside. partial: whether
    to decompress corrupt data up to its fault.
    """
    wrapper = read_span(data, start, end, False)
    if wrapper.attributes & COMPRESSION_BITS == 0:
        budget.spend_records(1)
        single = MessageSet(data)
        single.spans.append(wrapper)
        return single
    magic = data[start + 16]
    codec = codec_of(int(wrapper.attributes), magic)
    if wrapper.value_length < 0:
        raise CorruptBatch("a compressed message without a value")
    stream = data[wrapper.value_start : wrapper.value_start + wrapper.value_length]
    inner, fault = opened(codec, stream, magic, budget, partial)
    if fault is not None and not inner:
        raise fault
    message_set = read_message_set(inner, budget.batch_records(), check_crcs, batch_index)
    if fault is not None:
        message_set.fault = fault
    budget.spend_records(len(message_set.spans))
    if message_set.spans:
        settle(message_set, magic, wrapper)
    return message_set


def settle(message_set: MessageSet, magic: int, wrapper: Span) -> None:
    """Turn the offsets and timestamps of wrapped messages into absolute ones.

    In magic 1 the last message has the wrapper's offset. In a truncated set that is the last
    complete one, as in Kafka's consumers.
    """
    base: i64 = 0
    # an offset of 0 is from a producer: the broker has not yet set the last offset
    if magic == 1 and wrapper.offset != 0:
        last = message_set.last_offset
        if last < 0 or last > wrapper.offset:
            raise CorruptBatch(f"the last offset inside is {last}, the outer {wrapper.offset}")
        base = wrapper.offset - last
        for span in message_set.spans:
            if span.offset < 0 or span.offset > last:
                raise CorruptBatch(f"offset {span.offset} inside, before the last, {last}")
    for span in message_set.spans:
        span.offset += base
        if magic == 1 and wrapper.attributes & LOG_APPEND_TIME_BIT != 0:
            span.timestamp = wrapper.timestamp
