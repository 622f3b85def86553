"""Pairs requests with responses whose bodies are undecoded: only headers are needed for that.

LocatedItem --handle--> [ItemPair]   Ended --end--> [ItemPair] of the requests without a response
in-flight requests --snapshot--> plain values --restore--> in-flight requests
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, final

from ....primitives import Limits
from ...exchanges.exchanges import OUT_OF_ORDER, Exchange, is_paired
from ...exchanges.message_pairs import MessagePairs, Pair, exchange_key
from ...frames.decoding import LocatedItem, RawFrame, located
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


ItemPair: TypeAlias = Pair[TaskMessage]
"""A request with its response; one of them may be missing."""

ItemValues: TypeAlias = tuple[int | None, str | None, str | None, Row | RawFrame]
"""The values of a LocatedItem: its connection, client, broker and item."""

InFlight: TypeAlias = tuple[ItemValues, int]
"""A request without a response, and its age (`InFlightRequests.requests`)."""


@final
class Pairing:
    """Pairs the items of any number of connections."""

    def __init__(self) -> None:
        self._pairs: MessagePairs[TaskMessage] = MessagePairs()

    def snapshot(self) -> list[InFlight]:
        """Return the requests without a response, for `restore` in this or another process.

        `capture.snapshot` writes them.
        """
        return [(values_of(message.located), age) for _, message, age in self._pairs.in_flight()]

    def restore(self, requests: Iterable[InFlight]) -> list[TaskMessage]:
        """Restore requests; return them, of task 0, with their indexes in the snapshot."""
        messages = []
        for index, (values, age) in enumerate(requests):
            request = LocatedItem(*values)
            connection, item = request.connection, request.item
            assert connection is not None
            message = TaskMessage(request, 0, index)
            client, broker = request.client or "", request.broker or ""
            self._pairs.restore(
                connection, client, broker, _key_of(item), length(request), message, age
            )
            messages.append(message)
        return messages

    def handle(self, located: LocatedItem, task: int, index: int) -> list[ItemPair]:
        """Handle the next item; return the pairs that it completes. task, index: its place."""
        connection, item = located.connection, located.item
        if connection is None:
            return []
        pairs = self._pairs
        if isinstance(item, Row) and not is_paired(item):
            if item.status is OUT_OF_ORDER and item.request_packet is not None:
                key = exchange_key(item.request_packet, item.correlation_id)
                pairs.overtake(connection, key)
            return []
        client, broker = located.client or "", located.broker or ""
        message = TaskMessage(located, task, index)
        if is_request(located):
            pairs.request(connection, client, broker, _key_of(item), length(located), message)
        else:
            pairs.response(connection, client, broker, _request_key_of(item), message)
        return pairs.take() if pairs.complete else []

    def end(self, connection: int) -> list[ItemPair]:
        """Return the requests of a closed connection that have no response."""
        self._pairs.end(connection)
        return self._pairs.take()

    def finish(self) -> list[ItemPair]:
        """Return the waiting requests of all connections."""
        self._pairs.finish()
        return self._pairs.take()


def values_of(located: LocatedItem) -> ItemValues:
    """Return the values that `LocatedItem` makes the same item of."""
    return located.connection, located.client, located.broker, located.item


def exchange_of(pair: ItemPair, limits: Limits) -> Exchange:
    """Decode both messages of a pair."""
    ends = pair.ends
    request, response = _row(pair.request, limits), _row(pair.response, limits)
    return Exchange(ends.connection, ends.client, ends.broker, request, response)


def _row(message: TaskMessage | None, limits: Limits) -> Row | None:
    return None if message is None else located(message.located, limits).row


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


def _request_key_of(response: Row | RawFrame) -> int | None:
    """Return the key of the request of a response, None if the request was not captured."""
    if isinstance(response, RawFrame):
        request = response.request
        return None if request is None else exchange_key(request.packet, request.correlation_id)
    packet = response.request_packet
    return None if packet is None else exchange_key(packet, response.correlation_id)


def _key_of(request: Row | RawFrame) -> int:
    if isinstance(request, RawFrame):
        header = request.request
        return exchange_key(request.packet, None if header is None else header.correlation_id)
    return exchange_key(request.packet, request.correlation_id)
