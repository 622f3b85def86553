"""What `records` fields of messages hold, as JSON text: counts, or every record.

Law: nothing is decompressed for a count that the batch header gives; of what cannot be read, the
fault stands beside the records before it and those of other batches; keys and values to be hidden
leave size and hash; what one field may cost is bounded.

    message --plan of its class--> [Place] --counted--> {"path":..,"records":3,"codecs":["gzip"]}
                                      `------opened---> the same and "content":[{"offset":..},..]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from json import JSONDecoder, JSONEncoder
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, final

from ...errors import WireError
from ...primitives.structure import Structure
from ...protocol.json_form import uuid_text
from ...protocol.secrets import METADATA_TOPICS
from ...records.batch import Batch
from ...records.batches import RecordBatches
from ...records.limits import Budget
from ...records.record import Record
from ..exchanges.topic_ids import TOPIC_NAME

PARTITION_FIELDS: Final = ("index", "partition", "partition_index")

JSON_NAMES: Final = frozenset({"records", "unalignedRecords"})
"""Fields under which the JSON form of a message has records."""

SNAPSHOT_FIELD: Final = "unaligned_records"
"""The field of records of a FetchSnapshot response: only the metadata topic has snapshots."""

RECORDS: Final = 0
TOPIC: Final = 1
TOPIC_ID: Final = 2
PARTITION: Final = 3
WITHIN: Final = 4


class Place(NamedTuple):
    """One `records` field of a message; topic is a name, or a uuid in Kafka's form, or None."""

    path: str
    topic: str | None
    partition: int | None
    data: bytes


@final
class Step:
    """A field of a struct that leads to records, or says whose they are."""

    def __init__(self, attribute: str, role: int, inner: list[Step]) -> None:
        self.attribute: str = attribute
        self.role: int = role
        self.inner: list[Step] = inner


_plans: Final[dict[tuple[type[Structure], int], list[Step]]] = {}


def plan(cls: type[Structure], version: int) -> list[Step]:
    """Find the way to the records of a message at a version; empty where it has none."""
    found = _plans.get((cls, version))
    if found is None:
        found = _plans[cls, version] = steps_of(cls, version)
    return found


def steps_of(cls: type[Structure], version: int) -> list[Step]:
    steps: list[Step] = []
    leads = False
    owner: Any = cls  # a class of Python's, whichever way it is compiled
    module = sys.modules[owner.__module__]
    for row in cls.__fields__:
        if not row.first <= version <= row.last:
            continue
        name, kind = row.attribute, row.type
        if kind == "records":
            steps.append(Step(name, RECORDS, []))
            leads = True
        elif row.entity_type == TOPIC_NAME and kind == "string":
            steps.append(Step(name, TOPIC, []))
        elif name == "topic_id" and kind == "uuid":
            steps.append(Step(name, TOPIC_ID, []))
        elif name in PARTITION_FIELDS and kind in ("int32", "int64", "int16"):
            steps.append(Step(name, PARTITION, []))
        elif kind.startswith("[]") and kind[2].isupper():
            inner = steps_of(getattr(module, kind[2:]), version)
            if inner:
                steps.append(Step(name, WITHIN, inner))
                leads = True
    return steps if leads else []


def places(message: Structure, version: int) -> list[Place]:
    """Find the `records` fields that are not null, in wire order."""
    found: list[Place] = []
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
    found: list[Place],
) -> None:
    for step in steps:
        role = step.role
        value: Any = getattr(owner, step.attribute)
        if value is None:
            continue
        if role == RECORDS:
            found.append(Place(path + step.attribute, topic, partition, value))
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


# -- counts


