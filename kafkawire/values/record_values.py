"""Decodes the key and the value of records, each in its format: for display, and for clients.

What is shown of a record stays: the decoded forms are members beside it. Clients have functions
that raise an error where a key or value cannot be encoded or decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

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
