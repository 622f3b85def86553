"""Counts problems by kind, and classifies every payload byte.

Captured = messages + truncated + unparsed + other protocols + discarded + conflicting +
repeated + unaccounted, and unaccounted is 0.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.packets.undecoded import reason_in
from kafkawire.capture.rows import MESSAGES, Located, Row, Status
from kafkawire.capture.tcp.events import DiscardReason
from kafkawire.protocol.frame import SIZE

from .reading import Collector, Reading

NO_PROBLEM: Final = frozenset(
    {Status.OK, Status.SASL_TOKEN, Status.TLS, Status.PROXY, Status.OTHER_PROTOCOL}
)
"""Statuses of rows without a problem, or of other protocols."""

PROBLEMS: Final = frozenset(Status) - NO_PROBLEM


class Example(NamedTuple):
    """An occurrence of a kind of problem, with its error."""

    file: str
    packet: int
    error: str


MAX_EXAMPLES: Final = 20
"""Occurrences of a kind of problem that are kept with their places."""


class Problem:
    """A kind of problem.

    bytes: of the affected messages, gaps or runs. examples: the first occurrences.
    """

    def __init__(self, kind: str, first: Example) -> None:
        self.kind = kind
        self.first = first
        self.examples: list[Example] = []
        self.count = self.bytes = 0

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": self.kind,
            "count": self.count,
            "bytes": self.bytes,
            "first": self.first._asdict(),
        }


class Problems(Collector):
    """Collects problems by kind, which is a row's status, or `records` for a corrupt batch."""

    statuses = PROBLEMS

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._problems: dict[str, Problem] = {}

    def row(self, located: Located) -> None:
        """Count the next row with a problem."""
        self.add(located, located.row.status.value, located.row.length, located.row.error)

    def corrupt_records(self, located: Located, size: int, error: str) -> None:
        """Count a corrupt record batch."""
        self.add(located, "records", size, error)

    def add(self, located: Located, kind: str, size: int, error: str) -> None:
        """Count a problem of a row."""
        key = kind
        if located.row.status is Status.SKIPPED:  # each protocol is a problem of its own
            key += reason_in(error)
        problem = self._problems.get(key)
        if problem is None or len(problem.examples) < MAX_EXAMPLES:
            example = Example(*self._reading.context.traffic.place(located.row.packet), error)
            problem = self._problems.setdefault(key, Problem(kind, example))
            problem.examples.append(example)
        problem.count += 1
        problem.bytes += size

    @property
    def all(self) -> list[Problem]:
        """Return the problems, the most frequent first."""
        return sorted(self._problems.values(), key=lambda one: (-one.count, one.kind))


KINDS: Final = {
    Status.UNPARSED: "unparsed",
    Status.TLS: "tls",
    Status.PROXY: "proxy",
    Status.OTHER_PROTOCOL: "other_protocols",
    Status.DISCARDED: "discarded",
    Status.CONFLICT: "conflicting",
}
"""Statuses of captured bytes outside frames -> kind."""


class Payload(Collector):
    """Classifies every payload byte.

    messages: bytes of messages; missing: bytes that were sent but not captured.

    filtered: whether there is a filter; then the bytes are those of the rows that match.
    """

    def __init__(self, *, filtered: bool = False) -> None:
        self._filtered = filtered
        self.missing = self.messages = 0
        self._captured = 0  # with a filter, without the messages
        self.bytes: Counter[str] = Counter()  # those of messages are in `messages`
        self._ended = bytearray()  # by connection, 1 once it has ended

    def row(self, located: Located) -> None:
        """Count the next row."""
        row = located.row
        if row.status in MESSAGES:  # before the end of its connection
            self.messages += row.length + SIZE
        elif row.status is Status.GAP:
            self.missing += row.length
        else:
            kind, size = _captured(row)
            if size:
                self.bytes[kind] += size
            if self._filtered or self._has_ended(located.connection):
                self._captured += size  # not included in `Ended.captured_bytes`

    def _has_ended(self, number: int | None) -> bool:
        return number is not None and number < len(self._ended) and bool(self._ended[number])

    def ended(self, connection: Ended) -> None:
        """Add the captured bytes of a connection when it ends."""
        if self._filtered:
            return
        self._captured += connection.captured_bytes
        self.bytes["repeated"] += connection.repeated_bytes
        number = connection.connection
        if number >= len(self._ended):
            self._ended.extend(bytes(number + 1 - len(self._ended)))
        self._ended[number] = 1

    @property
    def captured(self) -> int:
        """The captured bytes."""
        return self._captured + (self.messages if self._filtered else 0)

    def kinds(self) -> dict[str, int]:
        """Return the captured bytes by kind."""
        kinds = ("truncated", *KINDS.values(), "repeated")
        counted = {"messages": self.messages, **{kind: self.bytes[kind] for kind in kinds}}
        return {**counted, "unaccounted": self.captured - sum(counted.values())}

    def json(self) -> dict[str, int]:
        """Return the JSON form."""
        return {"captured": self.captured, **self.kinds(), "missing": self.missing}


def _captured(row: Row) -> tuple[str, int]:
    """Return the kind and the captured bytes of a row that is not a message; 0 bytes for none."""
    if row.status is Status.TRUNCATED:
        return "truncated", truncated(row)
    if row.error == DiscardReason.REPEATED:
        return "repeated", row.length
    kind = KINDS.get(row.status)
    return ("", 0) if kind is None else (kind, row.length)


def truncated(row: Row) -> int:
    """Count the captured bytes of a truncated row, including the size field of a frame."""
    return len(row.raw) + (SIZE if row.length > len(row.raw) else 0)
