"""Finds out when clients send nothing: no heartbeat, no fetch, no other request.

A client that waits for a response is not silent; a silence is noticed by the request that ends
it, so that one until the end of the capture is not reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Located
from kafkawire.messages.api_key import ApiKey

from ..clients import host
from ..reading import Collector

SILENT_NS: Final = 10_000_000_000
"""A client that sends nothing for longer is silent: members of groups send heartbeats every 3 or 5
seconds by default. If its session timeout is shorter, that is the limit."""

JOIN_GROUP: Final = ApiKey.JOIN_GROUP


class ClientKey(NamedTuple):
    """A client: its client id, and the host of its connections."""

    client_id: str | None
    address: str


class Silence(NamedTuple):
    """The time in which a client sent nothing.

    from_ns: of the last message from or to it. limit_ns: how long it may be silent.
    """

    client: ClientKey
    from_ns: int
    until_ns: int
    limit_ns: int

    @property
    def duration_ns(self) -> int:
        """How long it lasted."""
        return self.until_ns - self.from_ns


class _Client:
    """A client: when it was last heard of, and how long it may be silent.

    joining: whether it waits for the response to a JoinGroup, which takes as long as a rebalance.
    """

    __slots__ = ("joining", "key", "last", "last_ns", "limit_ns")

    def __init__(self, key: ClientKey) -> None:
        self.key = key
        self.last_ns = NO_TIME
        self.limit_ns = SILENT_NS
        self.joining = False
        self.last: Silence | None = None

    def join(self, request: Any) -> None:
        """Handle a JoinGroup request."""
        self.joining = True
        session_timeout_ns = request.session_timeout_ms * 1_000_000
        self.limit_ns = min(SILENT_NS, session_timeout_ns) if session_timeout_ns > 0 else SILENT_NS


class Silences(Collector):
    """Finds silences of clients. Memory grows with the number of clients.

    listeners: are called with each silence, when it ends.
    """

    entities = frozenset[str]()

    def __init__(self) -> None:
        self.listeners: list[Callable[[Silence], None]] = []
        self._clients: dict[ClientKey, _Client] = {}
        self._of_connection: dict[int, _Client] = {}  # of open connections

    def row(self, located: Located) -> None:
        """Handle the next row."""
        connection, client, _, row = located
        time_ns, api_key = row.time_ns, row.api_key
        if connection is None or time_ns == NO_TIME:
            return
        here = self._of_connection.get(connection)
        if api_key is None or client is None or row.direction != "request":
            if here is not None:
                if time_ns > here.last_ns:
                    here.last_ns = time_ns
                if here.joining:
                    here.joining = api_key != JOIN_GROUP
            return
        if here is None or here.key.client_id != row.client_id:
            here = self._client(ClientKey(row.client_id, host(client)))
            self._of_connection[connection] = here
        if time_ns > here.last_ns:
            if time_ns - here.last_ns > here.limit_ns and not here.joining:
                self._silent(here, time_ns)
            here.last_ns = time_ns
        if api_key == JOIN_GROUP and row.message is not None:
            here.join(row.message)

    def _silent(self, client: _Client, until_ns: int) -> None:
        """Note a silence, unless the client has never sent anything."""
        if client.last_ns == NO_TIME:
            return
        client.last = Silence(client.key, client.last_ns, until_ns, client.limit_ns)
        for listener in self.listeners:
            listener(client.last)

    def ended(self, connection: Ended) -> None:
        """Forget a connection when it ends."""
        here = self._of_connection.pop(connection.connection, None)
        if here is not None:
            here.joining = False

    def last_ns(self, client: ClientKey) -> int:
        """Return when a client was last heard of; NO_TIME if never."""
        here = self._clients.get(client)
        return NO_TIME if here is None else here.last_ns

    def last(self, client: ClientKey) -> Silence | None:
        """Return the last silence of a client."""
        here = self._clients.get(client)
        return None if here is None else here.last

    def _client(self, key: ClientKey) -> _Client:
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _Client(key)
        return client
