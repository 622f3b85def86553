"""Makes rows of tables from a chunk of a connection's items, and keeps state for the next chunk.

However the items of a connection are cut into chunks, the rows are the same.

    items | items | items     open requests, fetch sessions, the connection's row so far
      `-----^ `-----^         go from chunk to chunk, and from batch to batch
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...capture.exchanges.exchanges import Ended, Exchange
from ...capture.exchanges.fetch_sessions import FINAL_EPOCH, ExpandedFetch, FetchSessions
from ...capture.exchanges.restoring import session_exchange
from ...capture.frames.decoding import LocatedItem
from ...capture.multifile import file_and_packet
from ...capture.rows import Located, Row
from ...capture.tables import TABLES
from ...capture.tables.context import Context
from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ..plan.facts import Facts, UnresolvedTopics
from ..splitting.file_list import recent

Values = tuple[Any, ...]


class Places:
    """A capture without items of its own, which only locates packets. names: of all files."""

    repeatable = False

    def __init__(self, names: Sequence[str]) -> None:
        self._name = recent(names)

    def place(self, packet: int) -> tuple[str, int]:
        """Return the file of a packet and its number there."""
        file, number = file_and_packet(packet)
        return self._name(file), number

    def __iter__(self) -> Iterator[Located | Ended]:
        return iter(())

    def raw_frames(self) -> Iterator[LocatedItem | Ended]:
        """Yield nothing."""
        return iter(())

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Yield nothing."""
        return iter(())

    def again(self) -> Places:
        """Return this reader, which is not repeatable."""
        return self


class ChunkContext(Context):
    """A chunk of a connection, as the tables read a capture.

    names, sets: of all files. items, paired: the items of the chunk and its exchanges.
    session_exchanges: exchanges that only restore fetch sessions; no rows are made of them.
    """

    def __init__(self, names: Sequence[str], sets: Sequence[int], facts: Facts) -> None:
        super().__init__(Places(names))
        self.names = UnresolvedTopics(facts, sets)
        self._facts = facts
        self.items: list[Located | Ended] = []
        self.paired: list[Exchange] = []
        self.session_exchanges: list[Exchange] = []
        self._restoring = False

    def located(self) -> Iterator[Located | Ended]:
        """Yield the items."""
        return iter(self.items)

    def records_messages(self, partition: Collection[tuple[int | None, str]]) -> Iterator[Located]:
        """Yield the requests and responses of some APIs."""
        for item in self.items:
            if isinstance(item, Located) and (item.row.api_key, item.row.direction) in partition:
                yield item

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the exchanges, first those that restore sessions."""
        self._restoring = True
        yield from self.session_exchanges
        self._restoring = False
        yield from self.paired

    def learn(self, row: Row) -> None:
        """Record the names that a message states."""
        self._facts.at = row.packet
        super().learn(row)

    def rows(self, table: str) -> Iterator[Values]:
        """Yield the rows of a table."""
        self._restoring = False
        for row in TABLES[table].rows(self):
            if not self._restoring:
                yield row


# -- the state of a connection


@dataclass(slots=True)
class ConnectionHistory:
    """The state that the next chunk of a connection needs.

    row: its row of `connections` so far. sessions: id -> exchange that restores the session.
    """

    row: Values | None = None
    sessions: dict[int, Exchange] = field(default_factory=dict)

    def note(self, exchange: Exchange, expanded: ExpandedFetch | None) -> None:
        """Update the fetch sessions with an exchange, as FetchSessions does."""
        request = None if exchange.request is None else exchange.request.message
        if expanded is None or not isinstance(request, FetchRequest):
            return
        self.sessions.pop(request.session_id, None)
        response = None if exchange.response is None else exchange.response.message
        id = request.session_id
        if isinstance(response, FetchResponse):
            id = 0 if response.error_code else response.session_id
        if id and request.session_epoch != FINAL_EPOCH:
            ends = exchange.connection, exchange.client, exchange.broker
            self.sessions[id] = session_exchange(
                ends, exchange.main_row, id, expanded.requested.values(), expanded.complete
            )


def restore_sessions(exchanges: Iterable[Exchange], sessions: FetchSessions) -> None:
    """Restore fetch sessions."""
    for exchange in exchanges:
        sessions.expand(exchange)
