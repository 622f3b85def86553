"""Connections to other nodes, for the requests of the machines of this one.

A connection has one request in flight, so none waits behind another's long poll; each request
has one response, or None when its connection fails, it has no version in common, or time is over.

    SendRequest ─▶ idle connection to that address, or a new one ─▶ Write ... ─▶ response
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...broker.deadlines import Deadlines
from ...client.network.connection import Connection
from ...client.network.connection_states import (
    ConnectionClosed,
    ConnectionEffect,
    ConnectionReady,
    ConnectionSettings,
    Submit,
)
from ...client.network.negotiated_versions import Opening
from ...client.network.transport import (
    Close,
    Connect,
    RequestToken,
    ShellEffect,
    ShellEvent,
    Write,
)
from ...client.requests import AnyBroker, NoResponse, ResponseReceived, Same, SendRequest
from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...primitives import Limits, Message
from ..effects import SendRequest as NodeRequest
from ..logins import NO_LOGIN, Login

OWNER: Final = "node"
SOFTWARE: Final = ("kafkawire", "node")
LIMITS: Final = Limits(max_frame_bytes=100 << 20)
Address = tuple[str, int]


class Arrived(NamedTuple):
    """The response to a request of the machines; None if there is none."""

    token: int
    body: Message | None


@dataclass(slots=True)
class Peer:
    """A connection. request: the one that it is for, until its response. login: how it is made."""

    login: Login
    address: Address
    machine: Connection
    request: SendRequest | None
    deadline: float


@dataclass(slots=True)
class Outcome:
    """What an event led to."""

    effects: list[ShellEffect] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)


class Peers:
    """The connections to other nodes.

    timeout: `request.timeout.ms`, in seconds. brokers, controllers: how to connect to them.
    """

    def __init__(
        self,
        client_id: str,
        timeout: float,
        nonce: Callable[[], str],
        brokers: Login = NO_LOGIN,
        controllers: Login = NO_LOGIN,
    ) -> None:
        self._logins = {False: brokers, True: controllers}
        self._settings = {
            to_controller: ConnectionSettings(
                client_id=client_id,
                software=SOFTWARE,
                request_timeout_s=timeout,
                setup_timeout_s=timeout,
                credentials=each.credentials,
                max_in_flight=1,
                limits=LIMITS,
            )
            for to_controller, each in self._logins.items()
        }
        self._timeout = timeout
        self._nonce = nonce
        self._peers: dict[int, Peer] = {}
        self._idle: dict[Address, list[int]] = {}
        self.deadlines: Deadlines[int] = Deadlines()
        self._count = 0

    def send(self, effect: NodeRequest, now: float) -> Outcome:
        """Send a request on an idle connection, or on a new one."""
        body = effect.body
        key = REGISTRY.get(type(body).__name__).api_key
        assert key is not None
        deadline = now + self._timeout
        request = SendRequest(
            OWNER,
            effect.token,
            AnyBroker.CONTROLLER,
            ApiKey(key),
            Same(body, 0, effect.version),
            self._timeout,
        )
        address = effect.destination.host, effect.destination.port
        idle = self._idle.get(address)
        if idle:
            peer = self._peers[number := idle.pop()]
            peer.request, peer.deadline = request, deadline
            if not peer.machine.can_send:  # it authenticates again
                return Outcome()
            return self._handled(number, peer.machine.handle(Submit(request, deadline), now), now)
        self._count += 1
        login = self._logins[effect.to_controller]
        machine = Connection(
            self._count,
            effect.destination.id,
            self._settings[effect.to_controller],
            Opening.NEWEST,
            now,
            nonce=self._nonce,
            rng=lambda: 0.0,
        )
        self._peers[self._count] = Peer(login, address, machine, request, deadline)
        self.deadlines.set(self._count, machine.next_deadline())
        return Outcome([Connect(self._count, effect.destination.id, *address)])

    def handle(self, event: ShellEvent, now: float) -> Outcome:
        """Handle an event of a socket."""
        peer = self._peers.get(event.connection)
        if peer is None:
            return Outcome()
        return self._handled(event.connection, peer.machine.handle(event, now), now)

    def listener_of(self, connection: int) -> str:
        """Return the name of the listener that a connection leads to."""
        return self._peers[connection].login.listener

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.deadlines.next()

    def advance(self, now: float) -> Outcome:
        """Close connections whose request has no response in time."""
        outcome = Outcome()
        while (number := self.deadlines.pop_due(now)) is not None:
            requests = self._handled(number, self._peers[number].machine.advance(now), now)
            outcome.effects += requests.effects
            outcome.arrived += requests.arrived
        return outcome

    def _handled(self, number: int, effects: list[ConnectionEffect], now: float) -> Outcome:
        """Carry out what a connection did, and note its next deadline."""
        outcome = self._carry_out(number, effects, now)
        peer = self._peers.get(number)
        self.deadlines.set(number, None if peer is None else peer.machine.next_deadline())
        return outcome

    def _carry_out(self, number: int, effects: list[ConnectionEffect], now: float) -> Outcome:
        peer = self._peers[number]
        outcome = Outcome()
        for effect in effects:
            match effect:
                case Write() | Close() | RequestToken():
                    outcome.effects.append(effect)
                case ConnectionReady():
                    if peer.request is not None:
                        submit = Submit(peer.request, peer.deadline)
                        requests = self._carry_out(number, peer.machine.handle(submit, now), now)
                        outcome.effects += requests.effects
                        outcome.arrived += requests.arrived
                case ResponseReceived():
                    self._settle(peer, effect.message, outcome)
                    self._keep(number, peer)
                case NoResponse():
                    self._settle(peer, None, outcome)
                    if peer.machine.can_send:
                        self._keep(number, peer)
                case ConnectionClosed():
                    self._settle(peer, None, outcome)
                    self._forget(number, peer)
        return outcome

    def _settle(self, peer: Peer, body: Message | None, outcome: Outcome) -> None:
        request, peer.request = peer.request, None
        if request is not None:
            assert isinstance(request.key, int)
            outcome.arrived.append(Arrived(request.key, body))

    def _keep(self, number: int, peer: Peer) -> None:
        self._idle.setdefault(peer.address, []).append(number)

    def _forget(self, number: int, peer: Peer) -> None:
        del self._peers[number]
        idle = self._idle.get(peer.address, [])
        if number in idle:
            idle.remove(number)
