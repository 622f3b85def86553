"""Converts messages to and from JSON objects, in the form of Kafka's own converters.

`from_json(name, version, to_json(m, version)) == m` for every m decoded in that version; the
result of `to_json` holds only what `json` can write.

    names        camelCase, as in the schema with its first letter lowered
    fields       those of the version; a tagged field at its default is left out
    bytes        base64                      uuid     22 characters of URL-safe base64
    float64      a number, or "NaN", "Infinity", "-Infinity"
    unknown      "_unknownTaggedFields": [{"tag": 7, "data": "base64"}]
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from ..errors import InvalidValue, UnsupportedVersion
from ..primitives import Message, MessageInfo, Structure, Tags
from .fields import Field, all_fields, fields_at
from .packages import KAFKA, Package, package_of

UNKNOWN_TAGS: Final = "_unknownTaggedFields"

Json = Any
Convert = Callable[[Any], Json]


class _Step(NamedTuple):
    """How one field is written.

    `convert` None writes the value as it is, `omit` is the value that is left out.
    """

    attribute: str
    json_name: str
    convert: Convert | None
    omit: Any


_ALWAYS: Final = object()
_plans: Final[dict[tuple[type[Structure], int], tuple[_Step, ...]]] = {}


def to_json(message: Structure, version: int) -> dict[str, Json]:
    """Make the JSON object of a message (or of one of its structs) at a version.

    Raises UnsupportedVersion for a message that has no such version.
    """
    plan = _plans.get((type(message), version))
    if plan is None:
        plan = _plan(type(message), version)
    obj: dict[str, Json] = {}
    for attribute, name, convert, omit in plan:
        value = getattr(message, attribute)
        if omit is not _ALWAYS and value == omit:
            continue
        obj[name] = value if convert is None or value is None else convert(value)
    unknown = getattr(message, "unknown_tags", None)
    if unknown:
        obj[UNKNOWN_TAGS] = [{"tag": tag, "data": _base64(data)} for tag, data in unknown]
    return obj


def _plan(cls: type[Structure], version: int) -> tuple[_Step, ...]:
    check_version(cls, version)
    default = cls()
    steps = tuple(
        _Step(
            field.attribute,
            field.json_name,
            _converter(field, version),
            getattr(default, field.attribute) if field.is_tagged else _ALWAYS,
        )
        for field in fields_at(cls, version)
    )
    _plans[cls, version] = steps
    return steps


def check_version(cls: type[Structure], version: int) -> None:
    """Raise UnsupportedVersion for a version that a message does not have. Structs have any."""
    package = package_of(cls)
    name = cls.__name__
    if package is not None and name in package.index and package.index.load(name) is cls:
        _check_version(package.index.get(name), version)


def _check_version(info: MessageInfo, version: int) -> None:
    if not info.first <= version <= info.last:
        reason = f"{info.name} has versions {info.first}-{info.last}, not {version}"
        raise UnsupportedVersion(reason)


def _converter(field: Field, version: int) -> Convert | None:
    one: Convert | None = _WRITERS.get(field.element)
    if field.struct is not None:

        def one(value: Structure) -> Json:
            return to_json(value, version)

    if one is None or not field.is_array:
        return one
    each = one
    return lambda values: [each(value) for value in values]


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def uuid_text(value: bytes) -> str:
    """Write a uuid in Kafka's form: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """Read a uuid in Kafka's form; ValueError for anything else."""
    try:
        value = urlsafe_b64decode(text + "==")
    except ValueError:  # not ASCII, or a length that base64 never has
        value = b""
    if len(value) != 16 or uuid_text(value) != text:
        raise ValueError(f"invalid uuid {text!r}: expected 22 characters of URL-safe base64")
    return value


def float_form(value: float) -> Json:
    """Make the JSON value of a float."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_WRITERS: Final[dict[str, Convert]] = {
    "bytes": _base64,
    "records": _base64,
    "uuid": uuid_text,
    "float64": float_form,
}


# -- and back


