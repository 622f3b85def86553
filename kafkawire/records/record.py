"""A record, the same for every magic.

A record is a value; equal when all its fields are. Its encoding in a batch (deltas, lengths)
is not part of it.
"""

from typing import Any, ClassVar, Final, final

from mypy_extensions import mypyc_attr

Headers = tuple[tuple[str, bytes | None], ...]
"""Record headers in order: keys may repeat, values may be null."""

NO_HEADERS: Final[Headers] = ()
NO_TIMESTAMP: Final = -1


@final
@mypyc_attr(acyclic=True)
class Record:
    """A record with its absolute offset.

    offset: the record's offset in its partition; in a Produce request, its index from 0.
    timestamp: milliseconds since the epoch, -1 for none (magic 0); the batch's timestamp if that is
    the log append time.
    key, value: raw bytes; None is null (a null value is a tombstone where the topic is compacted).
    headers: (key, value) in order; always empty in magic 0 and 1. A key that is not UTF-8 is a
    `ReplacedText`.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ("offset", "timestamp", "key", "value", "headers")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = NO_HEADERS,
    ) -> None:
        self.offset: int = offset
        self.timestamp: int = timestamp
        self.key: bytes | None = key
        self.value: bytes | None = value
        self.headers: Headers = headers

    def _values(self) -> tuple[int, int, bytes | None, bytes | None, Headers]:
        return self.offset, self.timestamp, self.key, self.value, self.headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._values() == other._values()

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # as for messages: a default pickle made compiled would lose its values when
        # loaded interpreted
        return Record, self._values()
