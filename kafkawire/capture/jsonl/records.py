"""Writes the records of `records` fields as JSON text.

An invalid batch is reported beside the records before it and those of other batches; redacted
keys and values leave their size and hash; the cost of one field is bounded.

    RecordsField --records_json--> its counts, and "content":[{"offset":..},..]
"""

from __future__ import annotations

from collections.abc import Callable
from json import JSONDecoder, JSONEncoder
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from ...errors import WireError
from ...protocol.secrets import METADATA_TOPICS
from ...records.batch import Batch
from ...records.batches import RecordBatches
from ...records.limits import Budget
from ...records.record import Headers, Record
from ...records.replaced_text import replaced_bytes
from .records_fields import Count, RecordsField, counts_json, error_text, members

DecodedText = Callable[[str | None, bytes | None, bytes | None, Headers], str]
"""Decodes a record (topic, key, value, headers); writes members of its JSON object, each with a
comma in front.
"""

SNAPSHOT_FIELD: Final = "unaligned_records"
"""The field of records of a FetchSnapshot response: only the metadata topic has snapshots."""


def records_json(
    field: RecordsField,
    redact: bool,
    secrets: bool = True,
    decoded: DecodedText | None = None,
) -> str:
    """Write the counts and records of a field as a JSON object.

    redact: whether keys and values are reduced to size and hash. secrets: whether those of the
    metadata topic are shown. decoded: writes keys and values that are shown a second time, decoded.
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
        if decoded is None or control or redact:
            content += [record_text(record, control, redact) for record in records]
        else:
            content += [_decoded_text(record, field.topic, decoded) for record in records]
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
        headers = [header_text(name, inner, redact) for name, inner in record.headers]
        text += f',"headers":[{",".join(headers)}]'
    return text + (',"control":true}' if control else "}")


def _decoded_text(record: Record, topic: str | None, decoded: DecodedText) -> str:
    """Write a record with its decoded key and value."""
    members = decoded(topic, record.key, record.value, record.headers)
    return f"{record_text(record, False, False)[:-1]}{members}}}"


def header_text(name: str, data: bytes | None, redact: bool) -> str:
    """Write a header; the bytes of a key that is not UTF-8 follow the value."""
    raw = replaced_bytes(name)
    key_bytes = "" if raw is None else f',{{"hex":"{raw.hex()}"}}'
    return f"[{encode_basestring_ascii(name)},{value_text(data, redact)}{key_bytes}]"


def value_text(data: bytes | None, redact: bool) -> str:
    """Write bytes as JSON, text, or hex; if redacted, as their size and hash."""
    if data is None:
        return "null"
    if redact:
        from hashlib import sha256  # which loads OpenSSL

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
