"""A `LocalCluster` whose brokers show a controller in ZooKeeper, as before Kafka 2.8.

The requests between brokers go over connections that the caller opens, like those of clients,
so whoever captures them sees what Kafka sends. The quorum beside them is not seen.

    ShutDown ─▶ ControlledShutdown to the controller ─▶ leaders move ─▶ the process is stopped
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...broker import Endpoint
from ...broker.configs import Settings
from ..broker_connections import (
    BrokerConnectionClosed,
    BrokerConnectionEvent,
    BrokerConnectionOpened,
    ReceivedFromBroker,
)
from ..effects import Published, Stopped
from ..front.front import Effect as FrontEffect
from ..front.options import DEFAULT, FrontOptions
from ..local_cluster import (
    CONTROLLER_ID,
    ClusterEvent,
    Effect,
    Killed,
    LocalCluster,
    ShutDown,
)
from ..local_node import LocalNode
from ..quorum.controller_server import Randomness
from .changes import Changes
from .channels import BrokerChannels
from .context import BrokerChannelDue, ControlledShutdownDue, ZooKeeperContext
from .controlled_shutdown import ControlledShutdowns
from .controller import ZooKeeperController
from .registry import Registry

ZooKeeperEvent = ClusterEvent | BrokerConnectionEvent


class ZooKeeperCluster(LocalCluster):
    """The nodes, and what ZooKeeper and the elected controller have of them.

    endpoints: of the brokers. Raises ValueError for a release that needs no ZooKeeper.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        nodes: Iterable[LocalNode],
        rng: Randomness,
        new_uuid: Callable[[], bytes],
        options: FrontOptions = DEFAULT,
    ) -> None:
        self.registry = Registry(endpoints)
        super().__init__(nodes, rng, new_uuid, replace(options, ensemble=self.registry))
        config = self.nodes[CONTROLLER_ID].config
        release = self.nodes[min(self.nodes)].config.release
        settings = Settings.of_release(config.static, release)
        self._context = context = ZooKeeperContext(release, settings)
        self.channels = BrokerChannels(context)
        self.controller = ZooKeeperController(context, self.registry, self.channels)
        self._shutdowns = ControlledShutdowns(context, self.registry, self.channels)
        self._changes = Changes(self.registry, self.controller)
        self._now = 0.0

    # -- the machine

    def start(self, now: float) -> list[Effect]:
        """Start all nodes; the first broker that is up is elected."""
        self._now = now
        return self._and_between_brokers(super().start(now), now)

    def handle(self, event: ZooKeeperEvent, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        self._now = now
        effects: list[Effect] = []
        match event:
            case BrokerConnectionOpened() | ReceivedFromBroker() | BrokerConnectionClosed():
                self.channels.handle(event, now)
            case ShutDown():
                self._shutdowns.requested(event.node_id, now)
            case _:
                if isinstance(event, Killed):
                    self._shutdowns.broker_stopped(event.node_id)
                effects = super().handle(event, now)
        return self._and_between_brokers(effects, now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`; a past time while a node has requests queued."""
        times = (super().next_deadline(), self._context.deadlines.next())
        return min((each for each in times if each is not None), default=None)

    def advance(self, now: float) -> list[Effect]:
        """Do what is due, for one time slice."""
        self._now = now
        effects = super().advance(now)
        while (due := self._context.deadlines.pop_due(now)) is not None:
            match due:
                case BrokerChannelDue():
                    self.channels.due(due, now)
                case ControlledShutdownDue():
                    self._shutdowns.due(due, now)
        return self._and_between_brokers(effects, now)

    def _and_between_brokers(self, effects: list[Effect], now: float) -> list[Effect]:
        """Stop the processes that may be stopped; add what brokers send each other."""
        effects += self._context.take_effects()
        while self._shutdowns.done:
            effects += super().handle(ShutDown(self._shutdowns.done.pop()), now)
            effects += self._context.take_effects()
        return effects

    # -- effects of nodes

    def _report(self, node_id: int, effect: FrontEffect) -> None:
        super()._report(node_id, effect)
        if node_id == CONTROLLER_ID and isinstance(effect, Published):
            self._changes.publish(effect.image, effect.delta, self._now)
        elif isinstance(effect, Stopped):
            self._shutdowns.broker_stopped(node_id)
