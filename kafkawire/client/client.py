"""A whole client: a network and the machines that ask it.

Law: what an owner wants of the network goes there, what the network answers goes to the owner that
asked, in the order in which it was said; what is left is for the shell.

    shell, user ─▶ handle ─▶ [owner ⇄ network] ─▶ effects for the shell and the user
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from .network.network import Network
from .network.transport import (
    BytesReceived,
    ConnectionLost,
    ConnectionMade,
    WritingPaused,
    WritingResumed,
)
from .requests import (
    ClusterFailed,
    ForgetCoordinator,
    Machine,
    MetadataChanged,
    NoResponse,
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
    }
)
FOR_ALL: Final = frozenset({MetadataChanged, ClusterFailed})


class Client:
    """The machine; owners by name, the first is who gets the user's events."""

    def __init__(self, network: Network, owners: Mapping[str, Machine]) -> None:
        self.network = network
        self._owners = dict(owners)
        self._first = next(iter(self._owners.values()))

    def handle(self, event: object, now: float) -> list[object]:
        """Take an event of the shell or the user."""
        to = self.network if type(event) in FOR_NETWORK else self._first
        return self.carry(to.handle(event, now), now)

    def to_network(self, event: object, now: float) -> list[object]:
        """Take an event that only the network knows (`CloseNetwork`)."""
        return self.carry(self.network.handle(event, now), now)

    def next_deadline(self) -> float | None:
        machines: list[Machine] = [self.network, *self._owners.values()]
        found = [machine.next_deadline() for machine in machines]
        return min((at for at in found if at is not None), default=None)

    def advance(self, now: float) -> list[object]:
        out = self.carry(self.network.advance(now), now)
        for owner in self._owners.values():
            out += self.carry(owner.advance(now), now)
        return out

    def carry(self, effects: Sequence[object], now: float) -> list[object]:
        """Take effects of an owner to where they belong; give what is left."""
        if not effects:
            return []
        out: list[object] = []
        left = deque(effects)
        while left:
            effect = left.popleft()
            kind = type(effect)
            if kind in FOR_NETWORK:
                left.extend(self.network.handle(effect, now))
            elif kind in FOR_ALL:
                for owner in self._owners.values():
                    left.extend(owner.handle(effect, now))
            elif isinstance(effect, ResponseReceived | NoResponse | Sent):
                left.extend(self._owners[effect.ask.owner].handle(effect, now))
            else:
                out.append(effect)
        return out
