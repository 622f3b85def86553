"""The requests of a transaction to its coordinators.

An operation is sent until it has a result; it knows its destination, its body for every
version, and where its response has errors.

    InitProducerId ─▶ AddPartitionsToTxn, AddOffsetsToTxn ─▶ TxnOffsetCommit ─▶ EndTxn
                      (transaction.version below 2)          (to the group)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from ....messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from ....messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ....messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ....messages.api_key import ApiKey
from ....messages.end_txn_request import EndTxnRequest
from ....messages.init_producer_id_request import InitProducerIdRequest
from ....messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ....messages.txn_offset_commit_response import TxnOffsetCommitResponse
from ....primitives import Message
from ....primitives.structure import ZERO_UUID
from ....protocol.error_code import ErrorCode
from ...cluster import ClusterView
from ...group_metadata import ConsumerGroupMetadata
from ...requests import Body, Coordinator, CoordinatorKind, Same, error_of
from ..events import TransactionOffset
from ..partition_queue import ProducerIdAndEpoch
from ..produce_requests import IMPLICIT_PARTITIONS
from ..record_accumulator import TopicPartition
from .outcomes import SEVERITY, outcome_of

FIRST_WITH_EPOCH: Final = 3
"""Version of InitProducerId from which a producer can have its epoch bumped (KIP-360)."""
FIRST_WITH_MEMBER: Final = 3
"""Version of TxnOffsetCommit from which it names the member (KIP-447)."""
LAST_BY_PRODUCERS: Final = 3
"""Version of AddPartitionsToTxn; later ones are for brokers."""
VERSION_2: Final = 5
"""Version of EndTxn and TxnOffsetCommit of transactions of version 2 (KIP-890)."""
FIRST_WITH_TOPIC_IDS: Final = 6
"""Version of TxnOffsetCommit from which topics are named by their ids."""


class Transactional(NamedTuple):
    """Who sends: the transactional id, its producer id and epoch, and `transaction.version`.

    view: the cluster's metadata, with the ids of topics.
    """

    transactional_id: str
    identity: ProducerIdAndEpoch
    version: int
    view: ClusterView

    @property
    def coordinator(self) -> Coordinator:
        return Coordinator(CoordinatorKind.TRANSACTION, self.transactional_id)

    @property
    def adds_implicitly(self) -> bool:
        """Whether requests add their partitions and groups themselves."""
        return self.version >= IMPLICIT_PARTITIONS

    def fields(self) -> dict[str, Any]:
        """Return the fields of a request that name the producer."""
        return {"transactional_id": self.transactional_id, **self.identity._asdict()}

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic; zero if it is unknown."""
        topic = self.view.topics.get(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def versions(self, message: Message) -> Body:
        """Return the body of EndTxn or TxnOffsetCommit in the versions of the transaction."""
        if self.adds_implicitly:
            return Same(message, VERSION_2, VERSION_2)
        return Same(message, 0, VERSION_2 - 1)


class Operation(Protocol):
    """A request to a coordinator."""

    @property
    def api(self) -> ApiKey: ...

    def to(self, who: Transactional) -> Coordinator:
        """Return its destination."""
        ...

    def body(self, who: Transactional) -> Body:
        """Return its body."""
        ...

    def error(self, message: Any, who: Transactional) -> tuple[ErrorCode, str]:
        """Return the error of a response, and what it is about."""
        ...


@dataclass(frozen=True, slots=True)
class Init:
    """Get the producer id; or, with the present one in `Transactional`, its next epoch."""

    timeout_ms: int
    bumps: bool
    api = ApiKey.INIT_PRODUCER_ID

    def to(self, who: Transactional) -> Coordinator:
        return who.coordinator

    def body(self, who: Transactional) -> Body:
        fields = {"transactional_id": who.transactional_id}
        message = InitProducerIdRequest(
            **(who.fields() if self.bumps else fields),
            transaction_timeout_ms=self.timeout_ms,
        )
        return Same(message, FIRST_WITH_EPOCH if self.bumps else 0, 5)

    def error(self, message: Any, who: Transactional) -> tuple[ErrorCode, str]:  # noqa: ARG002
        return error_of(message.error_code), "InitProducerId"


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Add partitions to the transaction."""

    partitions: frozenset[TopicPartition]
    api = ApiKey.ADD_PARTITIONS_TO_TXN

    def to(self, who: Transactional) -> Coordinator:
        return who.coordinator

    def body(self, who: Transactional) -> Body:
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            topics.setdefault(topic, []).append(partition)
        message = AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in who.fields().items()},
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        return Same(message, 0, LAST_BY_PRODUCERS)

    def error(self, message: Any, who: Transactional) -> tuple[ErrorCode, str]:  # noqa: ARG002
        return _worst(self.api, _added(message))


@dataclass(frozen=True, slots=True)
class OffsetsCall:
    """A call of `send_offsets`."""

    token: Hashable
    group: ConsumerGroupMetadata
    offsets: tuple[TransactionOffset, ...]


@dataclass(frozen=True, slots=True)
class AddOffsets:
    """Add the offsets of a group to the transaction."""

    call: OffsetsCall
    api = ApiKey.ADD_OFFSETS_TO_TXN

    def to(self, who: Transactional) -> Coordinator:
        return who.coordinator

    def body(self, who: Transactional) -> Body:
        message = AddOffsetsToTxnRequest(**who.fields(), group_id=self.call.group.group_id)
        return Same(message, 0, 4)

    def error(self, message: Any, who: Transactional) -> tuple[ErrorCode, str]:  # noqa: ARG002
        return error_of(message.error_code), f"group {self.call.group.group_id}"


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commit the offsets of a group in the transaction."""

    call: OffsetsCall
    api = ApiKey.TXN_OFFSET_COMMIT

    def to(self, who: Transactional) -> Coordinator:  # noqa: ARG002 - as of all operations
        return Coordinator(CoordinatorKind.GROUP, self.call.group.group_id)

    def body(self, who: Transactional) -> Body:
        group = self.call.group
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for each in self.call.offsets:
            topics.setdefault(each.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=each.partition,
                    committed_offset=each.offset,
                    committed_leader_epoch=each.leader_epoch,
                    committed_metadata=each.metadata,
                )
            )
        message = TxnOffsetCommitRequest(
            **who.fields(),
            group_id=group.group_id,
            generation_id_or_member_epoch=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, topic_id=who.topic_id(name), partitions=rows)
                for name, rows in topics.items()
            ],
        )
        body = who.versions(message)
        if who.adds_implicitly and ZERO_UUID not in map(who.topic_id, topics):
            return Same(message, body.lowest, FIRST_WITH_TOPIC_IDS)
        if not group.names_a_member:
            return body
        return Same(message, max(body.lowest, FIRST_WITH_MEMBER), body.highest)

    def error(self, message: Any, who: Transactional) -> tuple[ErrorCode, str]:
        code, where = _worst(self.api, _committed(message, who))
        return code, f"group {self.call.group.group_id}: {where}"


