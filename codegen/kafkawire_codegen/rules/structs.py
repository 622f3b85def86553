"""Rules for the fields of a struct together, and for the definition and use of structs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from .. import naming
from ..form import WrittenField, WrittenMessage, WrittenStruct
from ..layout import children_first, depths, struct_fields
from ..wire_types import WIRE_TYPES
from .names import wrong_class_name
from .rule import FieldsRule, StructsRule

MOST_LEVELS: Final = 32
"""The deepest nesting of structs: decoding calls a function per level. Kafka's have six."""

Definition = WrittenField | WrittenStruct
Findings = Iterable[tuple[Definition, str, str]]


def _duplicate_field(fields: tuple[WrittenField, ...]) -> Iterator[tuple[WrittenField, str]]:
    seen: dict[str, WrittenField] = {}
    for field in fields:
        name = field.schema.name
        for key in {name.lower(), naming.snake(name)}:
            first = seen.setdefault(key, field)
            if first is not field:
                line = first.node.at("name").line
                yield field, f"{name} and {first.schema.name} of line {line} are one name in Python"
                break


def _duplicate_tag(fields: tuple[WrittenField, ...]) -> Iterator[tuple[WrittenField, str]]:
    seen: dict[int, WrittenField] = {}
    for field in fields:
        if field.schema.tag is not None:
            first = seen.setdefault(field.schema.tag, field)
            if first is not field:
                yield field, f"tag {field.schema.tag} is that of {first.schema.name} already"


def _tag_gap(fields: tuple[WrittenField, ...]) -> Iterator[tuple[WrittenField, str]]:
    tagged = {f.schema.tag: f for f in fields if f.schema.tag is not None and f.schema.tag >= 0}
    missing = next(tag for tag in range(len(tagged) + 1) if tag not in tagged)
    for tag, field in sorted(tagged.items()):
        if tag > missing:
            yield field, f"tag {tag} before tag {missing} is used: tags count from 0 without a gap"
            return


FIELDS_RULES: Final = (
    FieldsRule(
        "duplicate-field", "field names differ, also in snake case", "name", _duplicate_field
    ),
    FieldsRule("duplicate-tag", "a tag is used once in a struct", "tag", _duplicate_tag),
    FieldsRule("tag-gap", "the tags of a struct count from 0 without a gap", "tag", _tag_gap),
)


def every_field(fields: Iterable[WrittenField]) -> Iterator[WrittenField]:
    """Each field, followed by those inside it."""
    for field in fields:
        yield field
        yield from every_field(field.fields)


def _all_fields(message: WrittenMessage) -> Iterator[WrittenField]:
    for struct in message.structs:
        yield from every_field(struct.fields)
    yield from every_field(message.fields)


def _common_struct_name(message: WrittenMessage) -> Findings:
    for struct in message.structs:
        reason = wrong_class_name(struct.schema.name, "struct")
        if reason is not None and "name" not in struct.unread:
            yield struct, "name", reason


def _defined_twice(message: WrittenMessage) -> Findings:
    """A common struct, an inline one and the message itself all become classes of one module."""
    elsewhere = {"", *WIRE_TYPES, *(struct.schema.name for struct in message.structs)}
    definitions: list[tuple[str, Definition, str]] = [
        *((s.schema.name, s, "name") for s in message.structs if "name" not in s.unread),
        *(
            (field.schema.element, field, "type")
            for field in _all_fields(message)
            if field.fields and field.schema.element not in elsewhere
        ),
    ]
    own = message.schema.name
    seen = {naming.snake(own): (own, message.node.at("name"))}
    for name, definition, key in definitions:
        location = definition.node.at(key)
        first, where = seen.setdefault(naming.snake(name), (name, location))
        if where == location:
            continue
        if first == name:
            hint = "define it once, in commonStructs, or name the two apart"
            yield definition, key, f"{name} is defined at line {where.line} already: {hint}"
        else:
            yield definition, key, f"{name} and {first} of line {where.line} are one name in Python"


def _common_with_fields(message: WrittenMessage) -> Findings:
    common = {s.schema.name for s in message.structs if "name" not in s.unread}
    for field in _all_fields(message):
        if field.fields and field.schema.element in common:
            reason = (
                f"the fields of {field.schema.element} are those of commonStructs: leave these out"
            )
            yield field, "fields", reason


def _unused(message: WrittenMessage) -> Findings:
    used = Counter(f.schema.element for f in _all_fields(message))
    for struct in message.structs:
        if "name" not in struct.unread and not used[struct.schema.name]:
            yield struct, "name", f"no field is of the type {struct.schema.name}"


def _recursive(message: WrittenMessage) -> Findings:
    common = {s.schema.name: s.fields for s in message.structs if s.schema.name}
    entered: set[str] = set()
    for start in ("", *common):  # the message itself first
        path: dict[str, Iterator[WrittenField]] = {}
        if start not in entered:
            path[start] = every_field(common.get(start, message.fields))
            entered.add(start)
        while path:
            name = next(reversed(path))
            for field in path[name]:
                element = field.schema.element
                if element in path and element in common:
                    yield field, "type", _circle(element, list(path))
                elif element in common and element not in entered:
                    path[element] = every_field(common[element])
                    entered.add(element)
                    break
            else:
                del path[name]


def _circle(element: str, path: list[str]) -> str:
    names = [*path[path.index(element) :], element]
    shown = names if len(names) <= MOST_LEVELS else [*names[:2], "...", *names[-2:]]
    return f"{element} holds itself ({' > '.join(shown)}): nesting must be bounded"


def _too_deep(message: WrittenMessage) -> Findings:
    if next(iter(_recursive(message)), None) is not None:
        return
    fields = struct_fields(message.schema)
    deep = depths(children_first(message.schema.name, fields), fields)
    for field in message.fields:
        levels = deep.get(field.schema.element, -1) + 1
        if levels > MOST_LEVELS:
            yield (
                field,
                "type",
                f"{levels} levels of structs within each other: {MOST_LEVELS} at most",
            )


STRUCTS_RULES: Final = (
    StructsRule(
        "common-struct-name", "a common struct's name begins with a capital", _common_struct_name
    ),
    StructsRule("struct-defined-twice", "a struct is defined once in a message", _defined_twice),
    StructsRule(
        "common-struct-with-fields", "a common struct is not redefined", _common_with_fields
    ),
    StructsRule("common-struct-unused", "a common struct is used", _unused),
    StructsRule("recursive-struct", "no struct holds itself", _recursive),
    StructsRule("nesting-too-deep", f"structs nest at most {MOST_LEVELS} levels deep", _too_deep),
)
