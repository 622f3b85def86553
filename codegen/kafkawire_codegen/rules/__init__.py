"""Checks the rules of schemas: one table of rules, and the walk that applies them.

Every rule is checked everywhere it applies, so that one run finds all errors; a rule has one
reason to fail.

    check_message: MESSAGE_RULES, STRUCTS_RULES -> FIELDS_RULES per struct -> FIELD_RULES per field
    check_together: DIRECTORY_RULES
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .. import form
from ..form import WrittenField, WrittenMessage, WrittenStruct
from ..source import SchemaError
from ..versions import Versions
from .defaults import DEFAULT_RULES
from .directory import DIRECTORY_RULES
from .fields import FIELD_RULES
from .messages import MESSAGE_RULES
from .rule import Directory, FieldAt, FieldRule
from .structs import FIELDS_RULES, STRUCTS_RULES, every_field
from .tags import TAG_RULES

EVERY_FIELD_RULE: Final[tuple[FieldRule, ...]] = (*FIELD_RULES, *TAG_RULES, *DEFAULT_RULES)
RULES: Final[Mapping[str, str]] = {
    **form.RULES,
    **{rule.id: rule.demand for rule in MESSAGE_RULES},
    **{rule.id: rule.demand for rule in STRUCTS_RULES},
    **{rule.id: rule.demand for rule in FIELDS_RULES},
    **{rule.id: rule.demand for rule in EVERY_FIELD_RULE},
    **{rule.id: rule.demand for rule in DIRECTORY_RULES},
}
"""Rule id -> its requirement, in the order of checking."""
ADVICE: Final = frozenset(
    {
        "repeated-key",
        "stray-bracket",
        "file-name",
        "common-struct-unused",
        "never-present",
        "versions-beyond",
        "nullable-beyond",
        "flexible-versions-missing",
        "flexible-versions-beyond",
        "unknown-entity-type",
        "unpaired",
        "pair-versions",
    }
)
"""Rules that `schema lint` reports as advice: Kafka's own files or those of forks break them, but
the layout on the wire is certain.
"""


def check_message(message: WrittenMessage) -> list[SchemaError]:
    """Check every rule of a single message."""
    return list(_check(message))


def check_together(directory: Directory) -> list[SchemaError]:
    """Check every rule of all messages together."""
    return [error for rule in DIRECTORY_RULES for error in rule.errors(directory)]


def _check(message: WrittenMessage) -> Iterator[SchemaError]:
    for message_rule in MESSAGE_RULES:
        yield from message_rule.errors(message)
    for structs_rule in STRUCTS_RULES:
        yield from structs_rule.errors(message)
    common = {s.schema.name: s for s in message.structs}
    in_arrays = _elements_of_arrays(message)
    for struct in message.structs:
        in_array = struct.schema.name in in_arrays
        yield from _check_fields(struct.fields, message, common, struct.schema.versions, in_array)
    versions = message.schema.valid_versions
    yield from _check_fields(message.fields, message, common, versions, in_array=False)


def _elements_of_arrays(message: WrittenMessage) -> set[str]:
    own = (message.fields, *(s.fields for s in message.structs))
    return {f.schema.element for fs in own for f in every_field(fs) if f.schema.is_array}


def _check_fields(
    fields: tuple[WrittenField, ...],
    message: WrittenMessage,
    common: Mapping[str, WrittenStruct],
    around: Versions,
    in_array: bool,
) -> Iterator[SchemaError]:
    for fields_rule in FIELDS_RULES:
        yield from fields_rule.errors(fields)
    for field in fields:
        field_at = FieldAt(field, message, common, around, in_array)
        for field_rule in EVERY_FIELD_RULE:
            yield from field_rule.errors(field_at)
        inside = field.schema.versions & around
        yield from _check_fields(field.fields, message, common, inside, field.schema.is_array)