@dataclass(frozen=True, slots=True)
class End:
    """Commit or abort the transaction."""

    commit: bool
    api = ApiKey.END_TXN

    def to(self, who: Transactional) -> Coordinator:
        return who.coordinator

    def body(self, who: Transactional) -> Body:
        return who.versions(EndTxnRequest(**who.fields(), committed=self.commit))

    def error(self, message: Any, who: Transactional) -> tuple[ErrorCode, str]:  # noqa: ARG002
        return error_of(message.error_code), "commit" if self.commit else "abort"


def _added(message: AddPartitionsToTxnResponse) -> Iterator[tuple[str, int, int]]:
    for topic in message.results_by_topic_v3_and_below:
        for row in topic.results_by_partition:
            yield topic.name, row.partition_index, row.partition_error_code


def _committed(
    message: TxnOffsetCommitResponse, who: Transactional
) -> Iterator[tuple[str, int, int]]:
    for topic in message.topics:
        name = topic.name or who.view.topic_name(topic.topic_id) or topic.topic_id.hex()
        for row in topic.partitions:
            yield name, row.partition_index, row.error_code


def _worst(api: ApiKey, rows: Iterable[tuple[str, int, int]]) -> tuple[ErrorCode, str]:
    """Return the most severe error of partitions; OPERATION_NOT_ATTEMPTED names another's."""
    errors = [(error_of(code), f"{topic}-{index}") for topic, index, code in rows if code]
    causes = [each for each in errors if each[0] is not ErrorCode.OPERATION_NOT_ATTEMPTED] or errors
    if not causes:
        return ErrorCode.NONE, ""
    return max(causes, key=lambda each: SEVERITY[outcome_of(api, each[0])])
