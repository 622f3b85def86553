"""What the parts of a ZooKeeper-era cluster share: settings, deadlines, effects."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...broker.configs import Settings
from ...broker.deadlines import Deadlines
from ..broker_connections import BrokerConnectionEffect
from ..local_cluster import Effect, NodeEffect


@dataclass(frozen=True, slots=True)
class BrokerChannelDue:
    """Deadline: a request to another broker has no response in time, or a backoff is over."""

    channel: int


@dataclass(frozen=True, slots=True)
class ControlledShutdownDue:
    """Deadline: a stopping broker repeats its ControlledShutdown."""

    node_id: int


ZooKeeperDeadline = BrokerChannelDue | ControlledShutdownDue


@dataclass(slots=True)
class ZooKeeperContext:
    """release: of the brokers. effects: those that the current call returns."""

    release: str
    settings: Settings
    deadlines: Deadlines[ZooKeeperDeadline] = field(default_factory=Deadlines)
    effects: list[Effect] = field(default_factory=list)

    def emit(self, node_id: int, effect: BrokerConnectionEffect) -> None:
        """Add an effect of a broker to those that the current call returns."""
        self.effects.append(NodeEffect(node_id, effect))

    def take_effects(self) -> list[Effect]:
        """Return the effects of the current call, in order, and start anew."""
        effects, self.effects = self.effects, []
        return effects
