"""The `load` table: requests over time, and where their time went.

The parts of a latency add up to it. The network takes the round-trip time between the capture
and the broker, from the handshake of TCP; a broker waits on purpose for as long as the request lets
it (Fetch), or for other members (JoinGroup, SyncGroup); the rest is the broker's.

    latency = network + waiting on purpose + broker
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.columns import FLOAT64, INT64, TEXT, TIME, Column, Columns, micros
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, Entities
from kafkawire.messages.api_key import ApiKey

from ..cell import Sizes, merged
from ..clients import host
from ..reading import Collector, Reading
from ..time_scale import TimeScale

MAX_CLIENTS: Final = 1000
MAX_CELLS: Final = 40_000
MAX_OPEN: Final = 4 * MAX_CELLS
"""Clients that are counted by name; cells; latencies of open connections, summed by cell."""

OTHERS: Final = "(others)"
FOREVER: Final = 1 << 62

WAITS_FOR_MEMBERS: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
LONG_POLLS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})

COLUMNS: Final[Columns] = (
    Column("time", TIME, "Start of the bucket of time."),
    Column("time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("width_ns", INT64, "Width of the bucket; the same in all rows of a capture."),
    Column("client_id", TEXT, "Client id, or else the address; `(others)` for all beyond 1,000."),
    Column("broker", TEXT, "Address and port of the broker."),
    Column("api_name", TEXT, "Name of the API."),
    Column("requests", INT64, "Requests that were sent in the bucket."),
    Column("requests_per_second", FLOAT64, "The same by second."),
    Column("responses", INT64, "Responses to them."),
    Column("errors", INT64, "Responses with an error code."),
    Column("request_bytes", INT64, "Bytes of the requests, with their sizes."),
    Column("response_bytes", INT64, "Bytes of the responses, with their sizes."),
    Column("latency_ns", INT64, "Sum of the latencies: the three parts that follow."),
    Column(
        "network_ns",
        INT64,
        "Part of the network between the capture and the broker; 0 if the handshake of the "
        "connection was not captured.",
    ),
    Column(
        "waited_ns",
        INT64,
        "Part in which the broker waited on purpose: Fetch for data, up to `max_wait_ms`; "
        "JoinGroup and SyncGroup for other members.",
    ),
    Column("broker_ns", INT64, "The rest: the broker, and what it waits for."),
)


class Key(NamedTuple):
    """What a cell counts."""

    bucket: int
    client: str
    broker: str
    api: str


class Load(Sizes):
    """Counts of a cell; times in nanoseconds."""

    __slots__ = ("broker_ns", "network_ns", "waited_ns")

    def __init__(self) -> None:
        super().__init__()
        self.network_ns = self.waited_ns = self.broker_ns = 0

    def merge(self, other: Load) -> None:
        """Add the counts of another cell."""
        super().merge(other)
        self.network_ns += other.network_ns
        self.waited_ns += other.waited_ns
        self.broker_ns += other.broker_ns


class Latencies:
    """Latencies of one connection in a cell, until its round-trip time is known at its end.

    may_wait_ns: how much of their sum the broker may have waited on purpose.
    """

    __slots__ = ("count", "latency_ns", "may_wait_ns")

    def __init__(self) -> None:
        self.count = self.latency_ns = self.may_wait_ns = 0

    def merge(self, other: Latencies) -> None:
        """Add the latencies of another cell."""
        self.count += other.count
        self.latency_ns += other.latency_ns
        self.may_wait_ns += other.may_wait_ns

    def split(self, load: Load, rtt_ns: int) -> None:
        """Add the parts of the latencies to a cell."""
        network = min(self.count * rtt_ns, self.latency_ns)
        waited = min(self.may_wait_ns, self.latency_ns - network)
        load.network_ns += network
        load.waited_ns += waited
        load.broker_ns += self.latency_ns - network - waited


class LoadOverTime(Collector):
    """Collects requests over time, by client, broker and API."""

    entities = frozenset({ERROR_CODES})

    def __init__(self) -> None:
        self._scale = TimeScale()
        self._clients: dict[str, None] = {}
        self._cells: dict[Key, Load] = {}
        self._open: dict[int, dict[Key, Latencies]] = {}
        self._open_cells = 0

    @property
    def width_ns(self) -> int:
        """The width of a bucket."""
        return self._scale.width_ns

    @property
    def cells(self) -> dict[Key, Load]:
        """The cells; call it at the end of the capture."""
        for connection in list(self._open):
            self._split(connection, 0)
        return self._cells

    def by_client(self, most: int, cells: int) -> dict[Key, Load]:
        """Return the cells of all brokers together, about so many, with so many clients by name.

        Nothing can be counted after that.
        """
        requests: Counter[str] = Counter()
        for key, load in self.cells.items():
            requests[key.client] += load.requests
        listed = {client for client, _ in requests.most_common(most)}

        def fold(key: Key) -> Key:
            return key._replace(broker="", client=key.client if key.client in listed else OTHERS)

        self._cells = merged(self._cells, fold)
        while len(self._cells) > cells and not self._scale.is_widest:
            self._widen(self._scale.widen())
        return self._cells

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count an exchange at the time of its request."""
        row = exchange.main_row
        at_ns = row.time_ns if exchange.request is not None else row.request_time_ns
        if at_ns is None or at_ns == NO_TIME:
            return
        self._widen(self._scale.include(at_ns))
        client = row.client_id or host(exchange.client)
        if client not in self._clients:
            if len(self._clients) >= MAX_CLIENTS:
                client = OTHERS
            else:
                self._clients[client] = None
        key = Key(self._scale.bucket(at_ns), client, exchange.broker, row.api_name or "unknown")
        load = self._cells.get(key)
        if load is None:
            load = self._cells[key] = Load()
        load.count(exchange, entities)
        if exchange.response is not None:
            self._add_latency(exchange, exchange.response, key)
        self._bound()

    def _add_latency(self, exchange: Exchange, response: Row, key: Key) -> None:
        latency = since(response.request_time_ns, response.time_ns)
        if latency is None or latency <= 0:
            return
        cells = self._open.setdefault(exchange.connection, {})
        latencies = cells.get(key)
        if latencies is None:
            latencies = cells[key] = Latencies()
            self._open_cells += 1
        latencies.count += 1
        latencies.latency_ns += latency
        latencies.may_wait_ns += min(latency, may_wait_ns(exchange))

    def _bound(self) -> None:
        """Make buckets wider while there are too many cells, and split latencies early."""
        while len(self._cells) > MAX_CELLS and not self._scale.is_widest:
            self._widen(self._scale.widen())
        while self._open_cells > MAX_OPEN:
            self._split(next(iter(self._open)), 0)

    def _widen(self, factor: int) -> None:
        if factor == 1:
            return

        def fold(key: Key) -> Key:
            return key._replace(bucket=key.bucket // factor)

        self._cells = merged(self._cells, fold)
        self._open = {connection: merged(cells, fold) for connection, cells in self._open.items()}
        self._open_cells = sum(map(len, self._open.values()))

    def ended(self, connection: Ended) -> None:
        """Split the latencies of a connection, whose round-trip time is known now."""
        self._split(connection.connection, connection.broker_tcp.rtt_ns or 0)

    def _split(self, connection: int, rtt_ns: int) -> None:
        cells = self._open.pop(connection, {})
        self._open_cells -= len(cells)
        for key, latencies in cells.items():
            latencies.split(self._cells[key], rtt_ns)


def may_wait_ns(exchange: Exchange) -> int:
    """Return how long the broker may have waited on purpose."""
    api_key = exchange.main_row.api_key
    if api_key in WAITS_FOR_MEMBERS:
        return FOREVER
    message: Any = exchange.request and exchange.request.message
    if api_key in LONG_POLLS and message is not None:
        return int(message.max_wait_ms) * 1_000_000
    return 0


class LoadTable:
    """The `load` table of a capture."""

    def __init__(self, _: Reading) -> None:
        self._load = LoadOverTime()
        self.collectors: Sequence[Collector] = [self._load]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Build the rows of the table, at the end of the capture."""
        cells, width = self._load.cells, self._load.width_ns
        for key, load in sorted(cells.items()):
            yield (
                micros(key.bucket * width),
                key.bucket * width,
                width,
                key.client,
                key.broker,
                key.api,
                load.requests,
                load.requests * 1e9 / width,
                load.responses,
                load.errors,
                load.request_bytes,
                load.response_bytes,
                load.network_ns + load.waited_ns + load.broker_ns,
                load.network_ns,
                load.waited_ns,
                load.broker_ns,
            )
