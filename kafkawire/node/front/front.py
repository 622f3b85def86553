"""A node with its clients: bytes in, bytes out, as one machine without sockets.

What an event leads to in the machines is handled in order before its effects are returned, so
no response overtakes the records that it rests on.

    clients ─▶ Listeners ─▶ handlers ─▶ replicas ─▶ response ─▶ clients
                               └──▶ delayed, or for the controller: Node ─▶ Respond ─▶ clients
    Node ─▶ SendRequest ─▶ Peers ─▶ other nodes        Node ─▶ Published ─▶ metadata, groups
"""

# over 300 lines: one machine, its composition and the effects of its parts

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter
from typing import Any, Final, NamedTuple

from ...broker import Connected, Disconnected, Drained, Endpoint, Fault, Received, Unreadable
from ...broker import Effect as ClientEffect
from ...broker.bounds import SLICE_DEADLINES
from ...broker.configs import Settings
from ...broker.context import Context
from ...broker.deadlines import Deadlines
from ...broker.events import Authenticated, Deadline
from ...broker.handlers import CONTROLLER_HANDLERS, HANDLERS
from ...broker.network.acceptors import ConnectionQuotas, new_rate
from ...broker.request import NODE_CLIENT_ID
from ...broker.security.scram import user_credential
from ...broker.security.tokens import token_credential
from ...client.network.transport import ShellEffect, ShellEvent
from ...protocol import ErrorCode
from ...raft import Endpoint as ListenerAddress
from ...replication import (
    AppendCompleted,
    HighWatermarkAdvanced,
    ReplicaChanged,
    ReplicaState,
)
from ..config import NodeConfig
from ..effects import Effect as NodeEffect
from ..effects import Published, Respond, SendRequest
from ..events import ResponseReceived, ShutdownRequested
from ..node import Node
from .apis import is_between_brokers
from .broker_front import BrokerFront
from .listeners import ConnectionDeadline, Listeners, Users
from .machines import NodeMachines
from .options import DEFAULT, FrontOptions
from .peers import Outcome, Peers

LOG: Final = logging.getLogger("kafkawire.node")
EARLIEST: Final = attrgetter("earliest")
PASSES: Final = 4
"""How often the listeners are served in one call, while the machines have responses for them."""


class Accepted(NamedTuple):
    """A client connected to a listener. connection: chosen by the caller, never reused."""

    listener: str
    connection: int
    host: str


ClientEvent = Received | Drained | Disconnected | Unreadable | Authenticated
Event = Accepted | ClientEvent | ShellEvent | ShutdownRequested
Effect = ClientEffect | ShellEffect | NodeEffect


