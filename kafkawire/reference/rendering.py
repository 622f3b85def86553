"""Renders the rows of an explanation as lines of text, in spans that a terminal can colour.

The text is the same with and without colour; the columns are defined in one place.

    offset | bytes | field, indented | type | value
         ! a note about the row above, ^ under the bad byte
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..errors import WireError
from ..protocol.secrets import placeholder
from .tree import Node

MOST_BYTES: Final = 16
"""Bytes that a row shows."""

FIRST_BYTES: Final = 12
"""Bytes that a longer row shows, before the number of the others."""

GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an explanation.

    raw: all its bytes; empty for a row that only groups others. depth: the indentation of the
    field. notes: its flaws. bad: index in `raw` of the byte that stopped the decoder, or None.
    secret: whether its bytes are hidden.
    """

    offset: int
    raw: bytes
    depth: int
    field: str
    type: str
    value: str
    notes: tuple[str, ...] = ()
    bad: int | None = None
    secret: bool = False

    @property
    def end(self) -> int:
        return self.offset + len(self.raw)


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation of bytes, row by row.

    error: what stopped the decoder, or None; trees: the nodes until then.
    """

    rows: tuple[Row, ...]
    trees: tuple[Node, ...]
    error: WireError | None

    def __str__(self) -> str:
        return plain(self)


class Span(NamedTuple):
    """Part of a line; `kind` is one of offset, bytes, bad, field, type, value, note, error."""

    text: str
    kind: str


Line = list[Span]


class Columns(NamedTuple):
    """The width of each column."""

    offset: int
    bytes: int
    field: int
    type: int


def hex_of(row: Row) -> str:
    """Write a row's bytes; of many, the first ones and the number of the others."""
    if row.secret:
        return placeholder(len(row.raw), "byte")
    if len(row.raw) <= MOST_BYTES:
        return row.raw.hex(" ")
    return f"{row.raw[:FIRST_BYTES].hex(' ')} … {len(row.raw) - FIRST_BYTES} more"


def marked_at(row: Row) -> int | None:
    """Find the invalid byte among those that a row shows; None if it has none, or it is elided."""
    if row.secret:
        return None
    written = MOST_BYTES if len(row.raw) <= MOST_BYTES else FIRST_BYTES
    return row.bad if row.bad is not None and row.bad < written else None


def label(row: Row) -> str:
    """Return the name of a field, indented."""
    return f"{GAP * row.depth}{row.field}"


def columns(rows: tuple[Row, ...]) -> Columns:
    """Measure the columns."""
    return Columns(
        max((len(str(row.offset)) for row in rows), default=1),
        max((len(hex_of(row)) for row in rows), default=0),
        max((len(label(row)) for row in rows), default=0),
        max((len(row.type) for row in rows), default=0),
    )


def lines(explanation: Explanation) -> Iterator[Line]:
    """Render an explanation, line by line."""
    width = columns(explanation.rows)
    for row in explanation.rows:
        if row.raw or row.field:
            yield row_line(row, width)
        yield from note_lines(row, width)


def row_line(row: Row, width: Columns) -> Line:
    """Write a row: offset, bytes, field, type and value."""
    text = hex_of(row)
    line = [Span(f"{row.offset:>{width.offset}}{GAP}", "offset")]
    bad = marked_at(row)
    if bad is None:
        line.append(Span(text, "bytes"))
    else:
        at = bad * 3
        line += [
            Span(text[:at], "bytes"),
            Span(text[at : at + 2], "bad"),
            Span(text[at + 2 :], "bytes"),
        ]
    line.append(Span(" " * (width.bytes - len(text)) + GAP, "bytes"))
    line.append(Span(f"{label(row):<{width.field}}{GAP}", "field"))
    line.append(Span(f"{row.type:<{width.type}}{GAP}", "type"))
    line.append(Span(row.value, "value"))
    return line


def note_lines(row: Row, width: Columns) -> Iterator[Line]:
    """Write the flaws of a row below it, and the error under its byte."""
    for i, note in enumerate(row.notes):
        stopped = row.bad is not None and i == len(row.notes) - 1
        at = width.offset + len(GAP) + (3 * (marked_at(row) or 0) if stopped else 0)
        sign = "^ " if stopped else "! "
        where = "" if row.raw else f"{row.offset:>{width.offset}}"
        yield [
            Span(where.ljust(at), "offset"),
            Span(f"{sign}{note}", "error" if stopped else "note"),
        ]


def plain(explanation: Explanation) -> str:
    """Write an explanation without colour."""
    return "\n".join("".join(p.text for p in line).rstrip() for line in lines(explanation))
