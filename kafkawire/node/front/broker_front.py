"""The parts of a broker process behind its listener: metadata, replicas, groups, producer ids.

They follow the metadata that the machines publish, and nothing else.
"""

# over 300 lines: all that a broker has behind its listener, and a table of what is due

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...broker.broker import Broker
from ...broker.configs import Settings
from ...broker.configs.stores import NoStores
from ...broker.control_state import ControlState
from ...broker.events import (
    CommitExpired,
    DeadLetterDue,
    Deadline,
    GroupDue,
    OffsetsDue,
    OffsetsLoaded,
    PersistDue,
    ShareFetchExpired,
    SharePartitionDue,
    ShareStatesDue,
    ShareWriteExpired,
)
from ...broker.fetch_sessions import Sessions
from ...broker.forwarding import ForwardingManager
from ...broker.forwarding.config_changes import CheckedForwarding
from ...broker.forwarding.topic_creation import TopicCreation
from ...broker.groups.coordinator_log import CoordinatorLog
from ...broker.groups.coordinators import Coordinators
from ...broker.groups.leadership import GroupCoordinators
from ...broker.metadata_cache import MetadataCache
from ...broker.network.socket_server import SocketServer
from ...broker.quotas.client_quotas import ClientQuotas
from ...broker.quotas.throttling import OF_QUORUM, Throttling
from ...broker.security.authorizer import authorizer_of
from ...broker.share.dead_letters import DeadLetters
from ...broker.share.end_offsets import EndOffsets
from ...broker.share.shares import Shares
from ...broker.share_coordinator.coordinators import ShareCoordinators
from ...broker.share_coordinator.persister import Persister
from ...broker.topic_rules import TopicRules
from ...broker.transactions import Transactions
from ...broker.transactions.producer_ids import ProducerIds
from ...configs import ResourceType, source_of
from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.create_topics_request import CreateTopicsRequest
from ...metadata import ConfigResource, MetadataDelta, MetadataImage, TopicIdPartition
from ...metadata.client_quotas import CONNECTION_CREATION
from ...primitives import Message
from ...replication import AppendCompleted
from ..config import NodeConfig
from .apis import is_between_brokers, listener_apis
from .listeners import Listeners
from .machines import NodeMachines
from .options import DEFAULT, FrontOptions

ALL_BROKERS: Final = ""


