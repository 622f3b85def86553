"""Mutants: replication with one rule removed. Each is found by a seed (test_mutants.py).

A mutant changes one rule and keeps everything else. Rules that others cover (a fetch of an
older leader epoch is also found by its diverging epoch) have tests in test_leader.py instead.
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
    fetching,
)
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
def shrunk_isr_counts_at_once(self: Isr) -> frozenset[int]:
    return self.proposed if self.is_pending else self.committed


def isr_is_not_consulted(patch: pytest.MonkeyPatch) -> None:
    append = Partition.append_as_leader
    patch.setattr(
        Partition,
        "append_as_leader",
        lambda self, records, _all, now, *rest: append(self, records, False, now, *rest),
    )
    patch.setattr(Partition, "acknowledgement", lambda self: E.NONE)


MUTANTS["isr_is_not_consulted"] = isr_is_not_consulted


@mutant(Partition, "has_reached")
def isr_expands_before_the_follower_caught_up(self: Partition, replica: Replica) -> bool:
    return True


@mutant(Partition, "is_under_min_isr")
def high_watermark_grows_below_min_isr(self: Partition) -> bool:
    return False


@mutant(Partition, "maybe_expand_isr")
def isr_never_expands(self: Partition, replica: Replica) -> None:
    pass


@mutant(Partition, "offsets_are_available")
def end_offset_of_a_new_leader_goes_back(self: Partition) -> bool:
    return True


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


@mutant(MemoryLog, "last_stable_offset")
def open_transactions_are_readable(self: MemoryLog) -> int:
    return self.high_watermark


@mutant(MemoryLog, "aborted_transactions")
def aborted_transactions_are_not_listed(self: MemoryLog, start: int, end: int) -> list[Any]:
    return []


@mutant(Partition, "append_as_follower")
def high_watermark_is_not_taken_over(
    self: Partition, records: bytes, high_watermark: int, log_start: int
) -> None:
    _FOLLOW(self, records, -1, log_start)


_FOLLOW = Partition.append_as_follower


@mutant(Partition, "append_as_follower")
def follower_takes_its_log_end_for_the_high_watermark(
    self: Partition, records: bytes, high_watermark: int, log_start: int
) -> None:
    _FOLLOW(self, records, 1 << 40, log_start)


@mutant(Partition, "must_wait_for")
def pending_isr_is_not_counted(self: Partition, replica: Replica, *_: object) -> bool:
    return replica.broker_id in self.isr.committed


@mutant(Isr, "propose")
def isr_changes_without_the_controller(self: Isr, trigger: Any, proposed: frozenset[int]) -> Isr:
    return Isr(self.state, proposed)


def consumers_read_up_to_the_log_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetching, "bound", lambda partition, measure: partition.log.log_end_offset)


MUTANTS["consumers_read_up_to_the_log_end"] = consumers_read_up_to_the_log_end
