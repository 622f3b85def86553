"""Writes the content of `records` fields as JSON text: counts, or all records.

Law: nothing is decompressed for a count that the batch header has; an invalid batch is reported
beside the records before it and those of other batches; redacted keys and values leave their size
and hash; the cost of one field is bounded.

    RecordsField
        --counts_json--> {"path":..,"records":3,"codecs":["gzip"]}
        --records_json-> the same and "content":[{"offset":..},..]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from json import JSONDecoder, JSONEncoder
from json.encoder import encode_basestring_ascii
from typing import Any, Final, final

from ...errors import WireError
from ...protocol.secrets import METADATA_TOPICS
from ...records.batch import Batch
from ...records.batches import RecordBatches
from ...records.limits import Budget
from ...records.record import Record
from .records_fields import RecordsField

JSON_NAMES: Final = frozenset({"records", "unalignedRecords"})
"""Names of `records` fields in the JSON form of messages."""

SNAPSHOT_FIELD: Final = "unaligned_records"
"""The field of records of a FetchSnapshot response: only the metadata topic has snapshots."""

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
                codec: str = batch.compression.name.lower()
            except WireError as error:
                faults.append(error)
                continue
            if codec not in self.codecs:
                self.codecs.append(codec)
            known = batch.records_count
            self.records += known if known >= 0 else len(batch.records(budget, faults=faults))
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


def replace_records(value: Any, texts: Iterator[str]) -> Any:
    """Replace the base64 of records in a message's JSON form by texts, in wire order."""
    if isinstance(value, dict):
        return {
            key: next(texts)
            if key in JSON_NAMES and isinstance(inner, str)
            else replace_records(inner, texts)
            for key, inner in value.items()
        }
    return [replace_records(inner, texts) for inner in value] if isinstance(value, list) else value


# -- contents


def records_json(field: RecordsField, redact: bool, secrets: bool = True) -> str:
    """Write the counts and records of a field as a JSON object.

    redact: whether keys and values are reduced to size and hash. secrets: whether those of the
    metadata topic are shown.
    """
    of_metadata = field.topic in METADATA_TOPICS or field.path.endswith(SNAPSHOT_FIELD)
    redact = redact or (of_metadata and not secrets)
    count = Count(field.data)
    content: list[str] = []
    batches = RecordBatches(field.data)
    budget = Budget(batches.limits)
    faults: list[WireError] = []
    for batch in batches.batches(faults):
        control = batch.control
        records = batch.records(budget, faults=faults)
        content += [record_text(record, control, redact) for record in records]
    error = error_text(faults)
    if error is not None and count.error is None:  # found only now, so it is behind the content
        text = members(field, count, content)
        return f'{text[:-1]},"error":{encode_basestring_ascii(error)}}}'
    if error is not None:
        count.error = error
    return members(field, count, content)


# -- callbacks of `writer`


def records_of(path: str, topic: str | None, partition: int | None, data: bytes) -> str:
    """Write a field with its records; those of the metadata topic are redacted."""
    return records_json(RecordsField(path, topic, partition, data), False, False)


def counts_of(path: str, topic: str | None, partition: int | None, data: bytes) -> str:
    """Write the counts of a field."""
    return counts_json(RecordsField(path, topic, partition, data))


def shown_value(data: bytes) -> str:
    """Write a key or value that is not redacted."""
    return value_text(data, False)


def batch_body(
    data: bytes, start: int, end: int, opened_bytes: int, records: int
) -> tuple[bytes, int, int] | None:
    """Return the checked, decompressed records of a batch of magic 2: (buffer, start, end).

    opened_bytes, records: the decompressed size and the records of the batches before it in its
    field. Returns None if the batch is invalid.
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
    """Write bytes as JSON, text, or hex; if redacted, as their size and hash."""
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
            pass  # text that merely begins like JSON
    if text.isprintable() or "\n" in text:
        return f'{{"text":{encode_basestring_ascii(text)}}}'
    return f'{{"hex":"{data.hex()}"}}'


def no_constant(name: str) -> Any:
    """Reject NaN and infinities, which JSON does not have."""
    raise ValueError(f"invalid JSON number {name}")


_decode: Final[Any] = JSONDecoder(parse_constant=no_constant).decode
_encode: Final[Any] = JSONEncoder(
    separators=(",", ":"), allow_nan=False, check_circular=False
).encode
