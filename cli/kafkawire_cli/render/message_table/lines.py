"""Formats decoded messages as a table, one line each (`decode --format table`).

A line depends on its message and on the time of the message before it. The text is the same with
and without colour. The facts in a line are those of the tables (`tables.extraction.entities`).

    file    packet time (UTC)  connection    api     ver corr length latency status     client
                   2026-11-21
    a.pcap       4 04:10:20.621143      0 -> Fetch    11    9    144         ok         ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkawire.display import cut, cut_left, padded, plural, printable

from .cells import Cell, joined
from .style import DIM, RESET, WIDE, Column, Style, Times
from .values import short_summary

if TYPE_CHECKING:
    from kafkawire.capture.rows import Row
    from kafkawire.primitives import Message

    from ...input.inputs import Entry

MAX_TOPICS: Final = 4
"""Topics of a message that a line names."""

MAX_TEXTS: Final = 3
MAX_TEXT: Final = 40
"""Texts of a message that is not Kafka's, and their characters, that a line has at most."""

# -- colours, as in "Select Graphic Rendition" (ECMA-48)

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
        return text + joined(cells, look) + "\n"

    return line


# -- cells


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
        cells.append(Cell(padded(text, column.width, column.right), value.colour))
    is_narrow = "status" not in columns
    rest = content(row, is_narrow)
    if is_narrow and row.status.value != "ok":
        rest.insert(0, status._replace(is_whole=status.colour == RED))
    return cells + rest


def content(row: Row, is_narrow: bool = False) -> list[Cell]:
    """Summarise the content of a row; in a narrow table with the values of its entities."""
    from kafkawire.capture.jsonl.records_fields import Count, records_fields
    from kafkawire.capture.rows import Status
    from kafkawire.protocol.secrets import SECRET_APIS

    parts = [Cell(printable(row.client_id))] if row.client_id else []
    doubtful = row.status is not Status.OK and row.api_name in SECRET_APIS
    if row.message is not None and row.body_version is not None and not doubtful:
        row_facts = facts(row.message, row.body_version, row.api_key, row.direction)
        counts = [
            Count(place.data).records for place in records_fields(row.message, row.body_version)
        ]
        records = sum(counts) if counts else None
        texts = [str(Facts(row_facts.topics, row_facts.names))]
        if is_narrow:
            texts = [short_summary(row, row_facts.names, row_facts.topics, records)]
        errors = [Cell(one, RED, True) for one in row_facts.errors]
        summary = [Cell(printable(text), is_whole=is_narrow) for text in texts if text]
        amount = [] if records is None or is_narrow else [Cell(plural(records, "record"))]
        parts += _spaced(bool(parts), summary + errors) + _spaced(bool(parts), amount)
    if row.error:
        is_error = row.status.value not in STATUS_COLOURS
        parts.append(Cell(" " * bool(parts) + printable(f"[{row.error}]"), RED, is_error))
    return parts


def _spaced(is_after: bool, cells: list[Cell]) -> list[Cell]:
    """Put a space before the first of cells that come after others."""
    return [
        cell._replace(text=f" {cell.text}") if is_after and number == 0 else cell
        for number, cell in enumerate(cells)
    ]


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


def latency(entry: Entry) -> str:
    """Format the time from request to response."""
    row = entry.row
    if row.request_time_ns is None or min(row.time_ns, row.request_time_ns) <= 0:
        return ""
    milliseconds = (row.time_ns - row.request_time_ns) / 1e6
    return f"{milliseconds:.3f}ms" if milliseconds < 1000 else f"{milliseconds / 1000:.3f}s"


# -- summaries


class Facts(NamedTuple):
    """The main facts of a message: topics, other entities as (name, value), error code names."""

    topics: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.names]
        if self.topics:
            more = f",+{len(self.topics) - MAX_TOPICS}" if len(self.topics) > MAX_TOPICS else ""
            parts.append("topics=" + ",".join(self.topics[:MAX_TOPICS]) + more)
        parts += self.errors
        return " ".join(parts)


def facts(message: Message, version: int, api_key: int | None, direction: str) -> Facts:
    """Collect the facts of a request or response, without duplicates, in wire order."""
    if not is_kafkas(message):
        return Facts(names=tuple(_texts(message, version)))
    from kafkawire.capture.exchanges.topic_ids import TopicNames
    from kafkawire.capture.tables.extraction.entities import Entities
    from kafkawire.protocol.error_code import ErrorCode

    entities = Entities(TopicNames())
    entities.add_message(message, version, api_key, direction)
    names = [("group_id", group) for group in entities.groups]
    names += [("transactional_id", id) for id in entities.transactional_ids]
    if not names:
        names = [("key", key) for key in _coordinator_keys(message)]
    return Facts(
        tuple(topic.name for topic in entities.topics.values() if topic.name),
        tuple(names),
        tuple(ErrorCode.name_of(code) for code in entities.error_codes),
    )


def is_kafkas(message: object) -> bool:
    """Whether a message is Kafka's, with its error codes, rather than of a package of others."""
    from kafkawire.protocol.packages import OURS

    return type(message).__module__.rpartition(".")[0] == OURS


def _texts(message: Message, version: int) -> Iterator[tuple[str, str]]:
    """Yield the first texts of a message of others, by attribute; secrets are left out."""
    from kafkawire.protocol.fields import fields_at
    from kafkawire.protocol.secrets import SECRET_FIELDS

    set_fields = [
        (field.attribute, value)
        for field in fields_at(type(message), version)
        if field.is_a("string")
        and field.json_name not in SECRET_FIELDS
        and (value := getattr(message, field.attribute))
    ]
    for name, value in set_fields[:MAX_TEXTS]:
        yield name, cut(value, MAX_TEXT)


def _coordinator_keys(message: Any) -> list[str]:
    """List the keys in a FindCoordinator message that does not state their type."""
    match type(message).__name__:
        case "FindCoordinatorRequest":
            return [key for key in (message.key, *message.coordinator_keys) if key]
        case "FindCoordinatorResponse":
            return [one.key for one in message.coordinators if one.key]
        case _:
            return []
