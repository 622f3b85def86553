"""Identifies the clients of a capture: client ids, addresses, software, requests and versions.

A client is a client id, an address and a software; a connection of unknown software is counted
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
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, GROUPS, Entities
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.frame import SIZE

from .client import Call, Client, Software, software_of
from .expected import are_expected
from .reading import Collector


class Connection:
    """What is known of an open connection. clients: the counts of each client id on it."""

    __slots__ = ("address", "broker", "clients", "mechanism", "software")

    def __init__(self, address: str, broker: str) -> None:
        self.address = address
        self.broker = broker
        self.software: Software | None = None
        self.mechanism: str | None = None
        self.clients: dict[str | None, Client] = {}

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

API_VERSIONS: Final = ApiKey.API_VERSIONS


class UndecodedConnections(NamedTuple):
    """Connections without a decoded request: client address, broker, and the reason."""

    address: str
    broker: str
    reason: str


class Period(NamedTuple):
    """From the first to the last packet of connections, in nanoseconds; NO_TIME: unknown."""

    first_ns: int = NO_TIME
    last_ns: int = NO_TIME

    def with_connection(self, connection: Ended) -> Period:
        """Extend the period by a connection."""
        return self.extended(Period(connection.first_ns, connection.last_ns))

    def extended(self, other: Period) -> Period:
        """Return the period from the beginning of the earlier to the end of the later one."""
        times = [ns for ns in (self.first_ns, other.first_ns) if ns != NO_TIME]
        return Period(min(times, default=NO_TIME), max(self.last_ns, other.last_ns))


NO_REQUEST: Final = "no requests captured"
ONE_DIRECTION: Final = "one direction captured"
"""Of connections with the SYN of one side only, such as a SYN-ACK without a SYN."""
NO_KAFKA: Final = "no Kafka protocol detected"


def protocol_reason(protocol: str) -> str:
    """Return the reason why connections of another protocol are not decoded."""
    return f"protocol is {protocol}"


COPY: Final = "copy"
"""The protocol of a connection that only repeats another one."""

NOT_RECOGNISED: Final = "not recognised"
"""The engine's name of an unknown protocol."""


