"""A node with its clients: bytes in, bytes out, as one machine without sockets.

Law: what an event leads to in the machines is handled in order before its effects are returned, so
no response overtakes the records that it rests on.

    clients ─▶ Listener ─▶ handlers ─▶ Node ─▶ Respond ─▶ plans of the handlers ─▶ clients
    Node ─▶ SendRequest ─▶ Peers ─▶ other nodes               Node ─▶ Published ─▶ metadata, groups
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from ...broker import Connected, Disconnected, Drained, Endpoint, Fault, Received, Unreadable
from ...broker import Effect as ClientEffect
from ...broker.bounds import DEFAULT_BOUNDS, SLICE_DEADLINES
from ...broker.configs import Settings
from ...broker.context import Context
from ...broker.effects import Report
from ...broker.events import Deadline, IdleConnection, ReplyDue
from ...client.network.transport import ShellEffect, ShellEvent
from ...configs import broker_configs
from ...messages.fetch_request import FetchRequest
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
from .apis import BROKER_HANDLERS, CONTROLLER_HANDLERS, RELEASE, broker_offer, controller_offer
from .broker_front import BrokerFront
from .listener import Listener
from .machines import NodeMachines
from .peers import Outcome, Peers
from .replicas import is_from_follower

LOG: Final = logging.getLogger("kafkawire.node")
PASSES: Final = 4
"""How often the listeners are served in one call, while the machines have responses for them."""


class Accepted(NamedTuple):
    """A client connected to a listener. connection: chosen by the caller, never reused."""

    listener: str
    connection: int
    host: str


ClientEvent = Received | Drained | Disconnected | Unreadable
Event = Accepted | ClientEvent | ShellEvent | ShutdownRequested
Effect = ClientEffect | ShellEffect | NodeEffect


class NodeFront:
    """A node that clients and other nodes connect to.

    new_uuid, draw: as of `Cluster`.
    """

    def __init__(
        self,
        node: Node,
        config: NodeConfig,
        new_uuid: Callable[[], bytes],
        draw: Callable[[], float],
    ) -> None:
        self.config = config
        self._now = 0.0
        self._at: dict[int, str] = {}
        self._effects: list[Effect] = []
        settings = Settings(dict(config.static), broker_configs(RELEASE))
        main = (config.broker_listeners or config.controller_listeners)[0]
        self.machines = NodeMachines(node, config.request_timeout, self._at, main.name)
        self.peers = Peers(
            f"node-{config.node_id}", config.request_timeout, lambda: new_uuid().hex()
        )
        self._listeners = {
            each.name: self._listener(each, settings, new_uuid, draw) for each in config.listeners
        }
        listener = self._listeners[main.name]
        self.broker = BrokerFront(listener, self.machines, settings, len(config.voters.voters))
        for each in self._listeners.values():
            each.serve(replace(self.broker.broker, context=each.context, channel=each.channel))

    def _listener(
        self,
        at: ListenerAddress,
        settings: Settings,
        new_uuid: Callable[[], bytes],
        draw: Callable[[], float],
    ) -> Listener:
        config = self.config
        endpoint = Endpoint(config.node_id, at.host, at.port, config.rack)
        if at.name == config.controller_listener:
            offer = controller_offer()
            offers, handlers = (offer, offer), CONTROLLER_HANDLERS
        else:
            offers, handlers = broker_offer(), BROKER_HANDLERS
        context = Context(
            config.cluster_id,
            RELEASE,
            *offers,
            settings,
            DEFAULT_BOUNDS,
            new_uuid,
            draw,
            config.epoch_ms,
        )
        return Listener(at.name, endpoint, context, handlers)

    @property
    def faults(self) -> list[Fault]:
        """The faults to inject into requests of clients."""
        return self.broker.broker.context.faults

    # -- the machine

    def start(self, now: float) -> list[Effect]:
        """Begin where the node stopped."""
        self.machines.start(now)
        return self._finish(now)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        match event:
            case Accepted():
                self._at[event.connection] = event.listener
                connected = Connected(event.connection, self.config.node_id, event.host)
                self._listeners[event.listener].handle(connected, now)
            case Received() | Drained() | Unreadable():
                self._listeners[self._at[event.connection]].handle(event, now)
            case Disconnected():
                self._listeners[self._at.pop(event.connection)].handle(event, now)
            case ShutdownRequested():
                self.machines.handle(event, now)
            case _:
                self._carry_out(self.peers.handle(event, now), now)
        return self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`; a past time while requests are queued."""
        if self.machines.node.stopped:
            return None
        if any(each.server.has_work for each in self._listeners.values()):
            return self._now
        times = [each.context.deadlines.next() for each in self._listeners.values()]
        times += [self.machines.node.next_deadline(), self.peers.next_deadline()]
        return min((each for each in times if each is not None), default=None)

    def advance(self, now: float) -> list[Effect]:
        """Do what is due, then queued requests, for one time slice."""
        for listener in self._listeners.values():
            for _ in range(SLICE_DEADLINES):
                due = listener.context.deadlines.pop_due(now)
                if due is None:
                    break
                self._due(listener, due, now)
        self._carry_out(self.peers.advance(now), now)
        self.machines.advance(now)
        return self._finish(now)

    def _due(self, listener: Listener, due: Deadline, now: float) -> None:
        if isinstance(due, IdleConnection | ReplyDue):
            listener.due(due, now)
        else:
            self.broker.due(due, now)

    def _finish(self, now: float) -> list[Effect]:
        """Handle what the machines returned, and serve the listeners."""
        self._now = now
        for _ in range(PASSES):
            while self.machines:
                self._machine_effect(self.machines.take(), now)
            if self.machines.node.stopped:
                break  # clients get nothing more: it may not be true
            for listener in self._listeners.values():
                found = listener.run(now)
                if listener.name == self.config.controller_listener:
                    found = [each for each in found if not isinstance(each, Report)]
                self._effects += [each for each in found if not _is_of_node(each)]
            if not self.machines.node.stopped:
                self.broker.groups.reload_failed(now)
            if not self.machines:
                break
        effects, self._effects = self._effects, []
        return effects

    # -- effects of the machines

    def _machine_effect(self, effect: NodeEffect, now: float) -> None:
        match effect:
            case Respond():
                self._respond(effect, now)
            case SendRequest():
                self._carry_out(self.peers.send(effect, now), now)
            case Published():
                self.broker.published(effect.image, effect.delta, now)
                self._effects.append(effect)
            case HighWatermarkAdvanced():
                self.broker.committed(effect.key, effect.offset, now)
            case ReplicaChanged(key, ReplicaState.OFFLINE):
                self.broker.replica_changed(key, now)
                self._effects.append(effect)
            case AppendCompleted():
                pass  # its coordinator waits for the high watermark
            case _:
                self._effects.append(effect)

    def _respond(self, effect: Respond, now: float) -> None:
        submitted = self.machines.responded(effect)
        if submitted is None:
            return
        request = submitted.request
        if request is None:
            self.broker.responded(submitted.body, effect.body, now)
            return
        name = self._at.get(request.connection)
        if name is None:
            return  # the client has disconnected
        listener = self._listeners[name]
        if effect.body is None or submitted.plan is None:
            listener.finish(request.reply_to, now)
            return
        try:
            response = submitted.plan.response(effect.body)
        except Exception:
            LOG.exception("the response to %s v%d", request.api_key.name, request.version)
            listener.channel.fail(request.reply_to, ErrorCode.UNKNOWN_SERVER_ERROR, now)
        else:
            listener.channel.respond(request.reply_to, response, now)

    def _carry_out(self, outcome: Outcome, now: float) -> None:
        self._effects += outcome.effects
        for token, body in outcome.arrived:
            self.machines.handle(ResponseReceived(token, body), now)


def _is_of_node(effect: ClientEffect) -> bool:
    """Whether an effect reports a request of a follower; it is not worth a report."""
    if not isinstance(effect, Report) or not isinstance(effect.request.body, FetchRequest):
        return False
    return is_from_follower(effect.request.body, effect.request.version)
