"""Formats consumed records: a line of text, a JSON object, the value only, or a template.

Text from records is escaped in lines, so that a record is one line; values alone and templates
that are not written to a terminal have raw bytes, as the user of a pipe expects.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import typer

from kafkawire.display import printable, printable_lines
from kafkawire.records import text_bytes

from . import contents

if TYPE_CHECKING:
    from kafkawire.client.consumer import ConsumerRecord
    from kafkawire.client.share_consumer import ShareRecord
    from kafkawire.values import DecodedValue
    from kafkawire.values.record_values import RecordValues

MILLISECONDS: Final = 1000
Record: TypeAlias = "ConsumerRecord | ShareRecord"
Write = Callable[[Record], bytes]


FORMATS: Final = "table|json|value|arrow|parquet|TEMPLATE"
FIELDS: Final[Mapping[str, Callable[[Record], bytes]]] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "k": lambda record: record.key or b"",
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "h": lambda record: b",".join(
        text_bytes(key) + b"=" + (value or b"") for key, value in record.headers
    ),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "%": lambda _: b"%",
}
"""What the letter behind a % stands for, as in kcat. Null is nothing, and -1 as a size."""
PIECE: Final = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|([^%\\]+)", re.DOTALL)
ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def writer(form: str, topics: list[str], values: RecordValues | None = None) -> Write:
    """Return a function that formats a record; a usage error for an invalid format.

    topics: for the width of a column. values: what decodes keys and values; JSON has these beside
    the bytes, lines in place of them.
    """
    terminal = sys.stdout.isatty()
    if form == "json":
        return lambda record: _json(record, values)
    if form == "value":
        form = "%s\\n" if values is None or values.values is None else "%v\\n"
    if form == "table":
        width = max(map(len, topics)) + 4
        return lambda record: _line(record, width, values).encode(errors="backslashreplace")
    if "%" not in form:
        raise typer.BadParameter(
            f"{form!r}: expected table, json, value, arrow, parquet, or a template with %s",
            param_hint="--format",
        )
    pieces = _template(form, values)
    if terminal:
        return lambda record: _lines(b"".join(piece(record) for piece in pieces)).encode()
    return lambda record: b"".join(piece(record) for piece in pieces)


def _template(text: str, values: RecordValues | None) -> list[Write]:
    """Parse a template into functions that return its pieces."""
    fields = dict(FIELDS)
    if values is not None and values.values is not None:
        fields["v"] = lambda record: _decoded_value(record, values)
    pieces: list[Write] = []
    for match in PIECE.finditer(text):
        letter, escape, plain = match.groups()
        if letter in fields:
            pieces.append(fields[letter])
            continue
        if letter is not None or (escape is not None and escape[:1] not in (*ESCAPES, "x")):
            letters = ", ".join(f"%{each}" for each in fields)
            raise typer.BadParameter(
                f"{match[0]!r} at {match.start()}: expected one of {letters}, or \\n, \\r, \\t, "
                "\\0, \\xHH, \\\\",
                param_hint="--format",
            )
        if escape is not None:
            data = ESCAPES.get(escape) or bytes.fromhex(escape[1:])
        else:
            data = plain.encode(errors="surrogateescape")
        pieces.append(lambda _, data=data: data)  # type: ignore[misc]
    return pieces


def _decoded_value(record: Record, values: RecordValues) -> bytes:
    """Write a decoded value as JSON; null for null; an object with the error if there is one."""
    return _decoded_text(values.value(record.topic, record.value, record.headers)).encode()


def _decoded_text(decoded: DecodedValue | None) -> str:
    if decoded is None:
        return "null"
    obj = decoded.to_json()
    shown = {"error": decoded.error} if decoded.error is not None else obj["value"]
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _json(record: Record, values: RecordValues | None) -> bytes:
    decoded = {}
    if values is not None:
        decoded = values.members(record.topic, record.key, record.value, record.headers)
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": record.timestamp_type.name,
        "key": contents.form(record.key, redact=False),
        "value": contents.form(record.value, redact=False),
        "headers": [
            {"key": key, "value": contents.form(value, redact=False)} | contents.key_bytes(key)
            for key, value in record.headers
        ],
    } | decoded
    delivery_count = getattr(record, "delivery_count", None)  # of share groups
    if delivery_count is not None:
        fields["deliveryCount"] = delivery_count
    return json.dumps(fields).encode() + b"\n"


def _line(record: Record, width: int, values: RecordValues | None) -> str:
    partition = f"{record.topic}-{record.partition}"
    headers = " ".join(
        f"{printable(contents.header_name(key))}={_text(value)}" for key, value in record.headers
    )
    prefix = f"{partition:{width}} {record.offset:>8} {timestamp_text(record.timestamp):24}"
    key = "-" if record.key is None else _text(record.key)
    value = _text(record.value)
    if values is not None and record.value is not None and values.values is not None:
        decoded = values.value(record.topic, record.value, record.headers)
        value = printable(_decoded_text(decoded))
    if values is not None and record.key is not None and values.keys is not None:
        key = printable(_decoded_text(values.key(record.topic, record.key, record.headers)))
    return f"{printable(prefix)}  {key}  {value}  {headers}".rstrip() + "\n"


def timestamp_text(timestamp: int) -> str:
    """Format milliseconds since 1970 as ISO 8601; as a number if they are out of range."""
    try:
        when = datetime.fromtimestamp(timestamp / MILLISECONDS, UTC)
    except (ValueError, OverflowError, OSError):  # producers may send any number
        return str(timestamp)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _lines(data: bytes) -> str:
    """Format a value for a terminal: escaped except for line feeds."""
    return printable_lines(data.decode(errors="backslashreplace"))


def _text(data: bytes | None) -> str:
    """Format bytes as escaped text in a line; empty ones are a field, too."""
    if data is None:
        return "null"
    if not data:
        return '""'
    return printable(data.decode(errors="backslashreplace"))
