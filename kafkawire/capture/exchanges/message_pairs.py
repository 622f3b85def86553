"""Pairs requests with responses, in whatever form messages are: rows, frames, extracted bodies.

Each message is in one pair; a pair is complete as soon as no other message can belong to it, and
the number of in-flight requests is bounded.

    request A ----.
    request B --. |        a response to B: A is paired without one (brokers respond in order),
    response B -' |        then B with its response; the connection ends: the in-flight ones are
                  |        paired without one. After `overtake`, A stays in flight (`in_flight`)
"""

from __future__ import annotations

from typing import Generic, TypeVar, final

from mypy_extensions import i64, mypyc_attr

from .in_flight import InFlightRequests, Total

Message = TypeVar("Message")


def exchange_key(packet: int, correlation_id: int | None) -> int:
    """Return the key of the request that a packet completes, unlike that of any other packet."""
    if correlation_id is None:
        return packet << 33 | 1 << 32
    return packet << 33 | correlation_id & 0xFFFFFFFF


@final
@mypyc_attr(acyclic=True)
class Ends:
    """A connection, its client and its broker."""

    def __init__(self, connection: i64, client: str, broker: str) -> None:
        self.connection: i64 = connection
        self.client: str = client
        self.broker: str = broker


@final
class Pair(Generic[Message]):
    """A request with its response; one of them is None if it was not captured."""

    def __init__(self, ends: Ends, request: Message | None, response: Message | None) -> None:
        self.ends: Ends = ends
        self.request: Message | None = request
        self.response: Message | None = response


@final
class Pending(Generic[Message]):
    """The requests of one connection without a response so far."""

    def __init__(self, ends: Ends, total: Total[Message]) -> None:
        self.ends: Ends = ends
        self.requests: InFlightRequests[Message] = InFlightRequests(total, ends.connection)


@final
class MessagePairs(Generic[Message]):
    """Pairs the messages of any number of connections.

    complete: the pairs that are complete and were not taken.
    """

    def __init__(self) -> None:
        self.complete: list[Pair[Message]] = []
        self._total: Total[Message] = Total()
        self._open: dict[int, Pending[Message]] = {}

    def request(
        self, connection: int, client: str, broker: str, key: int, size: int, message: Message
    ) -> None:
        """Handle the next request, of `size` bytes. key: its `exchange_key`."""
        pending = self._pending(connection, client, broker)
        pending.requests.add(key, size, message)
        if pending.requests.given_up:
            self._add_given_up(pending)
        if self._total.evicted:
            for each in self._total.take_evicted():
                self._add_given_up(self._open[each.connection])

    def response(
        self, connection: int, client: str, broker: str, key: int | None, message: Message
    ) -> None:
        """Handle the next response. key: the `exchange_key` of its request, None without one."""
        pending = self._pending(connection, client, broker)
        request: Message | None = None
        if key is not None:
            request = pending.requests.complete(key)
            if pending.requests.given_up:
                self._add_given_up(pending)
        self.complete.append(Pair(pending.ends, request, message))

    def overtake(self, connection: int, key: int) -> None:
        """Let the next response overtake those to older requests. key: of its request."""
        pending = self._open.get(connection)
        if pending is not None:
            pending.requests.overtake(key)

    def end(self, connection: int) -> None:
        """Handle the end of a connection: its requests get no response."""
        pending = self._open.pop(connection, None)
        if pending is not None:
            for request in pending.requests.finish():
                self.complete.append(Pair(pending.ends, request, None))

    def finish(self) -> None:
        """Handle the end of the capture."""
        for connection in list(self._open):
            self.end(connection)

    def take(self) -> list[Pair[Message]]:
        """Return the pairs that are complete, once, in order."""
        complete, self.complete = self.complete, []
        return complete

    def in_flight(self) -> list[tuple[Ends, Message, int]]:
        """Return the requests without a response, with their ages, for `restore`."""
        return [
            (pending.ends, request, age)
            for pending in self._open.values()
            for request, age in pending.requests.requests()
        ]

    def restore(
        self,
        connection: int,
        client: str,
        broker: str,
        key: int,
        size: int,
        message: Message,
        age: int,
    ) -> None:
        """Restore a request without a response; those before it are restored."""
        self._pending(connection, client, broker).requests.restore(key, size, message, age)

    def _pending(self, connection: int, client: str, broker: str) -> Pending[Message]:
        pending = self._open.get(connection)
        if pending is None:
            pending = Pending(Ends(connection, client, broker), self._total)
            self._open[connection] = pending
        return pending

    def _add_given_up(self, pending: Pending[Message]) -> None:
        for request in pending.requests.take_given_up():
            self.complete.append(Pair(pending.ends, request, None))
