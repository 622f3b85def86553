"""The transactions of a node's clients, on the coordinators of `kafkawire.transactions`.

What a response promises is committed: a coordinator's record, a marker, a pending offset.

    apis ─▶ Coordinators ─▶ kafkawire.transactions ─▶ NodeMarkers ─▶ leaders
    Produce, TxnOffsetCommit ─▶ TransactionVerifier ─▶ the coordinator, here or at another broker
"""

from __future__ import annotations

from ...metadata import TopicIdPartition
from ...primitives import Message
from ...transactions import TransactionConfig
from ..context import Context
from ..forwarding.topic_creation import TopicCreation
from ..groups.coordinators import Coordinators
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..network.request_channel import RequestChannel
from .apis import TransactionRequests
from .coordinators import TransactionCoordinators
from .markers import NodeMarkers
from .offsets import TransactionalOffsets
from .produce import ProduceVerification
from .producer_ids import ProducerIds
from .sequences import LowestSequences
from .verification import TransactionVerifier

__all__ = ["Transactions"]


class Transactions:
    """The parts of a node's transactions."""

    def __init__(
        self,
        node_id: int,
        metadata: MetadataCache,
        machines: Machines,
        producer_ids: ProducerIds,
        groups: Coordinators,
        channel: RequestChannel,
        creation: TopicCreation,
    ) -> None:
        self._metadata = metadata
        self._verifier = TransactionVerifier(node_id, machines)
        self.markers = NodeMarkers(
            node_id, metadata, machines, groups, channel.context.wall_ms, self._marker_appended
        )
        self.coordinators = TransactionCoordinators(
            node_id, metadata, machines, config_of(channel.context), producer_ids, self.markers
        )
        offsets = TransactionalOffsets(
            channel, metadata, groups, machines, self.coordinators, self._verifier
        )
        self.apis = TransactionRequests(
            channel,
            creation,
            self.coordinators,
            self.markers,
            offsets,
            producer_ids,
            machines,
            metadata,
        )
        self._sequences = sequences_of(channel.context)
        self.produced = ProduceVerification(
            channel.context.settings,
            metadata,
            machines,
            self.coordinators,
            self._verifier,
            self._sequences,
        )

    def arrived(self, token: int, body: Message | None, now: float) -> None:
        """Handle the response of another broker."""
        if not self.markers.arrived(token, body, now):
            self._verifier.arrived(token, body, now)

    def _marker_appended(self, key: TopicIdPartition, producer_id: int) -> None:
        name = self._metadata.topic_name(key.topic_id)
        self._verifier.ended((name, key.partition), producer_id)
        self._sequences.forget(key, producer_id)


def sequences_of(context: Context) -> LowestSequences:
    """Return what notes the first batches of producers, for as long as producers are kept."""
    seconds = context.settings.seconds("producer.id.expiration.ms")
    return LowestSequences(context.bounds.producers, seconds)


def config_of(context: Context) -> TransactionConfig:
    """Return the settings of coordinators."""
    settings = context.settings
    return TransactionConfig(
        epoch_ms=context.epoch_ms,
        abort_interval=settings.seconds(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        expire_interval=settings.seconds(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        expiration_ms=settings.number("transactional.id.expiration.ms"),
        append_timeout=settings.seconds("offsets.commit.timeout.ms"),
        ids=context.bounds.transactional_ids,
    )
