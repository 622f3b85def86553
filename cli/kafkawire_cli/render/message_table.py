"""Formats decoded messages as a table, one line each (`decode --format table`).

Law: a line is no wider than the terminal; in a pipe it is not cut. A line depends on its message
and on the time of the message before it, so that several processes can format parts of a table. The
text is the same with and without colour.

    file    packet time (UTC)       conn   api      ver   corr   length   latency status     client
                   2026-11-21
    a.pcap       4 04:10:20.621143    0 -> Fetch     11      9      144           ok         ...
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkawire.display import plural, printable

from ..input.inputs import Entry
from .messages import Facts, facts, latency
from .report import text_width

if TYPE_CHECKING:
    from kafkawire.capture.rows import Row


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
    "conn": Column("conn", 4, right=True),
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
    "api": Column("api", 16),
    "ver": Column("ver", 3, right=True),
    "latency": Column("latency", 9, right=True),
}


class Layout(NamedTuple):
    """The columns of a width. least: of the terminal. file: width of the file column at most."""

    least: int
    columns: dict[str, Column]
    file: int


LAYOUTS: Final = (Layout(130, WIDE, 24), Layout(105, MEDIUM, 16), Layout(0, NARROW, 10))
"""The first one that fits is used. Without `status`, the content begins with it."""

ELISION: Final = "..."

# -- colours, as in "Select Graphic Rendition" (ECMA-48)

RESET: Final = "\x1b[0m"
DIM: Final = "\x1b[2m"
RED: Final = "\x1b[31m"
YELLOW: Final = "\x1b[33m"

STATUS_COLOURS: Final = {
    "ok": DIM,
    "lenient": YELLOW,
    "guessed": YELLOW,
    "inferred": YELLOW,
    "unpaired": YELLOW,
    "sasl_token": YELLOW,
}
"""Colours of statuses; of all others it is RED."""

API_COLOURS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("\x1b[32m", (0, 19, 20, 21, 37)),  # Produce; changes of topics
    ("\x1b[34m", (1, 2, 23, 78, 79)),  # Fetch, offsets of logs, share groups
    ("\x1b[35m", (8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69, 76, 77)),  # groups
    ("\x1b[33m", (22, 24, 25, 26, 27, 28, 61, 65, 66)),  # transactions
    ("\x1b[36m", (3, 18, 17, 36, 60, 75)),  # metadata, versions, authentication
)
COLOUR_OF_API: Final = {key: colour for colour, keys in API_COLOURS for key in keys}


class Style(NamedTuple):
    """How the table looks.

    width: of the terminal; None for a pipe. files: label of each input; empty without the column.
    """

    times: Times = Times.UTC
    width: int | None = None
    colour: bool = False
    files: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that fit the width, without the content."""
        width = LAYOUTS[0].least if self.width is None else self.width
        layout = next(each for each in LAYOUTS if width >= each.least)
        made = dict(layout.columns)
        made["time"] = made["time"]._replace(head=_time_head(self.times))
        if not self.files:
            return made
        if layout.columns is NARROW:
            del made["ver"]
        longest = max(text_width(printable(label)) for _, label in self.files)
        return {"file": Column("file", max(len("file"), min(longest, layout.file))), **made}


def style(times: Times, colour: Colour, inputs: Sequence[str]) -> Style:
    """Choose the style for standard output; inputs: the files, as given."""
    terminal = sys.stdout.isatty()
    width = get_terminal_size().columns if terminal else None
    return Style(times, width, _coloured(colour, terminal), labels(inputs))


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
    cells = [_padded(column.head, column) for column in look.columns.values()]
    text = " ".join([*cells, CONTENT])
    text = text if look.width is None else cut(text, look.width)
    return f"{DIM}{text}{RESET}" if look.colour else text


def lines(look: Style, previous_ns: int = 0) -> Callable[[Entry], str]:
    """Return a function that formats messages, in order, as lines with line feeds.

    previous_ns: time of the message before the first one; 0 for none.
    """
    columns = look.columns
    names = {name: printable(label) for name, label in look.files}
    before = sum(columns[each].width + 1 for each in ("file", "packet") if each in columns)

    def line(entry: Entry) -> str:
        nonlocal previous_ns
        now = max(entry.row.time_ns, 0)
        day = _day(now, look.times)
        text = ""
        if day and day != _day(previous_ns, look.times):
            text = " " * before + day
            text = (f"{DIM}{text}{RESET}" if look.colour else text) + "\n"
        cells = _cells(entry, columns, names, _time(entry, look.times, previous_ns, columns))
        previous_ns = now or previous_ns
        return text + _joined(cells, look) + "\n"

    return line


# -- cells


class Cell(NamedTuple):
    """Part of a line, escaped; colour: "" for none."""

    text: str
    colour: str = ""


