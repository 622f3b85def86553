"""Reads the indexes of a segment: offset, time and transaction index.

Entries have a fixed size; zero entries at the end are space that Kafka preallocates. An index
is checked against its segment; both are read once.

    .index      relative offset: int32 | position: int32
    .timeindex  timestamp: int64 | relative offset: int32
    .txnindex   version: int16 | producer id, first, last and last stable offset: int64 each
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from .files import MAX_INT64, LogFile
from .findings import Finding, Rule
from .spans import SpanWalk

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
ABORTED: Final = Struct(">hqqqq")
ABORTED_VERSION: Final = 0
ENTRIES: Final = 4096
"""Number of entries read at a time."""


class OffsetIndexEntry(NamedTuple):
    """The position of an offset. position: the byte in the segment."""

    entry: int
    offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """The largest timestamp so far, and its offset."""

    entry: int
    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """A transaction that read_committed consumers skip. last_offset: of its marker."""

    entry: int
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_offset_index(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[OffsetIndexEntry | Finding]:
    """Read an .index; offsets are absolute if the file name has a base offset, else relative."""
    base = file.base_offset or 0
    before = OffsetIndexEntry(-1, base - 1, -1)
    beyond: list[Finding] = []
    count = 0
    with ExitStack() as stack:
        walk = _segment(file, stack) if verify else None
        for number, (relative, position) in entries(stream, OFFSET_ENTRY, zeros_end=True):
            entry = OffsetIndexEntry(number, base + relative, position)
            if entry.offset > MAX_INT64:
                yield _beyond_int64(file, OFFSET_ENTRY, entry)
                continue
            yield entry
            if not verify:
                continue
            if entry.offset <= before.offset or entry.position <= before.position:
                yield _disorder(file, OFFSET_ENTRY, entry, before)
                continue
            before = entry
            difference = None if walk is None else _compare_offset(file, entry, walk)
            if difference is not None and difference.rule is Rule.INDEX_BEYOND:
                beyond = beyond or [difference]
                count += 1
            elif difference is not None:
                yield difference
        for first in beyond:
            yield first._replace(text=f"{first.text} ({count} such entries)")
        yield from _ending(file, stream, OFFSET_ENTRY, verify and walk is None)


def read_time_index(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[TimeIndexEntry | Finding]:
    """Read a .timeindex; offsets as in `read_offset_index`."""
    base = file.base_offset or 0
    before: TimeIndexEntry | None = None
    with ExitStack() as stack:
        walk = _segment(file, stack) if verify else None
        for number, (timestamp, relative) in entries(stream, TIME_ENTRY, zeros_end=True):
            entry = TimeIndexEntry(number, timestamp, base + relative)
            if entry.offset > MAX_INT64:
                yield _beyond_int64(file, TIME_ENTRY, entry)
                continue
            yield entry
            if not verify:
                continue
            if before is not None and (
                entry.timestamp <= before.timestamp or entry.offset < before.offset
            ):
                yield _disorder(file, TIME_ENTRY, entry, before)
                continue
            before = entry
            if walk is not None:
                yield from _compare_time(file, entry, walk)
        yield from _ending(file, stream, TIME_ENTRY, verify and walk is None)


def read_transaction_index(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[AbortedTransaction | Finding]:
    """Read a .txnindex."""
    before: AbortedTransaction | None = None
    for number, values in entries(stream, ABORTED, zeros_end=False):
        entry = AbortedTransaction(number, *values)
        at = number * ABORTED.size
        if entry.version != ABORTED_VERSION:
            text = f"entry {number}: version {entry.version}, not {ABORTED_VERSION}"
            yield Finding(file.path, at, Rule.VERSION, text)
            return
        yield entry
        if not verify:
            continue
        if before is not None and entry.last_offset <= before.last_offset:
            yield _disorder(file, ABORTED, entry, before)
        elif entry.first_offset > entry.last_offset:
            text = f"entry {number}: first offset {entry.first_offset} after last offset"
            text = f"{text} {entry.last_offset}"
            yield Finding(file.path, at, Rule.ENTRY_ORDER, text)
        before = entry
    yield from _ending(file, stream, ABORTED, False)


def entries(
    stream: BinaryIO, layout: Struct, *, zeros_end: bool
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield whole entries with their numbers. zeros_end: skip zero entries at the end."""
    zero = (0,) * len(layout.unpack(bytes(layout.size)))
    number = zeros = 0
    while chunk := stream.read(layout.size * ENTRIES):
        whole = len(chunk) // layout.size * layout.size
        for values in layout.iter_unpack(memoryview(chunk)[:whole]):
            number += 1
            if zeros_end and values == zero:
                zeros += 1
                continue
            for early in range(number - 1 - zeros, number - 1):
                yield early, zero
            zeros = 0
            yield number - 1, values


