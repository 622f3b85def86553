"""Decodes the packets of a batch to rows of all tables, and passes the state of connections on.

The state of a connection is a row sorted before its packets, and reaches them by the same
shuffle; a state without packets is passed on unchanged.

    states, packets, by bucket --by connection--> PairDecoder --> rows | group items | facts
                                                      `---------> state, for the next batch
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from ...capture.files.blocks import NO_TIME
from ...capture.frames.decoding import located
from ...capture.snapshot import dump, load
from ...capture.tables.tasks.making import MESSAGE_ROWS
from ..decode.chunk_rows import ChunkContext, Places
from ..decode.decoding import ProblemCollector, in_order, sorted_rows
from ..decode.outputs import Output, serialise
from ..errors import ascii_safe
from ..plan.facts import Facts
from ..shuffle.packets import Kind, by_connection
from ..shuffle.tasks import tune
from .connections import (
    CONNECTIONS,
    BatchSettings,
    PairDecoder,
    readable_checkpoint,
)

BEFORE: Final = -1
"""Sort key of a state: before everything else."""

STATES: Final = pa.schema(
    [pa.field("key", pa.binary()), pa.field("last_ns", pa.int64()), pa.field("state", pa.binary())]
)
"""Schema of state files: key of a pair of endpoints, time of its last packet, its state."""

STATE_ROWS: Final = 64


class State(NamedTuple):
    """The state of a pair of endpoints from an earlier batch."""

    last_ns: int
    state: bytes


class BatchFacts(NamedTuple):
    """What a task found out and all need.

    opened: first packets of connections that begin in the batch; live: of those that may get rows
    in later batches. newest_ns: time of the newest packet. facts: names, sums.
    """

    opened: list[int]
    live: list[int]
    newest_ns: int
    given_up: int
    facts: bytes


class BatchDecoder:
    """Decodes a partition of a batch."""

    def __init__(self, settings: BatchSettings) -> None:
        self.settings = settings
        self.facts = Facts()
        self.out = Output(settings.options)
        self._context = ChunkContext(settings.names, [0] * len(settings.names), self.facts)
        self._places = Places(settings.names)
        self._before: dict[bytes, State] = {}
        self._decoders: dict[bytes, PairDecoder] = {}
        self._last: dict[bytes, int] = {}
        self._opened: list[int] = []
        self._live: list[int] = []
        self._states: list[tuple[bytes, int, bytes]] = []
        self._given_up = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield all output rows of the bucket."""
        file_problems = ProblemCollector(self.facts)

        def other(kind: int, packet: int, body: bytes) -> None:
            if kind == Kind.STATE:
                key, last_ns, state = pickle.loads(body)
                self._before[key] = State(last_ns, state)
            else:
                file_problems.take(kind, packet, body)

        for segments in in_order(sorted_rows(batches), other):
            for key, pair_segments in by_connection(segments):
                decoder = self._decoders.get(key) or self._restore(key)
                decoder.feed(pair_segments)
                decoder.flush()
                self._last[key] = max(self._last[key], int(pair_segments.ts.max()))
                yield from self.out.drain()
        for key in [*self._decoders, *self._before]:
            self._finish(key)
            yield from self.out.drain()
        self._file_problems(file_problems)
        self._write_state()
        yield from self.out.finish()

    def _restore(self, key: bytes) -> PairDecoder:
        """Restore the connections of a pair of endpoints."""
        decoder = PairDecoder(self.settings, self._context, self.facts, self.out)
        last_ns, state = self._before.pop(key, State(NO_TIME, b""))
        if state:
            _, connections, pair = load(state)
            decoder.restore(connections, pair)
        self._decoders[key], self._last[key] = decoder, last_ns
        return decoder

    def _finish(self, key: bytes) -> None:
        """Close the connections of a pair of endpoints, or pass their state on."""
        settings, before = self.settings, self._before.get(key)
        if before is None:
            self._snapshot(key, self._decoders.pop(key), self._last[key])
        elif not settings.closing and not NO_TIME < before.last_ns < settings.silent_ns:
            self._live += load(before.state)[0]
            self._states.append((key, *before))
        else:
            self._opened += self._restore(key).close()
            del self._decoders[key]

    def _snapshot(self, key: bytes, decoder: PairDecoder, last_ns: int) -> None:
        if self.settings.closing:
            self._opened += decoder.close()
            return
        pair = decoder.snapshot()
        size = len(pair.state)
        if size > self.settings.state_bytes:
            decoder.close(f"given up: {size} bytes of state exceed stateBytes")
            self._opened += pair.opened
            self._given_up += len(pair.open)
            return
        self._opened += pair.opened
        self._live += pair.live
        self._states.append((key, last_ns, dump((pair.live, pair.open, pair.state))))

    def _file_problems(self, file_problems: ProblemCollector) -> None:
        """Make rows of the problems of files."""
        settings = self.settings
        made_by_row = [table for table in settings.tables if table in MESSAGE_ROWS]
        for item in file_problems.items(settings.options, self._places.place):
            row = located(item)
            for table in made_by_row:
                self.out.rows(table, MESSAGE_ROWS[table](row, self._context))

    def _write_state(self) -> None:
        for start in range(0, len(self._states), STATE_ROWS):
            columns = zip(*self._states[start : start + STATE_ROWS], strict=True)
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, STATES, strict=True)]
            body = serialise(pa.RecordBatch.from_arrays(arrays, schema=STATES))
            self.out.other("state", CONNECTIONS, 0, 0, body)
        newest = max(self._last.values(), default=NO_TIME)
        batch_facts = BatchFacts(
            self._opened, self._live, newest, self._given_up, self.facts.pack()
        )
        self.out.other("facts", "", 0, 0, pickle.dumps(tuple(batch_facts)))


@ascii_safe
def decode_batch(
    batches: Iterable[pa.RecordBatch], settings: BatchSettings
) -> Iterator[pa.RecordBatch]:
    """Decode the states and packets of a bucket, in order."""
    tune()
    with readable_checkpoint():
        yield from BatchDecoder(settings).run(batches)