def _cells(
    entry: Entry, columns: dict[str, Column], names: dict[str, str], clock: str
) -> list[Cell]:
    row = entry.row
    status = Cell(row.status.value, STATUS_COLOURS.get(row.status.value, RED))
    name = row.api_name or ("" if row.api_key is None else f"key {row.api_key}")
    values = {
        "file": Cell(names.get(entry.capture, printable(entry.capture))),
        "packet": Cell(str(row.packet)),
        "time": Cell(clock),
        "conn": Cell("" if entry.connection is None else str(entry.connection)),
        "arrow": Cell("->" if row.direction == "request" else "<-"),
        "api": Cell(name, COLOUR_OF_API.get(-1 if row.api_key is None else row.api_key, "")),
        "ver": Cell("" if row.api_version is None else str(row.api_version)),
        "corr": Cell("" if row.correlation_id is None else str(row.correlation_id)),
        "length": Cell(str(row.length)),
        "latency": Cell(latency(entry)),
        "status": status,
    }
    cells = []
    for key, column in columns.items():
        value = values[key]
        text = value.text
        if key == "file":
            text = cut_left(text, column.width)
        elif key == "api" and columns["api"].width < WIDE["api"].width:
            text = cut(text, column.width)
        cells.append(Cell(_padded(text, column), value.colour))
    rest = content(row)
    if "status" not in columns and row.status.value != "ok":
        rest.insert(0, status)
    return cells + rest


def _joined(cells: list[Cell], look: Style) -> str:
    """Join cells, cut at the width."""
    texts = [cell.text if at == 0 else f" {cell.text}" for at, cell in enumerate(cells)]
    whole = sum(map(text_width, texts)) if look.width is not None else 0
    room = 1 << 30
    if look.width is not None and whole > look.width and "".join(texts).rstrip():
        room = max(0, look.width - len(ELISION))
    shown: list[str] = []
    for cell, text in zip(cells, texts, strict=True):
        part = text if text_width(text) <= room else clipped(text, room)
        shown.append(_in(part, cell.colour, look))
        room -= text_width(part)
        if part != text or not room:
            return "".join(shown) + ELISION[: look.width]
    return "".join(shown).rstrip()


def _in(text: str, colour: str, look: Style) -> str:
    return f"{colour}{text}{RESET}" if look.colour and colour and text.strip() else text


def content(row: Row) -> list[Cell]:
    """Summarise the content of a row."""
    from kafkawire.capture.jsonl.records_fields import Count, records_fields
    from kafkawire.capture.rows import Status
    from kafkawire.protocol.secrets import SECRET_APIS

    parts = [Cell(printable(row.client_id))] if row.client_id else []
    doubtful = row.status is not Status.OK and row.api_name in SECRET_APIS
    if row.message is not None and row.body_version is not None and not doubtful:
        found = facts(row.message, row.body_version, row.api_key, row.direction)
        summary = str(Facts(found.topics, found.names))
        parts += [Cell(" " * bool(parts) + printable(summary))] if summary else []
        space = " " * bool(parts and not summary)
        parts += [Cell(space * (i == 0) + one, RED) for i, one in enumerate(found.errors)]
        counts = [
            Count(place.data).records for place in records_fields(row.message, row.body_version)
        ]
        if counts:
            parts.append(Cell(" " * bool(parts) + plural(sum(counts), "record")))
    if row.error:
        parts.append(Cell(" " * bool(parts) + printable(f"[{row.error}]"), RED))
    return parts


def _padded(text: str, column: Column) -> str:
    space = " " * (column.width - text_width(text))
    return space + text if column.right else text + space


def clipped(text: str, width: int) -> str:
    """Return what fits of a text."""
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width) if text_width(text) > width else text


def cut(text: str, width: int) -> str:
    """Cut a text that is wider than `width` columns, and mark its end."""
    if text_width(text) <= width:
        return text
    return clipped(text, max(0, width - len(ELISION))) + ELISION[:width]


def cut_left(text: str, width: int) -> str:
    """Cut the beginning of a text that is wider than `width` columns."""
    if text_width(text) <= width:
        return text
    if text.isascii():
        return ELISION + text[len(ELISION) - width :]
    while text_width(text) > width - len(ELISION):
        text = text[1:]
    return ELISION + text


# -- times


def _day(time_ns: int, times: Times) -> str:
    """Return the date of a time, with the offset of a local one; "" for none."""
    if time_ns <= 0 or times in (Times.RELATIVE, Times.DELTA):
        return ""
    when = _when(time_ns, times)
    return when.strftime("%Y-%m-%d" if times is Times.UTC else "%Y-%m-%d %Z (UTC%z)")


def _when(time_ns: int, times: Times) -> datetime:
    when = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return when if times is Times.UTC else when.astimezone()


def _time(entry: Entry, times: Times, previous_ns: int, columns: dict[str, Column]) -> str:
    now = entry.row.time_ns
    if now <= 0:
        return ""
    width = columns["time"].width
    if times in (Times.RELATIVE, Times.DELTA):
        since = entry.first_ns if times is Times.RELATIVE else previous_ns
        seconds = (now - (since or now)) / 1e9
        return f"{seconds:>{width}.6f}"
    fraction = f"{now % 10**9 // 1000:06d}"
    return f"{_when(now, times):%H:%M:%S}.{fraction}"[:width]
