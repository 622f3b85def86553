"""Chooses the columns of the table of messages, by the width of the terminal; writes its heading.

What is chosen depends on the terminal, the environment and the options alone, so that several
processes format parts of one table.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from kafkawire.display import cut, padded, printable, text_width

from ..fitting import terminal_width


class Times(StrEnum):
    """How times are shown: the clock in UTC or local, or since the first or previous message."""

    UTC = "utc"
    LOCAL = "local"
    RELATIVE = "relative"
    DELTA = "delta"


class Colour(StrEnum):
    """When the table is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Column(NamedTuple):
    """A column: its heading, its width, and whether it is right-aligned."""

    head: str
    width: int
    right: bool = False


CONTENT: Final = "client and content"

WIDE: Final[dict[str, Column]] = {
    "packet": Column("packet", 7, right=True),
    "time": Column("time", 15),
    "conn": Column("connection", 10, right=True),
    "arrow": Column("", 2),
    "api": Column("api", 24),
    "ver": Column("ver", 3, right=True),
    "corr": Column("corr", 6, right=True),
    "length": Column("length", 8, right=True),
    "latency": Column("latency", 9, right=True),
    "status": Column("status", 10),
}
MEDIUM: Final = {name: each for name, each in WIDE.items() if name not in ("corr", "length")}
NARROW: Final = {
    "packet": Column("packet", 6, right=True),
    "time": Column("time", 12),
    "conn": Column("conn", 4, right=True),
    "arrow": Column("", 2),
    "api": Column("api", 15),
    "latency": Column("latency", 9, right=True),
}


class Layout(NamedTuple):
    """The columns of a width. least: of the terminal. file: width of the file column at most."""

    least: int
    columns: dict[str, Column]
    file: int


LAYOUTS: Final = (Layout(130, WIDE, 24), Layout(105, MEDIUM, 16), Layout(0, NARROW, 10))
"""The first one that fits is used. Without `status`, the content begins with it."""

DIM: Final = "\x1b[2m"
RESET: Final = "\x1b[0m"
"""As in "Select Graphic Rendition" (ECMA-48)."""


class Style(NamedTuple):
    """How the table looks.

    width: of the terminal; None for a pipe. files: label of each input; empty without the column.
    columns: those that fit the width, without the content.
    """

    times: Times = Times.UTC
    width: int | None = None
    colour: bool = False
    files: tuple[tuple[str, str], ...] = ()
    columns: dict[str, Column] = WIDE


def fitted(
    times: Times = Times.UTC,
    width: int | None = None,
    colour: bool = False,
    files: tuple[tuple[str, str], ...] = (),
) -> Style:
    """Choose the columns that fit a width."""
    space = LAYOUTS[0].least if width is None else width
    layout = next(each for each in LAYOUTS if space >= each.least)
    columns = dict(layout.columns)
    columns["time"] = columns["time"]._replace(head=_time_head(times))
    if files:
        longest = max(text_width(printable(label)) for _, label in files)
        widest = max(len("file"), min(longest, layout.file))
        columns = {"file": Column("file", widest), **columns}
    return Style(times, width, colour, files, columns)


def style(times: Times, colour: Colour, inputs: Sequence[str]) -> Style:
    """Choose the style for standard output; inputs: the files, as given."""
    coloured = _coloured(colour, sys.stdout.isatty())
    return fitted(times, terminal_width(), coloured, labels(inputs))


def _coloured(colour: Colour, terminal: bool) -> bool:
    """Whether to colour: NO_COLOR and FORCE_COLOR as at no-color.org and force-color.org."""
    if colour is not Colour.AUTO:
        return colour is Colour.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")


def labels(inputs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Label inputs by their names, or by their paths where names are not distinct."""
    if len(inputs) < 2:
        return ()
    names = [Path(each).name for each in inputs]
    if len(set(names)) < len(set(inputs)):
        names = list(inputs)
    return tuple(zip(inputs, names, strict=True))


def _time_head(times: Times) -> str:
    if times is Times.LOCAL:
        return f"time ({time.strftime('%Z')})"
    return {Times.UTC: "time (UTC)", Times.RELATIVE: "since start"}.get(times, "delta")


def heading(look: Style) -> str:
    """Return the heading of the table."""
    cells = [padded(*column) for column in look.columns.values()]
    text = " ".join([*cells, CONTENT])
    text = text if look.width is None else cut(text, look.width)
    return f"{DIM}{text}{RESET}" if look.colour else text
