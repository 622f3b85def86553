"""Formats that need no schema: JSON, MessagePack, text, and the numbers of Kafka's own serializers.

Source: org.apache.kafka.common.serialization (big-endian numbers; UUIDs as text).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from ..errors import InvalidRecordValue, MissingPackage
from ..extras import requires
from .bounds import DEFAULT_BOUNDS, json_depth
from .json_form import HEX

NUMBERS: Final = {
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float32": struct.Struct(">f"),
    "float64": struct.Struct(">d"),
}
FIRST_OF_JSON: Final = b'{["tfn-0123456789'
MSGPACK_CONTAINERS: Final = frozenset({*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF})
"""First bytes of MessagePack's maps and arrays, most of which begin no UTF-8."""

Decode = Callable[[bytes], object]
Encode = Callable[[Any], bytes]
UUID_DIGITS: Final = (8, 4, 4, 4, 12)
UUID_TEXT: Final = re.compile("-".join(f"([0-9a-fA-F]{{1,{most}}})" for most in UUID_DIGITS))


def decode_json(data: bytes) -> object:
    """Decode JSON in UTF-8; NaN and infinities are not JSON."""
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise InvalidRecordValue("nested too deeply") from None
    except ValueError as error:
        raise InvalidRecordValue(f"invalid JSON: {error}") from None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number of JSON")


def decode_msgpack(data: bytes) -> object:
    """Decode MessagePack; lengths are bounded by the data."""
    with requires("msgpack", "values"):
        import msgpack
    try:
        return msgpack.unpackb(data, strict_map_key=False, timestamp=3, ext_hook=_extension)
    except (msgpack.UnpackException, OverflowError, TypeError, ValueError) as error:
        reason = str(error) or "the value ends early"
        raise InvalidRecordValue(f"invalid MessagePack: {reason}") from None


def _extension(code: int, data: bytes) -> object:
    return {"extension": code, HEX: data.hex()}


def decode_string(data: bytes) -> str:
    """Decode text in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRecordValue(f"not UTF-8 (at byte {error.start})") from None


def uuid_of(text: str) -> UUID:
    """Read a UUID as `java.util.UUID.fromString` does; ValueError for anything else.

    Leading zeros of the five parts may be left out; Python's `UUID` takes hyphens anywhere.
    """
    parts = UUID_TEXT.fullmatch(text)
    if parts is None:
        raise ValueError(f"invalid UUID {text!r}")
    return UUID("".join(map(str.zfill, parts.groups(), UUID_DIGITS)))


def decode_uuid(data: bytes) -> UUID:
    """Decode the text of a UUID, or its 16 bytes."""
    try:
        return UUID(bytes=data) if len(data) == 16 else uuid_of(decode_string(data))
    except ValueError:
        raise InvalidRecordValue("not a UUID") from None


def _decode_number(form: struct.Struct) -> Decode:
    def decode(data: bytes) -> object:
        if len(data) != form.size:
            raise InvalidRecordValue(f"{len(data)} bytes, not {form.size}")
        return form.unpack(data)[0]

    return decode


def _encode_number(form: struct.Struct) -> Encode:
    def encode(value: Any) -> bytes:
        try:
            return form.pack(float(value) if form.format in (">f", ">d") else int(value))
        except (OverflowError, TypeError, ValueError, struct.error):
            raise InvalidRecordValue(f"{value!r} is out of range, or not a number") from None

    return encode


def encode_json(value: object) -> bytes:
    """Encode JSON without blanks, in UTF-8; NaN and infinities are not JSON."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()
    except RecursionError:
        raise InvalidRecordValue("nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise InvalidRecordValue(f"not JSON: {error}") from None


def encode_msgpack(value: object) -> bytes:
    """Encode MessagePack."""
    with requires("msgpack", "values"):
        import msgpack
    try:
        packed: bytes = msgpack.packb(value)
    except (OverflowError, ValueError) as error:
        raise InvalidRecordValue(f"not a value of MessagePack: {error}") from None
    return packed


def encode_string(value: object) -> bytes:
    """Encode text in UTF-8; what is not text as JSON."""
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def encode_uuid(value: object) -> bytes:
    """Encode a UUID as text, as Kafka's UUIDSerializer does."""
    try:
        return str(uuid_of(str(value))).encode()
    except ValueError:
        raise InvalidRecordValue(f"{value!r} is not a UUID") from None


DECODERS: Final[Mapping[str, Decode]] = {
    "json": decode_json,
    "msgpack": decode_msgpack,
    "string": decode_string,
    "uuid": decode_uuid,
    "bytes": bytes,
    **{name: _decode_number(form) for name, form in NUMBERS.items()},
}
ENCODERS: Final[Mapping[str, Encode]] = {
    "json": encode_json,
    "msgpack": encode_msgpack,
    "string": encode_string,
    "uuid": encode_uuid,
    **{name: _encode_number(form) for name, form in NUMBERS.items()},
}


def detected(data: bytes) -> str:
    """Return the format that a value has without a schema: json, string, msgpack or bytes.

    Numbers are not detected: any 8 bytes are a number. A number in digits is text.
    """
    if data[:1] and data[:1] in FIRST_OF_JSON and _fits(decode_json, data):
        return "json"
    if _is_text(data):
        return "string"
    if data[0] in MSGPACK_CONTAINERS and _fits(decode_msgpack, data):
        return "msgpack"
    return "bytes"


def _fits(decode: Decode, data: bytes) -> bool:
    try:
        return json_depth(decode(data)) <= DEFAULT_BOUNDS.depth
    except (InvalidRecordValue, MissingPackage):
        return False


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)
