"""What `records` fields of messages hold, as JSON text: counts, or every record.

Law: nothing is decompressed for a count that the batch header gives; what cannot be read is said,
and the rest of the message stands; keys and values to be hidden leave size and hash.

    message --plan of its class--> [Place] --counted--> {"path":..,"records":3,"codecs":["gzip"]}
                                      `------opened---> the same and "content":[{"offset":..},..]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from json import JSONDecoder, JSONEncoder
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, final

from ..errors import WireError
from ..primitives.structure import Structure
from ..protocol.json_form import uuid_text
from ..protocol.secrets import METADATA_TOPICS
from ..records.batch import Batch
from ..records.batches import RecordBatches
from ..records.record import Record

TOPIC_FIELDS: Final = ("name", "topic", "topic_name")
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
        elif name in TOPIC_FIELDS and kind == "string":
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
    """What a field holds, from the headers of its batches; `error` where one cannot be read."""

    def __init__(self, data: bytes) -> None:
        self.batches: int = 0
        self.records: int = 0
        self.cut_tail: int = 0
        self.codecs: list[str] = []
        self.error: str | None = None
        field = RecordBatches(data)
        try:
            for batch in field:
                self.batches += 1
                # a compressed one of magic 0 or 1 does not say how many it has
                known = batch.records_count
                self.records += known if known >= 0 else len(batch.records())
                codec: str = batch.compression.name
                if codec.lower() not in self.codecs:
                    self.codecs.append(codec.lower())
            self.cut_tail = field.cut_tail
        except WireError as error:
            self.error = str(error)


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
    try:
        for batch in RecordBatches(place.data):
            control = batch.control
            content += [record_text(record, control, redact) for record in batch.records()]
    except WireError as error:
        if count.error is None:  # met only now, so it stands behind the content
            text = members(place, count, content)
            return f'{text[:-1]},"error":{encode_basestring_ascii(str(error))}}}'
        count.error = str(error)
    return members(place, count, content)


# -- the same, asked for by `quick_text`


def opened_place(path: str, topic: str | None, partition: int | None, data: bytes) -> str:
    """Write a field with its records; those of the metadata topic are hidden."""
    return opened(Place(path, topic, partition, data), False, False)


def counted_place(path: str, topic: str | None, partition: int | None, data: bytes) -> str:
    """Write what a field holds."""
    return counted(Place(path, topic, partition, data))


def shown_value(data: bytes) -> str:
    """Write a key or value that is not hidden."""
    return value_text(data, False)


def batch_body(data: bytes, start: int, end: int) -> tuple[bytes, int, int] | None:
    """Find the records of a batch of magic 2, checked and decompressed: (where, from, to)."""
    try:
        return Batch(data, start, end).body()
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
