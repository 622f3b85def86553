"""Writes messages as JSON text, by a template per struct and version.

The text equals `json`'s output for `to_json`, without blanks, except for secrets (see
`secrets`), which are replaced by their length unless requested.

    struct, version --once--> '{"topics":%s,"timeoutMs":%s}', and how to write other values
    message --------> values, by one attrgetter --> texts --> '{"topics":["a"],"timeoutMs":500}'
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import Any, Final, TypeAlias, final

from ..primitives.structure import Structure
from .fields import Field, fields_at, steps_to
from .json_form import UNKNOWN_TAGS, Json, check_version, float_form, to_json, uuid_text
from .secrets import (
    CONFIG_STRUCTS,
    METADATA_TOPICS,
    SECRET_FIELDS,
    SECRET_MODULES,
    SNAPSHOT_MODULE,
    hides_name,
    hides_value,
    placeholder,
)

TEXT: Final = 1
BYTES: Final = 2
UUID: Final = 3
BOOL: Final = 4
FLOAT: Final = 5
STRUCT: Final = 6
INTS: Final = 7
SECRET_TEXT: Final = 8
SECRET_BYTES: Final = 9
HIDE: Final = 1
DOUBTFUL: Final = 2
RECORDS: Final = 4
"""What to hide: secrets; all text and bytes of a message that may contain secrets and was not
decoded byte for byte; records of a topic with secrets. 0 hides nothing.
"""

TOPIC_FIELDS: Final = ("topic", "name")
TOPIC_ID: Final = "topic_id"

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
"""Types whose values are not written by `str`."""


Getter: TypeAlias = Callable[[object], tuple[Any, ...]]


@final
class Template:
    """How the structs of a class are written at a version.

    get: gives the values that are always there, for which `shape` has places; special: index, kind
    and template of values other than plain numbers. get_tagged: gives the others, written only
    where they differ from `defaults`, and the unknown tags, if the class has any. config: whether
    name and value decide what is hidden. metadata: writes the struct where its topic's records are
    secret; None where it has none.
    """

    def __init__(self, cls: type[Structure], version: int, hide: int) -> None:
        fields = fields_at(cls, version)
        always = [field for field in fields if field.tag < 0]
        tagged = [field for field in fields if field.tag >= 0]
        default = cls()
        owner: Any = cls  # a Python class, compiled or not
        module = owner.__module__.rpartition(".")[2]
        if hide and module == SNAPSHOT_MODULE:  # of the metadata log, which alone has snapshots
            hide |= RECORDS
        if module not in SECRET_MODULES:
            hide &= ~DOUBTFUL
        self.config: bool = hide != 0 and owner.__name__ in CONFIG_STRUCTS
        self.secret_tags: bool = hide != 0 and module in SECRET_MODULES
        self.fields: tuple[Field, ...] = fields
        self.kinds: dict[str, int] = {}
        self.inner: dict[str, Template | None] = {}
        for field in fields:
            self.kinds[field.attribute] = kind_of(field, hide)
            inner = None if field.struct is None else _template(field.struct, version, hide)
            self.inner[field.attribute] = inner
        self.shape: str = "{" + ",".join([f'"{field.json_name}":%s' for field in always]) + "}"
        self.get: Getter = getter([field.attribute for field in always])
        names = [field.attribute for field in tagged]
        self.defaults: tuple[Any, ...] = tuple([getattr(default, name) for name in names])
        if hasattr(default, "unknown_tags"):
            names.append("unknown_tags")
            self.defaults = (*self.defaults, None)
        self.get_tagged: Getter | None = getter(names) if names else None
        self.special: list[tuple[int, int, Template | None]] = []
        for at, field in enumerate(always):
            kind = self.kinds[field.attribute]
            if kind:
                self.special.append((at, kind, self.inner[field.attribute]))
        self.topic: str = topic_field(fields)
        self.metadata: Template | None = None
        if hide and not hide & RECORDS and self.topic and steps_to(cls, version, of_records):
            self.metadata = Template(cls, version, hide | RECORDS)

    def write(self, struct: object) -> str:
        """Write a struct of the class."""
        metadata = self.metadata
        if metadata is not None and self.is_metadata(struct):
            return metadata.write(struct)
        get_tagged = self.get_tagged
        if get_tagged is not None:
            tagged = get_tagged(struct)
            if tagged != self.defaults:
                return self.write_by_field(struct)
        if self.config:
            return self.write_by_field(struct)
        values = self.get(struct)
        special = self.special
        if not special:
            return self.shape % values
        texts: list[Any] = list(values)
        for at, kind, inner in special:
            texts[at] = write_value(texts[at], kind, inner)
        return self.shape % tuple(texts)

    def is_metadata(self, struct: object) -> bool:
        """Return whether the records of a struct are those of the metadata topic."""
        topic: Any = getattr(struct, self.topic)
        return (uuid_text(topic) if self.topic == TOPIC_ID else topic) in METADATA_TOPICS

    def write_by_field(self, struct: object) -> str:
        """Write a struct with optional or hidden values."""
        parts: list[str] = []
        defaults = iter(self.defaults)
        for field in self.fields:
            value: Any = getattr(struct, field.attribute)
            if field.tag >= 0 and value == next(defaults):
                continue
            kind, inner = self.kinds[field.attribute], self.inner[field.attribute]
            if self.config and self.hides(struct, field.attribute):
                kind = SECRET_TEXT
            text = write_value(value, kind, inner) if kind else str(value)
            parts.append(f'"{field.json_name}":{text}')
        unknown: Any = getattr(struct, "unknown_tags", None)
        if unknown:
            kind = SECRET_BYTES if self.secret_tags else BYTES
            tags = [
                f'{{"tag":{tag},"data":{write_value(data, kind, None)}}}' for tag, data in unknown
            ]
            parts.append(f'"{UNKNOWN_TAGS}":[{",".join(tags)}]')
        return "{" + ",".join(parts) + "}"

    def hides(self, struct: object, attribute: str) -> bool:
        """Whether a field of a config is hidden."""
        if attribute == "value":
            return hides_value(struct)
        return attribute == "name" and hides_name(struct)


def topic_field(fields: tuple[Field, ...]) -> str:
    """Find the field that names the topic of a struct's records; "" if there is none."""
    strings = {field.attribute for field in fields if field.is_a("string")}
    for name in TOPIC_FIELDS:
        if name in strings:
            return name
    is_id = any(field.attribute == TOPIC_ID and field.is_a("uuid") for field in fields)
    return TOPIC_ID if is_id else ""


