"""Explains the bytes of captured messages, with the packets that carried them.

The bytes of a message are explained as by `explain --frame`; where a packet begins is a row of
its own, or a note where it begins inside a field.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kafkawire.display import plural, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkawire import Registry
    from kafkawire.capture.packet_messages import Boundary, PacketMessage
    from kafkawire.capture.rows import Row
    from kafkawire.reference import Explanation

MAX_NOTES: Final = 4
"""Packets that begin inside a field, of which each is shown."""


def explanation(
    message: PacketMessage, row: Row, messages: Registry, secrets: bool
) -> Explanation | None:
    """Explain a message; None if its bytes are not known."""
    if not message.data:
        return None
    request = None
    if row.direction == "response":
        if row.api_key is None or row.api_version is None:
            return None
        request = row.api_key, row.api_version
    return with_packets(
        messages.explain_frame(message.data, request, secrets=secrets), message.boundaries
    )


def with_packets(explanation: Explanation, boundaries: Sequence[Boundary]) -> Explanation:
    """Show where packets begin, if there are several."""
    from kafkawire.reference.rendering import Row as Line

    if len(boundaries) < 2:
        return explanation
    rows: list[Line] = []
    left = list(reversed(boundaries))
    for line in explanation.rows:
        if line.raw and left and left[-1].offset == line.offset:
            rows.append(Line(line.offset, b"", 0, f"packet {left.pop().packet}", "", ""))
        inside: list[Boundary] = []
        while left and left[-1].offset < line.end:
            inside.append(left.pop())
        rows.append(replace(line, notes=(*_notes(inside), *line.notes)) if inside else line)
    return replace(explanation, rows=tuple(rows))


def _notes(inside: list[Boundary]) -> list[str]:
    notes = [f"packet {one.packet} from byte {one.offset}" for one in inside[:MAX_NOTES]]
    more = inside[MAX_NOTES:]
    if more:
        last = f"packet {more[-1].packet} from byte {more[-1].offset}"
        notes.append(f"{plural(len(more), 'more packet')}; the last is {last}")
    return notes


def heading(message: PacketMessage, row: Row) -> list[str]:
    """Describe a message, as in trees."""
    located = message.located
    arrow = "->" if row.direction == "request" else "<-"
    name = row.api_name or ("message" if row.api_key is None else f"API key {row.api_key}")
    version = "" if row.api_version is None else f" v{row.api_version}"
    correlation = "" if row.correlation_id is None else f"  correlation {row.correlation_id}"
    lines = [
        f"{name}{version} {row.direction}{correlation}  {plural(row.length, 'byte')}  "
        f"{row.status.value}",
        f"  {packets(message.boundaries)}  connection {located.connection}  "
        f"{located.client} {arrow} {located.broker}  {time_text(row.time_ns) or ''}".rstrip(),
    ]
    if row.error:
        lines.append(f"  ! {row.error}")
    return lines


def packets(boundaries: Sequence[Boundary]) -> str:
    """Name the packets that carried a message."""
    first, last = boundaries[0].packet, boundaries[-1].packet
    if first == last:
        return f"packet {first}"
    if len(boundaries) == 2:
        return f"packets {first} and {last}"
    return f"{plural(len(boundaries), 'packet')}, {first} to {last}"


def as_json(message: PacketMessage, row: Row, explanation: Explanation | None) -> dict[str, Any]:
    """Return the JSON form of a message and its explanation."""
    from kafkawire.reference import as_json as tree

    located = message.located
    return {
        "packet": row.packet,
        "connection": located.connection,
        "client": located.client,
        "broker": located.broker,
        "direction": row.direction,
        "api_key": row.api_key,
        "api_name": row.api_name,
        "api_version": row.api_version,
        "correlation_id": row.correlation_id,
        "length": row.length,
        "status": row.status.value,
        "error": row.error,
        "packets": [{"packet": one.packet, "offset": one.offset} for one in message.boundaries],
        "explanation": None if explanation is None else tree(explanation),
    }
