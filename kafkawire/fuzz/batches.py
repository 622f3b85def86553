"""Record batches for requests: whole ones, and those that a broker must not store."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from typing import Final

from ..messages.api_key import ApiKey
from ..records import BatchBuilder
from ..records.checksum import crc32c
from ..records.compression.codecs import Compression
from ..records.message_set import MessageSetBuilder

TIME_MS: Final = 1_767_225_600_000
MAGIC_1: Final = 2
MAGIC_2: Final = 3
"""The first versions of Produce with message sets of magic 1, and with record batches."""
LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, PRODUCER, RECORD_COUNT = 8, 16, 17, 21, 23, 43, 57
HEADER: Final = 61
"""Offsets in a batch, and the size of its header."""
CODECS: Final = (Compression.NONE, Compression.GZIP)
SIZES: Final = (-(1 << 31), -1, 0, 1, 48, 49, 1 << 20, (1 << 31) - 1)
COUNTS: Final = (-(1 << 31), -1, 0, 2, 100_000, (1 << 31) - 1)


def usual_records(api: ApiKey, version: int, rng: random.Random) -> bytes:
    """Draw records of a version of Produce."""
    if api is ApiKey.PRODUCE and version < MAGIC_2:
        messages = MessageSetBuilder(int(version >= MAGIC_1))
        messages.append(b"key", b"value", TIME_MS if version >= MAGIC_1 else -1)
        return messages.build()
    batch = BatchBuilder(compression=rng.choice(CODECS))
    for number in range(rng.choice((1, 1, 3))):
        batch.append(b"key", b"value", TIME_MS + number)
    return batch.build()


def damaged_records(rng: random.Random) -> bytes:
    """Draw a batch that no producer writes."""
    whole = usual_records(ApiKey.PRODUCE, MAGIC_2, rng)
    return rng.choice(list(DAMAGES.values()))(whole, rng)


def _replaced(batch: bytes, start: int, value: bytes, *, checked: bool = True) -> bytes:
    """Replace bytes. checked: whether the checksum is right afterwards."""
    changed = batch[:start] + value + batch[start + len(value) :]
    if not checked:
        return changed
    checksum = struct.pack(">I", crc32c(changed, ATTRIBUTES, len(changed)))
    return changed[:CRC] + checksum + changed[ATTRIBUTES:]


def _int32(number: int) -> bytes:
    return struct.pack(">i", number)


def _other_checksum(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, CRC, rng.randbytes(4), checked=False)


def _other_magic(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, MAGIC, bytes([rng.choice((0, 1, 3, 127, 128, 255))]), checked=False)


def _other_length(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, LENGTH, _int32(rng.choice(SIZES)), checked=False)


def _other_attributes(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, ATTRIBUTES, struct.pack(">H", rng.choice((5, 7, 0x20, 0x30, 0xFFFF))))


def _other_count(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, RECORD_COUNT, _int32(rng.choice(COUNTS)))


def _other_delta(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, LAST_DELTA, _int32(rng.choice(COUNTS)))


def _other_body(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, HEADER, rng.randbytes(len(batch) - HEADER))


def _other_codec(batch: bytes, rng: random.Random) -> bytes:
    return _replaced(batch, ATTRIBUTES, struct.pack(">H", rng.choice((1, 2, 3, 4))))


def _producer(batch: bytes, rng: random.Random) -> bytes:
    state = (rng.choice((-2, -1, 0, 1 << 40)), rng.choice((-1, 0)), rng.choice((-2, -1, 0, 7)))
    return _replaced(batch, PRODUCER, struct.pack(">qhi", *state))


def _cut(batch: bytes, rng: random.Random) -> bytes:
    return batch[: rng.randrange(len(batch))]


def _repeated(batch: bytes, rng: random.Random) -> bytes:
    return batch * rng.choice((2, 20))


DAMAGES: Final[Mapping[str, Callable[[bytes, random.Random], bytes]]] = {
    "checksum": _other_checksum,
    "magic": _other_magic,
    "length": _other_length,
    "attributes": _other_attributes,
    "count": _other_count,
    "last offset delta": _other_delta,
    "records": _other_body,
    "codec": _other_codec,
    "producer": _producer,
    "end": _cut,
    "several": _repeated,
}
"""What is wrong with a batch -> what makes it so."""
