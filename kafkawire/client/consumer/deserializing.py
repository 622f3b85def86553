"""Makes keys and values of the bytes of records with the functions of a consumer's user.

A record whose key or value cannot be deserialized stays where it is: the error names it.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from ..serialization import KEY, VALUE, Deserializer, KeyT, T, ValueT, reason_of
from .failures import DeserializationFailed


class Deserializers(NamedTuple, Generic[KeyT, ValueT]):
    """The functions for keys and values; None leaves these as bytes."""

    key: Deserializer[KeyT] | None
    value: Deserializer[ValueT] | None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.key is not None or self.value is not None

    def deserialized(self, record: Any) -> Any:
        """Return a record with its key and value deserialized.

        record: a ConsumerRecord or ShareRecord, as the result. Raises DeserializationFailed.
        """
        key = _deserialized(self.key, KEY, record, record.key)
        value = _deserialized(self.value, VALUE, record, record.value)
        return record._replace(key=key, value=value)


def _deserialized(
    deserializer: Deserializer[T] | None, part: str, record: Any, data: bytes | None
) -> T | bytes | None:
    if data is None or deserializer is None:
        return data
    try:
        return deserializer(record.topic, record.headers, data)
    except Exception as error:
        raise DeserializationFailed(record.consumer_record, part, reason_of(error)) from error
