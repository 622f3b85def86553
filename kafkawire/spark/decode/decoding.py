"""Decodes the packets of a bucket of connections to rows of a table.

Packets come in order (asserted), as in a capture with only the connections of the bucket. They
go through the same engine and the same table as in a single process, and use as much memory.

    rows of packets --in order--> Engine --> LocatedItem | Ended --> table --> record batches
                                                  `--> Facts
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from ...capture.engine import Engine
from ...capture.exchanges.exchanges import Ended
from ...capture.files.columns import Ints
from ...capture.frames.decoding import LocatedItem, located
from ...capture.multifile import FILE_BITS, file_and_packet, problem_row, skipped_row
from ...capture.packets.segment_rows import SegmentRows
from ...capture.packets.segments import Segments
from ...capture.packets.undecoded import Undecoded
from ...capture.rows import Located
from ...capture.tcp.connection import Connection
from ...capture.tls.keylog import KeyLog
from ..errors import OutOfOrder, Unreadable
from ..options import Options
from ..plan.facts import END, Facts, UnresolvedTopics
from ..plan.parts import FileProblems
from ..plan.visited import column
from ..shuffle.packets import Kind, concatenated, segments_in, take
from ..splitting.file_list import recent
from .contexts import BareContext

MIN_SEGMENTS: Final = 1 << 14
MIN_BYTES: Final = 4 << 20
"""Segments, or bytes of them, that are collected before the engine runs."""

MAX_SEGMENTS: Final = 1 << 15
"""Segments that the engine takes at a time."""

_IN_FILE: Final = (1 << FILE_BITS) - 1


def new_engine(options: Options, on_end: Callable[[Connection, int], None]) -> Engine:
    """Make an engine that identifies connections by their first packets."""
    return Engine(
        options.ports,
        reassembly=options.reassembly,
        on_end=on_end,
        brokers=options.brokers,
        by_packet=True,
        key_log=key_log_of(options.keylog),
    )


@lru_cache(maxsize=1)
def key_log_of(text: bytes) -> KeyLog:
    """Parse a key log, once for all engines of a process; they only read it."""
    return KeyLog(text)


class BucketTraffic:
    """The connections of a bucket, as the tables read a capture. It can be iterated once.

    segments: in packet order; SegmentRows are of one file. file_problems is complete when they are
    exhausted. names, sets: of all files. one_by_one: whether batches are of one item, so that it
    is known which of them stated the name of a topic.
    """

    repeatable = False

    def __init__(
        self,
        segments: Iterable[Segments | SegmentRows],
        file_problems: ProblemCollector,
        names: Sequence[str],
        sets: Sequence[int],
        options: Options,
        *,
        one_by_one: bool = False,
    ) -> None:
        self.facts = file_problems.facts
        self._segments = segments
        self._file_problems = file_problems
        self._name = recent(names)
        self._sets = np.array(sets, np.int64)
        self._options = options
        self._one_by_one = one_by_one
        self._engine = new_engine(options, self.facts.endings.end)
        self._base = 0

    def again(self) -> BucketTraffic:
        """Return this reader, which is not repeatable."""
        return self

    def place(self, packet: int) -> tuple[str, int]:
        """Return the file of a packet and its number there."""
        return self._name(packet >> FILE_BITS), packet & _IN_FILE

    def __iter__(self) -> Iterator[Located | Ended]:
        for one in self.raw_frames():
            yield located(one) if isinstance(one, LocatedItem) else one

    def raw_frames(self) -> Iterator[LocatedItem | Ended]:
        """Read the connections without decoding the bodies of messages."""
        for batch in self.batches():
            for one in batch:
                if isinstance(one, LocatedItem):
                    self.reach(one)
                yield one

    def reach(self, item: LocatedItem) -> None:
        """Note in the facts that this is the current item."""
        self.facts.at = self._base + item.known_at

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Do the same as `raw_frames`, in batches."""
        current: int | None = None
        for segments in self._segments:
            for set, of_set in by_set(segments, self._sets):
                if set != current and current is not None:
                    yield from self._feed(None)
                    self._engine = new_engine(self._options, self.facts.endings.end)
                    self.facts.learned.clear()
                current = set
                self.facts.sums["captured_bytes"] += captured_bytes(of_set)
                yield from self._feed(of_set)
        yield from self._feed(None)
        yield [*self._file_problems.items(self._options, self.place)]

    def _feed(self, segments: Segments | SegmentRows | None) -> Iterator[list[LocatedItem | Ended]]:
        """Feed the engine; None ends it."""
        facts = self.facts
        self._base = END if segments is None else 0
        for batch in self._engine.handle(segments):
            yield from self._drain_ended()
            facts.items(batch)
            if self._one_by_one:
                for item in batch:
                    self.reach(item)
                    yield [item]
            else:
                facts.at = self._base + batch[0].known_at
                yield [*batch]
        yield from self._drain_ended()

    def _drain_ended(self) -> Iterator[list[LocatedItem | Ended]]:
        ended = self.facts.endings.drained()
        if ended:
            yield [*ended]


