"""TxnOffsetCommit: commits offsets of a group in a transaction.

v0   the first
v1   no new fields │ throttled after the response
v2   request +committed_leader_epoch
v3   flexible │ request +generation_id_or_member_epoch +member_id +group_instance_id
v4   no new fields │ TRANSACTION_ABORTABLE may be returned
v5   no new fields │ adds the partition of the group to the transaction (KIP-890)
v6   +topic_id -name │ topics by their ids; UNKNOWN_TOPIC_ID, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...messages.txn_offset_commit_request import TxnOffsetCommitRequest
from ...messages.txn_offset_commit_response import TxnOffsetCommitResponse
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ...transactions.responses import offset_commit
from ..groups.consumer_groups.checks import CommittingMember, transactional_commit_error
from ..groups.coordinator import Coordinator
from ..groups.coordinators import Coordinators
from ..groups.group_types import stale_partitions
from ..groups.offsets import Committed, TopicPartition
from ..groups.streams_groups.checks import commit_error as streams_commit_error
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..network.request_channel import RequestChannel
from ..request import DELAYED, HandlerResult, Request
from ..topics import OFFSETS_TOPIC
from .coordinators import TransactionCoordinators
from .verification import Claim, Errors, TransactionVerifier

E = ErrorCode
ABORTABLE_FROM: Final = 4
ADDS_FROM: Final = 5
TOPIC_IDS_FROM: Final = 6
EPOCHS_FROM: Final = 6
"""From this version on, clients know the errors of epochs and of absent groups."""
LOADING: Final[Mapping[ErrorCode, ErrorCode]] = {
    E.NETWORK_EXCEPTION: E.COORDINATOR_LOAD_IN_PROGRESS
}
"""Errors of the verification as clients of this API know them."""


class TransactionalOffsets:
    """The TxnOffsetCommit requests of a node."""

    def __init__(
        self,
        channel: RequestChannel,
        metadata: MetadataCache,
        groups: Coordinators,
        machines: Machines,
        coordinators: TransactionCoordinators,
        verifier: TransactionVerifier,
    ) -> None:
        self._channel = channel
        self._metadata = metadata
        self._groups = groups
        self._machines = machines
        self._coordinators = coordinators
        self._verifier = verifier

    def handle(self, request: Request, body: TxnOffsetCommitRequest, now: float) -> HandlerResult:
        """Commit offsets, once the transaction has the partition of the group."""
        coordinator = self._groups.coordinator(body.group_id)
        if isinstance(coordinator, ErrorCode):
            return offset_commit(body, coordinator)
        partition = OFFSETS_TOPIC, coordinator.index
        entry = self._producer(coordinator, body.producer_id)
        if entry is not None and entry == (body.producer_epoch, True):
            return self._commit(request, body, now)
        adds = request.version >= ADDS_FROM
        if not adds and not self._channel.context.settings.flag(
            "transaction.partition.verification.enable"
        ):
            return self._commit(request, body, now)

        def then(errors: Errors, now: float) -> None:
            error = errors.get(partition)
            if error:
                shown = LOADING.get(error, error)
                self._channel.respond(request.reply_to, offset_commit(body, shown), now)
                return
            response = self._commit(request, body, now)
            if isinstance(response, TxnOffsetCommitResponse):
                self._channel.respond(request.reply_to, response, now)

        abortable = request.version >= ABORTABLE_FROM
        producer = body.producer_id, body.producer_epoch
        claim = Claim(body.transactional_id, *producer, adds, abortable)
        self._verifier.verify(self._coordinators, claim, frozenset({partition}), then, now)
        return DELAYED

    def _producer(self, coordinator: Coordinator, producer_id: int) -> tuple[int, bool] | None:
        """Return the epoch of a producer in the group's partition, and whether it has begun."""
        topic = self._metadata.topics.get(OFFSETS_TOPIC)
        assert topic is not None
        key = TopicIdPartition(topic.topic_id, coordinator.index)
        entry = self._machines.producers(key).get(producer_id)
        return None if entry is None else (entry.producer_epoch, entry.is_in_transaction)

    def _commit(self, request: Request, body: TxnOffsetCommitRequest, now: float) -> HandlerResult:
        coordinator = self._groups.coordinator(body.group_id)
        if isinstance(coordinator, ErrorCode):
            return offset_commit(body, coordinator)
        error, version = self._error(coordinator, body, request.version), request.version
        if error and error is not E.STALE_MEMBER_EPOCH:
            return offset_commit(body, error)
        response = offset_commit(body, E.NONE)
        offsets = self._given(version, body, response, now)
        if error and self._has_stale(coordinator, body, offsets):
            return offset_commit(body, error if version >= EPOCHS_FROM else E.ILLEGAL_GENERATION)
        if not (
            coordinator.may_create(body.group_id) and coordinator.may_commit(body.group_id, offsets)
        ):
            return offset_commit(body, E.POLICY_VIOLATION)
        producer = body.producer_id, body.producer_epoch
        coordinator.commit_transactional(producer, body.group_id, offsets, now)
        return self._groups.settle(request, response, (coordinator,), now)

    def _error(
        self, coordinator: Coordinator, body: TxnOffsetCommitRequest, version: int
    ) -> ErrorCode:
        entry = self._producer(coordinator, body.producer_id)
        if entry is not None and body.producer_epoch < entry[0]:
            return E.INVALID_PRODUCER_EPOCH
        generation = body.generation_id_or_member_epoch
        if body.group_id in coordinator.share_groups:
            return E.GROUP_ID_NOT_FOUND
        member = CommittingMember(body.group_id, body.member_id, generation, body.group_instance_id)
        streams_group = coordinator.streams_groups.get(body.group_id)
        if streams_group is not None:
            return streams_commit_error(streams_group, member)
        consumer_group = coordinator.consumer_groups.get(body.group_id)
        if consumer_group is not None:
            return transactional_commit_error(consumer_group, member)
        group = coordinator.groups.get(body.group_id)
        if group is None and generation >= 0:
            return E.GROUP_ID_NOT_FOUND if version >= EPOCHS_FROM else E.ILLEGAL_GENERATION
        if group is None:
            return E.NONE
        return group.transactional_commit_error(body.member_id, generation, body.group_instance_id)

    def _has_stale(
        self,
        coordinator: Coordinator,
        body: TxnOffsetCommitRequest,
        partitions: Iterable[TopicPartition],
    ) -> bool:
        """Whether a member with another epoch may not commit some of the partitions (KIP-1251)."""
        epoch = body.generation_id_or_member_epoch
        member = CommittingMember(body.group_id, body.member_id, epoch, body.group_instance_id)
        topics = self._metadata.topics
        ids = [
            (topic.topic_id, index)
            for name, index in partitions
            if (topic := topics.get(name)) is not None
        ]
        return bool(stale_partitions(coordinator, member, ids))

    def _given(
        self,
        version: int,
        body: TxnOffsetCommitRequest,
        response: TxnOffsetCommitResponse,
        now: float,
    ) -> dict[TopicPartition, Committed]:
        """Return the offsets to commit; the response gets the errors of the others."""
        wall_ms = self._channel.context.wall_ms(now)
        longest = self._channel.context.settings.number("offset.metadata.max.bytes")
        offsets: dict[TopicPartition, Committed] = {}
        topics, by_id = self._metadata.topics, version >= TOPIC_IDS_FROM
        for topic, results in zip(body.topics, response.topics, strict=True):
            topic_metadata = topics.by_id(topic.topic_id) if by_id else topics.get(topic.name)
            for each, result in zip(topic.partitions, results.partitions, strict=True):
                metadata = each.committed_metadata or ""
                if topic_metadata is None and by_id:
                    result.error_code = E.UNKNOWN_TOPIC_ID
                elif (
                    topic_metadata is None or topic_metadata.partition(each.partition_index) is None
                ):
                    result.error_code = E.UNKNOWN_TOPIC_OR_PARTITION
                elif len(metadata.encode()) > longest:
                    result.error_code = E.OFFSET_METADATA_TOO_LARGE
                else:
                    offsets[topic_metadata.name, each.partition_index] = Committed(
                        each.committed_offset, each.committed_leader_epoch, metadata, wall_ms
                    )
        return offsets
