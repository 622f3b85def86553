"""Finds the `records` fields of messages, with the topic and partition of each.

class, version --once--> [Step]      message --its steps--> [RecordsField]
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final

from ...primitives.structure import Structure
from ...protocol.fields import Field, fields_at
from ...protocol.json_form import uuid_text
from ..exchanges.topic_ids import TOPIC_NAME

PARTITION_FIELDS: Final = ("index", "partition", "partition_index")
PARTITION_TYPES: Final = ("int16", "int32", "int64")

NO_ROLE: Final = -1
RECORDS: Final = 0
TOPIC: Final = 1
TOPIC_ID: Final = 2
PARTITION: Final = 3
WITHIN: Final = 4


class RecordsField(NamedTuple):
    """One `records` field of a message; topic: its name, or its id as Kafka writes it, or None."""

    path: str
    topic: str | None
    partition: int | None
    data: bytes


@final
class Step:
    """A field of a struct that contains records, or names their topic or partition."""

    def __init__(self, attribute: str, role: int, inner: list[Step]) -> None:
        self.attribute: str = attribute
        self.role: int = role
        self.inner: list[Step] = inner


_plans: Final[dict[tuple[type[Structure], int], list[Step]]] = {}


def plan(cls: type[Structure], version: int) -> list[Step]:
    """Return the steps to the records of a message at a version; empty if it has none."""
    found = _plans.get((cls, version))
    if found is None:
        found = _plans[cls, version] = steps_of(cls, version)
    return found


def steps_of(cls: type[Structure], version: int) -> list[Step]:
    """Find the steps to the records of a struct; empty if it has none."""
    steps: list[Step] = []
    for field in fields_at(cls, version):
        role = role_of(field)
        if role != NO_ROLE:
            steps.append(Step(field.attribute, role, []))
        elif field.struct is not None and field.is_array:
            inner = steps_of(field.struct, version)
            if inner:
                steps.append(Step(field.attribute, WITHIN, inner))
    return steps if any(step.role in (RECORDS, WITHIN) for step in steps) else []


def role_of(field: Field) -> int:
    """Return what a field says about records."""
    if field.is_a("records"):
        return RECORDS
    if field.is_a("string"):
        return TOPIC if field.entity_type == TOPIC_NAME else NO_ROLE
    if field.is_a("uuid"):
        return TOPIC_ID if field.attribute == "topic_id" else NO_ROLE
    is_number = field.element in PARTITION_TYPES and not field.is_array
    return PARTITION if is_number and field.attribute in PARTITION_FIELDS else NO_ROLE


def records_fields(message: Structure, version: int) -> list[RecordsField]:
    """Find the `records` fields that are not null, in wire order."""
    found: list[RecordsField] = []
    steps = plan(type(message), version)
    if steps:
        walk(message, steps, "", None, None, found)
    return found


def walk(
    owner: object,
    steps: list[Step],
    path: str,
    topic: str | None,
    partition: int | None,
    found: list[RecordsField],
) -> None:
    """Follow the steps in a struct; topic, partition: what was found above it."""
    for step in steps:
        role = step.role
        value: Any = getattr(owner, step.attribute)
        if value is None:
            continue
        if role == RECORDS:
            found.append(RecordsField(path + step.attribute, topic, partition, value))
        elif role == TOPIC:
            topic = value
        elif role == TOPIC_ID:
            topic = uuid_text(value)
        elif role == PARTITION:
            partition = value
        else:
            for at, child in enumerate(value):
                here = f"{path}{step.attribute}[{at}]."
                walk(child, step.inner, here, topic, partition, found)
