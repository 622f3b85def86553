"""Makes the rows of a TLS connection: what was negotiated, and what was not decrypted and why.

Every captured byte that is not plaintext is in exactly one row.
"""

from __future__ import annotations

from typing import Final

from ..rows import Row, Status
from ..tcp.connection import Run
from ..tcp.events import Closed, Gap
from .alerts import alert_text, clear_alert
from .handshake import Handshake
from .record_types import ALERT
from .records import Record
from .side import Side

DIRECTIONS: Final = ("request", "response")


class Reporting:
    """The rows of one connection. announced: whether the row of the handshake was made."""

    def __init__(self, handshake: Handshake) -> None:
        self.announced = False
        self._handshake = handshake

    def row(
        self, side: int, size: int, status: Status, text: str, event: Run | Gap | Closed
    ) -> Row:
        """Make a row of bytes of a side."""
        client = self._handshake.client
        direction = DIRECTIONS[side if client is None else side != client]
        error = f"{self._handshake}: {text}" if text else str(self._handshake)
        return Row(event.packet, event.time_ns, direction, size, status, error)

    def gap(self, gap: Gap) -> Row:
        """Make the row of missing bytes."""
        row = self.row(gap.side, gap.length, Status.GAP, "", gap)
        return row._replace(error=gap.reason.value)

    def undecrypted(self, number: int, side: Side, event: Run | Gap | Closed) -> list[Row]:
        """Make the row of the bytes of a side that is not decrypted, if there are any."""
        if not side.problem or not side.overhead:
            return []
        begun = side.decryption is not None and side.decryption.authenticated
        status = Status.UNPARSED if begun else Status.OTHER_PROTOCOL
        size, side.overhead = side.overhead, 0
        return [self.row(number, size, status, side.problem, event)]

    def rest(self, number: int, side: Side, event: Closed) -> list[Row]:
        """Make the rows of the rest of a side that was decrypted."""
        rows = []
        if held := side.buffer.clear():
            text = "the last record is incomplete"
            rows.append(self.row(number, held, Status.UNPARSED, text, event))
        if side.overhead:
            text = "headers and tags of records" if self.announced else "no data"
            rows.append(self.row(number, side.overhead, Status.TLS, text, event))
            side.overhead = 0
        return rows

    def alert(self, side: Side, record: Record, content: bytes, run: Run) -> list[Row]:
        """Make the row of an alert, unless it only closes the connection."""
        text = alert_text(content)
        if not text:
            side.overhead += record.size
            return []
        return [self.row(run.side, record.size, Status.OTHER_PROTOCOL, text, run)]

    def passed_through(self, side: Side, run: Run) -> list[Row]:
        """Count bytes of a side that is not decrypted; an alert that is not encrypted has a row."""
        side.overhead += len(run.data)
        content = clear_alert(run.data)
        if content is None:
            return []
        record = Record(ALERT, b"", content)
        side.overhead -= record.size
        return self.alert(side, record, content, run)

    def announce(self, number: int, side: Side, run: Run) -> Row:
        """Make the row of the handshake, in front of the first plaintext. side: the client."""
        self.announced = True
        size, side.overhead = side.overhead, 0
        return self.row(number, size, Status.TLS, "decrypted", run)
