"""Prints reports: titled tables and lines, fitted to the width of a terminal, or JSON.

Untrusted text is escaped. Nothing is truncated or left out in a pipe or as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import typer

from kafkawire.display import bytes_text, padded, plural, printable, text_width

from ..input.captures.progress import note_losses, note_problems_alone, note_without_rows
from ..input.filters import NOTHING_MATCHES
from ..input.options import Form
from ..input.sources import INTERRUPTED
from ..notes import print_note
from ..pipes import drop_output
from .fitting import Column, chosen, fitted_line, fitted_table

if TYPE_CHECKING:
    from kafkawire.reports.reading import Reading

INDENT: Final = "  "
"""Indent of the lines of a section, and space between columns."""

NOTHING: Final = "Nothing found."

T = TypeVar("T")


class Shown(NamedTuple, Generic[T]):
    """The first entries of a list, and the number of the others."""

    first: list[T]
    left_out: int

    def more(self, noun: str) -> tuple[str, ...]:
        """Describe how many entries are not shown, and how to see them."""
        if not self.left_out:
            return ()
        total = len(self.first) + self.left_out
        more = plural(self.left_out, f"more {noun}")
        return (f"... and {more} (--top {total} or --all shows them)",)


def top(entries: Sequence[T], most: int | None) -> Shown[T]:
    """Return the first `most` entries of a list; None for all."""
    first = list(entries[:most])
    return Shown(first, len(entries) - len(first))


class Section(NamedTuple):
    """A titled table and lines below it.

    head: column names; `>` marks a right-aligned column. optional: names of the columns that a
    narrow terminal does not show, in the order in which they are left out.
    """

    title: str
    head: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    lines: Sequence[str] = ()
    optional: tuple[str, ...] = ()

    def text_lines(self) -> Iterator[str]:
        """Format the section as in a pipe: not wrapped."""
        return _lines(self)


def print_report(
    form: Form,
    sections: Callable[[], Iterable[Section]],
    as_json: Callable[[], dict[str, Any]],
    nothing: str = NOTHING,
) -> None:
    """Print a report as text or as one JSON object; only the form printed is computed.

    nothing: the text of a report without sections.
    """
    if form is Form.JSON:
        print(json.dumps(as_json(), indent=2, allow_nan=False))
    else:
        print_sections(sections(), nothing)


def print_capture_report(
    captures: Reading,
    form: Form,
    sections: Callable[[], Iterable[Section]],
    as_json: Callable[[], dict[str, Any]],
    nothing: str = NOTHING,
) -> None:
    """Print a report on captures.

    A report with a text of its own for nothing says whether the capture has Kafka messages at all,
    and whole ones; others have sections about it.
    Exit 2 if a file was refused, because the report is incomplete, also if the output pipe was
    closed. Exit 130 if reading was interrupted.
    """
    try:
        print_report(form, sections, as_json, nothing)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    if nothing != NOTHING and captures.where is None:
        note_problems_alone(captures.traffic, captures.watch.packets)
        note_losses(captures.traffic.losses, "the report lacks")
    exit_if_incomplete(captures)


def exit_if_incomplete(captures: Reading) -> None:
    """Exit if the captures were not read completely, because of an interrupt or a refused file.

    Warns on standard error if the captures have nothing to report, or the filter matched nothing.
    """
    note_without_rows(captures.traffic, captures.watch.packets)
    if captures.where is not None and not captures.matched:
        print_note(f"{NOTHING_MATCHES}{captures.hint}")
    if captures.interrupted:
        note = f"interrupted after {plural(captures.watch.packets, 'packet')}"
        print_note(f"{note}: the report covers these")
        raise typer.Exit(INTERRUPTED)
    if captures.refused:
        raise typer.Exit(2)


def print_sections(sections: Iterable[Section], nothing: str = NOTHING) -> None:
    """Print the sections that are not empty, or that nothing was found."""
    shown = (one for one in sections if one.rows or one.lines)
    lines = _fitted_lines if sys.stdout.isatty() else _lines
    empty = True
    for section in shown:
        if not empty:
            print()
        empty = False
        for line in lines(section):
            print(line.rstrip())
    if empty:
        print(f"{INDENT}{nothing}")


def _lines(section: Section) -> Iterator[str]:
    """Format a section without wrapping, for a pipe."""
    if section.title:
        yield printable(section.title)
    if section.rows:
        head = tuple(name.lstrip(">") for name in section.head)
        rows = [head, *(tuple(map(printable, row)) for row in section.rows)]
        widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
        right = [name.startswith(">") for name in section.head]
        for row in rows:
            cells = zip(row, widths, right, strict=True)
            yield INDENT + INDENT.join(padded(*cell) for cell in cells)
    for line in section.lines:
        yield INDENT + printable(line)


def _fitted_lines(section: Section) -> Iterator[str]:
    """Format a section for the width of the terminal."""
    room = get_terminal_size().columns - len(INDENT)
    if section.title:
        for line in fitted_line(printable(section.title), room):
            yield _styled(BOLD, line)
    notes: tuple[str, ...] = ()
    if section.rows:
        columns = _columns(section)
        names = [column.cells[0] for column in columns]
        dropped = [at for one in section.optional for at, name in enumerate(names) if name == one]
        shown = chosen(columns, dropped, room)
        left_out = list(dict.fromkeys(names[at] for at in dropped if at not in shown))
        if left_out:
            notes = (f"Not shown, for want of width: {', '.join(left_out)}.",)
        table = fitted_table([columns[at] for at in shown], room, lambda line: _styled(DIM, line))
        yield from (INDENT + line for line in table)
    for text in (*section.lines, *notes):
        for line in fitted_line(printable(text), room):
            yield INDENT + line


def _columns(section: Section) -> list[Column]:
    cells = zip(*(tuple(map(printable, row)) for row in section.rows), strict=True)
    return [
        Column((name.lstrip(">"), *column), is_number=name.startswith(">"))
        for name, column in zip(section.head, cells, strict=True)
    ]


BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
RESET: Final = "\x1b[0m"
"""As in "Select Graphic Rendition" (ECMA-48)."""

PLAIN_TERMINALS: Final = ("dumb", "unknown")
"""Values of TERM of terminals that have no styles."""


def _styled(style: str, text: str) -> str:
    return text if os.environ.get("TERM") in PLAIN_TERMINALS else f"{style}{text}{RESET}"


# -- formatting of values


def volume_text(size: int, total: int) -> str:
    """Format a size of a volume; empty if unknown, - if the volume is memory."""
    return "" if size < 0 else "-" if total == (1 << 63) - 1 else bytes_text(size)


def count_text(count: int) -> str:
    """Format a count; zero is empty."""
    return f"{count:,}" if count else ""


def duration_text(ns: int | None) -> str:
    """Format a duration."""
    if ns is None:
        return ""
    if abs(ns) < 10**9:
        return f"{_three_digits(ns / 1e6)} ms"
    if abs(ns) < 120 * 10**9:
        return f"{_three_digits(ns / 1e9)} s"
    minutes, seconds = divmod(round(ns / 1e9), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def milliseconds_text(ns: int | None) -> str:
    """Format a duration in milliseconds, without unit."""
    if ns is None:
        return ""
    return _three_digits(ns / 1e6) if abs(ns) < 10**9 else f"{ns / 1e6:,.0f}"


def _three_digits(amount: float) -> str:
    """Format a number below 1000 with three digits."""
    size = abs(amount)
    return f"{amount:.{3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


def share_text(share: float) -> str:
    """Format a fraction as per cent; zero is empty."""
    return f"{share * 100:.3g} %" if share else ""


def list_text(texts: Iterable[object], most: int = 4) -> str:
    """Format the first `most` entries of a list, and the number of the others."""
    entries = [str(text) for text in texts]
    more = f", +{len(entries) - most}" if len(entries) > most else ""
    return ", ".join(entries[:most]) + more


def ranges_text(numbers: Iterable[int]) -> str:
    """Format numbers in order, with ranges as `0-3`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)
