"""Identifies the clients of a capture: client ids, addresses, software, requests and versions.

Law: a client is a client id, an address and a software; a connection of unknown software is counted
for the software of the same client id and address, if there is exactly one.

    connection --end--> counts by client id --> client
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.messages.api_key import ApiKey

from .client import Call, Client, Software, software_of
from .reading import Collector


class Connection:
    """What is known of an open connection."""

    __slots__ = ("address", "broker", "clients", "mechanism", "software")

    def __init__(self, address: str, broker: str) -> None:
        self.address = address
        self.broker = broker
        self.software: Software | None = None
        self.mechanism: str | None = None
        self.clients: dict[str | None, Client] = {}

    def client(self, client_id: str | None) -> Client:
        """Return the counts of a client id on this connection."""
        found = self.clients.get(client_id)
        if found is None:
            found = self.clients[client_id] = Client(client_id, self.address, None)
        return found

    def set_software(self, message: Any) -> None:
        """Note the software of an ApiVersions request."""
        self.software = software_of(message) or self.software

    def set_mechanism(self, message: Any) -> None:
        """Note the mechanism of a SaslHandshake request."""
        self.mechanism = message.mechanism


LEARNERS: Final[dict[int, Callable[[Connection, Any], None]]] = {
    ApiKey.API_VERSIONS: Connection.set_software,
    ApiKey.SASL_HANDSHAKE: Connection.set_mechanism,
}
"""API key -> what notes the connection's properties in its requests."""


class UndecodedConnections(NamedTuple):
    """Connections without a decoded request: client address, broker, and the reason."""

    address: str
    broker: str
    reason: str


NO_REQUEST: Final = "no requests captured"
NO_KAFKA: Final = "no Kafka protocol detected"
NOT_RECOGNISED: Final = "not recognised"
"""The engine's name of an unknown protocol."""


class Clients(Collector):
    """Collects the clients of a capture.

    connections: number by protocol, None for those without data. undecoded: connections without a
    decoded request. offers: of each broker, the highest supported version of each API.
    """

    def __init__(self) -> None:
        self.connections: Counter[str | None] = Counter()
        self.brokers: Counter[str] = Counter()
        self.reset = 0
        self.undecoded: Counter[UndecodedConnections] = Counter()
        self.offers: dict[str, dict[int, int]] = {}
        self.first_ns = self.last_ns = NO_TIME
        self._open: dict[int, Connection] = {}
        self._others: dict[int, str] = {}
        self._found: dict[tuple[str | None, str, Software | None], Client] = {}

    def row(self, found: Located) -> None:
        """Count the next row."""
        number, client_end, broker, row = found
        if number is None or client_end is None or broker is None:
            return
        if row.status is Status.OTHER_PROTOCOL:
            self._others.setdefault(number, row.error)
        if row.api_key is None and not row.is_message:
            return
        here = self._open.get(number)
        if here is None:
            here = self._open[number] = Connection(host(client_end), broker)
        if row.direction == "request":
            _request(here, row)
        elif row.client_id is not None or row.request_packet is not None:
            client = here.client(row.client_id)
            client.responses += 1
            client.response_bytes += row.length + 4

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count the next exchange."""
        here = self._open.get(exchange.connection)
        if here is None or exchange.request is None:
            return
        client = here.client(exchange.main_row.client_id)
        client.errors += bool(entities.error_codes)
        client.groups |= entities.groups
        if exchange.main_row.api_key == ApiKey.API_VERSIONS and exchange.response is not None:
            offered = getattr(exchange.response.message, "api_keys", None)
            if offered:
                self.offers[exchange.broker] = {one.api_key: one.max_version for one in offered}

    def ended(self, connection: Ended) -> None:
        """Count a connection when it ends."""
        here = self._open.pop(connection.connection, None)
        other = self._others.pop(connection.connection, None)
        self.connections["kafka" if here is not None else other] += 1
        self.reset += connection.reset
        self._time(connection)
        if here is not None:
            self.brokers[connection.broker] += 1
        if here is None or not any(client.requests for client in here.clients.values()):
            self._add_undecoded(connection, here, other)
            return
        for client in here.clients.values():
            self._add(client, here, connection)

    def _add(self, client: Client, here: Connection, connection: Ended) -> None:
        client.software = here.software
        client.connections = 1
        client.brokers = {here.broker: None}
        client.mechanisms = {} if here.mechanism is None else {here.mechanism: None}
        client.first_ns, client.last_ns = connection.first_ns, connection.last_ns
        key = client.client_id, client.address, client.software
        known = self._found.get(key)
        if known is None:
            self._found[key] = client
        else:
            known.add(client)

    def _add_undecoded(self, connection: Ended, here: Connection | None, other: str | None) -> None:
        if not connection.captured_bytes:
            return  # no data
        if here is not None:
            reason = NO_REQUEST
        elif other is None or other == NOT_RECOGNISED:
            reason = NO_KAFKA
        else:
            reason = f"protocol is {other}"
        self.undecoded[
            UndecodedConnections(host(connection.client), connection.broker, reason)
        ] += 1

    def _time(self, connection: Ended) -> None:
        self.last_ns = max(self.last_ns, connection.last_ns)
        known = [ns for ns in (self.first_ns, connection.first_ns) if ns != NO_TIME]
        self.first_ns = min(known, default=NO_TIME)

    @property
    def all(self) -> list[Client]:
        """Return the clients, by client id, address and software."""
        named: dict[tuple[str | None, str], list[Client]] = {}
        for (client_id, address, software), client in self._found.items():
            if software is not None:
                named.setdefault((client_id, address), []).append(_copy(client))
        found = [client for same in named.values() for client in same]
        for (client_id, address, software), client in self._found.items():
            if software is not None:
                continue
            same = named.get((client_id, address), [])
            if len(same) == 1:
                same[0].add(client)
            else:
                found.append(client)
        return sorted(
            found,
            key=lambda one: (one.client_id or "", one.address, str(one.software or "")),
        )


_call: Final = lru_cache(1 << 10)(Call)
"""Makes a Call, or gives the same one again, which takes less time."""


def _copy(client: Client) -> Client:
    made = Client(client.client_id, client.address, client.software)
    made.add(client)
    return made


def _request(here: Connection, row: Row) -> None:
    """Count a request, by its header; truncated ones, too."""
    if row.status is Status.SASL_TOKEN:
        return
    client = here.client(row.client_id)
    client.requests += 1
    client.request_bytes += row.length + 4
    if row.api_key is not None and row.api_version is not None:
        client.calls[_call(row.api_key, row.api_name, row.api_version)] += 1
    learn = LEARNERS.get(row.api_key or 0)
    if learn is not None and row.message is not None:
        learn(here, row.message)


def host(end: str) -> str:
    """Return the address of `address:port`."""
    return end.rpartition(":")[0].strip("[]")
