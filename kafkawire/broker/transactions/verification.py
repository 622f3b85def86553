"""Has the coordinator verify, or add, partitions of a transaction before an append (KIP-890).

Nothing begins a transaction in a partition that its coordinator does not know of. An append
whose transaction ended meanwhile, by a marker in that partition, is not verified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ...messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ...primitives import Message
from ...protocol import ErrorCode
from ...protocol.error_code import error_of
from ...transactions import (
    EPOCH_BUMPED,
    AddPartitions,
    Request,
    Result,
    TopicPartition,
    VerifyPartitions,
)
from ..machines import Machines
from ..topics import NO_LEADER
from .coordinators import TransactionCoordinators

E = ErrorCode
VERSION: Final = 5
RETRY: Final = frozenset(
    {
        E.CONCURRENT_TRANSACTIONS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NETWORK_EXCEPTION,
        E.NOT_COORDINATOR,
    }
)
"""What clients of Produce do not retry, so that they get NOT_ENOUGH_REPLICAS."""


class Claim(NamedTuple):
    """The transaction that an append is of.

    adds: its partitions are added, not only verified. abortable: whether its client knows
    TRANSACTION_ABORTABLE.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds: bool
    abortable: bool

    def shown(self, error: ErrorCode) -> ErrorCode:
        """Return an error as the client knows it."""
        if error is E.PRODUCER_FENCED:
            return E.INVALID_PRODUCER_EPOCH
        missing = error is E.TRANSACTION_ABORTABLE and not self.abortable
        return E.INVALID_TXN_STATE if missing else error


Errors = dict[TopicPartition, ErrorCode]
Then = Callable[[Errors, float], None]


@dataclass(slots=True)
class Verification:
    """A verification in progress. ended: partitions that got a marker of its producer.

    The marker may be that of the transaction before, which its coordinator has not completed: then
    it says so, and the client tries again.
    """

    claim: Claim
    partitions: frozenset[TopicPartition]
    then: Then
    ended: set[TopicPartition] = field(default_factory=set)

    def finish(self, errors: Errors, now: float) -> None:
        """Pass the errors on."""
        ended = dict.fromkeys(self.ended, E.TRANSACTION_ABORTABLE)
        refused = ended | {key: error for key, error in errors.items() if error}
        shown = {key: self.claim.shown(error) for key, error in refused.items()}
        self.then(shown, now)


class TransactionVerifier:
    """The verifications of a node."""

    def __init__(self, node_id: int, machines: Machines) -> None:
        self._node_id = node_id
        self._machines = machines
        self._in_progress: dict[int, Verification] = {}
        self._by_producer: dict[int, set[int]] = {}
        """Producer id -> the numbers of its verifications."""
        self._sent: dict[int, int] = {}
        """Token of a request -> the number of a verification."""
        self._count = 0

    def verify(
        self,
        coordinators: TransactionCoordinators,
        claim: Claim,
        partitions: frozenset[TopicPartition],
        then: Then,
        now: float,
    ) -> None:
        """Verify partitions; `then` is called with the errors of those that may not be written."""
        self._count += 1
        number = self._count
        self._in_progress[number] = Verification(claim, partitions, then)
        self._by_producer.setdefault(claim.producer_id, set()).add(number)
        _, leader = coordinators.leader_of(claim.transactional_id)
        if leader == self._node_id:
            coordinators.submit(
                lambda reply_to: _request(reply_to, claim, partitions),
                lambda result, now: self._verified(number, result, now),
                now,
            )
            return
        token = None
        if leader != NO_LEADER:
            token = self._machines.send(leader, VERSION, _message(claim, partitions))
        if token is None:
            self._finish(number, dict.fromkeys(partitions, E.COORDINATOR_NOT_AVAILABLE), now)
        else:
            self._sent[token] = number

    def ended(self, partition: TopicPartition, producer_id: int) -> None:
        """Take note of a marker in a partition."""
        for number in self._by_producer.get(producer_id, ()):
            each = self._in_progress[number]
            if partition in each.partitions:
                each.ended.add(partition)

    def arrived(self, token: int, body: Message | None, now: float) -> bool:
        """Handle a response; return whether it was for this."""
        number = self._sent.pop(token, None)
        if number is None:
            return False
        by_partition: Errors = {}
        top = E.NETWORK_EXCEPTION
        if isinstance(body, AddPartitionsToTxnResponse):
            top = error_of(body.error_code)
            for transaction in body.results_by_transaction:
                for topic in transaction.topic_results:
                    for each in topic.results_by_partition:
                        key = topic.name, each.partition_index
                        by_partition[key] = error_of(each.partition_error_code)
        wanted = self._in_progress[number].partitions
        errors = {each: top or by_partition.get(each, E.UNKNOWN_SERVER_ERROR) for each in wanted}
        self._finish(number, errors, now)
        return True

    def _verified(self, number: int, result: Result, now: float) -> None:
        partitions = self._in_progress[number].partitions
        missing = dict.fromkeys(result.missing, E.TRANSACTION_ABORTABLE)
        self._finish(
            number, dict.fromkeys(partitions, result.error) if result.error else missing, now
        )

    def _finish(self, number: int, errors: Errors, now: float) -> None:
        verification = self._in_progress.pop(number)
        of_producer = self._by_producer[verification.claim.producer_id]
        of_producer.discard(number)
        if not of_producer:
            del self._by_producer[verification.claim.producer_id]
        verification.finish(errors, now)


def _request(reply_to: int, claim: Claim, partitions: frozenset[TopicPartition]) -> Request:
    identity = claim.transactional_id, claim.producer_id, claim.producer_epoch
    if claim.adds:
        return AddPartitions(reply_to, *identity, partitions, EPOCH_BUMPED)
    return VerifyPartitions(reply_to, *identity, partitions)


def _message(claim: Claim, partitions: frozenset[TopicPartition]) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        topics.setdefault(name, []).append(index)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=claim.transactional_id,
        producer_id=claim.producer_id,
        producer_epoch=claim.producer_epoch,
        verify_only=not claim.adds,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])
