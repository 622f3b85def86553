"""Finds single exchanges: the slowest, and requests without a response.

Memory does not grow with the number of exchanges: the slowest are bounded for each API, requests
without a response for each open connection and in all. An exchange is rendered when it is found,
and its messages are not kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import time_text

from .expected import allowed_wait_ns, expects_no_response, is_long_poll
from .reading import Collector, Reading

T = TypeVar("T")

Heap = list[tuple[int, int, T]]
"""Latency, minus the number of the exchange, and its rendering: the fastest first."""


class Slowest(Collector, Generic[T]):
    """Collects the slowest exchanges; long polls are none.

    most: how many of all; of_api: how many of each API. render: makes what is kept of an exchange.
    """

    def __init__(
        self, most: int, of_api: int, render: Callable[[Exchange, Entities, int], T]
    ) -> None:
        self._most = most
        self._of_api = of_api
        self._render = render
        self._all: Heap[T] = []
        self._by_api: dict[str | None, Heap[T]] = {}
        self._count = 0

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle the next exchange."""
        response = exchange.response
        if response is None:
            return
        latency = since(response.request_time_ns, response.time_ns)
        if latency is None or is_long_poll(exchange, latency):
            return
        self._count += 1
        heap = self._by_api.setdefault(exchange.main_row.api_name, [])
        heaps = [
            (each, most)
            for each, most in ((self._all, self._most), (heap, self._of_api))
            if len(each) < most or latency > each[0][0]
        ]
        if not heaps:
            return
        entry = latency, -self._count, self._render(exchange, entities, latency)
        for each, most in heaps:
            (heapq.heappush if len(each) < most else heapq.heapreplace)(each, entry)

    @property
    def all(self) -> list[T]:
        """Return the slowest exchanges, each once, the slowest first."""
        entries = {
            -entry[1]: entry for heap in (self._all, *self._by_api.values()) for entry in heap
        }
        return [entry[2] for entry in sorted(entries.values(), key=lambda one: (-one[0], -one[1]))]


MAX_KEPT: Final = 1_000


class UnansweredRequest(NamedTuple):
    """A request whose response is not in the capture.

    waited_ns: until the end of its connection, or of the capture; None while it is open or without
    times. reset: whether the connection was reset.
    """

    api_name: str
    client_id: str | None
    client: str
    broker: str
    connection: int
    file: str
    packet: int
    time_ns: int
    waited_ns: int | None = None
    reset: bool = False

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        fields = self._asdict()
        return {"time": time_text(fields.pop("time_ns")), **fields}


class Unanswered(Collector):
    """Collects requests without a response.

    polls: those that let the broker wait longer than their connection went on, which are not
    listed: a client that stops leaves its last fetch behind. count: all others.
    """

    entities = frozenset[str]()

    def __init__(self, reading: Reading) -> None:
        self.polls = self.count = 0
        self._reading = reading
        self._open: dict[int, list[tuple[UnansweredRequest, int]]] = {}
        self._longest: list[tuple[int, int, UnansweredRequest]] = []

    def exchange(self, exchange: Exchange, entities: Entities) -> None:  # noqa: ARG002
        """Note a request without a response, until its connection has ended."""
        request = exchange.request
        if request is None or exchange.response is not None or expects_no_response(exchange):
            return
        kept = self._open.setdefault(exchange.connection, [])
        if len(kept) >= MAX_KEPT:
            self.count += 1
            return
        entry = UnansweredRequest(
            request.api_name or f"key {request.api_key}",
            request.client_id,
            exchange.client,
            exchange.broker,
            exchange.connection,
            *self._reading.context.traffic.place(request.packet),
            request.time_ns,
        )
        kept.append((entry, allowed_wait_ns(exchange)))

    def ended(self, connection: Ended) -> None:
        """Complete the requests of a connection."""
        for request, allowed_ns in self._open.pop(connection.connection, ()):
            waited_ns = since(request.time_ns, connection.last_ns)
            if allowed_ns and (waited_ns or 0) <= allowed_ns:
                self.polls += 1
                continue
            self.count += 1
            entry = request._replace(waited_ns=waited_ns, reset=connection.reset)
            push = heapq.heappush if len(self._longest) < MAX_KEPT else heapq.heappushpop
            push(self._longest, (waited_ns or 0, -self.count, entry))

    @property
    def all(self) -> list[UnansweredRequest]:
        """Return the requests, those that waited longest first."""
        return [entry for *_, entry in sorted(self._longest, reverse=True)]
