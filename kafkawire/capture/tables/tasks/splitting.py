"""Cuts a capture into tasks, in the one process that reads it.

Tasks come in capture order, and each is bounded. What needs the whole capture in order is done
here: pairing, fetch sessions, topic names, events of groups. The bodies of all other messages stay
undecoded.

    LocatedItem | Ended --.--> names, pairs, sessions --> Task
                          `--> messages of groups --> rows of group_events
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from typing import Any, Final, final

from mypy_extensions import i64

from ...exchanges.exchanges import Ended
from ...exchanges.message_pairs import Ends
from ...frames.decoding import LocatedItem, RawFrame, located
from ...rows import Row
from ..context import Context
from ..extraction.messages import Extractor
from ..extraction.record_batches import RECORDS_MESSAGES
from ..group_events import APIS, CAUSES, Groups, events
from .pairing import ItemPair, Pairing, TaskMessage, api_key_of, exchange_of, is_request, length
from .sessions import SessionStates
from .task import MISSING, UNKNOWN, Restored, Task, Use

TASK_ITEMS: Final = 2048
TASK_BYTES: Final = 1 << 21
"""Messages of a task, and bytes of them, after which it is full; a Fetch counts with the requests
that list the partitions of its session.
"""

OF_EXCHANGES: Final = frozenset({"exchanges", "partitions"})
OF_MESSAGES: Final = frozenset({"connections", "messages", "problems", "records"})
NAMED: Final = frozenset({"exchanges", "group_events", "partitions", "problems", "records"})
"""Tables of exchanges, of messages; tables with names of topics."""

MESSAGE: Final = int(Use.MESSAGE)
EXCHANGE: Final = int(Use.EXCHANGE)

GROUP_EVENTS: Final = "group_events"
RECORDS: Final = "records"


@final
class Splitter:
    """Cuts a capture into tasks for some tables.

    max_items, max_bytes: messages, and bytes of them, after which a task is full. learned: ids and
    names of topics, in the order in which messages state them. group_rows: rows of `group_events`,
    which the caller takes.
    """

    def __init__(
        self,
        context: Context,
        tables: Collection[str],
        max_items: int = TASK_ITEMS,
        max_bytes: int = TASK_BYTES,
    ) -> None:
        wanted = frozenset(tables)
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._context = context
        self._extractor = Extractor(context.names, context.limits, False)
        self._has_exchanges: bool = bool(wanted & OF_EXCHANGES)
        self._has_messages: bool = bool(wanted & OF_MESSAGES)
        self._only_records: bool = wanted & OF_MESSAGES == {RECORDS}
        self._has_endings: bool = "connections" in wanted
        self._has_names: bool = bool(wanted & NAMED)
        self._groups: Groups | None = Groups(context) if GROUP_EVENTS in wanted else None
        self._pairing: Pairing | None = None
        if self._has_exchanges or self._groups is not None:
            self._pairing = Pairing()
        self._sessions = SessionStates(context.names, self._extractor, context.limits)
        self.learned: list[tuple[bytes, str]] = []
        self.group_rows: list[tuple[Any, ...]] = []
        self._number: int = 0
        self._begin()

    def _begin(self) -> None:
        self._number += 1
        self._items: list[LocatedItem] = []
        self._uses = bytearray()
        self._bytes: i64 = 0
        self._pairs: array[int] = array("i")
        self._ends: list[tuple[int, str, str]] = []
        self._end_indexes: dict[Ends, int] = {}
        self._ended: list[tuple[int, Ended]] = []
        self._restored: list[Restored] = []
        self._sessions.begin_task()

    def tasks(self) -> Iterator[Task | None]:
        """Read the capture; yield tasks, and None wherever the caller may do something else."""
        for batch in self._context.traffic.batches():
            index = 0
            while index < len(batch):
                index = self._handle(batch, index)
                if self._is_full():
                    yield self._task()
            yield None
        if self._pairing is not None:
            self._add_pairs(self._pairing.finish())
        if self._items or self._ended:
            yield self._task()

    def _is_full(self) -> bool:
        return len(self._items) >= self._max_items or self._bytes >= self._max_bytes

    def _task(self) -> Task:
        task = Task(
            self._items,
            bytes(self._uses),
            self._pairs,
            self._ends,
            self._ended,
            self._restored,
            self._sessions.left(),
            len(self.learned),
        )
        self._begin()
        return task

    def _handle(self, batch: list[LocatedItem | Ended], start: int) -> int:
        """Handle the items of a batch from an index on; return that of the next one.

        It ends with the batch, or when the task is full.
        """
        pairing, groups = self._pairing, self._groups
        while start < len(batch) and not self._is_full():
            entry = batch[start]
            start += 1
            if isinstance(entry, Ended):
                if self._has_endings:
                    self._ended.append((len(self._items), entry))
                if pairing is not None:
                    self._add_pairs(pairing.end(entry.connection))
                continue
            if self._has_names:
                self._learn(entry)
            index = MISSING
            if self._has_messages and self._is_wanted(entry):
                index = self._add(entry, MESSAGE)
            if groups is not None and api_key_of(entry) in CAUSES and is_request(entry):
                groups.requested(located(entry, self._context.limits))
            if pairing is not None:
                task = MISSING if index == MISSING else self._number
                pairs = pairing.handle(entry, task, index)
                if pairs:
                    self._add_pairs(pairs)
        return start

    def _learn(self, entry: LocatedItem) -> None:
        """Learn the topic names in a message, if it may have any."""
        item, names = entry.item, self._context.names
        if isinstance(item, RawFrame):
            request = item.request
            if request is None or not self._extractor.format_of(request, item.is_request).names:
                return
            self._context.reach(entry)
            self._extractor.extract(item)
        else:
            self._context.reach(entry)
            self._context.learn(item)
        for id in names.named[len(self.learned) :]:
            self.learned.append((id, names.topic(None, id).name or ""))

    def _is_wanted(self, entry: LocatedItem) -> bool:
        if not self._only_records:
            return True
        item = entry.item
        if isinstance(item, Row):
            return (item.api_key, item.direction) in RECORDS_MESSAGES
        request = item.request
        if request is None:
            return False
        return self._extractor.format_of(request, item.is_request).has_records

    def _add(self, entry: LocatedItem, use: int) -> int:
        """Add a message to the task; return its index."""
        self._items.append(entry)
        self._uses.append(use)
        self._bytes += length(entry)
        return len(self._items) - 1

    # -- exchanges

    def _add_pairs(self, pairs: list[ItemPair]) -> None:
        for pair in pairs:
            if self._groups is not None:
                self._handle_group(pair, self._groups)
            if not self._has_exchanges:
                continue
            replay = self._sessions.handle(pair)
            self._bytes += self._sessions.listing  # its rows have what these requests list
            if replay is not None:
                requests, versions = replay.history
                pair_count, id = len(self._pairs) // 3, (pair.ends.connection, replay.session)
                self._restored.append(Restored(pair_count, id, UNKNOWN, requests, versions))
            self._pairs.append(self._index(pair.request))
            self._pairs.append(self._index(pair.response))
            self._pairs.append(self._index_of_ends(pair.ends))

    def _index(self, message: TaskMessage | None) -> int:
        """Return the index of a message in the task; it is added if it is in an earlier one."""
        if message is None:
            return MISSING
        return (
            message.index if message.task == self._number else self._add(message.located, EXCHANGE)
        )

    def _index_of_ends(self, ends: Ends) -> int:
        index = self._end_indexes.get(ends)
        if index is None:
            index = self._end_indexes[ends] = len(self._ends)
            self._ends.append((ends.connection, ends.client, ends.broker))
        return index

    def _handle_group(self, pair: ItemPair, groups: Groups) -> None:
        request = pair.request
        if request is None:
            return
        key = api_key_of(request.located)
        if key not in APIS or (pair.response is None and key not in CAUSES):
            return
        exchange = exchange_of(pair, self._context.limits)
        self.group_rows += events(groups.handle(exchange), self._context)
