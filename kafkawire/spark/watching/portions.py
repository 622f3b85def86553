"""Rows of all tables from a portion of a connection's items, and what the next portion needs of it.

Law: however the items of a connection are cut into portions, the rows are those of one reading.

    items | items | items     open requests, fetch sessions, what is known of the connection
      `-----^ `-----^         are remembered from portion to portion, and from batch to batch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...capture.engine import Located
from ...capture.exchanges import Ended, Exchange
from ...capture.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, Asked, FetchSessions
from ...capture.rows import Row, Status
from ...capture.tables import TABLES
from ...capture.tables.context import Context
from ...capture.tables.traffic import place_of
from ...messages.api_key import ApiKey
from ...messages.fetch_request import FetchRequest, FetchTopic
from ...messages.fetch_response import FetchResponse
from ..facts import Facts, Unresolved

ZERO: Final = bytes(16)

Values = tuple[Any, ...]


class Places:
    """Where packets are, as the tables ask of a Traffic; names: files of all batches."""

    repeatable = False

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def place(self, packet: int) -> tuple[str, int]:
        """Say in which file a packet is, and its number there."""
        file, number = place_of(packet)
        return self._names[file], number


class Portion(Context):
    """A portion of a connection, as the tables read a capture.

    items, told: what it consists of, and its exchanges. reminders: exchanges that only bring back
    what was remembered; of them no rows are made.
    """

    def __init__(self, names: Sequence[str], facts: Facts) -> None:
        super().__init__(Places(names))  # type: ignore[arg-type]  # what tables ask of a Traffic
        self.names = self._unresolved = Unresolved(facts, [0] * len(names))
        self.items: list[Located | Ended] = []
        self.told: list[Exchange] = []
        self.reminders: list[Exchange] = []
        self._reminding = False

    def located(self) -> Iterator[Located | Ended]:
        """Give the items."""
        return iter(self.items)

    def exchanges(self) -> Iterator[Exchange]:
        """Give the exchanges, those that remind first."""
        self._reminding = True
        yield from self.reminders
        self._reminding = False
        yield from self.told

    def learn(self, row: Row) -> None:
        """Take note of the names that a message states."""
        self._unresolved.packet = row.packet
        self._learn(row)

    def rows(self, table: str) -> Iterator[Values]:
        """Make the rows of a table."""
        self._reminding = False
        for row in TABLES[table].rows(self):
            if not self._reminding:
                yield row


# -- what is remembered of a connection


@dataclass(slots=True)
class Memory:
    """What the next portion of a connection needs to know.

    life: its row of `connections` so far. sessions: id -> exchange that brings the session back.
    """

    life: Values | None = None
    sessions: dict[int, Exchange] = field(default_factory=dict)

    def note(self, exchange: Exchange, asked: Asked | None) -> None:
        """Take note of what an exchange makes of its fetch session, as FetchSessions does."""
        request = None if exchange.request is None else exchange.request.message
        if asked is None or not isinstance(request, FetchRequest):
            return
        self.sessions.pop(request.session_id, None)
        answer = None if exchange.response is None else exchange.response.message
        id = request.session_id
        if isinstance(answer, FetchResponse):
            id = 0 if answer.error_code else answer.session_id
        if id and request.session_epoch != FINAL_EPOCH:
            self.sessions[id] = reminder(exchange, id, asked)


def reminder(exchange: Exchange, id: int, asked: Asked) -> Exchange:
    """Make the exchange after which a fetch session is what it is: one that opens it, or one of a
    session whose beginning is not there.
    """
    topics: list[FetchTopic] = []
    for wanted in asked.partitions:
        topic = wanted.topic
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (
            topic.name or "",
            topic.id or ZERO,
        ):
            topics.append(FetchTopic(topic=topic.name or "", topic_id=topic.id or ZERO))
            topics[-1].partitions = []
        topics[-1].partitions.append(wanted.asked)
    message = FetchRequest(
        session_id=0 if asked.complete else id,
        session_epoch=INITIAL_EPOCH if asked.complete else 1,
        topics=topics,
    )
    request = _row("request", message, exchange.told)
    response = _row("response", FetchResponse(session_id=id), exchange.told)
    return exchange._replace(request=request, response=response)


def _row(direction: str, message: FetchRequest | FetchResponse, like: Row) -> Row:
    return Row(
        like.packet,
        like.time_ns,
        direction,
        0,
        Status.OK,
        api_key=ApiKey.FETCH,
        api_name=like.api_name,
        api_version=like.api_version,
        body_version=like.api_version,
        message=message,
    )


def reminded(exchanges: Iterable[Exchange], sessions: FetchSessions) -> None:
    """Bring sessions back."""
    for exchange in exchanges:
        sessions.expand(exchange)


# -- the row of a connection, from those of its portions


def _sum(before: int, after: int) -> int:
    return before + after


def _each_once(before: list[Any], after: list[Any]) -> list[Any]:
    return list(dict.fromkeys([*before, *after]))


def _later(before: Any, after: Any) -> Any:
    return before if after is None else after


def _protocol(before: str | None, after: str | None) -> str | None:
    return "kafka" if "kafka" in (before, after) else before or after


def _versions(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for one in [*before, *after]:
        key = one["api_key"], one["api_version"]
        requests = one["requests"] + (found[key]["requests"] if key in found else 0)
        found[key] = {**one, "requests": requests}
    return [found[key] for key in sorted(found)]


ADDED: Final = (
    "requests",
    "responses",
    "request_bytes",
    "response_bytes",
    "gaps",
    "gap_bytes",
    "other_bytes",
    "problems",
)
MERGED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(ADDED, _sum),
    "protocol": _protocol,
    "client_ids": _each_once,
    "versions": _versions,
    "client_software_name": _later,
    "client_software_version": _later,
    "sasl_mechanism": _later,
}
"""Column -> what two portions make of it; of others the later one stands."""

_NAMES: Final = [column.name for column in TABLES["connections"].columns]


def merged(before: Values | None, after: Values) -> Values:
    """Make the row of a connection of what two portions of it say."""
    if before is None:
        return after
    return tuple(
        MERGED[name](ours, theirs) if name in MERGED else theirs
        for name, ours, theirs in zip(_NAMES, before, after, strict=True)
    )