class NodeFront:
    """A node that clients and other nodes connect to.

    new_uuid: returns 16 unique bytes. draw: returns a random number in [0, 1). faults: those to
    inject into requests of clients; nodes may share them.
    """

    def __init__(
        self,
        node: Node,
        config: NodeConfig,
        new_uuid: Callable[[], bytes],
        draw: Callable[[], float],
        options: FrontOptions = DEFAULT,
        faults: list[Fault] | None = None,
    ) -> None:
        self.config = config
        self._now = 0.0
        self._at: dict[int, str] = {}
        self._effects: list[Effect] = []
        """Of the current call; the handlers of requests add theirs."""
        settings = Settings.of_release(config.static, config.release)
        self._options = options
        self.faults: list[Fault] = [] if faults is None else faults
        self._new_uuid, self._draw, self._settings = new_uuid, draw, settings
        main = config.broker_listeners or config.controller_listeners
        self.machines = NodeMachines(node, config.request_timeout, self._at, main[0].name)
        self.peers = Peers(
            f"{NODE_CLIENT_ID}{config.node_id}",
            config.request_timeout,
            lambda: new_uuid().hex(),
            config.broker_login,
            config.controller_login,
        )
        self._listeners = self._listen(self._users())
        """By name; those of brokers are one object."""
        listeners = self._listeners[main[0].name]
        self.broker: BrokerFront = BrokerFront(config, listeners, self.machines, settings, options)
        self._served = list(dict.fromkeys(self._listeners.values()))
        for each in self._served:
            each.serve(self.broker.brokers_of(each))
        self._schedulers = [(each.scheduler, each.process) for each in self._served]
        self._requests = [queue for each, _ in self._schedulers for queue in each.queues]
        self._coordinators = self.broker.transactions.coordinators
        self._of_transactions = self._coordinators.work
        self._deadlines = self._kept_deadlines()
        self._failed = self.broker.failed_appends

    def _users(self) -> Users:
        """Return who may authenticate: also users and tokens of the metadata that is committed.

        The broker may not be registered yet, which the login of another node is not to wait for.
        """
        node, static, new_uuid = self.machines.node, self._settings.effective, self._new_uuid
        return Users(
            self._options.passwords,
            lambda *key: user_credential(node.image, *key),
            lambda *key: token_credential(
                node.image, static, key, self.config.wall_ms(self._now), new_uuid
            ),
        )

    def _listen(self, users: Users) -> dict[str, Listeners]:
        listeners: dict[str, Listeners] = {}
        quotas = self._connection_quotas()
        for addresses, handlers in (
            (self.config.broker_listeners, HANDLERS),
            (self.config.controller_listeners, CONTROLLER_HANDLERS),
        ):
            if addresses:
                reports = self._options.reports and handlers is HANDLERS
                context = self._context(reports)
                endpoints = self._endpoints(addresses)
                served = Listeners(
                    endpoints, context, handlers, self.config.protocol, quotas, users
                )
                listeners |= dict.fromkeys(served.endpoints, served)
        return listeners

    def _connection_quotas(self) -> ConnectionQuotas:
        names = (each.name for each in self.config.broker_listeners)
        protected = (each for each in names if is_between_brokers(self.config, each))
        return ConnectionQuotas(next(protected, None), new_rate(self._settings))

    def _kept_deadlines(self) -> list[Deadlines[Any]]:
        of_transactions = self.broker.transactions.coordinators.deadlines
        of_clients = [each.context.deadlines for each in self._served]
        return [self.peers.deadlines, of_transactions, *of_clients]

    def _endpoints(self, listeners: Sequence[ListenerAddress]) -> dict[str, Endpoint]:
        config = self.config
        return {
            each.name: Endpoint(config.node_id, each.host, each.port, config.rack)
            for each in listeners
        }

    def _context(self, reports: bool) -> Context:
        config = self.config
        return Context(
            config.cluster_id,
            config.release,
            self._settings,
            config.bounds,
            self._new_uuid,
            self._draw,
            config.epoch_ms,
            self._options.load_seconds,
            reports,
            self.faults,
            clock=self._options.clock,
            effects=self._effects,
            key_sources=self._options.key_sources,
        )

    # -- the machine

    def start(self, now: float) -> list[Effect]:
        """Begin where the node stopped."""
        self.machines.start(now)
        return self._finish(now)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        match event:
            case Received():
                self._listeners[self._at[event.connection]].server.received(event, now)
            case Accepted():
                self._at[event.connection] = event.listener
                connected = Connected(
                    event.connection, self.config.node_id, event.host, event.listener
                )
                self._listeners[event.listener].handle(connected, now)
            case Drained() | Unreadable() | Authenticated():
                self._listeners[self._at[event.connection]].handle(event, now)
            case Disconnected():
                self._listeners[self._at.pop(event.connection)].handle(event, now)
                self.broker.shares.disconnected(event.connection, now)
            case ShutdownRequested():
                self.machines.handle(event, now)
            case _:
                self._carry_out(self.peers.handle(event, now), now)
        return self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`; a past time while requests or effects are queued.

        What was due before these were queued comes first: of several nodes, the broker whose
        heartbeat is due before the controller that would end its session.
        """
        if self.machines.node.stopped:
            return None
        earliest: float = min(map(EARLIEST, self._deadlines))
        if (self.machines.effects or any(self._requests)) and self._now < earliest:
            earliest = self._now
        due = self.machines.node.next_deadline()
        if due is not None and due < earliest:
            earliest = due
        if any(self._of_transactions):
            due = self._coordinators.markers.next_deadline()
            if due is not None and due < earliest:
                earliest = due
        return None if earliest == inf else earliest

    def advance(self, now: float) -> list[Effect]:
        """Do what is due, then queued requests, for one time slice."""
        for listeners in self._served:
            for _ in range(SLICE_DEADLINES):
                due = listeners.context.deadlines.pop_due(now)
                if due is None:
                    break
                self._due(listeners, due, now)
        self._carry_out(self.peers.advance(now), now)
        self.machines.advance(now)
        self.broker.transactions.coordinators.advance(now)
        return self._finish(now, with_backlog=True)

    def _due(self, listeners: Listeners, due: Deadline, now: float) -> None:
        if isinstance(due, ConnectionDeadline):
            listeners.due(due, now)
        else:
            self.broker.due(due, now)

    def _finish(self, now: float, *, with_backlog: bool = False) -> list[Effect]:
        """Handle what the machines returned, and serve the listeners."""
        self._now = now
        machines = self.machines
        node = machines.node
        for _ in range(PASSES):
            if machines.effects or any(self._of_transactions):
                self._drain(now)
            if node.stopped:
                break
            for scheduler, process in self._schedulers:
                if scheduler.ready or (with_backlog and scheduler.backlog):
                    scheduler.run(process, now, with_backlog=with_backlog)
            if any(self._failed) and not node.stopped:
                self.broker.reload_failed(now)
            if not machines.effects:
                break
        effects = self._effects.copy()
        self._effects.clear()
        if node.stopped:  # clients get nothing more: it may not be true
            return [each for each in effects if not isinstance(each, ClientEffect)]
        return effects

    # -- effects of the machines

    def _drain(self, now: float) -> None:
        """Handle what the machines returned, and what transactions make of it."""
        effects = self.machines.effects
        while True:
            while effects:
                self._machine_effect(effects.popleft(), now)
            if self.machines.node.stopped:
                return
            if any(self._of_transactions):
                self._coordinators.run(now)
            if not effects:
                return

    def _machine_effect(self, effect: NodeEffect, now: float) -> None:
        match effect:
            case Respond():
                self._respond(effect, now)
            case HighWatermarkAdvanced():
                self.broker.committed(effect.key, effect.offset, now)
            case SendRequest():
                self._carry_out(self.peers.send(effect, now), now)
            case Published():
                self.broker.published(effect.image, effect.delta, now)
                if effect.delta.configs:
                    for each in self._served:
                        each.server.limits_changed()
                self._effects.append(effect)
            case ReplicaChanged(key, ReplicaState.OFFLINE):
                self.broker.replica_changed(key, now)
                self._effects.append(effect)
            case AppendCompleted():
                self.broker.appended(effect, now)
            case _:
                self._effects.append(effect)

    def _respond(self, effect: Respond, now: float) -> None:
        submitted = self.machines.responded(effect)
        if submitted is None:
            return
        request, body, plan = submitted
        if request is None:
            self.broker.responded(body, effect.body, now)
            return
        name = self._at.get(request.connection)
        if name is None:
            return  # the client has disconnected
        listeners = self._listeners[name]
        if effect.body is None or plan is None:
            listeners.channel.end(request.reply_to, now)
            return
        try:
            response = plan.response(effect.body, now)
        except Exception:
            LOG.exception("the response to %s v%d", request.api_key.name, request.version)
            listeners.channel.fail(request.reply_to, ErrorCode.UNKNOWN_SERVER_ERROR, now)
        else:
            listeners.channel.respond(request.reply_to, response, now)

    def _carry_out(self, outcome: Outcome, now: float) -> None:
        self._effects += outcome.effects
        for token, body in outcome.arrived:
            if token < 0:
                self.broker.arrived(token, body, now)
            else:
                self.machines.handle(ResponseReceived(token, body), now)
