"""Formats consumed records: a line of text, a JSON object, the value only, or a template.

Law: text from records is escaped in lines, so that a record is one line; values alone and templates
that are not written to a terminal have raw bytes, as the user of a pipe expects.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import typer

from kafkawire.display import printable, printable_lines
from kafkawire.records import text_bytes

from . import contents

if TYPE_CHECKING:
    from kafkawire.client.consumer import ConsumerRecord

MILLISECONDS: Final = 1000
Write = Callable[["ConsumerRecord"], bytes]


FORMATS: Final = "table|json|value|TEMPLATE"
FIELDS: Final[Mapping[str, Callable[[ConsumerRecord], bytes]]] = {
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


def writer(form: str, topics: list[str]) -> Write:
    """Return a function that formats a record; a usage error for an invalid format.

    topics: for the width of a column.
    """
    terminal = sys.stdout.isatty()
    if form == "json":
        return _json
    if form == "value":
        form = "%s\\n"
    if form == "table":
        width = max(map(len, topics)) + 4
        return lambda record: _line(record, width).encode(errors="backslashreplace")
    if "%" not in form:
        raise typer.BadParameter(
            f"{form!r}: expected table, json, value, or a template with %s", param_hint="--format"
        )
    pieces = _template(form)
    if terminal:
        return lambda record: _lines(b"".join(piece(record) for piece in pieces)).encode()
    return lambda record: b"".join(piece(record) for piece in pieces)


def _template(text: str) -> list[Write]:
    """Parse a template into functions that return its pieces."""
    pieces: list[Write] = []
    for match in PIECE.finditer(text):
        letter, escape, plain = match.groups()
        if letter in FIELDS:
            pieces.append(FIELDS[letter])
            continue
        if letter is not None or (escape is not None and escape[:1] not in (*ESCAPES, "x")):
            known = ", ".join(f"%{each}" for each in FIELDS)
            raise typer.BadParameter(
                f"{match[0]!r} at {match.start()}: expected one of {known}, or \\n, \\r, \\t, "
                "\\0, \\xHH, \\\\",
                param_hint="--format",
            )
        if escape is not None:
            data = ESCAPES.get(escape) or bytes.fromhex(escape[1:])
        else:
            data = plain.encode(errors="surrogateescape")
        pieces.append(lambda _, data=data: data)  # type: ignore[misc]
    return pieces


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
            {"key": key, "value": contents.form(value, redact=False)} | contents.key_bytes(key)
            for key, value in record.headers
        ],
    }
    return json.dumps(fields).encode() + b"\n"


def _line(record: ConsumerRecord, width: int) -> str:
    partition = f"{record.topic}-{record.partition}"
    headers = " ".join(
        f"{printable(contents.header_name(key))}={_text(value)}" for key, value in record.headers
    )
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
