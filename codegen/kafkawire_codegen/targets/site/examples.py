"""Groups the examples of a message's versions: versions with the same bytes share one."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...model import Message
from ...versions import Versions
from ..supplied import ExampleRow, Examples

TAG: Final = "tag"
"""The type of the row of a tag; the tagged field itself is one level below it."""
NO_FIELDS: Final = frozenset({"tags", "uvarint"})
"""Types of rows that are not fields of the schema, though they may have the name of one."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of an example. anchor: that of its field, or empty."""

    row: ExampleRow
    anchor: str


@dataclass(frozen=True, slots=True)
class Example:
    """The explained example of some versions. size: in bytes."""

    versions: Versions
    lines: tuple[Line, ...]
    size: int


def examples(
    message: Message, columns: Sequence[Versions], anchors: Container[str], explain: Examples
) -> list[Example]:
    """Make the examples of a message, oldest first; the row of the message itself is left out."""
    listed: list[Example] = []
    for column in columns:
        rows = [row for row in explain(message, column.low) if row.depth]
        lines = tuple(_lines(rows, anchors))
        if listed and listed[-1].lines == lines:
            column = Versions(listed.pop().versions.low, column.high)
        listed.append(Example(column, lines, sum(len(row.bytes.split()) for row in rows)))
    return listed


def _lines(rows: Sequence[ExampleRow], anchors: Container[str]) -> Iterator[Line]:
    """Find the field of each row by the names of the rows around it."""
    around: list[str] = []
    for row in rows:
        del around[row.depth - 1 :]
        name = "" if row.type in NO_FIELDS else row.field.rstrip("_")  # of a reserved word
        path = ".".join(filter(None, [*around, name]))
        anchor = path if name and path in anchors else ""
        around.append(name if anchor and row.type != TAG else "")
        yield Line(row, anchor)