class Clients(Collector):
    """Collects the clients of a capture.

    connections: number by protocol, None for those without data, COPY for copies of another.
    undecoded: connections without a decoded request; undecoded_periods: when they were open;
    last_undecoded: the connection that ended last, if it is one of them.
    """

    statuses = frozenset({Status.COPY, Status.OTHER_PROTOCOL, Status.SASL_TOKEN})
    entities = frozenset({ERROR_CODES, GROUPS})

    def __init__(self) -> None:
        self.connections: Counter[str | None] = Counter()
        self.brokers: Counter[str] = Counter()
        self.reset = 0
        self.undecoded: Counter[UndecodedConnections] = Counter()
        self.undecoded_periods: dict[UndecodedConnections, Period] = {}
        self.last_undecoded: UndecodedConnections | None = None
        self._offers: dict[str, list[Any]] = {}  # of the last ApiVersions response of each broker
        self.first_ns = self.last_ns = NO_TIME
        self._open: dict[int | None, Connection] = {}
        self._others: dict[int, str] = {}
        self._calls: dict[tuple[int | None, int | None], Call] = {}
        self._clients: dict[tuple[str | None, str, Software | None], Client] = {}

    def row(self, located: Located) -> None:
        """Note a connection of another protocol, or one with a message that is in no exchange."""
        connection, client, broker, row = located
        if connection is None or client is None or broker is None:
            return
        if row.status is Status.COPY:
            self._others[connection] = COPY
        elif row.status is Status.OTHER_PROTOCOL:
            self._others.setdefault(connection, row.error)
        elif connection not in self._open:
            self._open[connection] = Connection(host(client), broker)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count the next exchange."""
        connection, address, broker, request, response = exchange
        here = self._open.get(connection)
        if here is None:
            here = self._open[connection] = Connection(host(address), broker)
        header = request or response
        if header is None or (request is None and header.request_packet is None):
            return  # only the response of an unknown client
        client = here.clients.get(header.client_id)
        if client is None:
            client = Client(header.client_id, here.address, None)
            here.clients[client.client_id] = client
        if request is not None:
            client.requests += 1
            client.request_bytes += request.length + SIZE
            call = self._calls.get((request.api_key, request.api_version)) or self._call(request)
            if call is not None:
                client.calls[call] = client.calls.get(call, 0) + 1
            if request.api_key in LEARNERS:
                self._learn(here, exchange, request)
            if entities.error_codes:
                client.errors += 1
                client.expected_errors += are_expected(request.api_key, entities.error_codes)
            if entities.groups:
                client.groups |= entities.groups
        if response is not None:
            client.responses += 1
            client.response_bytes += response.length + SIZE

    def _call(self, request: Row) -> Call | None:
        """Return the API and version of the first request with them; None without either."""
        api_key, version = request.api_key, request.api_version
        if api_key is None or version is None:
            return None
        call = self._calls[api_key, version] = Call(api_key, request.api_name, version)
        return call

    def _learn(self, here: Connection, exchange: Exchange, request: Row) -> None:
        """Note what a request says of its connection, and an ApiVersions response of the broker."""
        if request.message is not None:
            LEARNERS[request.api_key or 0](here, request.message)
        if request.api_key == API_VERSIONS and exchange.response is not None:
            offered = getattr(exchange.response.message, "api_keys", None)
            if offered:
                self._offers[exchange.broker] = offered

    def offered(self, broker: str, api_key: int) -> int | None:
        """Return the highest version of an API that a broker supports; None if unknown."""
        offered = [
            one.max_version for one in self._offers.get(broker, ()) if one.api_key == api_key
        ]
        return offered[-1] if offered else None

    def ended(self, connection: Ended) -> None:
        """Count a connection when it ends."""
        self.last_undecoded = None
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
        before = self._clients.get(key)
        if before is None:
            self._clients[key] = client
        else:
            before.add(client)

    def _add_undecoded(self, connection: Ended, here: Connection | None, other: str | None) -> None:
        if not connection.captured_bytes or other == COPY:
            return  # no data, or none of its own
        if connection.client_tcp.opened != connection.broker_tcp.opened:
            reason = ONE_DIRECTION
        elif here is not None:
            reason = NO_REQUEST
        elif other is None or other == NOT_RECOGNISED:
            reason = NO_KAFKA
        else:
            reason = protocol_reason(other)
        key = UndecodedConnections(host(connection.client), connection.broker, reason)
        self.undecoded[key] += 1
        self.last_undecoded = key
        period = self.undecoded_periods.get(key, Period())
        self.undecoded_periods[key] = period.with_connection(connection)

    def _time(self, connection: Ended) -> None:
        period = Period(self.first_ns, self.last_ns)
        self.first_ns, self.last_ns = period.with_connection(connection)

    @property
    def all(self) -> list[Client]:
        """Return the clients, by client id, address and software."""
        named: dict[tuple[str | None, str], list[Client]] = {}
        for (client_id, address, software), client in self._clients.items():
            if software is not None:
                named.setdefault((client_id, address), []).append(_copy(client))
        all_clients = [client for same in named.values() for client in same]
        for (client_id, address, software), client in self._clients.items():
            if software is not None:
                continue
            same = named.get((client_id, address), [])
            if len(same) == 1:
                same[0].add(client)
            else:
                all_clients.append(client)
        return sorted(
            all_clients,
            key=lambda one: (one.client_id or "", one.address, str(one.software or "")),
        )


def _copy(client: Client) -> Client:
    copy = Client(client.client_id, client.address, client.software)
    copy.add(client)
    return copy


def host(end: str) -> str:
    """Return the address of `address:port`."""
    return end.rpartition(":")[0].strip("[]")
