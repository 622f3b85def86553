"""What the logs say of transactions at the end of a run (KIP-98, KIP-890).

the states of a transactional id follow each other as `NEXT` has it; epochs do not go back
a transaction of version 2 has an epoch of its own
a marker in a partition is that of a decision in `__transaction_state`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire.node.invariants import Violation
from kafkawire.records import RecordBatches
from kafkawire.replication import ReplicaLog
from kafkawire.storage.producer_entry import marker_of
from kafkawire.transactions.states import TransactionState
from kafkawire.transactions.transaction import TopicPartition, Transaction, read_record

S = TransactionState
NEXT: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT}),
    S.ONGOING: frozenset({S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT}),
    S.PREPARE_COMMIT: frozenset({S.COMPLETE_COMMIT}),
    S.PREPARE_ABORT: frozenset({S.COMPLETE_ABORT}),
    S.COMPLETE_COMMIT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT}),
    S.COMPLETE_ABORT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT}),
}
DECIDED: Final = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})
OWN_EPOCHS: Final = 2
"""The transaction.version from which each transaction has an epoch of its own."""


class Decision(NamedTuple):
    """A transaction ends so in a partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    committed: bool


def batches(log: ReplicaLog) -> RecordBatches:
    """Return the batches of a log."""
    start, end = log.log_start_offset, log.log_end_offset
    data = log.read(start, 1 << 40, end, at_least_one=True) if start < end else b""
    return RecordBatches(data)


def decisions(logs: Iterable[ReplicaLog]) -> set[Decision]:
    """Return what is decided in `__transaction_state`; check how states and epochs change."""
    last: dict[str, Transaction] = {}
    decided: set[Decision] = set()
    for value in _values(logs):
        before = last.get(value.transactional_id)
        if before is not None:
            _check_change(before, value)
        last[value.transactional_id] = value
        if value.state in DECIDED:
            producer = value.producer_id, value.producer_epoch
            committed = value.state is S.PREPARE_COMMIT
            decided |= {Decision(each, *producer, committed) for each in value.partitions}
    return decided


def _values(logs: Iterable[ReplicaLog]) -> Iterator[Transaction]:
    for log in logs:
        for batch in batches(log):
            for record in () if batch.control else batch.records():
                read = read_record(record)
                if read is not None and read[1] is not None:
                    yield read[1]


def _check_change(before: Transaction, after: Transaction) -> None:
    name = f"{after.transactional_id}: {before.state.label}, then {after.state.label}"
    if after.state not in NEXT[before.state]:
        raise Violation(name)
    if after.producer_id != before.producer_id:
        return
    epochs = f"epoch {before.producer_epoch}, then {after.producer_epoch}"
    if after.producer_epoch < before.producer_epoch:
        raise Violation(f"{name}: {epochs}")
    is_decided = after.state in DECIDED and after.version >= OWN_EPOCHS
    if is_decided and after.producer_epoch == before.producer_epoch:
        raise Violation(f"{name}: {epochs}")


def check_markers(partition: TopicPartition, log: ReplicaLog, decided: set[Decision]) -> None:
    """Check that each marker in a log is that of a decision."""
    for batch in batches(log):
        marker = marker_of(batch) if batch.control else None
        if marker is None:
            continue
        producer = batch.producer_id, batch.producer_epoch
        if Decision(partition, *producer, marker.committed) not in decided:
            end = "commits" if marker.committed else "aborts"
            raise Violation(f"{partition}: a marker of {producer} {end}, which was not decided")
