"""Prints explanations of bytes; on a terminal in colour, and fitted to its width.

Where lines would be too wide, cells continue on the next line. Names of fields stay whole if they
fit; the number of bytes on a line is that with which fewest words break and lines are fewest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from kafkawire.display import padded, printable, printable_lines, text_width

from ..fitting import GAP, Column, terminal_width, wrapped
from ..fitting import widths as divided

if TYPE_CHECKING:
    from kafkawire.reference import Explanation
    from kafkawire.reference.rendering import Line, Row

STYLES: Final = {
    "offset": "dim",
    "bytes": "cyan",
    "bad": "bold white on red",
    "field": "bold",
    "type": "dim",
    "value": "green",
    "note": "yellow",
    "error": "bold red",
}

BYTES: Final = (16, 12, 8, 6, 4)
"""Bytes of a line, if these are fewer than the longest row shows."""

LEAST: Final = 8
"""The width that types and values have at least before a field's name is broken."""

BROKEN: Final = 2
"""Lines that are as bad as a broken word."""


class Widths(NamedTuple):
    """The width of each column."""

    offset: int
    bytes: int
    field: int
    type: int
    value: int


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, escaped."""
    width = terminal_width()
    for line in map(printable, lines):
        typer.echo(line if width is None else "\n".join(wrapped(line, width, 4)))


def print_explanation(explanation: Explanation) -> None:
    """Print the rows of an explanation; without colour if NO_COLOR is set."""
    width = terminal_width()
    if width is None:
        typer.echo(printable_lines(str(explanation)))
        return
    lines = fitted(explanation, width)
    if os.environ.get("NO_COLOR"):
        for line in lines:
            typer.echo("".join(printable(span.text) for span in line).rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        spans = ((printable(span.text), STYLES[span.kind]) for span in line)
        console.print(Text.assemble(*spans))


def fitted(explanation: Explanation, width: int) -> Iterator[Line]:
    """Render an explanation in a width, line by line."""
    from kafkawire.reference.rendering import lines

    whole = list(lines(explanation))
    if all(sum(text_width(span.text) for span in line) <= width for line in whole):
        yield from whole
        return
    chosen = _chosen(explanation.rows, width)
    for row in explanation.rows:
        yield from _row_lines(row, chosen, width)


def _cells(row: Row) -> tuple[str, str, str, str]:
    from kafkawire.reference.rendering import hex_of, label

    return hex_of(row), printable(label(row)), printable(row.type), printable(row.value)


def _chosen(rows: Sequence[Row], width: int) -> Widths:
    """Choose the widths with which names are whole, and fewest words and lines are broken."""
    cells = [_cells(row) for row in rows if row.type]
    columns = [Column(column) for column in zip(*cells or [("",) * 4], strict=True)]
    offset = max(len(str(row.offset)) for row in rows)
    sizes = Counter(tuple((text_width(cell), Column([cell]).word) for cell in row) for row in cells)

    def cost(widths: Widths) -> tuple[bool, int]:
        total = 0
        for row, count in sizes.items():
            fits = list(zip(row, widths[1:], strict=True))
            lines = max(-(-whole // size) for (whole, _), size in fits)
            total += count * (lines + BROKEN * sum(word > size for (_, word), size in fits))
        return widths.field < columns[1].whole, total

    longest = columns[0].whole
    bytes_widths = [longest, *(3 * count - 1 for count in BYTES if 3 * count - 1 < longest)]
    return min((_divided(columns, offset, each, width) for each in bytes_widths), key=cost)


def _divided(columns: Sequence[Column], offset: int, bytes_width: int, width: int) -> Widths:
    """Divide what the offset and the bytes leave of a width: the field first."""
    rest = width - offset - bytes_width - 3 * len(GAP)
    field = max(1, min(columns[1].whole, rest - 2 * LEAST - len(GAP)))
    types, _ = divided(columns[2:], rest - field)
    return Widths(offset, bytes_width, field, types, max(1, rest - field - types - len(GAP)))


def _row_lines(row: Row, widths: Widths, width: int) -> Iterator[Line]:
    """Write a row in as many lines as its longest cell needs; its notes below the invalid byte."""
    from kafkawire.reference.rendering import Span, marked_at

    bad = marked_at(row)
    bad_line, mark = divmod(bad or 0, (widths.bytes + 1) // 3)
    columns = _columns(row, widths)
    parts = [wrapped(cell, size) for _, cell, size in columns]
    lines = list(zip_longest(*parts, fillvalue="")) if row.raw or row.field else []
    for number, texts in enumerate(lines):
        is_marked = bad is not None and number == bad_line
        offset = "" if number else str(row.offset)
        yield [
            Span(padded(offset, widths.offset, right=True) + GAP, "offset"),
            *_bytes(padded(texts[0], widths.bytes), mark if is_marked else None),
            *(
                Span(GAP + padded(text, size * (kind != "value")), kind)
                for (kind, _, size), text in zip(columns[1:], texts[1:], strict=True)
            ),
        ]
        if is_marked:
            yield from _note_lines(replace(row, bad=mark), widths, width)
    if bad is None:
        yield from _note_lines(row, widths, width)


def _columns(row: Row, widths: Widths) -> list[tuple[str, str, int]]:
    """Return the kind, text and width of each cell; cells may use empty columns beside them."""
    bytes_, name, type_, value = zip(Widths._fields[1:], _cells(row), widths[1:], strict=True)
    if not row.value:
        return [bytes_, name, (*type_[:2], type_[2] + len(GAP) + value[2])]
    if row.type:
        return [bytes_, name, type_, value]
    room = name[2] + type_[2] + value[2] + len(GAP)
    size = max(room - value[2], min(text_width(name[1]), room - LEAST))
    return [bytes_, (*name[:2], size), (*value[:2], room - size)]


def _bytes(text: str, mark: int | None) -> Line:
    """Return the bytes of a line; mark: the index of the invalid one."""
    from kafkawire.reference.rendering import Span

    if mark is None:
        return [Span(text, "bytes")]
    begin, end = 3 * mark, 3 * mark + 2
    return [Span(text[:begin], "bytes"), Span(text[begin:end], "bad"), Span(text[end:], "bytes")]


def _note_lines(row: Row, widths: Widths, width: int) -> Iterator[Line]:
    from kafkawire.reference.rendering import Columns, Span, note_lines

    for before, note in note_lines(row, Columns(*widths[:4])):
        indent = len(before.text)
        for number, part in enumerate(wrapped(printable(note.text), width - indent, 2)):
            start = " " * indent if number else before.text
            yield [Span(start, before.kind), Span(part, note.kind)]
