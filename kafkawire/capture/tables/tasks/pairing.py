"""Pairs requests with responses whose bodies are undecoded, as `capture.exchanges` pairs rows.

The pairs are those of `Exchanges`, in the same order; only headers are needed for that.

    LocatedItem --handle--> [Pair]      Ended --end--> [Pair] of the requests without a response
"""

from __future__ import annotations

from typing import final

from ...exchanges.exchanges import OUT_OF_ORDER, is_paired
from ...exchanges.pairing import InFlightRequests, Total, exchange_key
from ...frames.decoding import LocatedItem, RawFrame
from ...rows import Row


@final
class TaskMessage:
    """A request or response, and where a task has it.

    task: the number of the task, 0 for none; index: of its frame in the task.
    """

    def __init__(self, located: LocatedItem, task: int, index: int) -> None:
        self.located: LocatedItem = located
        self.task: int = task
        self.index: int = index


@final
class Ends:
    """A connection and its endpoints. task, index: as in Place."""

    def __init__(self, connection: int, client: str, broker: str) -> None:
        self.connection: int = connection
        self.client: str = client
        self.broker: str = broker
        self.task: int = 0
        self.index: int = 0


@final
class Pair:
    """A request with its response; one of them may be missing."""

    def __init__(
        self, ends: Ends, request: TaskMessage | None, response: TaskMessage | None
    ) -> None:
        self.ends: Ends = ends
        self.request: TaskMessage | None = request
        self.response: TaskMessage | None = response


@final
class _Open:
    """The requests of one connection without a response so far."""

    def __init__(self, ends: Ends, total: Total[TaskMessage]) -> None:
        self.ends: Ends = ends
        self.requests: InFlightRequests[TaskMessage] = InFlightRequests(total, ends.connection)


@final
class Pairing:
    """Pairs the items of any number of connections."""

    def __init__(self) -> None:
        self._total: Total[TaskMessage] = Total()
        self._open: dict[int, _Open] = {}

    def handle(self, located: LocatedItem, task: int, index: int) -> list[Pair]:
        """Handle the next item; return the pairs that it completes. task, index: as in Place."""
        connection, item = located.connection, located.item
        if connection is None:
            return []
        if isinstance(item, Row) and not is_paired(item):
            if item.status is OUT_OF_ORDER:
                self._overtake(connection, item)
            return []
        pending = self._open.get(connection)
        if pending is None:
            ends = Ends(connection, located.client or "", located.broker or "")
            pending = self._open[connection] = _Open(ends, self._total)
        message = TaskMessage(located, task, index)
        if is_request(located):
            return self._request(pending, message)
        return self._response(pending, message)

    def end(self, connection: int) -> list[Pair]:
        """Return the requests of a closed connection that have no response."""
        pending = self._open.pop(connection, None)
        if pending is None:
            return []
        return [Pair(pending.ends, request, None) for request in pending.requests.finish()]

    def finish(self) -> list[Pair]:
        """Return the waiting requests of all connections."""
        return [pair for connection in list(self._open) for pair in self.end(connection)]

    def _request(self, pending: _Open, message: TaskMessage) -> list[Pair]:
        located = message.located
        pending.requests.add(_key_of(located.item), length(located), message)
        pairs = _given_up(pending)
        if self._total.evicted:
            for each in self._total.take_evicted():
                pairs += _given_up(self._open[each.connection])
        return pairs

    def _response(self, pending: _Open, message: TaskMessage) -> list[Pair]:
        packet, correlation_id = _request_of(message.located.item)
        if packet is None:
            return [Pair(pending.ends, None, message)]
        request = pending.requests.complete(exchange_key(packet, correlation_id))
        pairs = _given_up(pending)
        pairs.append(Pair(pending.ends, request, message))
        return pairs

    def _overtake(self, connection: int, row: Row) -> None:
        """Handle the row in front of a response that came before those to older requests."""
        pending = self._open.get(connection)
        if pending is not None and row.request_packet is not None:
            pending.requests.overtake(exchange_key(row.request_packet, row.correlation_id))


def _given_up(pending: _Open) -> list[Pair]:
    """Return the requests that were given up."""
    if not pending.requests.given_up:
        return []
    return [Pair(pending.ends, request, None) for request in pending.requests.take_given_up()]


def is_request(located: LocatedItem) -> bool:
    """Return whether an item of an exchange is the request."""
    item = located.item
    if isinstance(item, RawFrame):
        return item.is_request or item.request is None or item.body < 0
    return item.direction == "request"


def api_key_of(located: LocatedItem) -> int | None:
    """Return the API key of an item, from its header."""
    item = located.item
    if isinstance(item, RawFrame):
        return None if item.request is None else item.request.api_key
    return item.api_key


def length(located: LocatedItem) -> int:
    """Return the size of a message."""
    item = located.item
    return len(item.frame) if isinstance(item, RawFrame) else item.length


def _request_of(response: Row | RawFrame) -> tuple[int | None, int | None]:
    """Return packet and correlation id of the request of a response."""
    if isinstance(response, RawFrame):
        request = response.request
        return (None, None) if request is None else (request.packet, request.correlation_id)
    return response.request_packet, response.correlation_id


def _key_of(request: Row | RawFrame) -> int:
    if isinstance(request, RawFrame):
        header = request.request
        return exchange_key(request.packet, None if header is None else header.correlation_id)
    return exchange_key(request.packet, request.correlation_id)
