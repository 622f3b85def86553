"""Buffers completed fetches until the user polls.

Law: a partition has at most one completed fetch. A fetch at an outdated position is dropped when it
would be read; a partition that is paused or has no valid position keeps its turn.

    put ─▶ completed fetches, in order ─▶ take ─▶ user ─▶ return_records (those not processed)
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
    """The completed fetches of one consumer."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._fetches: deque[CompletedFetch] = deque()

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions with a completed fetch."""
        return {fetch.partition for fetch in self._fetches}

    def readable(self) -> Iterator[TopicPartition]:
        """Iterate over the partitions with records that the user can read now."""
        return (fetch.partition for fetch in self._fetches if self._is_readable(fetch))

    def put(self, fetch: CompletedFetch) -> None:
        """Add a completed fetch, replacing that of the same partition."""
        self.drop([fetch.partition])
        self._fetches.append(fetch)

    def clear(self) -> None:
        """Drop everything."""
        self._fetches.clear()

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Return up to max_records records and move the positions past them.

        Raises FetchFailed if the next record is corrupt.
        """
        records: list[ConsumerRecord] = []
        skipped: deque[CompletedFetch] = deque()
        try:
            while self._fetches and len(records) < max_records:
                fetch = self._fetches[0]
                if self._is_readable(fetch):
                    records += self._take_from(fetch, max_records - len(records))
                    if not fetch.consumed:
                        continue
                elif self._is_current(fetch):
                    skipped.append(fetch)
                self._fetches.popleft()
        except FetchFailed:
            if not records:
                self._positions[self._fetches.popleft().partition].failed = True
                raise
        finally:
            self._fetches.extendleft(reversed(skipped))
        return records

    def _take_from(self, fetch: CompletedFetch, max_records: int) -> list[ConsumerRecord]:
        records = fetch.take(max_records)
        self._positions.set_consumed(fetch.partition, fetch.position)
        return records

    def _is_readable(self, fetch: CompletedFetch) -> bool:
        if not self._is_current(fetch):
            return False
        state = self._positions[fetch.partition]
        return state.fetch_state is FetchState.FETCHING and not state.paused

    def _is_current(self, fetch: CompletedFetch) -> bool:
        if fetch.partition not in self._positions:
            return False
        at = self._positions[fetch.partition].position
        return at is not None and at.offset == fetch.position.offset

    def return_records(self, records: list[ConsumerRecord]) -> None:
        """Put back records that the user has not processed; they are returned next."""
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for each in records:
            by_partition.setdefault(TopicPartition(each.topic, each.partition), []).append(each)
        for partition, returned in by_partition.items():
            if partition not in self._positions:
                continue
            position = self._positions[partition].position
            if position is None or position.offset <= returned[-1].offset:
                continue  # the user has moved the position since
            fetch = next((each for each in self._fetches if each.partition == partition), None)
            if fetch is None:
                fetch = CompletedFetch(partition, position, b"")
                self._fetches.appendleft(fetch)
            fetch.return_records(returned)
            self._positions.set_consumed(partition, fetch.position)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the completed fetches of these partitions."""
        dropped = set(partitions)
        self._fetches = deque(each for each in self._fetches if each.partition not in dropped)