def of_records(_: type[Structure], field: Field) -> bool | None:
    """Choose the fields of records."""
    return field.element == "records" or None


def getter(names: list[str]) -> Getter:
    """Make a function that returns the values of attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        name = names[0]
        return lambda struct: (getattr(struct, name),)
    return lambda _: ()


def kind_of(field: Field, hide: int) -> int:
    """Return how a field is written; 0 for a number."""
    kind = STRUCT if field.struct is not None else KINDS.get(field.element, 0)
    if field.element == "records" and hide & RECORDS:
        kind = SECRET_BYTES
    if hide & DOUBTFUL or (hide and field.json_name in SECRET_FIELDS and not field.is_array):
        kind = {TEXT: SECRET_TEXT, BYTES: SECRET_BYTES}.get(kind, kind)
    if not field.is_array:
        return kind
    return kind + EACH if kind else INTS


def write_value(  # noqa: C901, PLR0911 - hot: the commonest kinds first, no lookup by kind
    value: Any, kind: int, inner: Template | None
) -> str:
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
        return f'"{placeholder(len(value), "character")}"'
    if kind == SECRET_BYTES:
        return f'"{placeholder((len(value) + 2) // 3 * 4, "character")}"'
    return "[" + ",".join([write_value(one, kind - EACH, inner) for one in value]) + "]"


def base64_text(data: bytes) -> str:
    """Write bytes as base64."""
    return b2a_base64(data, newline=False).decode("ascii")


_templates: Final[dict[tuple[type[Structure], int, int], Template]] = {}


def template(cls: type[Structure], version: int, secrets: bool, doubtful: bool = False) -> Template:
    """Give the template of a class at a version.

    Raises UnsupportedVersion for a message that has no such version.

    secrets: whether secrets are written. doubtful: whether the message was not decoded byte for
    byte: then all text of a message that may contain secrets is secret.
    """
    return _template(cls, version, 0 if secrets else HIDE | DOUBTFUL if doubtful else HIDE)


def _template(cls: type[Structure], version: int, hide: int) -> Template:
    cached = _templates.get((cls, version, hide))
    if cached is None:
        check_version(cls, version)
        cached = _templates[cls, version, hide] = Template(cls, version, hide)
    return cached


def to_json_text(
    message: Structure, version: int, *, secrets: bool = True, doubtful: bool = False
) -> str:
    """Write the JSON of a message (or of one of its structs) at a version.

    secrets: whether secrets are written, or their length. doubtful: as for `template`. Raises
    UnsupportedVersion for a message that has no such version.
    """
    return template(type(message), version, secrets, doubtful).write(message)


def shown_json(message: Structure, version: int, secrets: bool, doubtful: bool = False) -> Json:
    """Make the JSON object of a message, as `to_json_text` writes it."""
    if secrets:
        return to_json(message, version)
    deviations: Any = getattr(message, "deviations", None)
    text = to_json_text(
        message, version, secrets=False, doubtful=doubtful or deviations is not None
    )
    return json.loads(text)