@final
class Count:
    """What a field holds, from the headers of its batches; `error` where one cannot be read.

    Of compressed messages of magic 0 and 1, which do not say how many they hold, the readable ones.
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
                codec: str = batch.compression.name.lower()
            except WireError as error:
                faults.append(error)
                continue
            if codec not in self.codecs:
                self.codecs.append(codec)
            known = batch.records_count
            self.records += known if known >= 0 else len(batch.records(budget, faults=faults))
        with suppress(WireError):  # of a length that is among the faults already
            self.cut_tail = field.cut_tail
        self.error = error_text(faults)


def error_text(faults: list[WireError]) -> str | None:
    """Write the first fault, and how many others there are; None where there are none."""
    if len(faults) < 2:
        return str(faults[0]) if faults else None
    more = len(faults) - 1
    return f"{faults[0]}; {more} more error{'s' if more > 1 else ''}"


def counted(place: Place) -> str:
    """Count what a field holds; a JSON object."""
    return members(place, Count(place.data), None)


def members(place: Place, count: Count, content: list[str] | None) -> str:
    """Write what is known of a field; an error stands where it was met, before or after content."""
    topic = "null" if place.topic is None else encode_basestring_ascii(place.topic)
    partition = "null" if place.partition is None else str(place.partition)
    codecs = ",".join([f'"{name}"' for name in count.codecs])
    cut_tail = f',"cut_tail":{count.cut_tail}' if count.cut_tail else ""
    error = "" if count.error is None else f',"error":{encode_basestring_ascii(count.error)}'
    listed = "" if content is None else f',"content":[{",".join(content)}]'
    return (
        f'{{"path":"{place.path}","topic":{topic},"partition":{partition},'
        f'"bytes":{len(place.data)},"batches":{count.batches},"records":{count.records},'
        f'"codecs":[{codecs}]{cut_tail}{error}{listed}}}'
    )


def in_words(place: Place) -> str:
    """Say what a field holds."""
    count = Count(place.data)
    said = f"{len(place.data)} bytes: {count.records} records in {count.batches} batches"
    if count.batches:
        said += f" ({', '.join(count.codecs) or 'none'})"
    if count.cut_tail:
        said += f", {count.cut_tail} bytes of a cut batch"
    return said if count.error is None else f"{said} ! {count.error}"


def replaced(value: Any, texts: Iterator[str]) -> Any:
    """Put words where a message's JSON form has the base64 of records, in wire order."""
    if isinstance(value, dict):
        return {
            key: next(texts)
            if key in JSON_NAMES and isinstance(inner, str)
            else replaced(inner, texts)
            for key, inner in value.items()
        }
    return [replaced(inner, texts) for inner in value] if isinstance(value, list) else value


# -- contents


def opened(place: Place, redact: bool, secrets: bool = True) -> str:
    """Count what a field holds and read its records; a JSON object.

    redact: whether keys and values leave size and hash. secrets: whether those of the metadata
    topic are shown.
    """
    of_metadata = place.topic in METADATA_TOPICS or place.path.endswith(SNAPSHOT_FIELD)
    redact = redact or (of_metadata and not secrets)
    count = Count(place.data)
    content: list[str] = []
    field = RecordBatches(place.data)
    budget = Budget(field.limits)
    faults: list[WireError] = []
    for batch in field.batches(faults):
        control = batch.control
        records = batch.records(budget, faults=faults)
        content += [record_text(record, control, redact) for record in records]
    error = error_text(faults)
    if error is not None and count.error is None:  # met only now, so it stands behind the content
        text = members(place, count, content)
        return f'{text[:-1]},"error":{encode_basestring_ascii(error)}}}'
    if error is not None:
        count.error = error
    return members(place, count, content)


# -- the same, asked for by `writer`


def opened_place(path: str, topic: str | None, partition: int | None, data: bytes) -> str:
    """Write a field with its records; those of the metadata topic are hidden."""
    return opened(Place(path, topic, partition, data), False, False)


def counted_place(path: str, topic: str | None, partition: int | None, data: bytes) -> str:
    """Write what a field holds."""
    return counted(Place(path, topic, partition, data))


def shown_value(data: bytes) -> str:
    """Write a key or value that is not hidden."""
    return value_text(data, False)


def batch_body(
    data: bytes, start: int, end: int, opened_bytes: int, records: int
) -> tuple[bytes, int, int] | None:
    """Find the records of a batch of magic 2, checked and decompressed: (where, from, to).

    opened_bytes, records: what the batches before it in its field were decompressed to, and have.
    None where the batch cannot be read.
    """
    try:
        batch = Batch(data, start, end)
        budget = Budget(batch.limits)
        budget.bytes_left -= opened_bytes
        budget.records_left -= records
        return batch.body(budget)
    except WireError:
        return None


# -- records


def record_text(record: Record, control: bool, redact: bool) -> str:
    """Write a record; control records are marked."""
    key, value = value_text(record.key, redact), value_text(record.value, redact)
    text = f'{{"offset":{record.offset},"timestamp":{record.timestamp},"key":{key},"value":{value}'
    if record.headers:
        headers = [
            f"[{encode_basestring_ascii(name)},{value_text(inner, redact)}]"
            for name, inner in record.headers
        ]
        text += f',"headers":[{",".join(headers)}]'
    return text + (',"control":true}' if control else "}")


def value_text(data: bytes | None, redact: bool) -> str:
    """Show bytes as what they are: JSON, text, or hex; or, redacted, as their size and hash."""
    if data is None:
        return "null"
    if redact:
        return f'{{"bytes":{len(data)},"sha256":"{sha256(data).hexdigest()}"}}'
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f'{{"hex":"{data.hex()}"}}'
    if text.startswith(("{", "[")):
        try:
            return f'{{"json":{_encode(_decode(text))}}}'
        except (ValueError, RecursionError):
            pass  # text that only begins like JSON is text
    if text.isprintable() or "\n" in text:
        return f'{{"text":{encode_basestring_ascii(text)}}}'
    return f'{{"hex":"{data.hex()}"}}'


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_decode: Final[Any] = JSONDecoder(parse_constant=no_constant).decode
_encode: Final[Any] = JSONEncoder(
    separators=(",", ":"), allow_nan=False, check_circular=False
).encode
