"""Identifies the clients of a capture: client ids, addresses, software, requests and versions.

Law: a client is a client id, an address and a software; a connection of unknown software is counted
for the software of the same client id and address, if there is exactly one.

    connection --end--> counts by client id --> client
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.entity_kinds import ERROR_CODES, GROUPS
from kafkawire.messages.api_key import ApiKey

from .client import Call, Client, Software, software_of
from .reading import Collector


class Requests:
    """Counts of the requests of a client with one API version, on a connection.

    call: None if the version is unknown. learn: notes the connection's properties in a request.
    """

    __slots__ = ("bytes", "call", "client", "count", "learn")

    def __init__(self, client: Client, call: Call | None, learn: Learner | None) -> None:
        self.client = client
        self.call = call
        self.learn = learn
        self.count = self.bytes = 0


class Connection:
    """What is known of an open connection.

    requests: by client id, API key and version; they are added to those of clients when it ends.
    """

    __slots__ = ("address", "broker", "clients", "mechanism", "requests", "software")

    def __init__(self, address: str, broker: str) -> None:
        self.address = address
        self.broker = broker
        self.software: Software | None = None
        self.mechanism: str | None = None
        self.clients: dict[str | None, Client] = {}
        self.requests: dict[tuple[str | None, int | None, int | None], Requests] = {}

    def client(self, client_id: str | None) -> Client:
        """Return the counts of a client id on this connection."""
        found = self.clients.get(client_id)
        if found is None:
            found = self.clients[client_id] = Client(client_id, self.address, None)
        return found

    def add_requests(self, row: Row) -> Requests:
        """Add counts for the requests with the client id, API and version of a row."""
        call = None
        if row.api_key is not None and row.api_version is not None:
            call = Call(row.api_key, row.api_name, row.api_version)
        made = Requests(self.client(row.client_id), call, LEARNERS.get(row.api_key or 0))
        self.requests[row.client_id, row.api_key, row.api_version] = made
        return made

    def set_software(self, message: Any) -> None:
        """Note the software of an ApiVersions request."""
        self.software = software_of(message) or self.software

    def set_mechanism(self, message: Any) -> None:
        """Note the mechanism of a SaslHandshake request."""
        self.mechanism = message.mechanism


Learner = Callable[[Connection, Any], None]

LEARNERS: Final[dict[int, Learner]] = {
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

    entities = frozenset({ERROR_CODES, GROUPS})

    def __init__(self) -> None:
        self.connections: Counter[str | None] = Counter()
        self.brokers: Counter[str] = Counter()
        self.reset = 0
        self.undecoded: Counter[UndecodedConnections] = Counter()
        self.offers: dict[str, dict[int, int]] = {}
        self.first_ns = self.last_ns = NO_TIME
        self._open: dict[int | None, Connection] = {}
        self._others: dict[int, str] = {}
        self._found: dict[tuple[str | None, str, Software | None], Client] = {}

    def row(self, found: Located) -> None:
        """Count the next row."""
        row = found.row
        if row.api_key is None and not row.is_message:
            if row.status is Status.OTHER_PROTOCOL and found.connection is not None:
                self._others.setdefault(found.connection, row.error)
            return
        here = self._open.get(found.connection)
        if here is None:
            if found.connection is None or found.client is None or found.broker is None:
                return
            here = self._open[found.connection] = Connection(host(found.client), found.broker)
        if row.direction != "request":
            if row.client_id is not None or row.request_packet is not None:
                client = here.clients.get(row.client_id) or here.client(row.client_id)
                client.responses += 1
                client.response_bytes += row.length + 4
        elif row.status is not Status.SASL_TOKEN:  # truncated ones, too
            requests = here.requests.get((row.client_id, row.api_key, row.api_version))
            if requests is None:
                requests = here.add_requests(row)
            requests.count += 1
            requests.bytes += row.length + 4
            if requests.learn is not None and row.message is not None:
                requests.learn(here, row.message)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count the next exchange."""
        request = exchange.request
        if request is None:
            return
        if entities.error_codes or entities.groups:
            here = self._open.get(exchange.connection)
            if here is None:
                return
            client = here.client(request.client_id)
            client.errors += bool(entities.error_codes)
            client.groups |= entities.groups
        if request.api_key == ApiKey.API_VERSIONS and exchange.response is not None:
            offered = getattr(exchange.response.message, "api_keys", None)
            if offered:
                self.offers[exchange.broker] = {one.api_key: one.max_version for one in offered}

    def ended(self, connection: Ended) -> None:
        """Count a connection when it ends."""
        here = self._open.pop(connection.connection, None)
        for requests in () if here is None else here.requests.values():
            _add_requests(requests)
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


def _copy(client: Client) -> Client:
    made = Client(client.client_id, client.address, client.software)
    made.add(client)
    return made


def _add_requests(requests: Requests) -> None:
    """Add the requests of a closed connection to those of the client."""
    client = requests.client
    client.requests += requests.count
    client.request_bytes += requests.bytes
    if requests.call is not None:
        client.calls[requests.call] += requests.count


def host(end: str) -> str:
    """Return the address of `address:port`."""
    return end.rpartition(":")[0].strip("[]")
