"""Counts exchanges of the last seconds, by API, client, topic, group and broker.

Memory is bounded: so many seconds, so many names of a kind in each, the others together; a
request in flight is counted until its exchange is complete, whatever its age.

    request --> in flight           exchange --> the slot of its second --too old--> dropped
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Located, Row
from kafkawire.capture.tables.extraction.entities import Entities

from .cell import Cell, bounded
from .expected import expects_no_response
from .quantiles import Quantiles
from .reading import Collector, Reading

SECOND: Final = 10**9
KINDS: Final = ("api", "client", "topic", "group", "broker")
TOTAL: Final = "total"
"""The kind that has one name, for all exchanges."""

MAX_NAMES: Final = 500
"""Names of a kind in a second."""

OTHERS: Final = "(others)"

LATE: Final = 60
"""Seconds that a message may be older than one before it, before the clock is taken to be set."""

Names = list[tuple[str, str]]
"""Kinds and names."""

Count = Cell[Quantiles]
"""Counts of exchanges in a period."""


class Rate(NamedTuple):
    """What a name did per second. Latencies in nanoseconds, None without responses."""

    name: str
    requests: float
    bytes: float
    errors: float
    p50_ns: int | None
    p99_ns: int | None
    in_flight: int


class Windows(Collector):
    """Collects the exchanges of the last seconds. last_ns: the time of the last message."""

    def __init__(self, reading: Reading, seconds: int) -> None:
        self.last_ns = NO_TIME
        self._first_ns = NO_TIME
        self._topic_names = reading.context.names
        self._seconds = seconds
        self._slots: dict[int, dict[str, dict[str, Count]]] = {}
        self._in_flight: dict[tuple[int, int, int | None], Names] = {}
        self._flying: dict[str, Counter[str]] = {kind: Counter() for kind in (TOTAL, *KINDS)}

    def row(self, located: Located) -> None:
        """Count a request as in flight."""
        row = located.row
        if row.time_ns != NO_TIME:
            self._advance(row.time_ns)
        if row.direction != "request" or not row.is_message or row.correlation_id is None:
            return
        if located.connection is None or located.client is None or located.broker is None:
            return
        flying = Exchange(located.connection, located.client, located.broker, row, None)
        if expects_no_response(flying):
            return
        entities = Entities(self._topic_names)
        entities.add(row)
        names = _names(flying, entities)
        self._in_flight[_key(flying.connection, row)] = names
        for kind, name in names:
            self._flying[kind][name] += 1

    def _advance(self, time_ns: int) -> None:
        """Note the time of a message; if it is far behind, that of an earlier one was wrong."""
        if self.last_ns == NO_TIME:
            self._first_ns = time_ns
        if time_ns < self.last_ns - LATE * SECOND:
            self._first_ns = self.last_ns = time_ns
            self._forget(time_ns)
        self.last_ns = max(self.last_ns, time_ns)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count a complete exchange, at the time of its last message."""
        request, response = exchange.request, exchange.response
        if request is not None:
            self._landed(_key(exchange.connection, request))
        last = response or request
        if last is None or last.time_ns == NO_TIME:
            return
        second = last.time_ns // SECOND
        slot = self._slots.get(second)
        if slot is None:
            if second < self._oldest(self.last_ns):
                return
            slot = self._slots[second] = {kind: {} for kind in (TOTAL, *KINDS)}
            self._forget(self.last_ns)
        for kind, name in _names(exchange, entities):
            bounded(slot[kind], name, _cell, MAX_NAMES, OTHERS).count(exchange, entities)

    def _landed(self, key: tuple[int, int, int | None]) -> None:
        for kind, name in self._in_flight.pop(key, ()):
            flying = self._flying[kind]
            flying[name] -= 1
            if not flying[name]:
                del flying[name]

    def _forget(self, now_ns: int) -> None:
        oldest, now = self._oldest(now_ns), now_ns // SECOND
        for second in [one for one in self._slots if not oldest <= one <= now]:
            del self._slots[second]

    def _oldest(self, now_ns: int) -> int:
        """Return the oldest slot that counts: so many whole seconds, and the present one."""
        return now_ns // SECOND - self._seconds

    # -- results

    def rates(self, kind: str, now_ns: int) -> list[Rate]:
        """Return the rates of a kind in the last seconds before `now_ns`."""
        self._forget(now_ns)
        merged: dict[str, Count] = {}
        for slot in self._slots.values():
            for name, count in slot[kind].items():
                merged.setdefault(name, _cell()).merge(count)
        flying = self._flying[kind]
        names = dict.fromkeys([*merged, *flying])
        return [
            _rate(name, merged.get(name), flying[name], self._elapsed(now_ns)) for name in names
        ]

    def total(self, now_ns: int) -> Rate:
        """Return the rate of all exchanges."""
        return next(iter(self.rates(TOTAL, now_ns)), Rate("", 0, 0, 0, None, None, 0))

    def _elapsed(self, now_ns: int) -> float:
        """Return the seconds that the slots cover."""
        start = max(self._first_ns, self._oldest(now_ns) * SECOND)
        return max(1.0, (now_ns - start) / SECOND)


def _names(exchange: Exchange, entities: Entities) -> Names:
    row = exchange.main_row
    return list(_each_name(exchange, row, entities))


def _each_name(exchange: Exchange, row: Row, entities: Entities) -> Iterator[tuple[str, str]]:
    yield TOTAL, ""
    yield "api", row.api_name or "unknown"
    yield "client", row.client_id or exchange.client.rpartition(":")[0]
    yield "broker", exchange.broker
    named = (one.name or one.id_text or "" for one in entities.topics.values())
    for topic in dict.fromkeys(named):
        yield "topic", topic
    for group in entities.groups:
        yield "group", group


def _key(connection: int, row: Row) -> tuple[int, int, int | None]:
    return connection, row.packet, row.correlation_id


def _cell() -> Count:
    return Cell(Quantiles())


def _rate(name: str, count: Count | None, in_flight: int, seconds: float) -> Rate:
    if count is None:
        return Rate(name, 0, 0, 0, None, None, in_flight)
    return Rate(
        name,
        count.requests / seconds,
        count.bytes / seconds,
        count.errors / seconds,
        count.latency.at(0.5),
        count.latency.at(0.99),
        in_flight,
    )


_ORDERS: Final[dict[str, Callable[[Rate], float]]] = {
    "requests": lambda one: one.requests,
    "bytes": lambda one: one.bytes,
    "latency": lambda one: one.p99_ns or 0,
    "errors": lambda one: one.errors,
    "in flight": lambda one: one.in_flight,
}

SORTS: Final = tuple(_ORDERS)


def busiest(rates: Iterable[Rate], by: str) -> list[Rate]:
    """Sort rates, the highest first, and the others last. by: one of SORTS."""
    order = _ORDERS[by]
    return sorted(rates, key=lambda one: (one.name == OTHERS, -order(one), -one.requests, one.name))
