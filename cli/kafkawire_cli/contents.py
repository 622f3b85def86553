"""What `records` fields hold, for a person: counts by default, records where asked for.

Law: nothing is decompressed for a count that the batch header gives; what cannot be read is said,
and the rest of the message stands; keys and values to be hidden leave size and hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kafkawire.primitives import Structure
    from kafkawire.records import Batch, Record

_TOPIC: Final = ("name", "topic", "topic_name")
_PARTITION: Final = ("index", "partition", "partition_index")
FIELDS: Final = frozenset({"records", "unalignedRecords"})
"""Keys under which the JSON form of a message has records."""


class Place(NamedTuple):
    """One `records` field of a message; topic is a name, or a uuid in Kafka's form, or None."""

    path: str
    topic: str | None
    partition: int | None
    data: bytes


def places(message: Structure, version: int) -> list[Place]:
    """Find the `records` fields that are not null, in wire order."""
    return list(_walk(message, version, "", None, None))


def _walk(
    owner: Structure, version: int, path: str, topic: str | None, partition: int | None
) -> Iterator[Place]:
    from kafkawire.protocol.json_form import uuid_text

    for row in owner.__fields__:
        if not row.first <= version <= row.last:
            continue
        value = getattr(owner, row.attribute)
        here = f"{path}{row.attribute}"
        if row.type == "records":
            if value is not None:
                yield Place(here, topic, partition, value)
        elif row.attribute in _TOPIC and isinstance(value, str):
            topic = value
        elif row.attribute == "topic_id" and isinstance(value, bytes):
            topic = uuid_text(value)
        elif row.attribute in _PARTITION and isinstance(value, int):
            partition = value
        elif value is not None and row.type.startswith("[]") and row.type[2].isupper():
            for at, child in enumerate(value):
                yield from _walk(child, version, f"{here}[{at}].", topic, partition)


def counted(place: Place) -> dict[str, Any]:
    """Count what a field holds, from the headers of its batches."""
    from kafkawire.errors import WireError
    from kafkawire.records import RecordBatches

    made: dict[str, Any] = {
        "path": place.path,
        "topic": place.topic,
        "partition": place.partition,
        "bytes": len(place.data),
        "batches": 0,
        "records": 0,
        "codecs": [],
    }
    codecs: dict[str, None] = {}
    batches = RecordBatches(place.data)
    try:
        for batch in batches:
            made["batches"] += 1
            made["records"] += _count(batch)
            codecs[batch.compression.name.lower()] = None
        if batches.cut_tail:
            made["cut_tail"] = batches.cut_tail
    except WireError as error:
        made["error"] = str(error)
    made["codecs"] = list(codecs)
    return made


def _count(batch: Batch) -> int:
    """Count a batch's records; a compressed one of magic 0 or 1 does not say how many it has."""
    return batch.records_count if batch.records_count >= 0 else len(batch.records())


def in_words(count: dict[str, Any]) -> str:
    """Say what `counted` found."""
    codecs = ", ".join(count["codecs"]) or "none"
    said = f"{count['bytes']} bytes: {count['records']} records in {count['batches']} batches"
    said += f" ({codecs})" if count["batches"] else ""
    if "cut_tail" in count:
        said += f", {count['cut_tail']} bytes of a cut batch"
    return said + (f" ! {count['error']}" if "error" in count else "")


def opened(place: Place, *, redact: bool) -> dict[str, Any]:
    """Count what a field holds and read its records."""
    from kafkawire.errors import WireError
    from kafkawire.records import RecordBatches

    made = counted(place)
    made["content"] = content = []
    try:
        for batch in RecordBatches(place.data):
            content += [record_form(record, batch, redact=redact) for record in batch.records()]
    except WireError as error:
        made["error"] = str(error)
    return made


def record_form(record: Record, batch: Batch, *, redact: bool) -> dict[str, Any]:
    """Make the JSON form of a record; control records are marked."""
    made: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": form(record.key, redact=redact),
        "value": form(record.value, redact=redact),
    }
    if record.headers:
        made["headers"] = [[name, form(value, redact=redact)] for name, value in record.headers]
    if batch.control:
        made["control"] = True
    return made


def form(data: bytes | None, *, redact: bool) -> Any:
    """Show bytes as what they are: JSON, text, or hex; or, redacted, as their size and hash."""
    if data is None:
        return None
    if redact:
        return {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    if text[:1] in ("{", "["):
        try:
            return {"json": json.loads(text, parse_constant=_no_constant)}
        except (ValueError, RecursionError):
            pass  # text that only begins like JSON is text
    return {"text": text} if text.isprintable() or "\n" in text else {"hex": data.hex()}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def replaced(value: Any, texts: Iterator[str]) -> Any:
    """Put words where a message's JSON form has the base64 of records, in wire order."""
    if isinstance(value, dict):
        return {
            key: next(texts) if key in FIELDS and isinstance(inner, str) else replaced(inner, texts)
            for key, inner in value.items()
        }
    return [replaced(inner, texts) for inner in value] if isinstance(value, list) else value
