"""Holds what chunks of connections are read with, and the state of a connection between batches.

However the items of a connection are cut into chunks, the rows are the same.

    items | items | items     open requests, fetch sessions, the connection's row so far
      `-----^ `-----^         go from batch to batch
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...capture.exchanges.exchanges import Ended, Exchange
from ...capture.exchanges.fetch_sessions import FINAL_EPOCH, ExpandedFetch
from ...capture.exchanges.restoring import session_exchange
from ...capture.frames.decoding import LocatedItem
from ...capture.multifile import file_and_packet
from ...capture.rows import Located, Row
from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ..plan.facts import Facts, UnresolvedTopics
from ..splitting.file_list import recent
from .contexts import BareContext

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


class ChunkContext(BareContext):
    """The state of making rows of a chunk. names, sets: of all files."""

    def __init__(
        self, names: Sequence[str], sets: Sequence[int], facts: Facts, *, bare: bool = False
    ) -> None:
        super().__init__(Places(names), bare=bare)
        self.names = UnresolvedTopics(facts, sets)
        self._facts = facts

    def learn(self, row: Row) -> None:
        """Record the names that a message states."""
        self._facts.at = row.packet
        super().learn(row)


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
