"""Converts Protobuf messages to plain values and back.

Names are those of the schema; enums are names, 64-bit integers numbers, bytes bytes; fields
without presence that are not set have their default, others are left out. Timestamps, durations,
wrappers and structs are what they stand for, as in Protobuf's JSON mapping.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

from ...errors import InvalidRecordValue
from ..bounds import Bounds
from ..json_form import HEX, MAX_DIGITS, decimal_of

MESSAGE_KINDS: Final = frozenset({10, 11})
ENUM: Final = 14
BYTES: Final = 12
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_DECIMAL: Final = 4096
"""Bytes of a decimal."""
DECIMAL: Final = "confluent.type.Decimal"
BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}", re.ASCII)
MAX_LEVELS: Final = 100


class Converter:
    """Converts the messages of one pool."""

    def __init__(self, pool: Any, bounds: Bounds) -> None:
        self._pool = pool
        self._bounds = bounds
        self._nodes_left = 0
        self._level = 0

    def value(self, message: Any, size: int) -> object:
        """Convert a message of `size` bytes."""
        self._nodes_left = self._bounds.nodes(size)
        self._level = 0
        return self._message(message)

    def _message(self, message: Any) -> object:
        if self._level == self._bounds.depth:
            raise InvalidRecordValue(f"nested more than {self._level} levels deep")
        self._level += 1
        fields = self._fields(message)
        self._level -= 1
        return fields

    def _fields(self, message: Any) -> object:
        special = WELL_KNOWN.get(message.DESCRIPTOR.full_name)
        if special is not None:
            return special(self, message)
        fields = message.DESCRIPTOR.fields
        self._nodes_left -= 1 + len(fields)
        if self._nodes_left < 0:
            raise InvalidRecordValue("more fields than its size allows")
        values: dict[str, object] = {}
        for field in fields:
            if not field.has_presence or message.HasField(field.name):
                values[field.name] = self._field(field, getattr(message, field.name))
        return values

    def _field(self, field: Any, value: Any) -> object:
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            return {key: self._one(inner, value[key]) for key in value}
        if field.is_repeated:
            return [self._one(field, each) for each in value]
        return self._one(field, value)

    def _one(self, field: Any, value: Any) -> object:
        if field.type in MESSAGE_KINDS:
            return self._message(value)
        if field.type == ENUM:
            enum_value = field.enum_type.values_by_number.get(value)
            return value if enum_value is None else enum_value.name
        return value

    # -- well-known types

    def _struct(self, message: Any) -> object:
        return {key: self._message(inner) for key, inner in message.fields.items()}

    def _list(self, message: Any) -> object:
        return [self._message(inner) for inner in message.values]

    def _any_value(self, message: Any) -> object:
        kind = message.WhichOneof("kind")
        if kind is None or kind == "null_value":
            return None
        inner = getattr(message, kind)
        return self._message(inner) if kind in ("struct_value", "list_value") else inner

    def _packed(self, message: Any) -> object:
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        name = message.type_url.rpartition("/")[2]
        fields: dict[str, object] = {"@type": message.type_url}
        try:
            descriptor = self._pool.FindMessageTypeByName(name)
            inner = GetMessageClass(descriptor)()
            inner.ParseFromString(message.value)
        except (KeyError, DecodeError):
            return fields | {"value": message.value}
        converted = self._message(inner)
        return fields | (converted if isinstance(converted, dict) else {"value": converted})

    # -- encoding

    def fill(self, message: Any, value: Any) -> None:
        """Set the fields of a message from its JSON form."""
        from google.protobuf import json_format

        json_format.ParseDict(_standard(message.DESCRIPTOR, value, 0), message)


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return bool(kind is not None and kind.has_options and kind.GetOptions().map_entry)


def _timestamp(_: Converter, message: Any) -> object:
    try:
        second = EPOCH + timedelta(seconds=message.seconds)
    except OverflowError:
        raise InvalidRecordValue(f"timestamp {message.seconds} is out of range") from None
    return f"{second:%Y-%m-%dT%H:%M:%S}{_fraction(message.nanos)}Z"


def _duration(_: Converter, message: Any) -> object:
    sign = "-" if message.seconds < 0 or message.nanos < 0 else ""
    return f"{sign}{abs(message.seconds)}{_fraction(abs(message.nanos))}s"


def _fraction(nanos: int) -> str:
    return f".{nanos:09d}".rstrip("0") if nanos else ""


def _decimal(_: Converter, message: Any) -> object:
    if len(message.value) > MAX_DECIMAL:
        raise InvalidRecordValue(f"a decimal of {len(message.value)} bytes")
    unscaled = int.from_bytes(message.value, "big", signed=True)
    return Decimal((unscaled < 0, tuple(map(int, _digits(abs(unscaled)))), -message.scale))


def _digits(number: int) -> str:
    """Write a number in decimal digits; `str` limits those of numbers that it takes for hostile."""
    return format(Decimal(number), "f")


WRAPPERS: Final = (
    "Double",
    "Float",
    "Int64",
    "UInt64",
    "Int32",
    "UInt32",
    "Bool",
    "String",
    "Bytes",
)
WELL_KNOWN: Final[Mapping[str, Callable[[Converter, Any], object]]] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Struct": Converter._struct,
    "google.protobuf.ListValue": Converter._list,
    "google.protobuf.Value": Converter._any_value,
    "google.protobuf.Any": Converter._packed,
    "google.protobuf.FieldMask": lambda _, message: ",".join(message.paths),
    DECIMAL: _decimal,
    **{f"google.protobuf.{name}Value": lambda _, message: message.value for name in WRAPPERS},
}
"""Messages that stand for something else."""


def _standard(descriptor: Any, value: Any, level: int) -> Any:
    """Convert the JSON form of a message to Protobuf's own: bytes in base64, no decimals."""
    if descriptor.full_name == DECIMAL and isinstance(value, str):
        return _decimal_fields(value)
    if level > MAX_LEVELS or descriptor.full_name in WELL_KNOWN:
        return value
    if not isinstance(value, dict):
        raise InvalidRecordValue(f"{descriptor.name} is an object, not {type(value).__name__}")
    fields = dict(value)
    for field in descriptor.fields:
        inner = fields.get(field.name)
        if inner is not None:
            fields[field.name] = _standard_field(field, inner, level)
    return fields


