"""AlterPartition: the leader of a partition changes its ISR (KIP-497).

`CHECKS` in order; the first that fails is the error. Replicas that are fenced, shutting down
(KIP-841) or of another incarnation (KIP-903) do not enter the ISR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ...messages import alter_partition_request as requested
from ...messages import alter_partition_response as responded
from ...messages.alter_partition_request import AlterPartitionRequest
from ...messages.alter_partition_response import AlterPartitionResponse
from ...messages.partition_change_record import PartitionChangeRecord
from ...metadata import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
    TopicIdPartition,
)
from ...protocol import ErrorCode
from ..partition_change import Election, PartitionTarget, change_partition, may_lead
from ..state import ControllerState

E = ErrorCode
TOPIC_IDS_FROM: Final = 2
EPOCHS_FROM: Final = 3
ANY_EPOCH: Final = -1


class Proposal(NamedTuple):
    """A change of an ISR that a leader wants. isr: broker -> epoch, ANY_EPOCH before KIP-903."""

    state: ControllerState
    broker_id: int
    partition: PartitionRegistration
    isr: dict[int, int]
    body: requested.PartitionData
    duplicates: bool


def _is_eligible(proposal: Proposal) -> bool:
    for broker_id, epoch in proposal.isr.items():
        broker = proposal.state.image.brokers.get(broker_id)
        if broker is None or not may_lead(proposal.state, proposal.partition, broker_id):
            return False
        if epoch not in (ANY_EPOCH, broker.epoch):
            return False
    return True


CHECKS: Final[tuple[tuple[ErrorCode, Callable[[Proposal], bool]], ...]] = (
    (E.NOT_CONTROLLER, lambda p: p.body.leader_epoch > p.partition.leader_epoch),
    (E.NOT_CONTROLLER, lambda p: p.body.partition_epoch > p.partition.partition_epoch),
    (E.FENCED_LEADER_EPOCH, lambda p: p.body.leader_epoch < p.partition.leader_epoch),
    (E.INVALID_REQUEST, lambda p: p.broker_id != p.partition.leader),
    (E.INVALID_UPDATE_VERSION, lambda p: p.body.partition_epoch < p.partition.partition_epoch),
    (E.INVALID_REQUEST, lambda p: p.duplicates or not set(p.isr) <= set(p.partition.replicas)),
    (E.INVALID_REQUEST, lambda p: p.broker_id not in p.isr),
    (E.INVALID_REQUEST, lambda p: p.body.leader_recovery_state not in (RECOVERED, RECOVERING)),
    (
        E.INVALID_REQUEST,
        lambda p: p.body.leader_recovery_state == RECOVERING and len(p.isr) > 1,
    ),
    (
        E.INVALID_REQUEST,
        lambda p: (
            p.partition.leader_recovery_state == RECOVERED
            and p.body.leader_recovery_state == RECOVERING
        ),
    ),
    (E.INELIGIBLE_REPLICA, lambda p: not _is_eligible(p)),
)
"""Error -> whether a proposal has it."""

BEFORE_TOPIC_IDS: Final = {
    E.INELIGIBLE_REPLICA: E.OPERATION_NOT_ATTEMPTED,
    E.NEW_LEADER_ELECTED: E.FENCED_LEADER_EPOCH,
    E.UNKNOWN_TOPIC_ID: E.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors that versions before 2 do not know."""


def alter_partition(
    state: ControllerState, body: AlterPartitionRequest, version: int, _now: float
) -> AlterPartitionResponse:
    """Change the ISRs of partitions that a broker leads."""
    if state.broker(body.broker_id, body.broker_epoch) is None:
        return AlterPartitionResponse(error_code=E.STALE_BROKER_EPOCH)
    topics = []
    for topic in body.topics:
        topic_id = topic.topic_id
        if version < TOPIC_IDS_FROM:
            topic_id = state.image.topic_ids.get(topic.topic_name, b"")
        topics.append(
            responded.TopicData(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=[
                    _altered(
                        state,
                        body.broker_id,
                        TopicIdPartition(topic_id, each.partition_index),
                        each,
                        version,
                    )
                    for each in topic.partitions
                ],
            )
        )
    return AlterPartitionResponse(topics=topics)


def _altered(
    state: ControllerState,
    broker_id: int,
    at: TopicIdPartition,
    body: requested.PartitionData,
    version: int,
) -> responded.PartitionData:
    error = _attempt(state, broker_id, at, body, version)
    if error is not E.NONE:
        if version < TOPIC_IDS_FROM:
            error = BEFORE_TOPIC_IDS.get(error, error)
        return responded.PartitionData(partition_index=at[1], error_code=error)
    partition = state.image.topics[at[0]].partitions[at[1]]
    return responded.PartitionData(
        partition_index=at[1],
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _attempt(
    state: ControllerState,
    broker_id: int,
    at: TopicIdPartition,
    body: requested.PartitionData,
    version: int,
) -> ErrorCode:
    if at[0] not in state.image.topics:
        return E.UNKNOWN_TOPIC_ID
    partition = state.image.partition(at)
    if partition is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION
    if version >= EPOCHS_FROM:
        isr = {each.broker_id: each.broker_epoch for each in body.new_isr_with_epochs}
    else:
        isr = dict.fromkeys(body.new_isr, ANY_EPOCH)
    count = len(body.new_isr_with_epochs if version >= EPOCHS_FROM else body.new_isr)
    proposal = Proposal(state, broker_id, partition, isr, body, len(isr) != count)
    for error, fails in CHECKS:
        if fails(proposal):
            return error
    record = _change(state, at, proposal)
    moved = record is not None and record.leader not in (broker_id, NO_LEADER_CHANGE)
    return E.NEW_LEADER_ELECTED if moved else E.NONE


def _change(
    state: ControllerState, at: TopicIdPartition, proposal: Proposal
) -> PartitionChangeRecord | None:
    unclean = state.unclean_enabled(at[0])
    target = PartitionTarget(
        isr=tuple(proposal.isr),
        recovery=proposal.body.leader_recovery_state,
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )
    return change_partition(state, at, target)
