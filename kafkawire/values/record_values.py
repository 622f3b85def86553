"""Decodes the key and the value of records, each in its format: for display, and for clients.

What is shown of a record stays: the decoded forms are members beside it. Clients have functions
that raise an error where a key or value cannot be encoded or decoded; what writes many records
counts those that were not decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from ..display import plural
from ..errors import InvalidRecordValue
from .decoder import ValueDecoder
from .formats import DecodedValue
from .framing import Headers
from .schema import Subject


class RecordValues(NamedTuple):
    """Decoders of values and of keys; None leaves these as they are."""

    values: ValueDecoder | None
    keys: ValueDecoder | None = None

    def value(
        self, topic: str | None, value: bytes | None, headers: Headers
    ) -> DecodedValue | None:
        """Decode a value; None if it is null, or values are not decoded."""
        return _decoded(self.values, topic, False, value, headers)

    def key(self, topic: str | None, key: bytes | None, headers: Headers) -> DecodedValue | None:
        """Decode a key; None if it is null, or keys are not decoded."""
        return _decoded(self.keys, topic, True, key, headers)

    def members(
        self, topic: str | None, key: bytes | None, value: bytes | None, headers: Headers
    ) -> dict[str, object]:
        """Return members of a JSON object: keyDecoded, valueDecoded; none for null."""
        decoded = {
            "keyDecoded": self.key(topic, key, headers),
            "valueDecoded": self.value(topic, value, headers),
        }
        return {name: one.to_json() for name, one in decoded.items() if one is not None}

    def members_text(
        self, topic: str | None, key: bytes | None, value: bytes | None, headers: Headers
    ) -> str:
        """Write these members as ASCII, each with a comma in front."""
        members = self.members(topic, key, value, headers)
        text = json.dumps(members, separators=(",", ":"), allow_nan=False)[1:-1]
        return f",{text}" if text else ""


class Undecoded:
    """Counts keys or values, and those that were not decoded.

    noun: what they are. count: all, also null ones; errors: those that were not decoded.
    first_error: of the first of these.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.count = self.errors = 0
        self.first_error: str | None = None

    def add(self, decoded: DecodedValue | None) -> None:
        """Count a key or value; None: a null one."""
        self.count += 1
        if decoded is not None and decoded.error is not None:
            self.errors += 1
            self.first_error = self.first_error or decoded.error

    def merge(self, later: Undecoded) -> None:
        """Add the counts of keys or values that follow."""
        self.count += later.count
        self.errors += later.errors
        self.first_error = self.first_error or later.first_error

    @property
    def notes(self) -> list[str]:
        """How many were not decoded, and why the first one was not; empty if all were."""
        if not self.errors:
            return []
        count = f"{self.errors:,} of {plural(self.count, self.noun)} not decoded"
        return [f"{count}; the first: {self.first_error}"]


class ValueCounts(NamedTuple):
    """How many values and keys were not decoded."""

    values: Undecoded
    keys: Undecoded

    @staticmethod
    def zero() -> ValueCounts:
        """Return counts of nothing."""
        return ValueCounts(Undecoded("value"), Undecoded("key"))


class CountedValues(RecordValues):
    """Decoders that count what they do not decode.

    A process that decodes a part for another takes its counts, and the other adds them, in order.
    """

    def __init__(self, *_decoders: ValueDecoder | None) -> None:
        self._total, self._recent = ValueCounts.zero(), ValueCounts.zero()

    def value(
        self, topic: str | None, value: bytes | None, headers: Headers
    ) -> DecodedValue | None:
        """Decode and count a value."""
        decoded = super().value(topic, value, headers)
        self._recent.values.add(decoded)
        return decoded

    def key(self, topic: str | None, key: bytes | None, headers: Headers) -> DecodedValue | None:
        """Decode and count a key."""
        decoded = super().key(topic, key, headers)
        self._recent.keys.add(decoded)
        return decoded

    def take(self) -> ValueCounts:
        """Return the counts since the last call, which the total does not have yet."""
        recent, self._recent = self._recent, ValueCounts.zero()
        return recent

    def add(self, later: ValueCounts) -> None:
        """Add counts to the total."""
        for total, part in zip(self._total, later, strict=True):
            total.merge(part)

    def settle(self) -> None:
        """Add the counts since the last `take` to the total."""
        self.add(self.take())

    @property
    def notes(self) -> list[str]:
        """How many values and keys were not decoded; empty if all were."""
        self.settle()
        return [*self._total.values.notes, *self._total.keys.notes]


def _decoded(
    decoder: ValueDecoder | None,
    topic: str | None,
    is_key: bool,
    data: bytes | None,
    headers: Headers,
) -> DecodedValue | None:
    if decoder is None:
        return None
    return decoder.decode(data, None if topic is None else Subject(topic, is_key), headers)


def serializer(
    decoder: ValueDecoder, *, is_key: bool = False
) -> Callable[[str, Headers, Any], bytes]:
    """Make a serializer of values in their JSON form. is_key: of keys.

    Of a schema, it is the newest one of the subject, whose id is written in front. Raises
    InvalidRecordValue for a format that is only decoded; so does the serializer for a value that
    does not fit, and UnusableSchema where the schema is missing or out of reach.
    """
    if not decoder.can_encode:
        raise InvalidRecordValue(f"values are not encoded as {decoder.format.value}")

    def serialize(topic: str, _headers: Headers, value: Any) -> bytes:
        return decoder.encode(value, Subject(topic, is_key))

    return serialize


def deserializer(
    decoder: ValueDecoder, *, is_key: bool = False
) -> Callable[[str, Headers, bytes], Any]:
    """Make a deserializer to values in their JSON form. is_key: of keys.

    It raises InvalidRecordValue where a value cannot be decoded, with the reason.
    """

    def deserialize(topic: str, headers: Headers, data: bytes) -> Any:
        decoded = decoder.decode(data, Subject(topic, is_key), headers)
        assert decoded is not None  # only null is
        if decoded.error is not None:
            raise InvalidRecordValue(decoded.error)
        return decoded.value

    return deserialize
