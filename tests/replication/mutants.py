"""Mutants: replication with one rule removed. Each is found by a seed.

Law: a mutant changes one method and keeps everything else; the seed beside it is the first of the
first thousands that fails with it, and passes without it.
"""

# ruff: noqa: ARG001, ARG005 - a mutant has the signature of what it replaces
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest

from kafkawire.protocol import ErrorCode
from kafkawire.replication import (
    EpochEndOffset,
    MemoryLog,
    Partition,
)
from kafkawire.replication.alter_partition import AlterPartitions
from kafkawire.replication.appending import REPLICATED, Appends
from kafkawire.replication.fetching import Fetches
from kafkawire.replication.isr import Isr
from kafkawire.replication.log.leader_epochs import LeaderEpochs
from kafkawire.replication.replica import Replica

E = ErrorCode
Patch = Callable[[pytest.MonkeyPatch], None]


MUTANTS: Final[dict[str, Patch]] = {}


F = TypeVar("F", bound=Callable[..., Any])


def mutant(target: type, name: str) -> Callable[[F], F]:
    """Register a replacement of a method or property."""

    def register(made: F) -> F:
        is_property = isinstance(getattr(target, name), property)
        replacement = property(made) if is_property else made
        MUTANTS[made.__name__] = lambda patch: patch.setattr(target, name, replacement)
        return made

    return register


@mutant(Partition, "check")
def leader_epochs_are_not_compared(self: Partition, epoch: int, only_leader: bool) -> ErrorCode:
    return E.NOT_LEADER_OR_FOLLOWER if only_leader and not self.is_leader else E.NONE


@mutant(Fetches, "diverging")
def divergence_is_not_looked_for(self: Fetches, partition: Partition, requested: Any) -> None:
    return None


@mutant(Partition, "truncate_to_diverging")
def truncation_to_the_high_watermark(self: Partition, leader: EpochEndOffset) -> None:
    self.log.truncate_to(self.log.high_watermark)
    self.log.truncate_to(min(leader.end_offset, self.log.log_end_offset))


@mutant(Partition, "truncate_to_diverging")
def truncation_to_the_end_of_the_leaders_epoch(self: Partition, leader: EpochEndOffset) -> None:
    self.log.truncate_to(leader.end_offset)


@mutant(Partition, "truncate_to_diverging")
def no_truncation(self: Partition, leader: EpochEndOffset) -> None:
    pass


@mutant(Partition, "must_wait_for")
def high_watermark_at_the_leaders_end(self: Partition, *_: object) -> bool:
    return False


@mutant(Partition, "must_wait_for")
def high_watermark_of_the_fastest(self: Partition, replica: Replica, *_: object) -> bool:
    return replica.broker_id == max(
        self.isr.maximal - {self.broker.broker_id},
        key=lambda each: self.followers[each].log_end_offset if each in self.followers else -1,
        default=-1,
    )


@mutant(Isr, "maximal")
def proposed_isr_is_not_counted(self: Isr) -> frozenset[int]:
    return self.committed


@mutant(Isr, "maximal")
def shrunk_isr_counts_at_once(self: Isr) -> frozenset[int]:
    return self.proposed if self.is_pending else self.committed


def isr_is_not_consulted(patch: pytest.MonkeyPatch) -> None:
    append = Partition.append_as_leader
    patch.setattr(
        Partition,
        "append_as_leader",
        lambda self, records, all_replicas, now: append(self, records, False, now),
    )
    patch.setattr(Partition, "acknowledgement", lambda self: E.NONE)


MUTANTS["isr_is_not_consulted"] = isr_is_not_consulted


@mutant(Partition, "has_reached")
def isr_expands_before_the_follower_caught_up(self: Partition, replica: Replica) -> bool:
    return True


@mutant(Partition, "has_reached")
def isr_expands_without_the_epochs_start(self: Partition, replica: Replica) -> bool:
    return replica.log_end_offset >= self.log.high_watermark


@mutant(Partition, "is_under_min_isr")
def high_watermark_grows_below_min_isr(self: Partition) -> bool:
    return False


@mutant(Partition, "isr_with_epochs")
def broker_epochs_are_not_sent(self: Partition) -> list[tuple[int, int]]:
    return [(each, -1) for each in sorted(self.isr.proposed)]


@mutant(Partition, "maybe_expand_isr")
def isr_never_expands(self: Partition, replica: Replica) -> None:
    pass


@mutant(Partition, "isr_refused")
def refused_isr_is_kept(self: Partition) -> None:
    pass


@mutant(Partition, "offsets_are_available")
def end_offset_of_a_new_leader_goes_back(self: Partition) -> bool:
    return True


@mutant(Replica, "reset")
def followers_offsets_survive_an_election(self: Replica, *_: object) -> None:
    pass


@mutant(Fetches, "leadership_changed")
def delayed_fetches_survive_an_election(self: Fetches, key: object, now: float) -> None:
    pass


def appends_are_acknowledged_by_the_next_leader(patch: pytest.MonkeyPatch) -> None:
    def check(self: Appends, partition: Partition) -> None:
        end = partition.log.high_watermark
        for token in self.purgatory.reached(partition.key, REPLICATED, end):
            self._settle(token, partition.key, end, E.NONE)

    patch.setattr(Appends, "leadership_lost", lambda self, key: None)
    patch.setattr(Appends, "check", check)


MUTANTS["appends_are_acknowledged_by_the_next_leader"] = appends_are_acknowledged_by_the_next_leader


@mutant(LeaderEpochs, "truncate_from_end")
def epochs_survive_truncation(self: LeaderEpochs, offset: int) -> None:
    pass


@mutant(MemoryLog, "update_high_watermark")
def high_watermark_beyond_the_log(self: MemoryLog, offset: int) -> None:
    self.high_watermark = max(self.log_start_offset, offset)


@mutant(MemoryLog, "last_stable_offset")
def open_transactions_are_readable(self: MemoryLog) -> int:
    return self.high_watermark


@mutant(MemoryLog, "aborted_transactions")
def aborted_transactions_are_not_listed(self: MemoryLog, start: int, end: int) -> list[Any]:
    return []


@mutant(Partition, "update_follower")
def fetches_of_former_incarnations_count(
    self: Partition, broker_id: int, offset: int, start: int, epoch: int, now: float
) -> ErrorCode:
    return _UPDATE(self, broker_id, offset, start, -1, now)


_UPDATE = Partition.update_follower


@mutant(AlterPartitions, "_settle")
def superseded_isr_is_taken_back(
    self: AlterPartitions, partition: Partition, proposal: Any, verdict: Any, now: float
) -> None:
    if verdict is None or verdict.error_code:
        partition.isr_refused()
    else:
        _SETTLE(self, partition, proposal, verdict, now)


_SETTLE = AlterPartitions._settle


@mutant(Partition, "apply")
def older_metadata_is_applied(self: Partition, registration: Any, now: float) -> bool:
    self.partition_epoch = -1
    return _APPLY(self, registration, now)


_APPLY = Partition.apply


@mutant(Partition, "append_as_follower")
def high_watermark_is_not_taken_over(
    self: Partition, records: bytes, high_watermark: int, log_start: int
) -> None:
    _FOLLOW(self, records, -1, log_start)


_FOLLOW = Partition.append_as_follower
