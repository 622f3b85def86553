"""One broker of the cluster: what its request handlers work with.

Law: a broker coordinates only the groups whose partition of `__consumer_offsets` it leads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import ErrorCode
from .context import Context, Endpoint
from .controller.controller import Controller
from .groups.coordinators import Coordinators
from .network.request_channel import RequestChannel
from .replication.appending import Appender
from .replication.replica_manager import ReplicaManager
from .topics import NO_LEADER, OFFSETS_TOPIC

if TYPE_CHECKING:
    from .groups.coordinator import Coordinator

E = ErrorCode


class Broker:
    """One node: the context of the handlers of its requests.

    replicas: the partitions that it leads. appender, groups, controller: of the whole cluster.
    """

    def __init__(
        self,
        context: Context,
        channel: RequestChannel,
        replicas: ReplicaManager,
        appender: Appender,
        groups: Coordinators,
        controller: Controller,
    ) -> None:
        self.context = context
        self.topics = context.topics
        self.settings = context.settings
        self.channel = channel
        self.replicas = replicas
        self.appender = appender
        self.groups = groups
        self.controller = controller

    @property
    def node_id(self) -> int:
        return self.replicas.node_id

    @property
    def endpoint(self) -> Endpoint:
        return self.context.endpoints[self.node_id]

    def coordinator(self, group_id: str) -> Coordinator | ErrorCode:
        """Return the coordinator of a group, if this broker is its coordinator."""
        if group_id == "":
            return E.INVALID_GROUP_ID
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return E.COORDINATOR_NOT_AVAILABLE
        partition = topic.partitions[self.groups.partition_of(group_id)]
        if partition.leader_id == NO_LEADER:
            return E.COORDINATOR_NOT_AVAILABLE
        if partition.leader_id != self.replicas.node_id:
            return E.NOT_COORDINATOR
        return self.groups.of(partition.index)

    def coordinators(self) -> list[Coordinator] | ErrorCode:
        """Return the coordinators on this broker, or an error while one of them is loading."""
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return []
        mine = [each.index for each in topic.partitions if each.leader_id == self.node_id]
        found = []
        for coordinator in map(self.groups.of, mine):
            if isinstance(coordinator, ErrorCode):
                return coordinator
            found.append(coordinator)
        return found
