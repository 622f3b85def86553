"""Rows of a table from the packets of whole connections.

Law: packets come connection by connection, each in packet order (asserted); a connection goes
through the same engine and the same table as in a single process, and costs the same memory.

    sorted packets --whole connections--> Engine --> Located | Ended --> table --> record batches
                                                             `--> Facts ----------^ in the last ones
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute

from ..capture.connections import Connection
from ..capture.conversation import Conversation
from ..capture.engine import Engine, Located
from ..capture.exchanges import Ended
from ..capture.rows import Row
from ..capture.tables.context import Context
from ..capture.tables.traffic import about, as_ended, place_of
from .errors import OutOfOrder, Unreadable
from .facts import Facts, Unresolved
from .options import Options
from .packets import NOTICE, PLACED, SET, is_connection, segments_in
from .parts import Notice

ENGINE_SEGMENTS: Final = 1 << 14
"""Segments after which the next connection gets an engine of its own."""


END: Final = 1 << 62
"""Stands before the packet that tells what only the end of the capture shows."""


class ToldEngine(Engine):
    """An engine that also says which connection it speaks of, by its first packet, and when that
    was known: the same in every partition.

    firsts: number in this engine -> first packet.
    """

    def __init__(self, options: Options, on_end: Callable[[Connection, int], None]) -> None:
        super().__init__(
            options.ports,
            reassembly=options.reassembly,
            on_end=on_end,
            brokers=options.brokers,
        )
        self.firsts: dict[int, int] = {}
        self._base = 0

    def finish(self) -> Iterator[Located]:
        """Close the capture."""
        self._base = END
        return super().finish()

    @property
    def at(self) -> int:
        """What sorts that which is being told among the connections of all partitions."""
        return self._base + self.known_at

    def _open(self, connection: Connection) -> Conversation:
        self.firsts[connection.id] = connection.first_packet
        return super()._open(connection)


class Traffic:
    """The connections of a partition, as the tables read a capture; names: files of the set."""

    repeatable = False

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch],
        names: Sequence[str],
        options: Options,
        facts: Facts,
    ) -> None:
        self.facts = facts
        self._batches = batches
        self._names = names
        self._options = options
        self._ended: list[Ended] = []
        self._engine = self._new_engine()

    @property
    def at(self) -> int:
        """What sorts the item given last among those of all connections."""
        return self._engine.at

    def place(self, packet: int) -> tuple[str, int]:
        """Say in which file a packet is, and its number there."""
        file, number = place_of(packet)
        return self._names[file], number

    def __iter__(self) -> Iterator[Located | Ended]:
        notices: dict[int, tuple[int, Notice]] = {}
        fed = 0
        current = b""
        for rows, cut in in_order_of_keys(self._batches):
            key = rows.column("key")[0].as_py()
            if not is_connection(key):
                _note(rows, notices, self.facts)
                continue
            if key[: SET.itemsize] != current:
                current = key[: SET.itemsize]
                yield from self._told(self._engine.finish())
                self._engine, fed = self._new_engine(), 0
            if cut is not None and fed >= ENGINE_SEGMENTS:
                yield from self._told(self._fed(rows.slice(0, cut)))
                yield from self._told(self._engine.finish())
                self._engine, fed, rows = self._new_engine(), 0, rows.slice(cut)
            yield from self._told(self._fed(rows))
            fed += len(rows)
        yield from self._told(self._engine.finish())
        yield from self._problems(notices)

    def _fed(self, rows: pa.RecordBatch) -> Iterator[Located]:
        segments = segments_in(rows)
        self.facts.sums["captured_bytes"] += int(segments.captured.sum())
        return self._engine.feed(segments)

    def _new_engine(self) -> ToldEngine:
        return ToldEngine(self._options, self._end)

    def _end(self, connection: Connection, client: int) -> None:
        ended = as_ended(connection, client)._replace(connection=connection.first_packet)
        self.facts.ended(ended)
        self._ended.append(ended)

    def _told(self, rows: Iterator[Located]) -> Iterator[Located | Ended]:
        for found in rows:
            yield from self._drain()
            assert found.connection is not None
            self.facts.row(found.row)
            yield found._replace(connection=self._engine.firsts[found.connection])
        yield from self._drain()

    def _problems(self, notices: dict[int, tuple[int, Notice]]) -> Iterator[Located]:
        """Say what is wrong with files, each at its last packet."""
        for packet, told in notices.values():
            for text in [*told.problems, *(said for _, said in told.once)]:
                if self._options.fail_on_error:
                    raise Unreadable(self.place(packet)[0], text)
                yield Located(None, None, None, about(text, packet))

    def _drain(self) -> Iterator[Ended]:
        while self._ended:
            yield self._ended.pop(0)


class Gathering(Context):
    """A partition being read for one table; what its messages state is noted as facts.

    bare: decoded bodies are of no use to the table any more, once they have told what they state.
    """

    def __init__(self, traffic: Traffic, sets: Sequence[int], *, bare: bool = False) -> None:
        super().__init__(traffic)  # type: ignore[arg-type]  # what tables ask of a Traffic
        self.names = self._unresolved = Unresolved(traffic.facts, sets)
        self._bare = bare

    def located(self) -> Iterator[Located | Ended]:
        """Read the partition, noting names on the way."""
        found = super().located()
        return without_bodies(found) if self._bare else found

    def carriers(
        self,
        wanted: Collection[tuple[int | None, str]],  # noqa: ARG002  # facts need all rows
    ) -> Iterator[Located]:
        """Read the partition; other rows have told what they state."""
        return (item for item in self.located() if isinstance(item, Located))

    def _learn(self, row: Row) -> None:
        self._unresolved.packet = row.packet
        super()._learn(row)


def without_bodies(items: Iterable[Located | Ended]) -> Iterator[Located | Ended]:
    """Take decoded messages off rows."""
    for item in items:
        if isinstance(item, Located):
            item = item._replace(row=item.row._replace(message=None))
        yield item


def in_order_of_keys(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[pa.RecordBatch, int | None]]:
    """Give the batches, cut so that none holds both connections and other rows; and where in each
    the first key begins that did not begin before. Raises OutOfOrder.
    """
    before, packet = b"", -1
    for whole in batches:
        for batch in _pieces(whole):
            keys = batch.column("key")
            packets = batch.column("packet").to_numpy()
            changes = _changes(keys)
            falls = np.flatnonzero(packets[1:] <= packets[:-1]) + 1
            first = keys[0].as_py()
            if first < before or (first == before and packets[0] <= packet):
                raise OutOfOrder(first, int(packets[0]))
            names = [first, *(keys[at].as_py() for at in changes)]
            if sorted(set(names)) != names or not set(falls.tolist()) <= set(changes):
                raise OutOfOrder(first, int(packets[0]))
            yield batch, (0 if first != before else next(iter(changes), None))
            before, packet = names[-1], int(packets[-1])


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch where the connections of another set begin, or rows that are of none."""
    if not len(batch):
        return
    kinds = pa.compute.binary_slice(batch.column("key"), 0, SET.itemsize)
    sizes = pa.compute.binary_length(batch.column("key")).to_numpy() == PLACED.itemsize
    cuts = sorted({*_changes(kinds), *(np.flatnonzero(sizes[1:] != sizes[:-1]) + 1).tolist()})
    for start, end in zip([0, *cuts], [*cuts, len(batch)], strict=True):
        yield batch.slice(start, end - start)


def _changes(keys: pa.Array) -> list[int]:
    """List where a key differs from the one before it."""
    if len(keys) < 2:
        return []
    differs = pa.compute.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    found: list[int] = (np.flatnonzero(differs.to_numpy(zero_copy_only=False)) + 1).tolist()
    return found


# -- what parts told


def _note(rows: pa.RecordBatch, notices: dict[int, tuple[int, Notice]], facts: Facts) -> None:
    for row in rows.to_pylist():
        if not row["key"].startswith(NOTICE):
            facts.fragments = True
            continue
        file, _ = place_of(row["packet"])
        last, before = notices.get(file, (0, Notice()))
        told: Notice = pickle.loads(row["payload"])
        known = {what for what, _ in before.once}
        once = tuple(one for one in told.once if one[0] not in known)
        notices[file] = (
            max(last, row["packet"]),
            Notice(before.problems + told.problems, before.once + once),
        )
