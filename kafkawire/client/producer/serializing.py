"""Makes bytes of keys and values with the functions of a producer's user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeAlias

from ...records import Headers
from ..failures import SerializationFailed
from ..serialization import KEY, VALUE, KeyT, Serializer, T, ValueT, reason_of

HeaderPairs: TypeAlias = Sequence[tuple[str, bytes | None]]
"""Headers as users have them: a tuple or a list."""


class ProducerRecord(NamedTuple, Generic[KeyT, ValueT]):
    """A record to send; the arguments of `Producer.send`."""

    topic: str
    value: ValueT | None = None
    key: KeyT | None = None
    partition: int | None = None
    headers: Headers = ()
    timestamp: int | None = None


class Serializers(NamedTuple, Generic[KeyT, ValueT]):
    """The functions for keys and values; None where these are bytes."""

    key: Serializer[KeyT] | None
    value: Serializer[ValueT] | None

    def bytes_of(self, record: ProducerRecord[KeyT, ValueT]) -> tuple[bytes | None, bytes | None]:
        """Serialize the key and the value of a record. Raises SerializationFailed."""
        key = _serialized(self.key, KEY, record, record.key)
        return key, _serialized(self.value, VALUE, record, record.value)


def _serialized(
    serializer: Serializer[T] | None,
    part: str,
    record: ProducerRecord[KeyT, ValueT],
    value: T | None,
) -> bytes | None:
    if value is None or serializer is None:
        return value  # type: ignore[return-value]  # bytes, which need no function
    try:
        return serializer(record.topic, record.headers, value)
    except Exception as error:
        raise SerializationFailed(record.topic, part, reason_of(error)) from error
