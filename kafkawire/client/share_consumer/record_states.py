"""The acquired records of a share consumer, from the response to the acknowledgement.

Only `_move` changes a record's state, along `LEGAL`. A record that is acquired again replaces
what was left of its earlier delivery.

    BUFFERED ─▶ DELIVERED ─▶ MARKED ─▶ (sent: no longer here)
       ▲            ▲          └─────▶ RENEWING
       └────────────┴─────────────────────┘
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...errors import LocalProtocolError
from ..consumer.failures import FetchFailed
from ..consumer.partitions import TopicPartition
from .acknowledgements import (
    AcknowledgementRange,
    Acknowledgements,
    AcknowledgeType,
    SharePartition,
    ranges_of,
)
from .records import Item, ShareRecord


class RecordState(Enum):
    """How far an acquired record is."""

    BUFFERED = "Buffered"
    DELIVERED = "Delivered"
    MARKED = "Marked"
    RENEWING = "Renewing"


S = RecordState

# fmt: off
LEGAL: Final[Mapping[RecordState, frozenset[RecordState]]] = {
    S.BUFFERED:  frozenset({S.DELIVERED}),
    S.DELIVERED: frozenset({S.MARKED, S.BUFFERED}),
    S.MARKED:    frozenset({S.MARKED, S.RENEWING}),
    S.RENEWING:  frozenset({S.BUFFERED}),
}
"""State -> the states that may follow it. A record leaves when its acknowledgement is sent."""
# fmt: on


@dataclass(slots=True)
class AcquiredRecord:
    """A record with its state. node: that it was fetched from. type: once it is marked.

    lock_deadline: when its acquisition lock expires at the earliest; None: unknown.
    """

    record: ShareRecord
    node: int
    partition: SharePartition
    lock_deadline: float | None
    state: RecordState = S.BUFFERED
    type: int = AcknowledgeType.ACCEPT


Key = tuple[str, int, int]
"""Topic, partition and offset."""
Marked = tuple[tuple[int, SharePartition], tuple[AcknowledgementRange, ...]]
"""The broker and the partition of acknowledgements, and their ranges."""


class RecordStates:
    """The acquired records of one consumer."""

    def __init__(self) -> None:
        self._records: dict[Key, AcquiredRecord] = {}
        self._buffer: deque[AcquiredRecord | FetchFailed] = deque()

    # -- from the leaders

    def add(
        self, node: int, partition: SharePartition, items: list[Item], lock_deadline: float | None
    ) -> None:
        """Add the records of a response, and the errors in their place."""
        for item in items:
            if isinstance(item, FetchFailed):
                self._buffer.append(item)
                continue
            acquired = AcquiredRecord(item, node, partition, lock_deadline)
            self._records[item[:3]] = acquired
            self._buffer.append(acquired)

    def renewed(self, ended: Acknowledgements, lock_deadline: float | None) -> None:
        """Return records whose lock was renewed to the buffer, before all others."""
        back = self._renewing(ended)
        for each in back:
            each.lock_deadline = lock_deadline
            self._move(each, S.BUFFERED)
        self._buffer.extendleft(reversed(back))

    def not_renewed(self, ended: Acknowledgements) -> None:
        """Remove records whose lock was not renewed."""
        for each in self._renewing(ended):
            self._remove(each)

    def drop_buffered(self, node: int) -> None:
        """Drop records that have not been delivered: their share session is lost."""
        self._drop(
            each
            for each in self._records.values()
            if each.node == node and each.state is S.BUFFERED
        )

    def drop_expired(self, now: float) -> None:
        """Drop records that have not been delivered and whose lock may have expired."""
        self._drop(
            each
            for each in self._records.values()
            if each.state is S.BUFFERED
            and each.lock_deadline is not None
            and each.lock_deadline <= now
        )

    def clear(self) -> None:
        """Remove everything."""
        self._records.clear()
        self._buffer.clear()

    # -- to the user

    @property
    def buffered(self) -> bool:
        """Whether a poll returns or raises something at once."""
        self._skip_outdated()
        return bool(self._buffer)

    @property
    def unacknowledged(self) -> int:
        """How many delivered records are not marked."""
        return sum(each.state is S.DELIVERED for each in self._records.values())

    def take(self, max_records: int) -> list[ShareRecord]:
        """Deliver up to max_records records; raises an error that is in the place of the next."""
        taken: list[ShareRecord] = []
        while self.buffered and len(taken) < max_records:
            item = self._buffer[0]
            if isinstance(item, FetchFailed):
                if taken:
                    break
                self._buffer.popleft()
                raise item
            self._buffer.popleft()
            self._move(item, S.DELIVERED)
            taken.append(item.record)
        return taken

    def return_records(self, records: Iterable[ShareRecord]) -> None:
        """Put records back that were delivered last, in their order."""
        back = [self._records[each[:3]] for each in records if each[:3] in self._records]
        for each in back:
            self._move(each, S.BUFFERED)
        self._buffer.extendleft(reversed(back))

    def mark(self, partition: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Mark a delivered record with how to acknowledge it; replaces an earlier mark.

        Raises LocalProtocolError for a record that is not delivered.
        """
        each = self._records.get((*partition, offset))
        if each is None or each.state not in (S.DELIVERED, S.MARKED):
            raise LocalProtocolError(
                f"offset {offset} of {partition} is not delivered, or was acknowledged before"
            )
        self._move(each, S.MARKED)
        each.type = kind

    def mark_all(self, kind: AcknowledgeType) -> None:
        """Mark all delivered records that are not marked."""
        for each in self._records.values():
            if each.state is S.DELIVERED:
                self._move(each, S.MARKED)
                each.type = kind

    def take_marked(self) -> list[Marked]:
        """Return the acknowledgements to send; renewals are apart from the others."""
        types: dict[tuple[int, SharePartition, bool], dict[int, int]] = {}
        for each in [each for each in self._records.values() if each.state is S.MARKED]:
            renews = each.type == AcknowledgeType.RENEW
            where = each.node, each.partition, renews
            types.setdefault(where, {})[each.record.offset] = each.type
            if renews:
                self._move(each, S.RENEWING)
            else:
                self._remove(each)
        return [(where[:2], ranges_of(of_offsets)) for where, of_offsets in sorted(types.items())]

    # -- helpers

    def _move(self, each: AcquiredRecord, state: RecordState) -> None:
        assert state in LEGAL[each.state], f"from {each.state.value} to {state.value}"
        each.state = state

    def _remove(self, each: AcquiredRecord) -> None:
        del self._records[each.record[:3]]

    def _drop(self, dropped: Iterable[AcquiredRecord]) -> None:
        for each in list(dropped):
            self._remove(each)

    def _renewing(self, ended: Acknowledgements) -> list[AcquiredRecord]:
        """Return the records of acknowledgements whose lock is being renewed, by offset."""
        topic, partition = ended.partition.topic_partition
        renewing = [
            self._records.get((topic, partition, offset))
            for first, last, kind in ended.ranges
            if kind == AcknowledgeType.RENEW
            for offset in range(first, last + 1)
        ]
        return [each for each in renewing if each is not None and each.state is S.RENEWING]

    def _skip_outdated(self) -> None:
        """Remove records from the head of the buffer that were dropped or acquired again."""
        while self._buffer:
            item = self._buffer[0]
            if isinstance(item, FetchFailed) or self._records.get(item.record[:3]) is item:
                return
            self._buffer.popleft()
