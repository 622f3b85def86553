"""Explains bytes in rows: offset, bytes, field, type, value; marks the first invalid byte.

Every byte is in exactly one row, decoded or not; an elision shows its number of bytes.

    20  02                  topics      compact []FetchTopic  1 element
    21                        [0]       FetchTopic
    21  05                      topic   compact string        4 bytes
    22  74 65 73 74                     UTF-8                 "test"
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ..errors import TrailingBytes, WireError, counted
from ..protocol.error_code import ErrorCode
from ..protocol.json_form import uuid_text
from ..protocol.packages import KAFKA, OURS, Package
from ..protocol.secrets import (
    METADATA_TOPICS,
    SECRET_ATTRIBUTES,
    SECRET_MESSAGES,
    is_config_name,
    is_secret_config,
    names_metadata,
)
from .codec import Parsed, parse
from .defaults import UNKNOWN_TAGS
from .rendering import Explanation, Row
from .tree import Node

HEADS: Final = frozenset({"length", "count", "marker", "tag"})
"""Parts before a field that share its row."""

CONTENTS: Final = frozenset({"text", "run", "size"})
"""Parts after such a head: a row of its own, without the field's name."""

TOPIC_FIELDS: Final = ("topic", "topic_id")
"""Fields that name the topic of a struct's records."""

MOST_TEXT: Final = 60
NOT_DECODED: Final = "not decoded"
TRAILING: Final = "trailing bytes"


def explain(
    name: str, version: int, data: bytes, *, secrets: bool = True, package: Package = KAFKA
) -> Explanation:
    """Explain a message body: print the result, or look at its rows.

    secrets: whether secrets are shown, or their length. Raises UnknownApiKey, UnsupportedVersion.
    """
    parsed = parse(name, version, data, package=package.name)
    if not secrets:
        hide_secrets(parsed)
    hidden = not secrets and rest_is_secret(name, data)
    return finished(data, [*message_rows(parsed)], (parsed.tree,), parsed.end, parsed.error, hidden)


def finished(
    data: bytes,
    rows: list[Row],
    trees: tuple[Node, ...],
    end: int,
    error: WireError | None,
    hidden: bool,
) -> Explanation:
    """Mark the byte that stopped the decoder, and show the undecoded bytes.

    hidden: whether the undecoded bytes may contain a secret.
    """
    if error is None:
        return Explanation(tuple(rows), trees, None)
    bad = end if error.offset is None else error.offset
    reason = f"{error.path}: {error.reason}" if error.path else error.reason
    rest = [
        replace(row, secret=hidden)
        for row in undecoded(data, end, bad, isinstance(error, TrailingBytes))
    ]
    marked = [mark(row, bad, reason) for row in [*rows, *rest]]
    if not any(row.bad is not None for row in marked):  # a missing byte has no row
        marked.append(Row(bad, b"", 0, "", "", "", (reason,), 0))
    return Explanation(tuple(marked), trees, error)


def undecoded(data: bytes, end: int, bad: int, trailing: bool) -> Iterator[Row]:
    """Show the undecoded bytes, the invalid one first in its row."""
    label = TRAILING if trailing else NOT_DECODED
    cut = bad if end < bad < len(data) else end
    for start, stop in ((end, cut), (cut, len(data))):
        if start < stop:
            yield Row(start, data[start:stop], 0, label, "", counted(stop - start, "byte"))


def mark(row: Row, bad: int, reason: str) -> Row:
    """Mark the byte at `bad`, if the row has it."""
    if not row.offset <= bad < row.end:
        return row
    return replace(row, bad=bad - row.offset, notes=(*row.notes, reason))


def message_rows(parsed: Parsed) -> Iterator[Row]:
    """Make the rows of a message, each with the flaws of its bytes."""
    flaws = list(parsed.flaws)
    root = parsed.tree
    yield Row(root.offset, b"", 0, root.name, "", f"version {parsed.version}")
    for child in parsed.tree.children:
        for row in node_rows(child, 1, parsed.package == OURS):
            notes = tuple(f.reason for f in flaws if row.offset <= f.offset < row.end)
            yield replace(row, notes=notes)