def from_json(name: str, version: int, obj: Json, *, package: Package = KAFKA) -> Message:
    """Build the message `name` from its JSON object at a version.

    A field that is missing takes its default.
    Raises UnknownApiKey, UnsupportedVersion, and InvalidValue with the path of an invalid value.
    """
    info = package.index.get(name)
    _check_version(info, version)
    message: Message = _build(package.index.load(name), version, obj, name)
    return message


def _build(cls: Any, version: int, obj: Json, path: str) -> Any:
    if not isinstance(obj, dict):
        raise InvalidValue(f"is {_kind(obj)}, not an object", path)
    fields = {field.json_name: field for field in fields_at(cls, version)}
    values: dict[str, Any] = {}
    for key, value in obj.items():
        if key == UNKNOWN_TAGS:
            values["unknown_tags"] = _unknown_tags(value, f"{path}.{key}")
            continue
        field = fields.get(key)
        if field is None:
            raise InvalidValue(_no_such_field(key, version, cls, fields), path)
        values[field.attribute] = _value(field, version, value, f"{path}.{key}")
    try:
        return cls(**values)
    except TypeError as error:  # a compiled class rejects null in a field that is never nullable
        raise InvalidValue(str(error), _refused(cls, values, path)) from None


def _refused(cls: Any, values: dict[str, Any], path: str) -> str:
    """Find the path of the value that a compiled class rejected: its error does not name it."""
    for attribute, value in values.items():
        try:
            cls(**{attribute: value})
        except TypeError:
            return f"{path}.{attribute}"
    return path


def _no_such_field(key: str, version: int, cls: Any, fields: dict[str, Field]) -> str:
    for field in all_fields(cls):
        if field.json_name == key:
            return f"unknown field {key!r} in version {version}, only in {field.first}-{field.last}"
    close = get_close_matches(key, fields, 1)
    return f"unknown field {key!r}" + (f"; did you mean {close[0]!r}?" if close else "")


def _value(field: Field, version: int, value: Json, path: str) -> Any:
    if value is None:
        return None
    if not field.is_array:
        return _element(field, version, value, path)
    if not isinstance(value, list):
        raise InvalidValue(f"is {_kind(value)}, not an array", path)
    return [_element(field, version, x, f"{path}[{i}]") for i, x in enumerate(value)]


def _element(field: Field, version: int, value: Json, path: str) -> Any:
    if field.struct is not None:
        return _build(field.struct, version, value, path)
    return _primitive(field.element, value, path)


def _primitive(type: str, value: Json, path: str) -> Any:
    try:
        return _READERS.get(type, _integer)(value)
    except (ValueError, OverflowError) as error:  # base64's own error is a ValueError
        raise InvalidValue(str(error), path) from None


def _expect(kind: type, value: Json, wanted: str) -> Any:
    if type(value) is not kind:
        raise ValueError(f"is {_kind(value)}, not {wanted}")
    return value


def _integer(value: Json) -> int:
    integer: int = _expect(int, value, "an integer")
    return integer


def _read_bytes(value: Json) -> bytes:
    return b64decode(_expect(str, value, "base64 text"), validate=True)


def _read_float(value: Json) -> float:
    if value in ("NaN", "Infinity", "-Infinity") or type(value) in (int, float):
        return float(value)
    raise ValueError(f"is {_kind(value)}, not a number")


_READERS: Final[dict[str, Callable[[Json], Any]]] = {
    "bool": lambda value: _expect(bool, value, "true or false"),
    "string": lambda value: _expect(str, value, "a string"),
    "bytes": _read_bytes,
    "records": _read_bytes,
    "uuid": lambda value: uuid_bytes(_expect(str, value, "a uuid")),
    "float64": _read_float,
}


def _unknown_tags(value: Json, path: str) -> Tags:
    if not isinstance(value, list):
        raise InvalidValue(f"is {_kind(value)}, not an array", path)
    tags = []
    for i, entry in enumerate(value):
        if not isinstance(entry, dict) or set(entry) != {"tag", "data"}:
            raise InvalidValue("is not an object of tag and data", f"{path}[{i}]")
        tags.append(
            (
                _primitive("int32", entry["tag"], f"{path}[{i}].tag"),
                _primitive("bytes", entry["data"], f"{path}[{i}].data"),
            )
        )
    return tags or None


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")
