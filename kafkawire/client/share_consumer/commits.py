"""The acknowledgements that have not ended, and the commits that wait for them.

A commit waits for all acknowledgements that were taken before it, and ends once: when all have
ended, or at its deadline.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ...protocol.error_code import ErrorCode
from ..consumer.partitions import TopicPartition
from .acknowledgements import (
    AcknowledgeFailed,
    AcknowledgementRange,
    Acknowledgements,
    AcknowledgementsEnded,
    SharePartition,
    users_ranges,
)
from .events import Acknowledged, Committed

TIMED_OUT = "the commit timed out before the leader responded"


@dataclass(slots=True)
class _Commit:
    """A commit that waits for acknowledgements. results: of those that have ended."""

    key: Hashable
    waiting: dict[int, TopicPartition]
    deadline: float
    results: dict[TopicPartition, AcknowledgeFailed | None] = field(default_factory=dict)

    def end(self, serial: int, error: AcknowledgeFailed | None) -> None:
        """Take the outcome of acknowledgements; the first error of a partition counts."""
        partition = self.waiting.pop(serial, None)
        if partition is not None and self.results.get(partition) is None:
            self.results[partition] = error


class Commits:
    """The acknowledgements and commits of one consumer."""

    def __init__(self) -> None:
        self._outstanding: dict[int, Acknowledgements] = {}
        self._commits: list[_Commit] = []
        self._serial = 0

    def new(
        self,
        node: int,
        partition: SharePartition,
        ranges: tuple[AcknowledgementRange, ...],
        deadline: float,
    ) -> Acknowledgements:
        """Return acknowledgements to send."""
        self._serial += 1
        new = Acknowledgements(self._serial, node, partition, ranges, deadline)
        self._outstanding[new.serial] = new
        return new

    def commit(self, key: Hashable, deadline: float) -> None:
        """Begin a commit of all acknowledgements that have not ended."""
        waiting = {
            serial: each.partition.topic_partition
            for serial, each in self._outstanding.items()
            if users_ranges(each.ranges)
        }
        self._commits.append(_Commit(key, waiting, deadline))

    def on_ended(self, event: AcknowledgementsEnded) -> list[Acknowledged]:
        """Handle how acknowledgements ended; returns what the user sees of it."""
        each = event.acknowledgements
        self._outstanding.pop(each.serial, None)
        for commit in self._commits:
            commit.end(each.serial, event.error)
        ranges = users_ranges(each.ranges)
        return [Acknowledged(each.partition.topic_partition, ranges, event.error)] if ranges else []

    def completed(self, now: float) -> list[Committed]:
        """Return the commits that have ended."""
        for commit in self._commits:
            if commit.deadline <= now:
                for serial, partition in list(commit.waiting.items()):
                    code = ErrorCode.REQUEST_TIMED_OUT
                    commit.end(serial, AcknowledgeFailed(TIMED_OUT, code, [partition]))
        ended = [each for each in self._commits if not each.waiting]
        self._commits = [each for each in self._commits if each.waiting]
        return [Committed(each.key, each.results) for each in ended]

    def next_deadline(self) -> float | None:
        """Return when a commit times out."""
        return min((each.deadline for each in self._commits), default=None)
