"""Sends proposed ISRs to the controller, as Kafka's AlterPartitionManager.

One request is in flight; what was proposed meanwhile goes into the next one. A proposal that
the controller neither makes nor refuses for good is sent again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from ..messages.alter_partition_response import AlterPartitionResponse
from ..messages.alter_partition_response import PartitionData as Verdict
from ..metadata import TopicIdPartition
from ..protocol import ErrorCode
from .isr import Isr
from .partition import Partition
from .replicas import Replicas

E = ErrorCode
REFUSED: Final = frozenset({E.INELIGIBLE_REPLICA, E.OPERATION_NOT_ATTEMPTED})
"""The leader returns to the committed ISR."""
SUPERSEDED: Final = frozenset(
    {
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.FENCED_LEADER_EPOCH,
        E.INVALID_UPDATE_VERSION,
        E.INVALID_REQUEST,
        E.NEW_LEADER_ELECTED,
    }
)
"""The controller knows better: newer metadata is on its way, until which the proposal counts."""
EPOCHS_FROM: Final = 3


class Proposal(NamedTuple):
    """A proposed ISR, and the epochs that it was made in."""

    isr: Isr
    leader_epoch: int
    partition_epoch: int


class AlterPartitions:
    """The proposals of one broker."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.unsent: dict[TopicIdPartition, Proposal] = {}
        self._sent: dict[TopicIdPartition, Proposal] = {}
        self._superseded: dict[TopicIdPartition, Proposal] = {}
        """Those that wait for newer metadata."""
        self._retry_at: float | None = None

    def submit(self, partition: Partition) -> None:
        """Propose the pending ISR of a partition, once."""
        key = partition.key
        if not partition.isr.is_pending:
            if self.unsent or self._superseded:
                self.unsent.pop(key, None)
                self._superseded.pop(key, None)
            return
        proposal = _proposal(partition)
        proposed = self.unsent.get(key) or self._sent.get(key) or self._superseded.get(key)
        if proposed != proposal:
            self.unsent[key] = proposal

    def next_deadline(self, now: float) -> float | None:
        """Return when a request can be sent."""
        if self._sent or not self.unsent:
            return None
        return now if self._retry_at is None else self._retry_at

    def request(self, now: float) -> AlterPartitionRequest | None:
        """Build the next request, if there is one to send."""
        due = self.next_deadline(now)
        if due is None or due > now:
            return None
        self._sent, self.unsent = self.unsent, {}
        self._retry_at = None
        topics: dict[bytes, list[PartitionData]] = {}
        for key, proposal in list(self._sent.items()):
            partition = self.replicas.hosted.get(key)
            if partition is None or proposal != _proposal(partition):
                del self._sent[key]
                continue
            topics.setdefault(key.topic_id, []).append(self._data(partition, proposal))
        if not topics:
            return None
        broker = self.replicas.broker
        return AlterPartitionRequest(
            broker_id=broker.broker_id,
            broker_epoch=broker.epoch,
            topics=[
                TopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def _data(self, partition: Partition, proposal: Proposal) -> PartitionData:
        data = PartitionData(
            partition_index=partition.key.partition,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
        )
        epochs = partition.isr_with_epochs()
        if self.replicas.broker.config.alter_partition_version >= EPOCHS_FROM:
            data.new_isr_with_epochs = [
                BrokerState(broker_id=broker_id, broker_epoch=epoch) for broker_id, epoch in epochs
            ]
        else:
            data.new_isr = [broker_id for broker_id, _ in epochs]
        return data

    def handle(self, body: AlterPartitionResponse | None, now: float) -> None:
        """Handle the response; None if there is none."""
        sent, self._sent = self._sent, {}
        verdicts: dict[TopicIdPartition, Verdict] = {}
        if body is not None and not body.error_code:
            verdicts = {
                TopicIdPartition(topic.topic_id, each.partition_index): each
                for topic in body.topics
                for each in topic.partitions
            }
        for key, proposal in sent.items():
            partition = self.replicas.hosted.get(key)
            if partition is not None and proposal == _proposal(partition):
                self._settle(partition, proposal, verdicts.get(key), now)
                self.replicas.mark(key)

    def _settle(
        self, partition: Partition, proposal: Proposal, verdict: Verdict | None, now: float
    ) -> None:
        error = None if verdict is None else verdict.error_code
        if verdict is not None and error == E.NONE:
            partition.isr_accepted(
                verdict.leader_epoch, frozenset(verdict.isr), verdict.partition_epoch, now
            )
        elif error in REFUSED:
            partition.isr_refused()
        elif error in SUPERSEDED:
            self._superseded[partition.key] = proposal
        else:
            self.unsent[partition.key] = proposal
            self._retry_at = now + self.replicas.broker.config.alter_partition_backoff


def _proposal(partition: Partition) -> Proposal:
    return Proposal(partition.isr, partition.leader_epoch, partition.partition_epoch)
