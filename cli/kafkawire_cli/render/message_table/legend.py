"""Writes what follows the table of messages on a terminal: its connections, what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kafkawire.display import printable

from ..fitting import Column, fitted_table, wrapped
from .style import DIM, RESET, Style

if TYPE_CHECKING:
    from ...input.inputs import Entry

MAX_CONNECTIONS: Final = 20
"""Connections of which the addresses are shown."""

LEFT_OUT: Final = {"ver": "version", "corr": "correlation id", "length": "length"}
"""Columns that narrow tables do not have, but for the status: it is shown if it is not ok."""

INDENT: Final = "  "


class Ends(NamedTuple):
    """The addresses of a connection, and the id of its client, if it has one."""

    client: str
    broker: str
    client_id: str = ""


Connections: TypeAlias = dict[tuple[str, int], Ends]
"""Capture and number of a connection -> its ends, in the order of their first rows."""


def add_connection(connections: Connections, entry: Entry) -> None:
    """Add the connection of a row."""
    if entry.connection is None or entry.client is None or entry.broker is None:
        return
    ends = Ends(entry.client, entry.broker, entry.row.client_id or "")
    merge_connections(connections, {(entry.capture, entry.connection): ends})


def merge_connections(connections: Connections, others: Mapping[tuple[str, int], Ends]) -> None:
    """Add connections; those after the first ones are represented by one."""
    for key, ends in others.items():
        present = connections.get(key)
        if present is None:
            if len(connections) <= MAX_CONNECTIONS:
                connections[key] = ends
        elif ends.client_id and not present.client_id:
            connections[key] = ends


def legend(connections: Connections, look: Style) -> Iterator[str]:
    """Return the lines after a table on a terminal."""
    assert look.width is not None
    names = dict(look.files)
    rows = [("connection", "client", "broker", "client id")]
    files = [names.get(capture, capture) for capture, _ in connections]
    rows += [(str(number), *ends) for (_, number), ends in connections.items()]
    columns = [
        Column([printable(cell) for cell in cells[: MAX_CONNECTIONS + 1]], is_number=not column)
        for column, cells in enumerate(zip(*rows, strict=True))
    ]
    if look.files:
        columns.insert(0, Column(["file", *map(printable, files[:MAX_CONNECTIONS])]))
    yield ""
    room = look.width - len(INDENT)
    yield from (
        INDENT + line for line in fitted_table(columns, room, lambda text: _dim(text, look))
    )
    for note in _notes(len(connections), look):
        yield from (INDENT + line for line in wrapped(note, room))


def _notes(connections: int, look: Style) -> Iterator[str]:
    if connections > MAX_CONNECTIONS:
        yield "There are more connections: --table connections shows all."
    left_out = [text for name, text in LEFT_OUT.items() if name not in look.columns]
    if left_out:
        yield f"Not shown, for want of width: {', '.join(left_out)}. -f tree shows whole messages."


def _dim(text: str, look: Style) -> str:
    return f"{DIM}{text}{RESET}" if look.colour else text
