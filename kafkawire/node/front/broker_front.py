"""The parts of a broker process behind its listener: metadata, replicas, groups, producer ids.

Law: they follow the metadata that the machines publish, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...broker.broker import Broker
from ...broker.configs import Settings
from ...broker.events import (
    CommitExpired,
    Deadline,
    FetchExpired,
    GroupDue,
    IdleConnection,
    OffsetsDue,
    OffsetsLoaded,
    ReplyDue,
)
from ...broker.groups.coordinators import Coordinators
from ...configs import ResourceType, source_of
from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.create_topics_request import CreateTopicsRequest
from ...metadata import MetadataDelta, MetadataImage, TopicIdPartition
from ...primitives import Message
from .group_coordinators import GroupCoordinators
from .listener import Listener
from .machines import NodeMachines
from .metadata_cache import ImageMetadata
from .offsets_log import NodeOffsetsLog
from .producer_ids import NodeProducerIds
from .replicas import NodeReplicas
from .requests import NodeForwarding
from .topic_creation import NodeTopicCreation
from .transactions import Transactions

ALL_BROKERS: Final = ""


class BrokerFront:
    """The parts of a broker. listener: that of its clients. voters: of the cluster's quorum."""

    def __init__(
        self, listener: Listener, machines: NodeMachines, settings: Settings, voters: int
    ) -> None:
        node_id, context = listener.endpoint.node_id, listener.context
        self._listener = listener
        self._settings = settings
        self._node_id = node_id
        self._dynamic: dict[str, tuple[str, str]] = {}
        """Key -> (value, resource) of what is set dynamically."""
        self.metadata = metadata = ImageMetadata(listener.name)
        self._creation = NodeTopicCreation(settings, metadata, voters, machines.submit)
        self._producer_ids = NodeProducerIds(
            node_id, machines.broker_epoch, listener.channel, machines.submit
        )
        offsets_log = NodeOffsetsLog(metadata, machines)
        self._coordinators = Coordinators(context, listener.channel, offsets_log)
        self.groups = GroupCoordinators(self._coordinators, offsets_log, metadata, machines)
        self.transactions = Transactions(
            listener, metadata, machines, self._producer_ids, self._coordinators
        )
        produced = self.transactions.produced
        self._replicas = NodeReplicas(listener, metadata, machines.submit, produced)
        self.broker = Broker(
            context,
            listener.channel,
            listener.endpoint,
            metadata,
            self._replicas,
            NodeForwarding(machines.submit),
            self._creation,
            self.transactions.apis,
            self._coordinators,
            self.transactions.apis,
        )
        self.transactions.apis.broker = self.broker

    # -- what the machines report

    def published(self, image: MetadataImage, delta: MetadataDelta, now: float) -> None:
        """Follow the metadata."""
        self.metadata.publish(image, delta)
        if delta.configs:
            self._apply_configs(image)
            self._replicas.configs_changed()
        self.groups.published(delta, now)
        self.transactions.coordinators.published(delta, now)

    def _apply_configs(self, image: MetadataImage) -> None:
        """Set what is set dynamically for all brokers, or for this one."""
        found = {
            name: (value, resource)
            for resource in (ALL_BROKERS, str(self._node_id))
            for name, value in image.config(ResourceType.BROKER, resource).items()
        }
        for name in self._dynamic.keys() - found.keys():
            self._settings.alter(name, None)
        for name, (value, resource) in found.items():
            if self._dynamic.get(name) != (value, resource):
                self._settings.alter(name, value, source_of(resource))
        self._dynamic = found

    def committed(self, key: TopicIdPartition, offset: int, now: float) -> None:
        """Send the responses that waited for a high watermark."""
        self.groups.committed(key, offset, now)
        self.transactions.coordinators.committed(key, offset, now)

    def responded(self, request: Message, response: Message | None, now: float) -> None:
        """Handle the response to a request of this broker."""
        if isinstance(request, AllocateProducerIdsRequest):
            self._producer_ids.allocated(response, now)
        elif isinstance(request, CreateTopicsRequest):
            self._creation.created(request)

    # -- deadlines

    def due(self, due: Deadline, now: float) -> None:
        """Handle an expired deadline."""
        _DUE[type(due)](self, due, now)

    def _connection_due(self, due: IdleConnection | ReplyDue, now: float) -> None:
        self._listener.due(due, now)

    def _group_due(self, due: GroupDue, now: float) -> None:
        self._coordinators.due(due, now)

    def _offsets_due(self, _due: OffsetsDue, now: float) -> None:
        self._coordinators.expire_offsets(now)

    def _commit_expired(self, due: CommitExpired, now: float) -> None:
        self._coordinators.deferred.expire(due.reply_to, now)

    def _unused(self, _due: FetchExpired | OffsetsLoaded, _now: float) -> None:
        """The machines have deadlines of their own."""


_DUE: Final[Mapping[type[Deadline], Callable[..., None]]] = {
    IdleConnection: BrokerFront._connection_due,
    ReplyDue: BrokerFront._connection_due,
    GroupDue: BrokerFront._group_due,
    OffsetsDue: BrokerFront._offsets_due,
    CommitExpired: BrokerFront._commit_expired,
    FetchExpired: BrokerFront._unused,
    OffsetsLoaded: BrokerFront._unused,
}
