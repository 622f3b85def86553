"""A report for a person: titled lists and lines, as wide as the terminal, in a pipe as wide as they
are.

Law: what strangers wrote is escaped; nothing is cut that cannot be had whole in a pipe or as JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from .output import printable

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED: Final = 10_000
"""Columns of a line that nobody folds."""


class Section(NamedTuple):
    """A list under a title. head: of its columns; one that begins with `>` is set to the right.
    lines: said below it, and all there is where there are no columns.
    """

    title: str
    head: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    lines: Sequence[str] = ()


def print_sections(sections: Iterable[Section]) -> None:
    """Print a report; of one with nothing in it, that."""
    console = _console()
    with console.capture() as made:
        said = [one for one in sections if one.rows or one.lines]
        for at, section in enumerate(said or [Section("", lines=("Nothing to tell.",))]):
            if at:
                console.print()
            _print(section, console)
    for line in made.get().splitlines():
        print(line.rstrip())


def _console() -> Console:
    from rich.console import Console

    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else UNBOUNDED,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _print(section: Section, console: Console) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if section.title:
        console.print(Text(printable(section.title), style="bold"))
    if section.rows:
        table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
        for name in section.head:
            right = name.startswith(">")
            table.add_column(
                Text(name.lstrip(">")),
                justify="right" if right else "left",
                overflow="fold",
                no_wrap=right,  # numbers stay whole, texts give way
            )
        for row in section.rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
    for line in section.lines:
        console.print(Padding(Text(printable(line)), (0, 0, 0, 2), expand=False))


# -- values as a person reads them


def bytes_text(size: int) -> str:
    """Write a number of bytes."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(amount) < 1000:
            return f"{size} B" if unit == "B" else f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def plural(count: int, noun: str) -> str:
    """Write so many of something."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def count_text(count: int) -> str:
    """Write a count; nothing for none, so that the others stand out."""
    return f"{count:,}" if count else ""


def duration_text(ns: int | None) -> str:
    """Write a duration."""
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
    """Write a duration in milliseconds, for a column that says so."""
    if ns is None:
        return ""
    return _three_digits(ns / 1e6) if abs(ns) < 10**9 else f"{ns / 1e6:,.0f}"


def _three_digits(amount: float) -> str:
    """Write a number below 1000, to a thousandth where it is below 1."""
    size = abs(amount)
    return f"{amount:.{3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


def share_text(share: float) -> str:
    """Write a share of 1 as per cent; nothing for none."""
    return f"{share * 100:.3g} %" if share else ""


def list_text(texts: Iterable[object], most: int = 4) -> str:
    """Write the first few of a list, and how many more there are."""
    said = [str(text) for text in texts]
    more = f", +{len(said) - most}" if len(said) > most else ""
    return ", ".join(said[:most]) + more


def ranges_text(numbers: Iterable[int]) -> str:
    """Write numbers in order, runs of them as `0-3`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)
