"""Limits the connections of a cluster and the bytes they buffer.

Each is counted once: a connection from `count` until it closes or disconnects, a byte from its
arrival until its request is taken or its connection closes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from heapq import nsmallest

from ...configs import list_items
from ..bounds import Bounds
from ..configs import Settings
from .connection import Connection


class Connections(Mapping[int, Connection]):
    """Connection id -> connection.

    buffered: bytes of incomplete or queued requests; at most `most_buffered`. open: how many
    connections count. on_close: called when one that counted closes.
    """

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self._settings = settings
        configured = settings.number("queued.max.request.bytes")
        self.most_buffered = configured if configured > 0 else bounds.buffered_bytes
        self._by_id: dict[int, Connection] = {}
        self.find: Callable[[int], Connection | None] = self._by_id.get
        """Return a connection, None if there is none with this number."""
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self.buffered = 0
        self.open = 0
        self.on_close: Callable[[], None] = lambda: None

    def __getitem__(self, connection_id: int) -> Connection:
        return self._by_id[connection_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def register(self, connection: Connection) -> None:
        """Add a connection, which does not count before `count`."""
        self._by_id[connection.id] = connection

    def count(self, connection: Connection) -> str | None:
        """Count a connection; return why it must be closed at once, or None."""
        connection.counted = True
        self.open += 1
        self._per_host[connection.host] += 1
        self._per_listener[connection.listener] += 1
        most = self._most_of(connection.host)
        if self._per_host[connection.host] > most:
            return f"too many connections from {connection.host}: max.connections.per.ip is {most}"
        return None

    def open_to(self, listener: str) -> int:
        """Return how many connections to a listener count."""
        return self._per_listener[listener]

    def least_recently_used(self, count: int, except_to: str | None) -> list[Connection]:
        """Return so many connections that count, none of them to one listener, if there are."""
        counted = (
            each for each in self._by_id.values() if each.counted and each.listener != except_to
        )
        return nsmallest(count, counted, key=lambda each: each.last_active)

    def _most_of(self, host: str) -> int:
        """Return how many connections an address may have."""
        text = self._settings.text("max.connections.per.ip.overrides")
        if text:
            for override in list_items(text):
                address, _, most = override.rpartition(":")
                if address == host:
                    return int(most)
        return self._settings.number("max.connections.per.ip")

    def close(self, connection: Connection) -> None:
        """Count a connection as closed and drop its buffer."""
        if connection.closing:
            return
        connection.closing = True
        self.buffered -= len(connection.buffer)
        connection.buffer = bytearray()
        if not connection.counted:
            return
        connection.counted = False
        self.open -= 1
        self._per_listener[connection.listener] -= 1
        self._per_host[connection.host] -= 1
        if not self._per_host[connection.host]:
            del self._per_host[connection.host]
        self.on_close()

    def remove(self, connection_id: int) -> Connection | None:
        """Remove and return a disconnected connection, if it is known."""
        connection = self._by_id.pop(connection_id, None)
        if connection is not None:
            self.close(connection)
        return connection

    def excess(self) -> tuple[Connection, str]:
        """Return the connection to close, and why, where all together exceed `most_buffered`.

        It is the one that buffers most, so connections with small requests are never affected.
        The linear search is amortised: a client must send as many bytes again before the next one.
        """
        largest = max(self._by_id.values(), key=lambda each: len(each.buffer))
        return largest, (
            f"{self.buffered} bytes of requests are buffered, {len(largest.buffer)} of them on "
            f"this connection: the limit is {self.most_buffered} (queued.max.request.bytes)"
        )
