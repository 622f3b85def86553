"""Rules for the fields of a struct together, and for how structs are defined and used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from .. import naming
from ..form import WrittenField, WrittenMessage, WrittenStruct
from ..wire_types import WIRE_TYPES
from .names import wrong_class_name
from .rule import FieldsRule, StructsRule

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
    """Each field, each followed by those inside it."""
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
    seen = {message.schema.name: message.node.at("name")}
    for name, definition, key in definitions:
        place = definition.node.at(key)
        first = seen.setdefault(name, place)
        if first != place:
            hint = "define it once, in commonStructs, or name the two apart"
            yield definition, key, f"{name} is defined at line {first.line} already: {hint}"


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
    common = {struct.schema.name: struct.fields for struct in message.structs}
    done: set[str] = set()

    def visit(fields: tuple[WrittenField, ...], within: tuple[str, ...]) -> Findings:
        for field in fields:
            element = field.schema.element
            if element in within:
                circle = " > ".join([*within[within.index(element) :], element])
                yield field, "type", f"{element} holds itself ({circle}): nesting must be bounded"
            elif element in common and element not in done:
                yield from visit(common[element], (*within, element))
                done.add(element)
            else:
                yield from visit(field.fields, within)

    yield from visit(message.fields, ())
    for name, fields in common.items():
        if name not in done:
            yield from visit(fields, (name,))
            done.add(name)


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
)
