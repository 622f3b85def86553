"""Buffers completed fetches until the user polls.

A partition has at most one completed fetch, and one that follows it, which begins at its end.
A fetch at an outdated position is dropped when it would be read, with the one that follows; a
partition that is paused or has no valid position keeps its turn.

    put ─▶ completed fetches, in order ─▶ take ─▶ user ─▶ return_records (those not processed)
    follow ─▶ following ──▲ (its partition's is consumed)

A completed fetch is read as records or as columns: what is left of one is fetched again for a user
who changes between the two, as are columns that were not processed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from ..columns import FetchedColumns
from ..failures import FetchFailed
from ..offsets.partition_state import FetchState, Position
from ..offsets.positions import Positions
from ..partitions import ConsumerRecord, TopicPartition
from .completed_fetch import CompletedFetch


class FetchBuffer:
    """The completed fetches of one consumer."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._fetches: OrderedDict[TopicPartition, CompletedFetch] = OrderedDict()
        self._following: dict[TopicPartition, CompletedFetch] = {}

    def next_position(self, partition: TopicPartition) -> Position | None:
        """Return where the next fetch of a partition begins; None if it must not be fetched yet.

        At the position of a partition without a completed fetch, else at the end of that, once the
        user reads its records.
        """
        fetch = self._fetches.get(partition)
        if fetch is None:
            return self._positions[partition].position
        if partition in self._following or not self._is_current(fetch):
            return None
        return fetch.end

    def readable(self) -> Iterator[TopicPartition]:
        """Iterate over the partitions with records that the user can read now."""
        return (each for each, fetch in self._fetches.items() if self._is_readable(fetch))

    def put(self, fetch: CompletedFetch) -> None:
        """Add a completed fetch; it follows that of the same partition if it begins at its end.

        Otherwise it replaces that one.
        """
        partition = fetch.partition
        before = self._fetches.get(partition)
        if before is not None and not before.consumed and self._ends_at(before, fetch.position):
            self._following[partition] = fetch
        else:
            self.drop([partition])
            self._fetches[partition] = fetch

    def clear(self) -> None:
        """Drop everything."""
        self._fetches.clear()
        self._following.clear()

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Return up to max_records records and move the positions past them.

        Raises FetchFailed if the next record is corrupt.
        """
        records: list[ConsumerRecord] = []
        self._read(
            lambda fetch: self._take_from(fetch, records, max_records),
            lambda: len(records) >= max_records,
            records,
        )
        return records

    def take_columns(self, max_records: int) -> FetchedColumns | None:
        """Return up to max_records records of one partition, and move the position past them.

        None if there are none. Raises FetchFailed if the next record is corrupt.
        """
        taken: list[FetchedColumns] = []
        self._read(
            lambda fetch: self._take_columns_from(fetch, taken, max_records),
            lambda: bool(taken),
            taken,
        )
        return taken[0] if taken else None

    def _read(
        self,
        take_from: Callable[[CompletedFetch], None],
        full: Callable[[], bool],
        taken: list[ConsumerRecord] | list[FetchedColumns],
    ) -> None:
        """Read completed fetches in order until enough is taken; an error ends what is taken."""
        skipped: list[CompletedFetch] = []
        try:
            while self._fetches and not full():
                partition, fetch = next(iter(self._fetches.items()))
                if self._is_readable(fetch):
                    take_from(fetch)
                    if fetch.consumed:
                        self._end(partition)
                elif self._is_current(fetch):
                    skipped.append(self._fetches.pop(partition))
                else:
                    self.drop([partition])
        except FetchFailed:
            if not taken:
                self._positions[partition].failed = True
                self.drop([partition])
                raise
        finally:
            for each in reversed(skipped):
                self._put_first(each)

    def _end(self, partition: TopicPartition) -> None:
        """Continue with the fetch that follows a consumed one, after those of other partitions."""
        del self._fetches[partition]
        following = self._following.pop(partition, None)
        if following is not None:
            self._fetches[partition] = following

    def _put_first(self, fetch: CompletedFetch) -> None:
        self._fetches[fetch.partition] = fetch
        self._fetches.move_to_end(fetch.partition, last=False)

    def _take_from(
        self, fetch: CompletedFetch, records: list[ConsumerRecord], max_records: int
    ) -> None:
        """Append records of a fetch, up to max_records in all, and move the position past them."""
        while len(records) < max_records and not fetch.consumed:
            records += fetch.take(max_records - len(records))
            self._positions.set_consumed(fetch.partition, fetch.position)

    def _take_columns_from(
        self, fetch: CompletedFetch, taken: list[FetchedColumns], max_records: int
    ) -> None:
        columns = fetch.take_columns(max_records)
        self._positions.set_consumed(fetch.partition, fetch.position)
        if columns is not None:
            taken.append(columns)

    def _is_readable(self, fetch: CompletedFetch) -> bool:
        if not self._is_current(fetch):
            return False
        state = self._positions[fetch.partition]
        return state.fetch_state is FetchState.FETCHING and not state.paused

    def _is_current(self, fetch: CompletedFetch) -> bool:
        if fetch.partition not in self._positions:
            return False
        position = self._positions[fetch.partition].position
        return position is not None and position.offset == fetch.position.offset

    def _ends_at(self, fetch: CompletedFetch, position: Position) -> bool:
        end = fetch.end
        return end is not None and end.offset == position.offset and self._is_current(fetch)

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
            fetch = self._fetches.get(partition)
            if fetch is None:
                fetch = CompletedFetch(partition, position, b"")
            fetch.return_records(returned)
            self._put_first(fetch)
            self._positions.set_consumed(partition, fetch.position)

    def return_columns(self, columns: FetchedColumns) -> None:
        """Move the position back before columns that the user has not processed."""
        partition = columns.partition
        if partition not in self._positions:
            return
        position = self._positions[partition].position
        if position is not None and position.offset == columns.next_position.offset:
            self.drop([partition])
            self._positions.set_consumed(partition, columns.position)

    def read_as(self, *, columns: bool) -> None:
        """Drop the rest of fetches that were read as records, or as columns, and no longer are."""
        self.drop(
            [
                partition
                for partition, fetch in self._fetches.items()
                if fetch.as_columns is not None and fetch.as_columns is not columns
            ]
        )

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the completed fetches of these partitions."""
        for each in partitions:
            self._fetches.pop(each, None)
            self._following.pop(each, None)
