"""What was fetched and waits for the user, partition by partition.

Law: a partition has one buffer at the most; what begins where its position no longer is is dropped
when it would be read; a partition that is paused or looks for its position keeps its place.

    put ─▶ buffers, in turn ─▶ take ─▶ the user ─▶ give_back (what was not come to)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ..failures import FetchFailed
from ..offsets.partition_state import FetchState
from ..offsets.positions import Positions
from ..partitions import ConsumerRecord, TopicPartition
from .completed_fetch import CompletedFetch


class FetchBuffer:
    """The buffers of one consumer."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._buffers: deque[CompletedFetch] = deque()

    @property
    def partitions(self) -> set[TopicPartition]:
        """Those of which something is here."""
        return {buffer.partition for buffer in self._buffers}

    def readable(self) -> Iterator[TopicPartition]:
        """Give those of which the user could read something now."""
        return (buffer.partition for buffer in self._buffers if self._readable(buffer))

    def put(self, buffer: CompletedFetch) -> None:
        """Take in what was fetched of a partition, in place of what is here of it."""
        self.drop([buffer.partition])
        self._buffers.append(buffer)

    def clear(self) -> None:
        """Let go of everything."""
        self._buffers.clear()

    def take(self, most: int) -> list[ConsumerRecord]:
        """Take out up to so many records; the positions move behind them.

        Raises FetchFailed where the next record cannot be read.
        """
        taken: list[ConsumerRecord] = []
        kept: deque[CompletedFetch] = deque()
        try:
            while self._buffers and len(taken) < most:
                buffer = self._buffers[0]
                if self._readable(buffer):
                    taken += self._take_from(buffer, most - len(taken))
                    if not buffer.done:
                        continue
                elif self._still_wanted(buffer):
                    kept.append(buffer)
                self._buffers.popleft()
        except FetchFailed:
            if not taken:
                self._positions[self._buffers.popleft().partition].failed = True
                raise
        finally:
            self._buffers.extendleft(reversed(kept))
        return taken

    def _take_from(self, buffer: CompletedFetch, most: int) -> list[ConsumerRecord]:
        records = buffer.take(most)
        self._positions.read(buffer.partition, buffer.position)
        return records

    def _readable(self, buffer: CompletedFetch) -> bool:
        if not self._still_wanted(buffer):
            return False
        place = self._positions[buffer.partition]
        return place.state is FetchState.FETCHING and not place.paused

    def _still_wanted(self, buffer: CompletedFetch) -> bool:
        if buffer.partition not in self._positions:
            return False
        at = self._positions[buffer.partition].position
        return at is not None and at.offset == buffer.position.offset

    def give_back(self, records: list[ConsumerRecord]) -> None:
        """Take back what the user has not come to; it is the next to be taken again."""
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for each in records:
            by_partition.setdefault(TopicPartition(each.topic, each.partition), []).append(each)
        for partition, theirs in by_partition.items():
            if partition not in self._positions:
                continue
            behind = self._positions[partition].position
            if behind is None or behind.offset <= theirs[-1].offset:
                continue  # the user has gone elsewhere since
            buffer = next((each for each in self._buffers if each.partition == partition), None)
            if buffer is None:
                buffer = CompletedFetch(partition, behind, b"")
                self._buffers.appendleft(buffer)
            buffer.give_back(theirs)
            self._positions.read(partition, buffer.position)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Let go of what is here of these partitions."""
        gone = set(partitions)
        self._buffers = deque(each for each in self._buffers if each.partition not in gone)
