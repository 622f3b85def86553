"""Rows of tables from a portion of a connection's items, and what the next portion needs of it.

Law: however the items of a connection are cut into portions, the rows are those of one reading.

    items | items | items     open requests, fetch sessions, what is known of the connection
      `-----^ `-----^         are handed from portion to portion, and from batch to batch
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...capture.engine import Located
from ...capture.exchanges.exchanges import Ended, Exchange, Exchanges
from ...capture.exchanges.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSessions,
    InFlightRequest,
)
from ...capture.multifile import place_of
from ...capture.rows import Row, Status
from ...capture.tables import TABLES
from ...capture.tables.context import Context
from ...messages.api_key import ApiKey
from ...messages.fetch_request import FetchRequest, FetchTopic
from ...messages.fetch_response import FetchResponse
from ..plan.facts import Facts, Unresolved

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

    names, sets: of all files. items, told: what it consists of, and its exchanges. reminders:
    exchanges that only bring back what was remembered; of them no rows are made.
    """

    def __init__(self, names: Sequence[str], sets: Sequence[int], facts: Facts) -> None:
        super().__init__(Places(names))  # type: ignore[arg-type]  # what tables ask of a Traffic
        self.names = Unresolved(facts, sets)
        self._facts = facts
        self.items: list[Located | Ended] = []
        self.told: list[Exchange] = []
        self.reminders: list[Exchange] = []
        self._reminding = False

    def located(self) -> Iterator[Located | Ended]:
        """Give the items."""
        return iter(self.items)

    def records_messages(self, wanted: Collection[tuple[int | None, str]]) -> Iterator[Located]:
        """Give the requests and responses of some APIs."""
        for item in self.items:
            if isinstance(item, Located) and (item.row.api_key, item.row.direction) in wanted:
                yield item

    def exchanges(self) -> Iterator[Exchange]:
        """Give the exchanges, those that remind first."""
        self._reminding = True
        yield from self.reminders
        self._reminding = False
        yield from self.told

    def learn(self, row: Row) -> None:
        """Take note of the names that a message states."""
        self._facts.at = row.packet
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

    def note(self, exchange: Exchange, asked: InFlightRequest | None) -> None:
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


def reminder(exchange: Exchange, id: int, asked: InFlightRequest) -> Exchange:
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
    response = response._replace(request_packet=request.packet)
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


def waiting(pairs: Exchanges) -> list[Located]:
    """Say which requests wait for their response; they go on waiting."""
    found = [
        Located(each.connection, each.client, each.broker, each.request)
        for each in pairs.finish()
        if each.request is not None
    ]
    await_again(pairs, found)
    return found


def await_again(pairs: Exchanges, requests: Iterable[Located]) -> None:
    """Let requests wait for their response that did so before."""
    for request in requests:
        for _ in pairs.take(request):
            pass
