"""Finds the slowest exchanges: of all, and of each API.

Law: memory grows with the number of APIs, never with that of exchanges; an exchange is rendered
when it is found to be one of the slowest so far, and its messages are not kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities

from .reading import Collector

T = TypeVar("T")

Heap = list[tuple[int, int, T]]
"""Latency, minus the number of the exchange, and its rendering: the fastest first."""


class Slowest(Collector, Generic[T]):
    """Collects the slowest exchanges.

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
        if latency is None:
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
        found = {-entry[1]: entry for heap in (self._all, *self._by_api.values()) for entry in heap}
        return [entry[2] for entry in sorted(found.values(), key=lambda one: (-one[0], -one[1]))]