class BrokerFront:
    """The parts of a broker. listeners: of its clients."""

    # over 40 lines: composition: a line per part
    def __init__(
        self,
        config: NodeConfig,
        listeners: Listeners,
        machines: NodeMachines,
        settings: Settings,
        options: FrontOptions = DEFAULT,
    ) -> None:
        context, channel = listeners.context, listeners.channel
        main, endpoint = next(iter(listeners.endpoints.items()))
        node_id = endpoint.node_id
        self._config = config
        self._listeners = listeners
        self._settings = settings
        self._node_id = node_id
        self._stores = options.stores.get(node_id, NoStores())
        self._submit = submit = machines.submit
        self._is_broker = machines.is_broker
        """Key -> (value, resource) of what is set dynamically."""
        ensemble = options.ensemble
        self.control = None if ensemble is None else ControlState(node_id, ensemble)
        kraft_version = _kraft_version(config, machines)
        self._shown = {
            name: MetadataCache(name, kraft_version, ensemble) for name in listeners.endpoints
        }
        """What the clients of each listener are shown."""
        self.metadata = metadata = self._shown[main]
        self.throttling = Throttling(ClientQuotas(settings), channel)
        self._throttled = [self.throttling]
        """Those of the brokers' listeners, and of the controllers': each counts for itself."""
        voters = len(config.voters.voters)
        self._creation = TopicCreation(settings, metadata, voters, submit, options.topics)
        self._producer_ids = ProducerIds(node_id, machines.broker_epoch, channel, submit)
        offsets_log = CoordinatorLog(metadata, machines)
        self.share_coordinators = ShareCoordinators(node_id, metadata, machines, context)
        self._persister = persister = Persister(
            node_id, self.share_coordinators, machines, context, self._creation
        )
        rules = TopicRules(settings, metadata.topics)
        self._dead_letters = DeadLetters(
            node_id, context, metadata, machines, self._creation, rules
        )
        self.shares = Shares(context, metadata, machines, persister, self._dead_letters)
        self._end_offsets = EndOffsets(node_id, metadata, machines)
        self._coordinators = Coordinators(
            node_id, context, channel, offsets_log, metadata, persister
        )
        self.groups = GroupCoordinators(self._coordinators, offsets_log, metadata, machines)
        self.transactions = Transactions(
            node_id,
            metadata,
            machines,
            self._producer_ids,
            self._coordinators,
            channel,
            self._creation,
        )
        sessions = Sessions(
            settings.number("max.incremental.fetch.session.cache.slots"),
            context.new_uuid,
            context.bounds.session_partitions,
        )
        self.broker = Broker(
            listener_apis(config, main),
            context,
            channel,
            endpoint,
            metadata,
            machines,
            self.throttling,
            sessions,
            rules,
            CheckedForwarding(
                settings,
                node_id,
                submit,
                metadata.group_configs,
                context.release,
                tuple(listeners.endpoints),
                self._stores,
            ),
            self._creation,
            self._coordinators,
            self.transactions,
            self.share_coordinators,
            self.shares,
            self._end_offsets,
            listeners.endpoints,
            authorizer=authorizer_of(settings.effective),
        )

    @property
    def server(self) -> SocketServer:
        """The connections of the clients."""
        return self._listeners.server

    def brokers_of(self, listeners: Listeners) -> dict[str, Broker]:
        """Return what the handlers of each listener work with."""
        if listeners is not self._listeners or not self._is_broker:
            name = next(iter(listeners.endpoints))
            throttling = Throttling(ClientQuotas(self._settings), listeners.channel, OF_QUORUM)
            self._throttled.append(throttling)
            broker = replace(
                self.broker,
                throttling=throttling,
                apis=listener_apis(self._config, name),
                context=listeners.context,
                channel=listeners.channel,
                controller=ForwardingManager(self._submit),
                is_controller=True,
            )
            return dict.fromkeys(listeners.endpoints, broker)
        return {name: self._broker_of(name) for name in self._shown}

    def _broker_of(self, listener: str) -> Broker:
        """Return what the handlers of a listener of brokers work with."""
        control = None if is_between_brokers(self._config, listener) else self.control
        shown = self._shown[listener]
        return replace(
            self.broker,
            apis=listener_apis(self._config, listener, control is not None),
            endpoint=self._listeners.endpoints[listener],
            metadata=shown,
            control=control,
        )

    # -- what the machines report

    def published(self, image: MetadataImage, delta: MetadataDelta, now: float) -> None:
        """Follow the metadata."""
        for each in self._shown.values():
            each.publish(image, delta)
        if delta.configs:
            self._apply_configs(image)
            if ConfigResource(ResourceType.BROKER, str(self._node_id)) in delta.configs:
                self._stores.renew(self._settings)
        if delta.configs or delta.deleted_topics:
            self.broker.rules.clear()
        authorizer = self.broker.authorizer
        if authorizer is not None:
            authorizer.publish(image.acls, delta.acls)
        if delta.quotas:
            for throttling in self._throttled:
                throttling.publish(image.quotas)
            quotas = self.throttling.quotas
            limited = quotas.limit(CONNECTION_CREATION)
            self._listeners.quotas.throttle_ms = quotas.record_connection if limited else None
        self.share_coordinators.published(delta, now)
        self.groups.published(delta, now)
        self.transactions.coordinators.published(delta, now)
        self.shares.published(now)
        self._creation.published(delta)
        self._dead_letters.published(now)
        self._creation.create_initial(now)
        if delta.topics:
            self._listeners.metadata_changed(now)

    def _apply_configs(self, image: MetadataImage) -> None:
        """Set what is set dynamically for all brokers, or for this one, and valid."""
        self._settings.set_dynamic(
            {
                source_of(resource): {
                    name: value
                    for name, value in image.config(ResourceType.BROKER, resource).items()
                    if self._settings.applies(name, value)
                }
                for resource in (ALL_BROKERS, str(self._node_id))
            }
        )

    def committed(self, key: TopicIdPartition, offset: int, now: float) -> None:
        """Go on with what waited for the high watermark of a partition."""
        self.groups.committed(key, offset, now)
        self.share_coordinators.committed(key, offset, now)
        self.shares.committed(key, now)
        self.transactions.coordinators.committed(key, offset, now)

    def replica_changed(self, key: TopicIdPartition, now: float) -> None:
        """Follow a replica that is offline."""
        self.groups.replica_changed(key, now)
        self.share_coordinators.replica_changed(key, now)
        self.shares.published(now)

    def arrived(self, token: int, body: Message | None, now: float) -> None:
        """Handle the response of another broker."""
        for each in (self._persister, self._end_offsets, self._dead_letters):
            if each.arrived(token, body, now):
                return
        self.transactions.arrived(token, body, now)

    def appended(self, effect: AppendCompleted, now: float) -> None:
        """Go on with what waited for an append of the broker's own."""
        if not self._dead_letters.appended(effect, now):
            self.transactions.markers.appended(effect, now)

    @property
    def failed_appends(self) -> tuple[set[int], ...]:
        """The partitions to load again by `reload_failed`: of groups, and of share groups."""
        return self.groups.failed, self.share_coordinators.failed

    def reload_failed(self, now: float) -> None:
        """Load the coordinators' partitions again to which an append has failed."""
        self.groups.reload_failed(now)
        self.share_coordinators.reload_failed(now)

    def responded(self, request: Message, response: Message | None, now: float) -> None:
        """Handle the response to a request of this broker."""
        if isinstance(request, AllocateProducerIdsRequest):
            self._producer_ids.allocated(response, now)
        elif isinstance(request, CreateTopicsRequest):
            self._creation.created(request, response, now)
            self._creation.create_initial(now)
            self._listeners.metadata_changed(now)

    # -- deadlines

    def due(self, due: Deadline, now: float) -> None:
        """Handle an expired deadline, but those of connections."""
        _DUE[type(due)](self, due, now)

    def _group_due(self, due: GroupDue, now: float) -> None:
        self._coordinators.due(due, now)

    def _offsets_due(self, _due: OffsetsDue, now: float) -> None:
        self._coordinators.expire_offsets(now)

    def _commit_expired(self, due: CommitExpired, now: float) -> None:
        self._coordinators.deferred.expire(due.reply_to, now)

    def _offsets_loaded(self, due: OffsetsLoaded, now: float) -> None:
        self._coordinators.load(due.partition, now)

    def _share_write_expired(self, due: ShareWriteExpired, now: float) -> None:
        self.share_coordinators.expire(due, now)

    def _share_states_due(self, _due: ShareStatesDue, now: float) -> None:
        self.share_coordinators.prune(now)

    def _persist_due(self, due: PersistDue, now: float) -> None:
        self._persister.due(due, now)

    def _share_partition_due(self, due: SharePartitionDue, now: float) -> None:
        self.shares.partition_due(due, now)

    def _dead_letter_due(self, due: DeadLetterDue, now: float) -> None:
        self._dead_letters.due(due, now)

    def _share_fetch_expired(self, due: ShareFetchExpired, now: float) -> None:
        self.shares.fetch_expired(due, now)


_DUE: Final[Mapping[type[Deadline], Callable[[BrokerFront, Any, float], None]]] = {
    GroupDue: BrokerFront._group_due,
    OffsetsDue: BrokerFront._offsets_due,
    CommitExpired: BrokerFront._commit_expired,
    OffsetsLoaded: BrokerFront._offsets_loaded,
    ShareStatesDue: BrokerFront._share_states_due,
    ShareWriteExpired: BrokerFront._share_write_expired,
    PersistDue: BrokerFront._persist_due,
    SharePartitionDue: BrokerFront._share_partition_due,
    DeadLetterDue: BrokerFront._dead_letter_due,
    ShareFetchExpired: BrokerFront._share_fetch_expired,
}


def _kraft_version(config: NodeConfig, machines: NodeMachines) -> Callable[[], int]:
    """Return what returns the kraft.version that clients are shown."""
    shown = config.kraft_version
    return machines.kraft_version if shown is None else lambda: shown
