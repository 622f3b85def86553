"""Connects a network with the machines that send requests through it.

An owner's network effects go to the network, a response goes to the owner of its request, in
the order in which they were emitted; other effects are returned to the shell.

    shell, user ─▶ handle ─▶ [owner ⇄ network] ─▶ effects for the shell and the user
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from .metrics import Metrics
from .network.network import Network, NetworkEffect, NetworkEvent
from .network.transport import (
    BytesReceived,
    ConnectionLost,
    ConnectionMade,
    ShellEffect,
    ShellEvent,
    TokenFailed,
    TokenReceived,
    WritingPaused,
    WritingResumed,
)
from .requests import (
    ClusterFailed,
    ForgetCoordinator,
    Machine,
    MetadataChanged,
    NoResponse,
    OwnerEffect,
    OwnerEvent,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    Sent,
    TrackTopics,
    UpdateLeader,
)

FOR_NETWORK: Final = frozenset(
    {
        SendRequest,
        TrackTopics,
        RequestMetadataUpdate,
        UpdateLeader,
        ForgetCoordinator,
        ConnectionMade,
        ConnectionLost,
        BytesReceived,
        WritingPaused,
        WritingResumed,
        TokenReceived,
        TokenFailed,
    }
)
FOR_ALL: Final = frozenset({MetadataChanged, ClusterFailed})
FOR_OWNER: Final = frozenset({ResponseReceived, NoResponse, Sent})


UserEvent = TypeVar("UserEvent")
UserEffect = TypeVar("UserEffect")


class Client(Generic[UserEvent, UserEffect]):
    """A network and its owners by name; the first owner receives the user's events.

    metrics: records the responses to owners.
    """

    def __init__(
        self,
        network: Network,
        owners: Mapping[str, Machine[UserEvent | OwnerEvent, UserEffect | OwnerEffect]],
        metrics: Metrics | None = None,
    ) -> None:
        self.network = network
        self._metrics = metrics
        self._owners = dict(owners)
        self._first = next(iter(self._owners.values()))

    def handle(self, event: UserEvent | ShellEvent, now: float) -> list[UserEffect | ShellEffect]:
        """Handle an event of the shell or the user."""
        to: Machine[Any, Any] = self.network if type(event) in FOR_NETWORK else self._first
        return self.dispatch(to.handle(event, now), now)

    def to_network(self, event: NetworkEvent, now: float) -> list[UserEffect | ShellEffect]:
        """Handle an event of the network alone (`CloseNetwork`)."""
        return self.dispatch(self.network.handle(event, now), now)

    def next_deadline(self) -> float | None:
        machines: list[Machine[Any, Any]] = [self.network, *self._owners.values()]
        deadlines = [machine.next_deadline() for machine in machines]
        return min((at for at in deadlines if at is not None), default=None)

    def advance(self, now: float) -> list[UserEffect | ShellEffect]:
        out = self.dispatch(self.network.advance(now), now)
        for owner in self._owners.values():
            out += self.dispatch(owner.advance(now), now)
        return out

    def dispatch(
        self, effects: Sequence[UserEffect | OwnerEffect | NetworkEffect], now: float
    ) -> list[UserEffect | ShellEffect]:
        """Deliver effects to their receivers; return those for the shell and the user."""
        if not effects:
            return []
        out: list[UserEffect | ShellEffect] = []
        pending: deque[Any] = deque(effects)  # the type of an effect decides who receives it
        while pending:
            effect = pending.popleft()
            kind = type(effect)
            if kind in FOR_NETWORK:
                pending.extend(self.network.handle(effect, now))
            elif kind in FOR_ALL:
                for owner in self._owners.values():
                    pending.extend(owner.handle(effect, now))
            elif kind in FOR_OWNER:
                if kind is ResponseReceived and self._metrics is not None:
                    self._metrics.on_response(effect, now)
                pending.extend(self._owners[effect.request.owner].handle(effect, now))
            else:
                out.append(effect)
        return out
