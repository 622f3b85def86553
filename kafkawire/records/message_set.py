"""Writes messages of magic 0 and 1, as old clients and brokers do.

Without a codec every record is one message; with a codec all records are in the value of a
single message. The layouts are those of `legacy`.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, final

from ..errors import InvalidValue, OutOfRange
from .checksum import crc32
from .compression.codecs import Compression, compress
from .legacy import LOG_APPEND_TIME_BIT, SMALLEST
from .record import NO_TIMESTAMP

OVERHEAD: Final = Struct(">qi")
CRC: Final = Struct(">I")
HEADS: Final = (Struct(">bb"), Struct(">bbq"))
LENGTH: Final = Struct(">i")
NULL: Final = LENGTH.pack(-1)
UP_TO_SIZE: Final = 12
UP_TO_CRC: Final = 16


class Message(NamedTuple):
    """A record waiting to be written."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@final
class MessageSetBuilder:
    """Collects the records of one message set.

    magic: 0 (no timestamps) or 1.
    base_offset: the first offset; a producer's sets start at 0.
    log_append_time: the broker's timestamp for all records, magic 1 only; None leaves them their
        own.
    """

    def __init__(
        self,
        magic: int,
        *,
        base_offset: int = 0,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        log_append_time: int | None = None,
    ) -> None:
        if magic not in (0, 1):
            raise InvalidValue(f"magic {magic}: message sets are of magic 0 or 1")
        if magic == 0 and log_append_time is not None:
            raise InvalidValue("magic 0 has no timestamps")
        self.magic: int = magic
        self.base_offset: int = base_offset
        self.compression: Compression = compression
        self.level: int | None = level
        self.log_append_time: int | None = log_append_time
        self.last_offset: int = base_offset - 1
        self.size: int = 0
        self._messages: list[Message] = []

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int = NO_TIMESTAMP,
        offset: int | None = None,
    ) -> None:
        """Add a record; `offset` None is the one after the last.

        `size` grows by its bytes before compression.
        """
        self.last_offset = self.last_offset + 1 if offset is None else offset
        at = timestamp if self.log_append_time is None else self.log_append_time
        self._messages.append(Message(self.last_offset, at, key, value))
        self.size += SMALLEST[self.magic] + len(key or b"") + len(value or b"")

    def build(self) -> bytes:
        """Write the message set."""
        if self.compression == Compression.NONE or not self._messages:
            return b"".join(self._write(message, Compression.NONE) for message in self._messages)
        base = self._messages[0].offset if self.magic == 1 else 0
        inner = b"".join(
            self._write(message._replace(offset=message.offset - base), Compression.NONE)
            for message in self._messages
        )
        stream = compress(self.compression, inner, self.magic, self.level)
        latest = max(message.timestamp for message in self._messages)
        wrapper = Message(self._messages[-1].offset, latest, None, stream)
        return self._write(wrapper, self.compression)

    def _write(self, message: Message, codec: Compression) -> bytes:
        attributes = int(codec) | (0 if self.log_append_time is None else LOG_APPEND_TIME_BIT)
        fields = (self.magic, attributes, message.timestamp)[: 2 + self.magic]
        try:
            body = HEADS[self.magic].pack(*fields) + nullable(message.key) + nullable(message.value)
            head = OVERHEAD.pack(message.offset, len(body) + UP_TO_CRC - UP_TO_SIZE)
        except StructError as error:
            raise OutOfRange(f"a field of the message: {error}") from None
        return head + CRC.pack(crc32(body, 0, len(body))) + body


def nullable(value: bytes | None) -> bytes:
    """Write a length and its bytes; None is the length -1."""
    return NULL if value is None else LENGTH.pack(len(value)) + value
