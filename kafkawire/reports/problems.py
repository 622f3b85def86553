"""What was not understood, not there, or contradictory, and what became of every payload byte.

Law: captured = messages + truncated + unparsed + other protocols + discarded + conflicting +
repeated + unaccounted, and nothing is unaccounted for.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from kafkawire.capture.engine import Located
from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.rows import Row, Status

from .reading import Collector, Reading

SIZE: Final = 4
NO_PROBLEM: Final = frozenset({Status.OK, Status.SASL_TOKEN, Status.OTHER_PROTOCOL})
"""Rows that are as they should be, or none of our business."""


class Example(NamedTuple):
    """Where a kind of problem shows first, and what it says."""

    file: str
    packet: int
    error: str


class Problem:
    """A kind of problem. bytes: of the messages, the gaps, the runs concerned."""

    def __init__(self, kind: str, first: Example) -> None:
        self.kind = kind
        self.first = first
        self.count = self.bytes = 0

    def json(self) -> dict[str, Any]:
        """Make the JSON form."""
        return {
            "kind": self.kind,
            "count": self.count,
            "bytes": self.bytes,
            "first": self.first._asdict(),
        }


class Problems(Collector):
    """The problems of a capture by kind, which is a row's status, or `records` for a batch that
    cannot be read.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._found: dict[str, Problem] = {}

    def row(self, found: Located) -> None:
        """Take the next row."""
        if found.row.status not in NO_PROBLEM:
            self.note(found, found.row.status.value, found.row.length, found.row.error)

    def broken(self, found: Located, size: int, error: str) -> None:
        """Take note of records that cannot be read."""
        self.note(found, "records", size, error)

    def note(self, found: Located, kind: str, size: int, error: str) -> None:
        """Take note of a problem that a row shows."""
        problem = self._found.get(kind)
        if problem is None:
            place = self._reading.context.traffic.place(found.row.packet)
            problem = self._found[kind] = Problem(kind, Example(*place, error))
        problem.count += 1
        problem.bytes += size

    @property
    def all(self) -> list[Problem]:
        """Give the problems, the most frequent first."""
        return sorted(self._found.values(), key=lambda one: (-one.count, one.kind))


KINDS: Final = {
    Status.UNPARSED: "unparsed",
    Status.OTHER_PROTOCOL: "other_protocols",
    Status.DISCARDED: "discarded",
    Status.CONFLICT: "conflicting",
}
"""Rows of captured bytes that are in no frame."""


class Payload(Collector):
    """What became of every payload byte. missing: bytes that were sent and not captured."""

    def __init__(self) -> None:
        self.captured = self.missing = 0
        self.bytes: Counter[str] = Counter()
        self._ended = bytearray()  # by connection, 1 once it has ended

    def row(self, found: Located) -> None:
        """Take the next row."""
        row = found.row
        if row.status is Status.GAP:
            self.missing += row.length
            return
        kind, size = _captured(row)
        if not size:
            return
        self.bytes[kind] += size
        if self._has_ended(found.connection):  # `Ended` could not count what comes after it
            self.captured += size

    def ended(self, connection: Ended) -> None:
        """Take the end of a connection: it knows what was captured of it."""
        self.captured += connection.captured_bytes
        self.bytes["repeated"] += connection.repeated_bytes
        number = connection.connection
        if number >= len(self._ended):
            self._ended.extend(bytes(number + 1 - len(self._ended)))
        self._ended[number] = 1

    def _has_ended(self, connection: int | None) -> bool:
        return (
            connection is not None
            and connection < len(self._ended)
            and self._ended[connection] == 1
        )

    def kinds(self) -> dict[str, int]:
        """Give the captured bytes by what became of them."""
        kinds = ("messages", "truncated", *KINDS.values(), "repeated")
        known = {kind: self.bytes[kind] for kind in kinds}
        return {**known, "unaccounted": self.captured - sum(known.values())}

    def json(self) -> dict[str, int]:
        """Make the JSON form."""
        return {"captured": self.captured, **self.kinds(), "missing": self.missing}


def _captured(row: Row) -> tuple[str, int]:
    """Return the kind and the number of the captured bytes that a row stands for; 0 for none."""
    if row.is_message:
        return "messages", row.length + SIZE
    if row.status is Status.TRUNCATED:
        return "truncated", truncated(row)
    kind = KINDS.get(row.status)
    return ("", 0) if kind is None else (kind, row.length)


def truncated(row: Row) -> int:
    """Count the captured bytes of a truncated row; of a cut frame, with its size."""
    return len(row.raw) + (SIZE if row.length > len(row.raw) else 0)
