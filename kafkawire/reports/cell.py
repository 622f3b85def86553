"""Counts exchanges: the cell in which all reports count, by whatever key and time.

Cells are merged by `merged`, when keys become the same: buckets of time that become wider, names
that are no longer listed.

    exchange --> cell of its key --merged--> cell of a wider key
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, Self, TypeVar

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.protocol.frame import SIZE


class Mergeable(Protocol):
    """What can be merged with another of its kind."""

    def merge(self, other: Self, /) -> None:
        """Add the counts of another."""


class Sizes:
    """How many exchanges, requests and responses, their bytes, and the responses with errors."""

    __slots__ = (
        "errors", "exchanges", "request_bytes", "requests", "response_bytes", "responses"
    )  # fmt: skip

    def __init__(self) -> None:
        self.exchanges = self.requests = self.responses = self.errors = 0
        self.request_bytes = self.response_bytes = 0

    @property
    def bytes(self) -> int:
        """Bytes of requests and responses."""
        return self.request_bytes + self.response_bytes

    def count(self, exchange: Exchange, entities: Entities) -> None:
        """Count an exchange."""
        _, _, _, request, response = exchange
        self.exchanges += 1
        if request is not None:
            self.requests += 1
            self.request_bytes += request.length + SIZE
        if response is not None:
            self.responses += 1
            self.response_bytes += response.length + SIZE
            if entities.error_codes:
                self.errors += 1

    def merge(self, other: Self) -> None:
        """Add the counts of another cell."""
        self.exchanges += other.exchanges
        self.requests += other.requests
        self.responses += other.responses
        self.errors += other.errors
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes


class Latencies(Mergeable, Protocol):
    """A distribution of latencies, in nanoseconds: `Quantiles`, or another."""

    def add(self, value: int, /) -> None:
        """Add a latency."""


L = TypeVar("L", bound=Latencies)


class Cell(Sizes, Generic[L]):
    """The sizes of exchanges, their error codes, and the distribution of their latencies.

    codes: responses by error code. latency: that of the responses to requests with times.
    """

    __slots__ = ("codes", "latency")

    def __init__(self, latency: L) -> None:
        super().__init__()
        self.codes: dict[int, int] = {}
        self.latency = latency

    def count(self, exchange: Exchange, entities: Entities) -> None:
        """Count an exchange: as `Sizes.count`, without a call of it for each."""
        _, _, _, request, response = exchange
        self.exchanges += 1
        if request is not None:
            self.requests += 1
            self.request_bytes += request.length + SIZE
        if response is None:
            return
        self.responses += 1
        self.response_bytes += response.length + SIZE
        request_ns, response_ns = response.request_time_ns, response.time_ns
        if request_ns is not None and NO_TIME not in (request_ns, response_ns):
            self.latency.add(response_ns - request_ns)
        if entities.error_codes:
            self.errors += 1
            codes = self.codes
            for code in entities.error_codes:
                codes[code] = codes.get(code, 0) + 1

    def merge(self, other: Self) -> None:
        """Add the counts of another cell."""
        super().merge(other)
        self.latency.merge(other.latency)
        for code, count in other.codes.items():
            self.codes[code] = self.codes.get(code, 0) + count


K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Mergeable)


def merged(cells: Mapping[K, M], fold: Callable[[K], K]) -> dict[K, M]:
    """Merge the cells whose keys become the same, each into the first of them."""
    fewer: dict[K, M] = {}
    for key, cell in cells.items():
        first = fewer.setdefault(fold(key), cell)
        if first is not cell:
            first.merge(cell)
    return fewer


def bounded(cells: dict[K, M], key: K, create: Callable[[], M], most: int, others: K) -> M:
    """Return the cell of a key; of `most` keys and more, the one of `others`."""
    cell = cells.get(key)
    if cell is None:
        if len(cells) >= most:
            key = others
        cell = cells.setdefault(key, create())
    return cell