def node_rows(node: Node, depth: int, names_errors: bool) -> Iterator[Row]:
    """Make the rows of a node and all below it.

    names_errors: whether error codes are Kafka's.
    """
    children = node.children
    if not children:
        if node.closed:
            yield _row(node, depth, node.name, names_errors)
        return
    head = children[0]
    if head.name in HEADS and head.path == node.path and head.closed:
        children = children[1:]
        yield Row(head.offset, head.raw, depth, node.name, node.type, head_value(head, node))
    else:
        yield Row(node.offset, b"", depth, node.name, node.type, "")
    for child in children:
        if child.name in CONTENTS and child.path == node.path and not child.children:
            if child.closed and child.raw:
                label = child.name if child.name == "size" else ""
                yield _row(child, depth + 1, label, names_errors)
        else:
            yield from node_rows(child, depth + 1, names_errors)


def _row(node: Node, depth: int, label: str, names_errors: bool) -> Row:
    """Make the row of a node without children."""
    hidden = node.secret or isinstance(node.value, dict)
    value = "" if hidden else shown(node.value, node.type)
    is_error = names_errors and node.type == "int16" and node.name.endswith("error_code")
    if value and is_error and node.value:
        value = f"{value} {ErrorCode.name_of(int(value))}"
    return Row(node.offset, node.raw, depth, label, node.type, value, secret=node.secret)


def head_value(head: Node, node: Node) -> str:
    """Explain a length, count, marker or tag."""
    n = head.value
    assert isinstance(n, int)
    match head.name:
        case "marker":
            return "present" if n else "null"
        case "tag":
            return f"tag {n}"
        case "count":
            return length(n, "field" if node.type == "tags" else "element")
        case _:
            return '""' if n == 0 and node.type.endswith("string") else length(n, "byte")


def rest_is_secret(name: str | None, data: bytes) -> bool:
    """Whether the undecoded bytes of a message may contain a secret. name: None if unknown."""
    if name is None or name in SECRET_MESSAGES:
        return True
    return name == "FetchResponse" and names_metadata(data)


def hide_secrets(parsed: Parsed) -> None:
    """Mark the nodes of a message with secrets.

    In a message that was not decoded byte for byte, and in unknown tags, these are all that may
    contain some.
    """
    doubtful = parsed.error is not None or bool(parsed.flaws)
    may_carry = parsed.name in SECRET_MESSAGES
    for node in parsed.tree.walk():
        fields = {child.name: child for child in node.children}
        if METADATA_TOPICS.intersection(_text(fields.get(name)) for name in TOPIC_FIELDS):
            for inner in node.walk():
                if inner.name == "records":
                    _hide(inner)
        if not may_carry:
            continue
        if doubtful and isinstance(node.value, (str, bytes)):
            _hide(node)
        for name, child in fields.items():
            if name in SECRET_ATTRIBUTES or name.startswith(UNKNOWN_TAGS):
                _hide(child)
        if "name" in fields and "value" in fields:
            _hide_config(fields)


def _hide_config(fields: dict[str, Node]) -> None:
    """Hide the value of a config if it is secret, and its name if it is invalid."""
    name = _text(fields["name"])
    sensitive = fields["is_sensitive"].value is True if "is_sensitive" in fields else None
    if is_secret_config(name, sensitive):
        _hide(fields["value"])
    if not is_config_name(name):
        _hide(fields["name"])


def _text(node: Node | None) -> str:
    if node is None:
        return ""
    return uuid_text(node.value) if isinstance(node.value, bytes) else str(node.value)


def _hide(node: Node) -> None:
    """Mark everything but lengths."""
    for inner in node.walk():
        inner.secret = inner.name not in HEADS


def length(n: int, noun: str) -> str:
    """Write a length with its unit; a negative one is null."""
    return "null" if n < 0 else counted(n, noun)


def shown(value: object, type: str) -> str:
    """Write a value for a person: text quoted, bytes counted, uuids in Kafka's form."""
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=not value.isprintable())
        return quoted if len(quoted) <= MOST_TEXT else f"{quoted[:MOST_TEXT]}…"
    if isinstance(value, bytes):
        return uuid_text(value) if type == "uuid" else counted(len(value), "byte")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
