"""The transactions of a node's clients, on the coordinators of `kafkawire.transactions`.

Law: what a response promises is committed: a coordinator's record, a marker, a pending offset.

    apis ─▶ Coordinators ─▶ kafkawire.transactions ─▶ NodeMarkers ─▶ leaders
    Produce, TxnOffsetCommit ─▶ TransactionVerifier ─▶ the coordinator, here or at another broker
"""

from __future__ import annotations

from ....broker.context import Context
from ....broker.groups.coordinators import Coordinators
from ....broker.metadata_cache import MetadataCache
from ....broker.producer_ids import ProducerIds
from ....metadata import TopicIdPartition
from ....primitives import Message
from ....transactions import TransactionConfig
from ..machines import NodeMachines
from .apis import NodeTransactions
from .coordinators import TransactionCoordinators
from .markers import NodeMarkers
from .offsets import TransactionalOffsets
from .produce import ProduceVerification
from .verification import TransactionVerifier

__all__ = ["Transactions"]


class Transactions:
    """The parts of a node's transactions."""

    def __init__(
        self,
        node_id: int,
        context: Context,
        metadata: MetadataCache,
        machines: NodeMachines,
        producer_ids: ProducerIds,
        groups: Coordinators,
    ) -> None:
        self._metadata = metadata
        self._verifier = TransactionVerifier(node_id, machines)
        self.markers = NodeMarkers(
            node_id, metadata, machines, groups, context.wall_ms, self._marker_appended
        )
        self.coordinators = TransactionCoordinators(
            node_id, metadata, machines, config_of(context), producer_ids, self.markers
        )
        offsets = TransactionalOffsets(machines, self.coordinators, self._verifier)
        self.apis = NodeTransactions(
            self.coordinators, self.markers, offsets, producer_ids, machines, metadata
        )
        self.produced = ProduceVerification(
            context.settings, metadata, machines, self.coordinators, self._verifier
        )

    def arrived(self, token: int, body: Message | None, now: float) -> None:
        """Handle the response of another broker."""
        if not self.markers.arrived(token, body, now):
            self._verifier.arrived(token, body, now)

    def _marker_appended(self, key: TopicIdPartition, producer_id: int) -> None:
        name = self._metadata.topic_name(key.topic_id)
        self._verifier.ended((name, key.partition), producer_id)


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
