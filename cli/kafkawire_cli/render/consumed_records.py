"""Formats consumed records: a line of text, a JSON object, or the value only.

Law: text from records is escaped, so that a record is one line; values that are not written to a
terminal are raw bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kafkawire.display import printable, printable_lines

from . import contents

if TYPE_CHECKING:
    from kafkawire.client.consumer import ConsumerRecord

MILLISECONDS: Final = 1000
Write = Callable[["ConsumerRecord"], bytes]


class Form(StrEnum):
    """Output formats: a line of text per record, a JSON object per record, or values only.

    Values are raw bytes; on a terminal they are escaped.
    """

    TABLE = "table"
    JSON = "json"
    VALUE = "value"


def writer(form: Form, topics: list[str]) -> Write:
    """Return a function that formats a record. topics: for the width of a column."""
    if form is Form.JSON:
        return _json
    if form is Form.VALUE and sys.stdout.isatty():
        return lambda record: f"{_lines(record.value or b'')}\n".encode()
    if form is Form.VALUE:
        return lambda record: (record.value or b"") + b"\n"
    width = max(map(len, topics)) + 4
    return lambda record: _line(record, width).encode(errors="backslashreplace")


def _json(record: ConsumerRecord) -> bytes:
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": record.timestamp_type.name,
        "key": contents.form(record.key, redact=False),
        "value": contents.form(record.value, redact=False),
        "headers": [
            {"key": key, "value": contents.form(value, redact=False)}
            for key, value in record.headers
        ],
    }
    return json.dumps(fields).encode() + b"\n"


def _line(record: ConsumerRecord, width: int) -> str:
    partition = f"{record.topic}-{record.partition}"
    headers = " ".join(f"{printable(key)}={_text(value)}" for key, value in record.headers)
    prefix = f"{partition:{width}} {record.offset:>8} {_time(record.timestamp):24}"
    key = "-" if record.key is None else _text(record.key)
    return f"{printable(prefix)}  {key}  {_text(record.value)}  {headers}".rstrip() + "\n"


def _time(timestamp: int) -> str:
    try:
        when = datetime.fromtimestamp(timestamp / MILLISECONDS, UTC)
    except (ValueError, OverflowError, OSError):  # producers may send any number
        return str(timestamp)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _lines(data: bytes) -> str:
    """Format a value for a terminal: escaped except for line feeds."""
    return printable_lines(data.decode(errors="backslashreplace"))


def _text(data: bytes | None) -> str:
    """Format bytes as escaped text in a line."""
    if data is None:
        return "null"
    return printable(data.decode(errors="backslashreplace"))