def _standard_field(field: Any, value: Any, level: int) -> Any:
    if _is_map(field) and isinstance(value, dict):
        inner = field.message_type.fields_by_name["value"]
        return {key: _standard_one(inner, each, level) for key, each in value.items()}
    if field.is_repeated and isinstance(value, list):
        return [_standard_one(field, each, level) for each in value]
    return _standard_one(field, value, level)


def _standard_one(field: Any, value: Any, level: int) -> Any:
    if field.type == BYTES and isinstance(value, dict) and value.keys() == {HEX}:
        return b64encode(bytes.fromhex(value[HEX])).decode()
    if field.type == BYTES and isinstance(value, str) and not BASE64.fullmatch(value):
        raise InvalidRecordValue(f'{field.name} has bytes, which are base64 or {{"hex": ..}}')
    if field.type in MESSAGE_KINDS and not _is_map(field):
        return _standard(field.message_type, value, level + 1)
    return value


def _decimal_fields(text: str) -> dict[str, object]:
    """Return the fields of a decimal: the number without its point, in two's complement."""
    number = decimal_of(text)
    _, digits, exponent = number.as_tuple()
    scale, zeros = max(0, -int(exponent)), max(0, int(exponent))
    unscaled = int(number.scaleb(scale, Context(prec=2 * MAX_DIGITS)))
    data = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return {"value": b64encode(data).decode(), "precision": len(digits) + zeros, "scale": scale}