# -- findings


def _segment(file: LogFile, stack: ExitStack) -> SpanWalk | None:
    """Open the segment of an index; None if it does not exist."""
    try:
        return SpanWalk(stack.enter_context(file.segment.open("rb")))
    except OSError:
        return None


def _compare_offset(file: LogFile, entry: OffsetIndexEntry, walk: SpanWalk) -> Finding | None:
    at = entry.entry * OFFSET_ENTRY.size
    span = walk.until(lambda span: span.position >= entry.position)
    if span is None or span.position != entry.position:
        text = f"entry {entry.entry}: no batch starts at position {entry.position} of the segment"
        return Finding(file.path, at, Rule.INDEX_POSITION, text)
    text = f"entry {entry.entry}: offset {entry.offset}, but the batch at position"
    text = f"{text} {entry.position} has offsets {span.base_offset}-{span.last_offset}"
    if entry.offset < span.base_offset:
        return Finding(file.path, at, Rule.INDEX_OFFSET, text)
    if entry.offset > span.last_offset:
        # an append of several batches (replication, compaction) is indexed by its last offset;
        # a reader that starts too early misses nothing
        return Finding(file.path, at, Rule.INDEX_BEYOND, text)
    return None


def _compare_time(file: LogFile, entry: TimeIndexEntry, walk: SpanWalk) -> Iterator[Finding]:
    at = entry.entry * TIME_ENTRY.size
    span = walk.until(lambda span: span.last_offset >= entry.offset)
    if span is None or span.base_offset > entry.offset:
        text = f"entry {entry.entry}: no batch in the segment has offset {entry.offset}"
        yield Finding(file.path, at, Rule.TIME_OFFSET, text)
        return
    text = f"entry {entry.entry}: timestamp {entry.timestamp}, but the batch with offset"
    if span.max_timestamp != entry.timestamp:
        text = f"{text} {entry.offset} has {span.max_timestamp}"
        yield Finding(file.path, at, Rule.TIME_TIMESTAMP, text)
    elif walk.latest_before > entry.timestamp:
        text = f"entry {entry.entry}: timestamp {entry.timestamp}, but an earlier batch has"
        yield Finding(file.path, at, Rule.TIME_TIMESTAMP, f"{text} {walk.latest_before}")


def _disorder(
    file: LogFile,
    layout: Struct,
    entry: OffsetIndexEntry | TimeIndexEntry | AbortedTransaction,
    before: OffsetIndexEntry | TimeIndexEntry | AbortedTransaction,
) -> Finding:
    text = f"{_plain(entry)} after {_plain(before)}"
    return Finding(file.path, entry.entry * layout.size, Rule.ENTRY_ORDER, text)


def _beyond_int64(
    file: LogFile, layout: Struct, entry: OffsetIndexEntry | TimeIndexEntry
) -> Finding:
    text = f"entry {entry.entry}: offset {entry.offset} exceeds an int64"
    return Finding(file.path, entry.entry * layout.size, Rule.INDEX_OFFSET, text)


def _plain(entry: OffsetIndexEntry | TimeIndexEntry | AbortedTransaction) -> str:
    values = entry._asdict()
    number = values.pop("entry")
    text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
    return f"entry {number} ({text})" if number >= 0 else "the start"


def _ending(
    file: LogFile, stream: BinaryIO, layout: Struct, without_segment: bool
) -> Iterator[Finding]:
    size = os.fstat(stream.fileno()).st_size
    rest = size % layout.size
    if rest:
        text = f"incomplete entry at the end: {rest} of {layout.size} bytes"
        yield Finding(file.path, size - rest, Rule.ENTRY_SIZE, text)
    if without_segment:
        text = f"segment {file.segment.name} not found: entries not checked against it"
        yield Finding(file.path, 0, Rule.NO_SEGMENT, text)
