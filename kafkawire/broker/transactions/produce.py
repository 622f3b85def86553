"""Has the partitions of a transactional Produce verified, or added to its transaction.

From Produce 12 on a leader adds the partition itself (KIP-890); before, the client has added
it, and the leader verifies that. A partition where the transaction has begun needs neither. The
first batch of a producer is appended before its others, also when it must be verified again.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ...errors import WireError
from ...messages.produce_request import ProduceRequest
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ...records import Batch
from ...records.batch import HEADER_BYTES
from ...transactions import TopicPartition
from ..configs import Settings
from ..machines import Machines
from ..metadata_cache import MetadataCache
from .coordinators import TransactionCoordinators
from .sequences import First, LowestSequences
from .verification import RETRY, Claim, Errors, Then, TransactionVerifier

E = ErrorCode
ABORTABLE_FROM: Final = 11
ADDS_FROM: Final = 12
SETTING: Final = "transaction.partition.verification.enable"


class ProduceVerification:
    """The transactional Produce requests of a node."""

    def __init__(
        self,
        settings: Settings,
        metadata: MetadataCache,
        machines: Machines,
        coordinators: TransactionCoordinators,
        verifier: TransactionVerifier,
        sequences: LowestSequences,
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._machines = machines
        self._coordinators = coordinators
        self._verifier = verifier
        self._sequences = sequences

    def verify(self, version: int, body: ProduceRequest, then: Then, now: float) -> bool:
        """Verify what a Produce is about to append, if that is necessary.

        Returns whether it is; then `then` is called with the errors of partitions.
        """
        adds = version >= ADDS_FROM
        if body.transactional_id is None or not (adds or self._settings.flag(SETTING)):
            return False
        claims: dict[Claim, dict[TopicPartition, First]] = {}
        for topic in body.topic_data:
            metadata = self._metadata.topics.get(topic.name) if topic.name else None
            metadata = metadata or self._metadata.topics.by_id(topic.topic_id)
            for each in topic.partition_data if metadata is not None else ():
                batch = _batch(each.records or b"")
                key = TopicIdPartition(metadata.topic_id if metadata else b"", each.index)
                if batch is None or not batch.transactional:
                    continue
                if not self._is_first(key, batch):
                    self._sequences.forget(key, batch.producer_id)
                    continue
                producer = batch.producer_id, batch.producer_epoch
                claim = Claim(body.transactional_id, *producer, adds, version >= ABORTABLE_FROM)
                partition = metadata.name if metadata else "", each.index
                claims.setdefault(claim, {})[partition] = First.of(key, batch)
        if not claims:
            return False
        self._verify(claims, then, now)
        return True

    def _is_first(self, key: TopicIdPartition, batch: Batch) -> bool:
        """Whether a batch would begin a transaction in a partition that this node leads."""
        replica = self._machines.replica(key)
        if replica is None or not replica.is_leader:
            return False  # the machines say what is wrong
        entry = self._machines.producers(key).get(batch.producer_id)
        begun = entry is not None and entry.is_in_transaction
        return not (begun and entry is not None and entry.producer_epoch == batch.producer_epoch)

    def _is_fenced(self, first: First) -> bool:
        """Whether the partition has seen a later epoch, whatever the coordinator says."""
        entry = self._machines.producers(first.key).get(first.producer_id)
        return entry is not None and first.producer_epoch < entry.producer_epoch

    def _is_out_of_order(self, claim: Claim, first: First, now: float) -> bool:
        """Whether an earlier batch of a producer is missing that the log does not know.

        A producer whose partitions the leader adds has an epoch for each transaction, and so begins
        with sequence 0.
        """
        if first.producer_id in self._machines.producers(first.key):
            return False  # the log checks it
        return (claim.adds and first.sequence != 0) or self._sequences.is_later(first, now)

    def _verify(
        self, claims: dict[Claim, dict[TopicPartition, First]], then: Then, now: float
    ) -> None:
        left = set(claims)
        refused: Errors = {}

        def verified(claim: Claim, errors: Errors, now: float) -> None:
            left.discard(claim)
            refused.update({key: _shown(error) for key, error in errors.items()})
            for partition, first in claims[claim].items():
                if self._is_fenced(first):
                    refused[partition] = E.INVALID_PRODUCER_EPOCH
                elif partition not in errors and self._is_out_of_order(claim, first, now):
                    refused[partition] = E.OUT_OF_ORDER_SEQUENCE_NUMBER
            if not left:
                then(refused, now)

        for claim, partitions in claims.items():
            for first in partitions.values():
                self._sequences.note(first, now)
            done = partial(verified, claim)
            self._verifier.verify(self._coordinators, claim, frozenset(partitions), done, now)


def _batch(records: bytes) -> Batch | None:
    """Return the only batch of a Produce, not validated yet; None if it has no valid header."""
    try:
        return Batch(records, 0, len(records)) if len(records) >= HEADER_BYTES else None
    except WireError:
        return None


def _shown(error: ErrorCode) -> ErrorCode:
    return E.NOT_ENOUGH_REPLICAS if error in RETRY else error
