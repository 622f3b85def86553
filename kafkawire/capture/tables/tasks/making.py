"""Makes the rows of tasks, in any process.

The rows of all tasks, in their order, are those of one process that reads the capture.

    Task --> items --.--> Columnar: exchanges, partitions, records
             pairs --'
             items -----> rows of messages, problems; properties of connections
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from ...exchanges.exchanges import Ended
from ...exchanges.fetch_sessions import State
from ...exchanges.message_pairs import Ends, Pair
from ...rows import Located
from .. import messages, problems
from ..arrow.record_columns import record_batches
from ..arrow.record_fields import Fields
from ..arrow.schemas import batches
from ..connections import ConnectionStats
from ..context import Context
from ..extraction.blocks import Block
from ..extraction.messages import ExtractedMessage
from ..passes import COLUMNAR, RECORDS, Columnar, slices
from .task import MISSING, UNKNOWN, Restored, SessionId, Task, Use, store

Values = tuple[Any, ...]

MESSAGE_ROWS: Final = {"messages": messages.rows_of, "problems": problems.rows_of}
"""Tables with rows of single messages."""

COLUMNS: Final = {
    "messages": messages.COLUMNS,
    "problems": problems.COLUMNS,
}

RECORDS_BYTES: Final = 1 << 24
"""Bytes of batches of `records` that are made of a task: batches may decompress to any size."""

CONNECTIONS: Final = "connections"
CHECKED_MESSAGES: Final = 64
"""Messages, or exchanges, after which batches may be made."""


Value = TypeVar("Value")


Counted = tuple[int, ConnectionStats, Ended | None]
"""A connection, what some of its messages show, and its end if it has closed after them."""


class Made(NamedTuple):
    """What is made of a task: record batches with their tables, and rows counted by connection.

    Instead of batches of `records` beyond RECORDS_BYTES there are the fields they are made of.
    """

    batches: list[tuple[str, pa.RecordBatch | Fields]]
    connections: list[Counted]


class Maker:
    """Makes tables of the tasks of a capture.

    size: rows of a batch at most. defer_records: leave batches of `records` beyond RECORDS_BYTES to
    others.
    """

    def __init__(
        self, context: Context, tables: Sequence[str], size: int, *, defer_records: bool = False
    ) -> None:
        self._context = context
        self._size = size
        self._tables = frozenset(tables)
        take_records = self._take_records if defer_records else None
        self._columnar = Columnar(context, self._tables & COLUMNAR, size, take_records)
        self._fields: list[Fields] = []
        self._of_messages = {name: MESSAGE_ROWS[name] for name in tables if name in MESSAGE_ROWS}
        self._sessions: dict[SessionId, State[Block] | None] = {}
        self._needs_rows = bool(self._tables - COLUMNAR)

    def learn(self, names: list[tuple[bytes, str]]) -> None:
        """Learn topic names that messages before the end of the next task state."""
        for id, name in names:
            self._context.names.add(name, id)

    def make(self, task: Task) -> Made:
        """Make the rows of a task, and count those of connections."""
        work = _Work(task)
        columnar: list[tuple[str, pa.RecordBatch | Fields]] = [*self._batches(work)]
        return Made(columnar + self._records(), work.connections)

    def batches(self, task: Task) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Make the rows of a task, but those of connections, batch by batch."""
        yield from self._batches(_Work(task))

    def _batches(self, work: _Work) -> Iterator[tuple[str, pa.RecordBatch]]:
        task, columnar = work.task, self._columnar
        columnar.restart()
        exchanges = _Exchanges(task)
        for index in range(len(task.items)):
            self._message(work, index)
            while exchanges.is_next_complete(index):
                self._exchange(work, exchanges)
            if index % CHECKED_MESSAGES == 0:
                yield from columnar.batches()
                yield from self._rows(work)
        work.end_connections(len(task.items))
        for id, _ in task.left:
            store(self._sessions, id, columnar.session(id[0], id[1]))
        yield from columnar.batches(last=True)
        yield from self._rows(work, last=True)

    def _rows(self, work: _Work, *, last: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return full batches of tables of messages; with `last`, also incomplete ones."""
        for name, rows in work.rows.items():
            count = len(rows) if last else len(rows) - len(rows) % self._size
            if count:
                for batch in batches(
                    COLUMNS[name], rows[:count], self._size, self._context.name_topics
                ):
                    yield name, batch
                del rows[:count]

    def _take_records(self, fields: Fields) -> None:
        self._fields.append(fields)

    def _records(self) -> list[tuple[str, pa.RecordBatch | Fields]]:
        """Return the batches of the records of a task, and the fields of those beyond a limit."""
        fields, self._fields = self._fields, []
        written: list[tuple[str, pa.RecordBatch | Fields]] = []
        left = RECORDS_BYTES
        for each in fields:
            parts: list[pa.RecordBatch] = []
            batches_of = iter(record_batches(each, self._context.secrets))
            while left > 0 and (batch := next(batches_of, None)) is not None:
                left -= batch.nbytes
                parts += slices(batch, self._size)
            written += [(RECORDS, batch) for batch in parts] if left > 0 else [(RECORDS, each)]
        return written

    def _message(self, work: _Work, index: int) -> None:
        """Make the rows of a message."""
        located = work.task.items[index]
        in_order = work.task.uses[index] == Use.MESSAGE
        item = self._context.decode(located) if self._needs_rows else None
        if self._tables & COLUMNAR:
            row = None if item is None else item.row
            work.extracted.append(self._columnar.extract(located, row, in_order))
        if item is None or not in_order:
            return
        for name, rows_of in self._of_messages.items():
            work.rows[name] += rows_of(item, self._context)
        if CONNECTIONS in self._tables:
            work.end_connections(index)
            work.count(item)

    def _exchange(self, work: _Work, exchanges: _Exchanges) -> None:
        """Make the rows of the next exchange, and drop its messages."""
        while exchanges.restored and exchanges.restored[0].pair == exchanges.next:
            self._restore(exchanges.restored.popleft())
        request, response, ends = exchanges.take()
        connection, client, broker = work.task.ends[ends]
        sent, received = _taken(work.extracted, request), _taken(work.extracted, response)
        self._columnar.add_exchange(Pair(Ends(connection, client, broker), sent, received))

    def _restore(self, restored: Restored) -> None:
        """Restore a fetch session, before the exchange that needs it."""
        before = None if restored.base == UNKNOWN else self._sessions[restored.id]
        connection, id = restored.id
        self._columnar.restore(connection, id, restored.requests, before)


class _Work:
    """What is made of a task so far: messages by index, rows by table, connections."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.extracted: list[ExtractedMessage | None] = []
        self.rows: dict[str, list[Values]] = {name: [] for name in COLUMNS}
        self.connections: list[Counted] = []
        self._open: dict[int, ConnectionStats] = {}
        self._ended = deque(task.ended)

    def count(self, item: Located) -> None:
        """Count a message of a connection."""
        if item.connection is None:
            return
        stats = self._open.get(item.connection)
        if stats is None:
            stats = self._open[item.connection] = ConnectionStats()
            self.connections.append((item.connection, stats, None))
        stats.handle(item.row)

    def end_connections(self, index: int) -> None:
        """Note the connections that closed before a message."""
        while self._ended and self._ended[0][0] <= index:
            ended = self._ended.popleft()[1]
            self._open.pop(ended.connection, None)
            self.connections.append((ended.connection, ConnectionStats(), ended))


class _Exchanges:
    """The exchanges of a task that are not handled yet.

    next: the number of the first of them. restored: the fetch sessions that they need.
    """

    def __init__(self, task: Task) -> None:
        self.next = 0
        self.restored = deque(task.restored)
        self._pairs = task.pairs

    def is_next_complete(self, index: int) -> bool:
        """Return whether the messages up to an index have both of the next exchange."""
        pairs, start = self._pairs, self.next * 3
        return start < len(pairs) and pairs[start] <= index and pairs[start + 1] <= index

    def take(self) -> tuple[int, int, int]:
        """Take the next exchange: the indexes of request, response and ends."""
        pairs, start = self._pairs, self.next * 3
        self.next += 1
        return pairs[start], pairs[start + 1], pairs[start + 2]


def _taken(values: list[Value | None], index: int) -> Value | None:
    """Remove a value, which no other exchange needs."""
    if index == MISSING:
        return None
    value = values[index]
    values[index] = None
    return value
