"""Formats decoded messages as a tree or as JSON lines.

One decoded row is one row of output, in the same order; JSON lines are lossless.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkawire.display import printable, time_text

from .fitting import wrapped
from .message_table.lines import is_kafkas, latency

if TYPE_CHECKING:
    from kafkawire.capture.filters.unmatched import Compared
    from kafkawire.capture.jsonl.records import DecodedText
    from kafkawire.values.record_values import ValueCounts

    from ..input.inputs import Entry, InputError
    from .message_table.legend import Connections


class Shape(StrEnum):
    """Output formats."""

    TREE = "tree"
    JSONL = "jsonl"
    TABLE = "table"


class Printed(NamedTuple):
    """Text of a batch of rows, encoded for stdout.

    clean: whether all of them were fully decoded. error: why a capture could not be read. counts:
    of keys and values that were not decoded, if these are. matched: whether a filter has matched in
    the captures of a process. compared: what it has compared if it has not. connections: those of
    the rows of a table on a terminal.
    """

    text: bytes | memoryview
    clean: bool
    error: InputError | None = None
    counts: ValueCounts | None = None
    matched: bool = False
    compared: Compared | None = None
    connections: Connections | None = None


Print = Callable[[str], None]

CONTINUED: Final = 4
"""Spaces before the rest of a line that is wider than the terminal."""

ERROR_CODE: Final = ("errorCode", "ErrorCode")
"""Ends of the names of fields that are error codes."""


class View(NamedTuple):
    """What is shown of a message.

    secrets: see `kafkawire.protocol.secrets`. records: the content of records. redact: sizes and
    hashes in place of keys and values. decoded: writes these decoded, too.
    """

    secrets: bool = False
    records: bool = False
    redact: bool = False
    decoded: DecodedText | None = None


def body(entry: Entry, view: View) -> Any:
    """Return the body of a row as JSON, with a summary in place of records; hex if not decoded."""
    from kafkawire.capture.jsonl.formats import raw_text
    from kafkawire.capture.jsonl.records_fields import (
        records_fields,
        replace_records,
        summaries,
    )
    from kafkawire.capture.rows import Status
    from kafkawire.protocol.json_text import shown_json

    row = entry.row
    if row.message is None or row.body_version is None:
        return raw_text(row, secrets=view.secrets, redact=view.redact)
    places = records_fields(row.message, row.body_version)
    doubtful = row.status is not Status.OK
    fields = shown_json(row.message, row.body_version, view.secrets, doubtful)
    return replace_records(fields, type(row.message), row.body_version, summaries(places))


def records(entry: Entry, view: View) -> list[dict[str, Any]]:
    """Decode every records field of a row."""
    from kafkawire.capture.jsonl.records import records_json
    from kafkawire.capture.jsonl.records_fields import records_fields

    row = entry.row
    if row.message is None or row.body_version is None:
        return []
    places = records_fields(row.message, row.body_version)
    return [
        json.loads(records_json(place, view.redact, view.secrets, view.decoded)) for place in places
    ]


def embedded(entry: Entry, view: View) -> dict[str, Any]:
    """Decode embedded payloads in bytes fields (subscriptions, ...), by field path."""
    from kafkawire.protocol.embedded import embedded_payloads

    row = entry.row
    if row.message is None or row.body_version is None:
        return {}
    payloads = embedded_payloads(row.message, row.body_version)
    return {payload.path: payload.to_json(secrets=view.secrets) for payload in payloads}


def jsonl(view: View) -> Callable[[Entry], str]:
    """Return a function that formats rows as lines of JSON, with line feeds."""
    from kafkawire.capture.jsonl.rows import Lines

    writers: dict[str, Lines] = {}

    def line(entry: Entry) -> str:
        writer = writers.get(entry.capture)
        if writer is None:
            writer = writers[entry.capture] = Lines(entry.capture, *view)
        return writer.line(entry.connection, entry.client, entry.broker, entry.row) + "\n"

    return line


def tree_text(entry: Entry, view: View, width: int | None = None) -> str:
    """Format a row as a block, with line feeds. width: of the terminal; None for a pipe."""
    lines: list[str] = []
    tree(entry, lines.append, view, width)
    return "".join(f"{line}\n" for line in lines)


def tree(entry: Entry, out: Print, view: View, width: int | None = None) -> None:
    """Print a row as a block: lines for the message, fitted to a width; its fields below."""
    for line in map(printable, _headings(entry)):
        for part in [line] if width is None else wrapped(line, width, CONTINUED):
            out(part)
    _fields(entry, lambda line: out(printable(line)), view)


def _headings(entry: Entry) -> Iterator[str]:
    row = entry.row
    origin = f"{entry.capture} packet {row.packet}" if row.packet else entry.capture
    endpoints = (
        ""
        if entry.client is None
        else f"  {entry.client} {'->' if row.direction == 'request' else '<-'} {entry.broker}"
    )
    name = "bytes" if row.api_name is None else f"{row.api_name} v{row.api_version} {row.direction}"
    tail = f"  after {latency(entry)}" if latency(entry) else ""
    correlation = "" if row.correlation_id is None else f"  correlation {row.correlation_id}"
    yield f"{name}{correlation}  {row.length} bytes  {row.status.value}{tail}"
    clock = time_text(row.time_ns)
    yield f"  {origin}{endpoints}" + (f"  {clock}" if clock else "")
    if row.client_id is not None and row.direction == "request":
        yield f"  client id {row.client_id}"
    if row.error:
        yield f"  ! {row.error}"


def _fields(entry: Entry, out: Print, view: View) -> None:
    row = entry.row
    tree = _Tree(out, is_kafkas(row.message))
    tree.branch(body(entry, view), 1)
    for path, payload in embedded(entry, view).items():
        tree.leaf(f"  {path} contains", payload, 1)
    if view.records:
        for field in records(entry, view):
            tree.leaf(f"  {field['path']}", field["content"], 1)


class _Tree:
    """Prints JSON values as indented lines; names_errors: whether error codes are Kafka's."""

    def __init__(self, out: Print, names_errors: bool) -> None:
        self._out = out
        self._names_errors = names_errors

    def branch(self, value: Any, depth: int) -> None:
        indent = "  " * depth
        if isinstance(value, dict):
            for key, inner in value.items():
                self.leaf(f"{indent}{key}", inner, depth)
        elif isinstance(value, str) and value:
            self._out(f"{indent}{shortened(value)}")

    def leaf(self, label: str, value: Any, depth: int) -> None:
        is_error = self._names_errors and label.endswith(ERROR_CODE)
        if is_error and isinstance(value, int) and value:
            self._out(f"{label}: {value} ({_error_name(value)})")
        elif isinstance(value, dict) and value:
            self._out(f"{label}:")
            self.branch(value, depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, inner in enumerate(value):
                self._out(f"{label}[{i}]:")
                self.branch(inner, depth + 1)
        else:
            self._out(f"{label}: {shortened(json.dumps(value, ensure_ascii=False))}")


def _error_name(code: int) -> str:
    from kafkawire.protocol.error_code import ErrorCode

    return ErrorCode.name_of(code)


def shortened(text: str, most: int = 160) -> str:
    """Truncate a long text and append its length."""
    return text if len(text) <= most else f"{text[: most - 24]}... ({len(text)} characters)"