class BucketContext(BareContext):
    """A bucket that is read for tables; names that messages state are recorded as facts."""

    def __init__(self, traffic: BucketTraffic, sets: Sequence[int], *, bare: bool = False) -> None:
        super().__init__(traffic, bare=bare)
        self.names = UnresolvedTopics(traffic.facts, sets)
        self._bucket = traffic

    def reach(self, located_item: LocatedItem) -> None:
        """Note that the topic names of this item are learned next."""
        self._bucket.reach(located_item)

    def decode(self, located_item: LocatedItem) -> Located:
        """Decode a frame, and record the topic names in it."""
        self.reach(located_item)
        return super().decode(located_item)


# -- rows of packets, in order


def sorted_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    """Yield kind, first packet and body of the rows of a bucket. Raises OutOfOrder."""
    before = (-1, -1)
    for batch in batches:
        kinds, packets = batch.column("kind").to_pylist(), batch.column("packet").to_pylist()
        for kind, packet, body in zip(kinds, packets, batch.column("body"), strict=True):
            if (kind, packet) < before:
                raise OutOfOrder(kind, packet)
            before = kind, packet
            yield kind, packet, body.as_py()


def in_order(
    rows: Iterable[tuple[int, int, bytes]], other: Callable[[int, int, bytes], None]
) -> Iterator[Segments]:
    """Yield the segments of sorted rows in packet order, in batches. Raises OutOfOrder.

    other: takes the rows without segments.
    """
    buffered: list[Segments] = []
    last, size, volume = -1, 0, 0
    for kind, packet, body in rows:
        if kind != Kind.SEGMENTS:
            other(kind, packet, body)
            continue
        if size >= MIN_SEGMENTS or volume >= MIN_BYTES:
            # Segments of reassembled datagrams lie between others.
            merged_segments = concatenated(buffered)
            ready = int(np.searchsorted(merged_segments.packet, packet))
            last = yield from _in_packet_order(merged_segments, ready, last)
            buffered = (
                [take(merged_segments, slice(ready, None))] if ready < len(merged_segments) else []
            )
            size, volume = sum(map(len, buffered)), 0
        buffered.append(segments_in(body))
        size += len(buffered[-1])
        volume += len(body)
    if buffered:
        merged_segments = concatenated(buffered)
        yield from _in_packet_order(merged_segments, len(merged_segments), last)


def _in_packet_order(segments: Segments, count: int, last: int) -> Generator[Segments, None, int]:
    """Yield the first `count` segments, and return their last packet.

    They must be after packet `last`. Raises OutOfOrder.
    """
    packets = segments.packet[:count]
    falls = np.flatnonzero(np.diff(packets, prepend=last) <= 0)
    if len(falls):
        raise OutOfOrder(Kind.SEGMENTS, int(packets[falls[0]]))
    for start in range(0, count, MAX_SEGMENTS):
        yield take(segments, slice(start, min(start + MAX_SEGMENTS, count)))
    return int(packets[-1]) if count else last


def captured_bytes(segments: Segments | SegmentRows) -> int:
    """Return the captured payload bytes."""
    columns = segments.captured if isinstance(segments, Segments) else column(segments, "captured")
    return int(columns.sum())


def by_set(
    segments: Segments | SegmentRows, sets: Ints
) -> Iterator[tuple[int, Segments | SegmentRows]]:
    """Split segments by set; the files of a set are adjacent. Rows are of one file."""
    if isinstance(segments, SegmentRows):
        yield int(sets[file_and_packet(int(column(segments, "packet")[0]))[0]]), segments
        return
    packets = segments.packet
    start = 0
    while start < len(packets):
        set = sets[file_and_packet(int(packets[start]))[0]]
        behind = int(np.searchsorted(sets, set, side="right"))
        end = int(np.searchsorted(packets, behind << FILE_BITS))
        yield int(set), take(segments, slice(start, end))
        start = end


class ProblemCollector:
    """Collects the problems that parts found in their files."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._by_file: dict[int, tuple[int, FileProblems]] = {}

    def take(self, kind: int, packet: int, body: bytes) -> None:
        """Take a row without segments."""
        if kind == Kind.FRAGMENTS:
            self.facts.fragments = True
            return
        reported: FileProblems = pickle.loads(body)
        file, _ = file_and_packet(packet)
        last, before = self._by_file.get(file, (0, FileProblems()))
        reported_before = {what for what, _ in before.once}
        once = tuple(one for one in reported.once if one[0] not in reported_before)
        undecoded = Undecoded(dict(before.undecoded))
        undecoded.merge(reported.undecoded)
        problems_of_file = FileProblems(
            before.problems + reported.problems, before.once + once, (*undecoded.counts.items(),)
        )
        self._by_file[file] = max(last, packet), problems_of_file

    def items(
        self, options: Options, place: Callable[[int], tuple[str, int]]
    ) -> Iterator[LocatedItem]:
        """Yield the problems of files, each at the last packet of its file.

        Raises Unreadable if `failOnError` is set.
        """
        for packet, reported in self._by_file.values():
            for text in [*reported.problems, *(reason for _, reason in reported.once)]:
                if options.fail_on_error:
                    raise Unreadable(place(packet)[0], text)
                yield LocatedItem(None, None, None, problem_row(text, packet))
            for skipped in Undecoded(dict(reported.undecoded)).problems():
                yield LocatedItem(None, None, None, skipped_row(skipped, packet))
