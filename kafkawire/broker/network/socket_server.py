"""The connections of clients: opened, read from, idle and closed, as in Kafka's SocketServer.

It decides without I/O: events of connections come in, effects go out. One call processes the
requests of one time slice.

    Connected, Received, Drained, Disconnected ─▶ buffer ─▶ scheduler ─▶ process(connection)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...errors import RemoteProtocolError
from ..context import Context
from ..events import (
    Authenticated,
    Connected,
    Disconnected,
    Drained,
    IdleConnection,
    MutedUntil,
    Received,
    Unreadable,
)
from ..releases import NONCES_COMPARED_FROM, before
from ..security.protocols import SecurityProtocol
from ..security.tls_principal import (
    MAPPING_RULES,
    MappingRule,
    mapping_rules,
    principal_name,
)
from .acceptors import MAX_CONNECTIONS, Acceptors, ConnectionQuotas
from .connection import Connection
from .connections import Connections
from .request_channel import ErrorResponse, RequestChannel
from .scheduler import RequestScheduler

if TYPE_CHECKING:
    from ..security.jwt import TokenValidator
    from ..security.server import Authentication, ScramCredentials, TokenCredentials, Users


class SocketServer:
    """The clients of one or more brokers.

    error_response: builds the response to a request that has failed. passwords: of users, by name.
    credentials: of users with SCRAM, besides those of `passwords`. tokens: of delegation tokens.
    quotas: of connections, which the other listeners of the node share.
    """

    def __init__(
        self,
        context: Context,
        error_response: ErrorResponse,
        passwords: Mapping[str, str],
        quotas: ConnectionQuotas,
        credentials: ScramCredentials | None = None,
        tokens: TokenCredentials | None = None,
    ) -> None:
        self._context = context
        self.connections = Connections(context.settings, context.bounds)
        self.scheduler = RequestScheduler(context)
        self.channel = RequestChannel(context, self.connections, self.scheduler, error_response)
        self.acceptors = Acceptors(context, self.connections, self._accepted, quotas)
        self.connections.on_close = self.acceptors.look_again
        self._quotas = quotas
        self._passwords = passwords
        self._credentials = credentials
        self._tokens = tokens
        self._users: dict[str, Users] = {}
        """Listener -> its users, once there is a connection."""
        self._validators: dict[str, TokenValidator] = {}
        """Listener -> the validator of its tokens, once a client has OAUTHBEARER."""
        self._mapping_rules: dict[str, tuple[MappingRule, ...]] = {}
        """Listener -> its rules, once they are used."""

    def connected(self, event: Connected, protocol: SecurityProtocol, now: float) -> None:
        """Accept a connection, or let it wait until there is a slot. protocol: of its listener."""
        connection = Connection(
            event.connection,
            event.node_id,
            event.host,
            now,
            listener=event.listener,
            protocol=protocol,
        )
        if protocol.has_sasl:
            connection.authentication = self._authentication(event.listener)
        self.connections.register(connection)
        self.acceptors.add(connection, now)

    def _accepted(self, connection: Connection, now: float) -> None:
        """Serve a connection that has a slot; close it if its address has too many."""
        if self._is_throttled(connection, now):
            return
        reason = self.connections.count(connection)
        if reason is not None:
            self.channel.close(connection, reason)
            return
        connection.last_active = now
        self._set_idle_deadline(connection)
        self.close_excess()
        if connection.buffer:
            self.scheduler.resume(connection)

    def limits_changed(self) -> None:
        """Follow changes of `max.connections`."""
        self.close_excess()
        self.acceptors.look_again()

    def close_excess(self) -> None:
        """Close connections, the least recently used first, while `max.connections` is exceeded."""
        for connection in self.acceptors.excess():
            self.channel.close(connection, f"{MAX_CONNECTIONS}: the least recently used connection")

    def _is_throttled(self, connection: Connection, now: float) -> bool:
        """Whether an address opens too many connections; then it waits, and is closed (KIP-612)."""
        is_of_node = connection.id < 0  # in the same process
        if self._quotas.throttle_ms is None or is_of_node:
            return False
        throttle_ms = self._quotas.throttle_ms(connection.host, now)
        if throttle_ms:
            connection.throttled = True
            self.channel.mute(connection.id, throttle_ms / 1000, now)
        return throttle_ms > 0

    def _authentication(self, listener: str) -> Authentication:
        from ..security.jaas import plain_users
        from ..security.server import (  # imported only with SASL
            Authentication,
            Users,
            no_credential,
        )
        from ..security.session import MAX_REAUTH

        context, settings = self._context, self._context.settings
        if listener not in self._users:
            credentials = self._credentials or no_credential
            tokens = self._tokens or no_credential
            plain = plain_users(settings.effective, listener)
            self._users[listener] = Users(
                self._passwords, context.new_uuid, credentials, tokens, plain
            )
        return Authentication(
            settings.items_of_listener(listener, "sasl.enabled.mechanisms"),
            self._users[listener],
            lambda: context.new_uuid().hex(),
            lenient_nonce=before(context.release, NONCES_COMPARED_FROM),
            max_reauth_ms=lambda mechanism: int(
                settings.of_mechanism(listener, mechanism, MAX_REAUTH)
            ),
            validator=lambda: self._validator(listener),
        )

    def _validator(self, listener: str) -> TokenValidator:
        from ..security.listener_tokens import validator_of  # imported only with OAUTHBEARER

        if listener not in self._validators:
            try:
                validator = validator_of(
                    self._context.settings.effective, listener, self._context.key_sources
                )
            except ValueError as error:  # a file that has changed since the broker started
                raise RemoteProtocolError(f"OAUTHBEARER: {error}") from None
            self._validators[listener] = validator
        return self._validators[listener]

    def received(self, event: Received, now: float) -> None:
        """Buffer bytes of a client, and schedule its connection."""
        connections = self.connections
        connection = connections.find(event.connection)
        if connection is None or connection.closing or connection.throttled:
            return
        if not connection.buffer:
            connection.last_active = now
        data = event.data
        connection.buffer += data
        connections.buffered += len(data)
        self.scheduler.received(connection)
        if connections.buffered > connections.most_buffered:
            self.channel.close(*connections.excess())

    def authenticated(self, event: Authenticated) -> None:
        """Note who a client is by its certificate; close the connection if no rule says so."""
        connection = self.connections.find(event.connection)
        if connection is None or connection.closing:
            return
        name = principal_name(self._rules_of(connection.listener), event.name)
        if name is None:
            self.channel.close(connection, f"no rule of {MAPPING_RULES} applies to {event.name!r}")
        else:
            connection.user = name

    def _rules_of(self, listener: str) -> tuple[MappingRule, ...]:
        if listener not in self._mapping_rules:
            text = self._context.settings.of_listener(listener, MAPPING_RULES)
            self._mapping_rules[listener] = mapping_rules(text)
        return self._mapping_rules[listener]

    def unreadable(self, event: Unreadable) -> None:
        """Close a connection that does not speak TLS."""
        connection = self.connections.find(event.connection)
        if connection is not None and not connection.closing:
            self.channel.close(connection, event.reason)

    def drained(self, event: Drained) -> None:
        """Process the next request of a client that has read the responses before."""
        connection = self.connections.find(event.connection)
        if connection is not None:
            connection.unsent, connection.draining = 0, False
            self.scheduler.resume(connection)

    def disconnected(self, event: Disconnected, forget: Callable[[Connection], None]) -> None:
        """Remove a connection. forget: drops its request in process."""
        connection = self.connections.remove(event.connection)
        if connection is not None:
            self._context.deadlines.cancel(IdleConnection(connection.id))
            self._context.deadlines.cancel(MutedUntil(connection.id))
            forget(connection)

    def idle(self, due: IdleConnection, now: float) -> None:
        """Close a connection that is idle, or move its deadline."""
        connection = self.connections.find(due.connection)
        if connection is None or connection.closing:
            return
        if connection.busy is not None or connection.muted:
            connection.last_active = now  # the client waits for the broker
        # the deadline is not moved with each request, so it may be too early
        if not self._set_idle_deadline(connection, later_than=now):
            self.channel.close(connection, f"{connection.idle_reason} connections.max.idle.ms")

    def _set_idle_deadline(self, connection: Connection, later_than: float = -1.0) -> bool:
        """Set the deadline of an idle connection; return whether it lies after `later_than`."""
        max_idle = self._context.settings.seconds("connections.max.idle.ms")
        if max_idle < 0:
            return True
        due = connection.last_active + max_idle
        if due > later_than:
            self._context.deadlines.set(IdleConnection(connection.id), due)
        return due > later_than

    def may_read(self, connection_id: int) -> bool:
        """Whether to read more from a client: not while too many bytes of it are buffered."""
        connection = self.connections.find(connection_id)
        return connection is None or connection.may_read
