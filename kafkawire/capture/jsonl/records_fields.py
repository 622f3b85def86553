"""Finds the `records` fields of messages, with topic and partition; writes their counts as JSON.

Nothing is decompressed for a count that the batch header has; an invalid batch is reported,
and the others are counted.

    class, version --once--> [Step]      message --its steps--> [RecordsField]
    RecordsField --counts_json--> {"path":..,"records":3,"codecs":["gzip"]}
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, final

from ...errors import WireError
from ...primitives.structure import Structure
from ...protocol.fields import Field, all_fields, fields_at
from ...protocol.json_form import uuid_text
from ...protocol.packages import Package
from ...records.batches import RecordBatches
from ...records.compression.codecs import CODEC_NAMES
from ...records.limits import Budget
from ..exchanges.topic_ids import TOPIC_NAME

JSON_NAMES: Final = frozenset({"records", "unalignedRecords"})
"""Names of `records` fields in the JSON form of Kafka's messages."""

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
    steps = _plans.get((cls, version))
    if steps is None:
        steps = _plans[cls, version] = steps_of(cls, version)
    return steps


def steps_of(cls: type[Structure], version: int) -> list[Step]:
    """Find the steps to the records of a struct; empty if it has none."""
    steps: list[Step] = []
    for field in fields_at(cls, version):
        role = role_of(field)
        if role != NO_ROLE:
            steps.append(Step(field.attribute, role, []))
        elif field.struct is not None:
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
    fields_with_records: list[RecordsField] = []
    steps = plan(type(message), version)
    if steps:
        walk(message, steps, "", None, None, fields_with_records)
    return fields_with_records


def walk(
    owner: object,
    steps: list[Step],
    path: str,
    topic: str | None,
    partition: int | None,
    fields: list[RecordsField],
) -> None:
    """Follow the steps in a struct; topic, partition: what was found above it."""
    for step in steps:
        role = step.role
        value: Any = getattr(owner, step.attribute)
        if value is None:
            continue
        if role == RECORDS:
            fields.append(RecordsField(path + step.attribute, topic, partition, value))
        elif role == TOPIC:
            topic = value
        elif role == TOPIC_ID:
            topic = uuid_text(value)
        elif role == PARTITION:
            partition = value
        elif isinstance(value, list):
            for index, child in enumerate(value):
                here = f"{path}{step.attribute}[{index}]."
                walk(child, step.inner, here, topic, partition, fields)
        else:
            walk(value, step.inner, f"{path}{step.attribute}.", topic, partition, fields)


# -- counts


@final
class Count:
    """The counts of a field, from its batch headers; `error` if one is invalid.

    Compressed messages of magic 0 and 1 have no count, so their valid records are counted.
    """

    def __init__(self, data: bytes) -> None:
        self.batches: int = 0
        self.records: int = 0
        self.cut_tail: int = 0
        self.codecs: list[str] = []
        self.error: str | None = None
        field = RecordBatches(data)
        budget = Budget(field.limits)
        faults: list[WireError] = []
        for batch in field.batches(faults):
            self.batches += 1
            try:
                codec: str = CODEC_NAMES[batch.compression]
            except WireError as error:
                faults.append(error)
                continue
            if codec not in self.codecs:
                self.codecs.append(codec)
            count = batch.records_count
            self.records += count if count >= 0 else len(batch.records(budget, faults=faults))
        with suppress(WireError):  # an invalid length, which is among the faults already
            self.cut_tail = field.cut_tail
        self.error = error_text(faults)


def error_text(faults: list[WireError]) -> str | None:
    """Format the first fault, and the number of others; None if there are none."""
    if len(faults) < 2:
        return str(faults[0]) if faults else None
    more = len(faults) - 1
    return f"{faults[0]}; {more} more error{'s' if more > 1 else ''}"


def counts_json(field: RecordsField) -> str:
    """Write the counts of a field as a JSON object."""
    return members(field, Count(field.data), None)


def members(field: RecordsField, count: Count, content: list[str] | None) -> str:
    """Write a field as a JSON object; an error is before or after the content, as it was found."""
    topic = "null" if field.topic is None else encode_basestring_ascii(field.topic)
    partition = "null" if field.partition is None else str(field.partition)
    codecs = ",".join([f'"{name}"' for name in count.codecs])
    cut_tail = f',"cut_tail":{count.cut_tail}' if count.cut_tail else ""
    error = "" if count.error is None else f',"error":{encode_basestring_ascii(count.error)}'
    listed = "" if content is None else f',"content":[{",".join(content)}]'
    return (
        f'{{"path":"{field.path}","topic":{topic},"partition":{partition},'
        f'"bytes":{len(field.data)},"batches":{count.batches},"records":{count.records},'
        f'"codecs":[{codecs}]{cut_tail}{error}{listed}}}'
    )


def records_summary(field: RecordsField) -> str:
    """Summarise a field in words."""
    count = Count(field.data)
    text = f"{len(field.data)} bytes: {count.records} records in {count.batches} batches"
    if count.batches:
        text += f" ({', '.join(count.codecs) or 'none'})"
    if count.cut_tail:
        text += f", {count.cut_tail} bytes of a cut batch"
    return text if count.error is None else f"{text} ! {count.error}"


def replace_records(
    value: Any, cls: type[Structure], version: int, texts: dict[str, str], path: str = ""
) -> Any:
    """Replace the base64 of records in the JSON form of a struct by texts, which have their paths.

    path: of the struct, with a dot at its end.
    """
    fields = {field.json_name: field for field in fields_at(cls, version)}
    replaced: dict[str, Any] = {}
    for key, inner in value.items():
        field = fields.get(key)
        replaced[key] = inner
        if field is None or inner is None:
            continue
        here = path + field.attribute
        struct = field.struct
        if field.is_a("records"):
            replaced[key] = texts.get(here, inner)
        elif struct is not None and isinstance(inner, list):
            replaced[key] = [
                replace_records(one, struct, version, texts, f"{here}[{index}].")
                for index, one in enumerate(inner)
            ]
        elif struct is not None:
            replaced[key] = replace_records(inner, struct, version, texts, f"{here}.")
    return replaced


def summaries(fields: list[RecordsField]) -> dict[str, str]:
    """Summarise records, by their paths."""
    return {field.path: records_summary(field) for field in fields}


@cache
def json_names(package: Package) -> frozenset[str]:
    """Name the `records` fields of a package's messages in their JSON form."""
    names: set[str] = set()
    pending: list[Any] = [package.index.load(info.name) for info in package.index]
    seen: set[Any] = set(pending)
    while pending:
        for field in all_fields(pending.pop()):
            if field.element == "records":
                names.add(field.json_name)
            if field.struct is not None and field.struct not in seen:
                seen.add(field.struct)
                pending.append(field.struct)
    return frozenset(names)
