"""What a cluster with ZooKeeper has besides its brokers: composed here, driven by `Cluster`.

Law: a broker sends nothing to another one unless a change made it; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..context import Context
from ..events import (
    BrokerChannelDue,
    BrokerConnectionClosed,
    BrokerConnectionEvent,
    BrokerConnectionOpened,
    ClusterStarted,
    ControlledShutdownDue,
    ReceivedFromBroker,
    ShutdownRequested,
    ZooKeeperDeadline,
    ZooKeeperEvent,
)
from ..metadata import ClusterMetadata
from .channels import BrokerChannels
from .control_state import ControlState
from .controlled_shutdown import ControlledShutdowns
from .controller import ZooKeeperController
from .registry import Registry


class ZooKeeperCluster:
    """The registry, the elected controller, and what each broker knows of controllers."""

    def __init__(self, context: Context, metadata: ClusterMetadata) -> None:
        self.registry = Registry()
        self.channels = BrokerChannels(context)
        self.controller = ZooKeeperController(context, metadata, self.registry, self.channels)
        self._shutdowns = ControlledShutdowns(context, self.registry, self.channels)
        self.control = {each: ControlState(each, self.registry) for each in metadata.endpoints}

    def handle(self, event: ZooKeeperEvent, now: float) -> None:
        """Handle an event."""
        _HANDLERS[type(event)](self, event, now)

    def due(self, due: ZooKeeperDeadline, now: float) -> None:
        """Handle a deadline."""
        _HANDLERS[type(due)](self, due, now)

    def broker_stopped(self, node_id: int) -> None:
        """Forget what the process of a broker knew."""
        self._shutdowns.broker_stopped(node_id)
        self.control[node_id].restart()

    def _started(self, _event: ClusterStarted, now: float) -> None:
        self.controller.started(now)

    def _shutdown_requested(self, event: ShutdownRequested, now: float) -> None:
        self._shutdowns.requested(event.node_id, now)

    def _connection(self, event: BrokerConnectionEvent, now: float) -> None:
        self.channels.handle(event, now)

    def _channel_due(self, due: BrokerChannelDue, now: float) -> None:
        self.channels.due(due, now)

    def _shutdown_due(self, due: ControlledShutdownDue, now: float) -> None:
        self._shutdowns.due(due, now)


_HANDLERS: Final[
    Mapping[
        type[ZooKeeperEvent | ZooKeeperDeadline], Callable[[ZooKeeperCluster, Any, float], None]
    ]
] = {
    ClusterStarted: ZooKeeperCluster._started,
    ShutdownRequested: ZooKeeperCluster._shutdown_requested,
    BrokerConnectionOpened: ZooKeeperCluster._connection,
    ReceivedFromBroker: ZooKeeperCluster._connection,
    BrokerConnectionClosed: ZooKeeperCluster._connection,
    BrokerChannelDue: ZooKeeperCluster._channel_due,
    ControlledShutdownDue: ZooKeeperCluster._shutdown_due,
}
