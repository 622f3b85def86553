"""Fits tables and lines into the width of a terminal.

Words stay whole as long as they can: cells are wrapped at spaces, then optional columns are left
out, and only then a column is narrower than its longest word.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from typing import Final, NamedTuple

from kafkawire.display import clipped, padded, text_width

GAP: Final = "  "
"""Space between columns."""

WORD: Final = re.compile(r" *[^ ]+")
LABEL: Final = re.compile(r"[\w ()-]{1,20}: +")
"""The beginning of a line whose continuation is indented to its text."""


def terminal_width() -> int | None:
    """Return the width of the terminal that is standard output; None for a pipe."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


class Column(NamedTuple):
    """A column of text, with its heading as the first cell. Numbers are aligned to the right."""

    cells: Sequence[str]
    is_number: bool = False

    @property
    def whole(self) -> int:
        """The width in which no cell is wrapped."""
        return max(map(text_width, self.cells))

    @property
    def word(self) -> int:
        """The width in which no word is broken, and no number is wrapped."""
        if self.is_number:
            return self.whole
        return max((text_width(word) for cell in self.cells for word in cell.split()), default=0)


def chosen(columns: Sequence[Column], dropped_first: Sequence[int], room: int) -> list[int]:
    """Return the columns that fit with their words whole.

    dropped_first: the optional ones, in the order in which they are left out.
    """
    left = list(range(len(columns)))
    words = [column.word for column in columns]
    for optional in dropped_first:
        if sum(words[one] for one in left) + len(GAP) * (len(left) - 1) <= room:
            break
        left.remove(optional)
    return left


def widths(columns: Sequence[Column], room: int) -> list[int]:
    """Divide a width among columns: their longest words, then whole cells, the narrowest first."""
    words = [column.word for column in columns]
    cells = room - len(GAP) * (len(columns) - 1)
    if sum(words) > cells:
        limit = max(words)
        while limit > 1 and sum(min(word, limit) for word in words) > cells:
            limit -= 1
        return [min(word, limit) for word in words]
    left = cells - sum(words)
    divided = list(words)
    for one in sorted(range(len(columns)), key=lambda one: columns[one].whole - words[one]):
        more = min(left, max(0, columns[one].whole - words[one]))
        divided[one] += more
        left -= more
    return divided


def wrapped(text: str, width: int, indent: int = 0) -> Iterator[str]:
    """Wrap text at spaces; words longer than a line are broken.

    indent: of all lines but the first; less where a character would not fit behind it.
    """
    width = max(1, width)
    indent = max(0, min(indent, width - 2))  # a character may be two columns wide
    line = ""
    for word in WORD.findall(text):
        if line and text_width(line) + text_width(word) > width:
            yield line
            line, word = " " * indent, word.lstrip(" ")
        line += word
        while text_width(line) > width:
            part = clipped(line, width) or line[0]
            yield part
            line = " " * indent + line[len(part) :]
    yield line


def fitted_line(text: str, width: int) -> Iterator[str]:
    """Wrap a line; the text after a label stays aligned."""
    label = LABEL.match(text)
    indent = label.end() if label is not None and label.end() < width // 2 else 0
    return wrapped(text, width, indent)


def fitted_table(
    columns: Sequence[Column], width: int, heading: Callable[[str], str]
) -> Iterator[str]:
    """Format columns in a width. heading: styles the lines of the headings."""
    divided = widths(columns, width)
    for number, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        cells = [wrapped(cell, size) for cell, size in zip(row, divided, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            line = GAP.join(
                padded(part, size, column.is_number)
                for part, size, column in zip(parts, divided, columns, strict=True)
            )
            line = clipped(line.rstrip(), width)
            yield line if number else heading(line)
