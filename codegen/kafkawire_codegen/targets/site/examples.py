"""Groups the examples of a message's versions: versions with the same bytes share one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...model import Message
from ...versions import Versions
from ..supplied import ExampleRow, Examples


@dataclass(frozen=True, slots=True)
class Example:
    """The explained example of some versions. size: in bytes."""

    versions: Versions
    rows: tuple[ExampleRow, ...]
    size: int


def examples(message: Message, columns: Sequence[Versions], explain: Examples) -> list[Example]:
    """Make the examples of a message, oldest first; the row of the message itself is left out."""
    made: list[Example] = []
    for column in columns:
        rows = tuple(row for row in explain(message, column.low) if row.depth)
        if made and made[-1].rows == rows:
            made[-1] = Example(Versions(made[-1].versions.low, column.high), rows, made[-1].size)
        else:
            size = sum(len(row.bytes.split()) for row in rows)
            made.append(Example(column, rows, size))
    return made
