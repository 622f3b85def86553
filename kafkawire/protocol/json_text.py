"""Messages -> JSON text, by a template for each struct and version.

Law: the text is what `json` writes of `to_json`, without blanks: character for character, but for
credentials, which are left out unless they are asked for.

    struct, version --once--> '{"topics":%s,"timeoutMs":%s}', and how to write what is no number
    message --------> values, by one attrgetter --> texts --> '{"topics":["a"],"timeoutMs":500}'
"""

from __future__ import annotations

import sys
from binascii import b2a_base64
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import Any, Final, TypeAlias, final

from ..primitives.structure import FieldRow, Structure
from .json_form import UNKNOWN_TAGS, check_version, float_form, uuid_text

CREDENTIALS: Final = frozenset({"authBytes", "password", "hmac", "saltedPassword", "salt"})
"""Fields of Kafka's JSON form that hold credentials."""

TEXT: Final = 1
BYTES: Final = 2
UUID: Final = 3
BOOL: Final = 4
FLOAT: Final = 5
STRUCT: Final = 6
INTS: Final = 7
SECRET_TEXT: Final = 8
SECRET_BYTES: Final = 9
EACH: Final = 16
"""Added to the kind of an array's elements."""

KINDS: Final = {
    "string": TEXT,
    "bytes": BYTES,
    "records": BYTES,
    "uuid": UUID,
    "bool": BOOL,
    "float64": FLOAT,
}
"""Types that are not written as Python writes their values."""


Getter: TypeAlias = Callable[[object], tuple[Any, ...]]


@final
class Template:
    """How the structs of a class are written at a version.

    get: gives the values that are always there, for which `shape` has places; special: index, kind
    and template of those that are no plain numbers. get_tagged: gives the others, written only
    where they differ from `defaults`, and the unknown tags, if the class has any.
    """

    def __init__(self, cls: type[Structure], version: int, secrets: bool) -> None:
        rows = [row for row in cls.__fields__ if row.first <= version <= row.last]
        always = [row for row in rows if row.tag < 0]
        tagged = [row for row in rows if row.tag >= 0]
        default = cls()
        self.rows: list[FieldRow] = rows
        self.kinds: dict[str, int] = {}
        self.inner: dict[str, Template | None] = {}
        for row in rows:
            self.kinds[row.attribute] = kind_of(row, secrets)
            self.inner[row.attribute] = inner_of(cls, row, version, secrets)
        self.shape: str = "{" + ",".join([f'"{row.json_name}":%s' for row in always]) + "}"
        self.get: Getter = getter([row.attribute for row in always])
        names = [row.attribute for row in tagged]
        self.defaults: tuple[Any, ...] = tuple([getattr(default, name) for name in names])
        if hasattr(default, "unknown_tags"):
            names.append("unknown_tags")
            self.defaults = (*self.defaults, None)
        self.get_tagged: Getter | None = getter(names) if names else None
        self.special: list[tuple[int, int, Template | None]] = []
        for at, row in enumerate(always):
            kind = self.kinds[row.attribute]
            if kind:
                self.special.append((at, kind, self.inner[row.attribute]))

    def write(self, struct: object) -> str:
        """Write a struct of the class."""
        get_tagged = self.get_tagged
        if get_tagged is not None:
            tagged = get_tagged(struct)
            if tagged != self.defaults:
                return self.write_tagged(struct)
        values = self.get(struct)
        special = self.special
        if not special:
            return self.shape % values
        texts: list[Any] = list(values)
        for at, kind, inner in special:
            texts[at] = write_value(texts[at], kind, inner)
        return self.shape % tuple(texts)

    def write_tagged(self, struct: object) -> str:
        """Write a struct that has values which are not always there."""
        parts: list[str] = []
        defaults = iter(self.defaults)
        for row in self.rows:
            value: Any = getattr(struct, row.attribute)
            if row.tag >= 0 and value == next(defaults):
                continue
            kind, inner = self.kinds[row.attribute], self.inner[row.attribute]
            text = write_value(value, kind, inner) if kind else str(value)
            parts.append(f'"{row.json_name}":{text}')
        unknown: Any = getattr(struct, "unknown_tags", None)
        if unknown:
            tags = [f'{{"tag":{tag},"data":"{base64_text(data)}"}}' for tag, data in unknown]
            parts.append(f'"{UNKNOWN_TAGS}":[{",".join(tags)}]')
        return "{" + ",".join(parts) + "}"


def getter(names: list[str]) -> Getter:
    """Make what gives the values of attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        name = names[0]
        return lambda struct: (getattr(struct, name),)
    return lambda _: ()


def kind_of(row: FieldRow, secrets: bool) -> int:
    """Say how a field is written; 0 for a number."""
    element = row.type.removeprefix("[]")
    if element[0].isupper():
        kind = STRUCT
    else:
        kind = KINDS.get(element, 0)
    if row.json_name in CREDENTIALS and not secrets and element == row.type:
        kind = {TEXT: SECRET_TEXT, BYTES: SECRET_BYTES}.get(kind, kind)
    if element == row.type:
        return kind
    return kind + EACH if kind else INTS


def inner_of(cls: type[Structure], row: FieldRow, version: int, secrets: bool) -> Template | None:
    """Find the template of a field that holds structs."""
    element = row.type.removeprefix("[]")
    if not element[0].isupper():
        return None
    owner: Any = cls  # a class of Python's, whichever way it is compiled
    return template(getattr(sys.modules[owner.__module__], element), version, secrets)


def write_value(value: Any, kind: int, inner: Template | None) -> str:
    """Write a value of some kind."""
    if value is None:
        return "null"
    if kind == TEXT:
        return encode_basestring_ascii(value)
    if kind == STRUCT + EACH:
        assert inner is not None
        return "[" + ",".join([inner.write(one) for one in value]) + "]"
    if kind == BYTES:
        return f'"{base64_text(value)}"'
    if kind == BOOL:
        return "true" if value else "false"
    if kind == INTS:
        return "[" + ",".join([str(one) for one in value]) + "]"
    if kind == UUID:
        return f'"{uuid_text(value)}"'
    if kind == STRUCT:
        assert inner is not None
        return inner.write(value)
    if kind == FLOAT:
        form = float_form(value)
        return f'"{form}"' if isinstance(form, str) else float.__repr__(form)
    if kind == SECRET_TEXT:
        return f'"(redacted, {len(value)} characters)"'
    if kind == SECRET_BYTES:
        return f'"(redacted, {(len(value) + 2) // 3 * 4} characters)"'
    return "[" + ",".join([write_value(one, kind - EACH, inner) for one in value]) + "]"


def base64_text(data: bytes) -> str:
    """Write bytes as base64."""
    return b2a_base64(data, newline=False).decode("ascii")


_templates: Final[dict[tuple[type[Structure], int, bool], Template]] = {}


def template(cls: type[Structure], version: int, secrets: bool) -> Template:
    """Give the template of a class at a version. Raises UnsupportedVersion for a message that has
    no such version.
    """
    found = _templates.get((cls, version, secrets))
    if found is None:
        check_version(cls, version)
        found = _templates[cls, version, secrets] = Template(cls, version, secrets)
    return found


def to_json_text(message: Structure, version: int, *, secrets: bool = True) -> str:
    """Write the JSON of a message (or of one of its structs) at a version.

    secrets: whether credentials are written; their length stands in their place otherwise.
    Raises UnsupportedVersion for a message that has no such version.
    """
    return template(type(message), version, secrets).write(message)
