"""Pairs requests with responses whose bodies are undecoded, as `capture.exchanges` pairs rows.

Law: the pairs are those of `Exchanges`, in the same order; only headers are needed for that.

    LocatedItem --handle--> [Pair]      Ended --end--> [Pair] of the requests without a response
"""

from __future__ import annotations

from collections import deque
from typing import final

from mypy_extensions import i64

from ...exchanges.exchanges import MAX_OPEN, MAX_OPEN_BYTES, is_paired
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

    def __init__(self, ends: Ends) -> None:
        self.ends: Ends = ends
        self.requests: deque[TaskMessage] = deque()
        self.bytes: i64 = 0

    def pop(self) -> TaskMessage:
        message = self.requests.popleft()
        self.bytes -= length(message.located)
        return message


@final
class Pairing:
    """Pairs the items of any number of connections."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}

    def handle(self, located: LocatedItem, task: int, index: int) -> list[Pair]:
        """Handle the next item; return the pairs that it completes. task, index: as in Place."""
        connection, item = located.connection, located.item
        if connection is None or (isinstance(item, Row) and not is_paired(item)):
            return []
        pending = self._open.get(connection)
        if pending is None:
            ends = Ends(connection, located.client or "", located.broker or "")
            pending = self._open[connection] = _Open(ends)
        message = TaskMessage(located, task, index)
        if is_request(located):
            return self._request(pending, message)
        return self._response(pending, message)

    def end(self, connection: int) -> list[Pair]:
        """Return the requests of a closed connection that have no response."""
        pending = self._open.pop(connection, None)
        if pending is None:
            return []
        return [Pair(pending.ends, pending.pop(), None) for _ in range(len(pending.requests))]

    def finish(self) -> list[Pair]:
        """Return the waiting requests of all connections."""
        return [pair for connection in list(self._open) for pair in self.end(connection)]

    def _request(self, pending: _Open, message: TaskMessage) -> list[Pair]:
        requests = pending.requests
        requests.append(message)
        pending.bytes += length(message.located)
        given_up: list[Pair] = []
        while len(requests) > MAX_OPEN or (pending.bytes > MAX_OPEN_BYTES and len(requests) > 1):
            given_up.append(Pair(pending.ends, pending.pop(), None))
        return given_up

    def _response(self, pending: _Open, message: TaskMessage) -> list[Pair]:
        item = message.located.item
        packet, correlation_id = _request_of(item)
        for at, request in enumerate(pending.requests):
            if _matches(request.located.item, packet, correlation_id):
                found = [Pair(pending.ends, pending.pop(), None) for _ in range(at)]
                found.append(Pair(pending.ends, pending.pop(), message))
                return found
        return [Pair(pending.ends, None, message)]


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


def _matches(request: Row | RawFrame, packet: int | None, correlation_id: int | None) -> bool:
    if request.packet != packet:
        return False
    if isinstance(request, RawFrame):
        header = request.request
        return (None if header is None else header.correlation_id) == correlation_id
    return request.correlation_id == correlation_id
