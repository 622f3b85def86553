"""One batch: packets and states, by connection, to rows and states; then the commit.

    packets --.                          .--> rows ----------------------.
              +-- shuffle by key --> carry --> items --> tell_groups -----+--> write --> commit
    states ---'                          `--> facts --> numbers, names --'

Law: a batch is a function of its files and of the state before; run again, it writes the same.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession

from ...capture.files.blocks import NO_TIME
from ..decode.groups import ITEMS
from ..decode.packets import SCHEMA, Kind, Placing, mixed_keys, row_of
from ..errors import ascii_safe
from ..options import Options
from ..plan.facts import AllFacts, sum_up
from ..plan.opening import begins
from ..plan.planning import Plan, complaints, make_plan, numbers
from ..plan.verdicts import Verdict
from ..reading import map_in_arrow, packet_rows, partitions
from ..splitting import InputFile, Split
from ..write.outputs import OUT
from .connections import GROUPS, LIVES, Terms
from .groups import tell_groups
from .ledger import Commit, Ledger, Taken, write
from .state import BatchFacts, carry
from .writing import WRITTEN, Numbers, write_rows

KNOWN: Final = "known.json"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Work:
    """What is made of every batch. idle_ns, state_bytes: see `Rules`."""

    tables: tuple[str, ...]
    options: Options
    idle_ns: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Learnt:
    """What the tasks of a batch know together."""

    opened: list[int]
    live: frozenset[int]
    newest_ns: int
    given_up: int
    all: AllFacts


def run(
    spark: SparkSession,
    ledger: Ledger,
    work: Work,
    files: Sequence[str],
    *,
    late: bool = False,
    closing: bool = False,
    say: Say = lambda _: None,
) -> Commit:
    """Decode files as the next batch and commit it. Raises what `make_plan` does.

    late: by themselves, and all is closed behind them; closing: nothing comes any more.
    """
    last = ledger.last
    number = last.batch + 1 if last else 0
    plan, taken = planned(spark, ledger, work.options, files)
    say(f"batch {number}: {len(taken)} files, {plan.bytes / 1e6:.1f} MB")
    for line in complaints(plan):
        say(line)
    before = read_known(ledger.state)
    if late:
        before = before.without_connections()
    newest_ns = last.newest_ns if last else NO_TIME
    terms = Terms(
        work.tables,
        work.options,
        (*ledger.names, *plan.names),
        newest_ns if newest_ns == NO_TIME else newest_ns - work.idle_ns,
        work.state_bytes,
        closing or late,
    )
    kept, learnt = decoded(spark, plan, terms, before.states)
    say(f"batch {number}: decoded")
    known = before.and_what(learnt, last.connections if last else 0)
    folder = ledger.stage(number)
    written = write_all(spark, kept, terms, known, folder, plan)
    ledger.ready(folder, {row["file"]: row["table"] for row in written if row["table"]})
    if not late:
        known.keep(folder / "state", learnt.live, [r["file"] for r in written if not r["table"]])
    say(f"batch {number}: written")
    rows = Counter[str](dict.fromkeys(work.tables, 0))
    for row in written:
        rows.update({row["table"]: row["rows"]} if row["table"] else {})
    made = Commit(
        batch=number,
        late=late,
        files=tuple(taken),
        tables=dict(rows),
        token=folder.name,
        state=(last.state if last else "") if late else folder.name,
        connections=(last.connections if last else 0) + len(learnt.opened),
        newest_ns=max(learnt.newest_ns, newest_ns),
        reached=max([(NO_TIME, ""), *([last.reached] if last else []), *map(_order, taken)]),
        counts={
            "messages": learnt.all.sums["messages"],
            "captured_bytes": learnt.all.sums["captured_bytes"],
            "connections_given_up": learnt.given_up,
        },
        closed=closing,
    )
    ledger.commit(made)
    say(f"batch {number}: committed")
    ledger.publish()
    say(f"batch {number}: " + ", ".join(f"{n} {table}" for table, n in made.tables.items()))
    return made


def planned(
    spark: SparkSession, ledger: Ledger, options: Options, files: Sequence[str]
) -> tuple[Plan, list[Taken]]:
    """Plan files, numbered on from those taken before."""
    if not files:
        return Plan((), (), ()), []
    plan = make_plan(spark, files, options, lenient=True)
    first = len(ledger.names)
    splits: dict[int, list[Split]] = {at: [] for at in range(len(plan.files))}
    for part in plan.parts:
        splits[part.file].append(part.split)
    taken = [
        _taken(file, begins(splits[at])[0], verdict)
        for at, (file, verdict) in enumerate(zip(plan.files, plan.verdicts, strict=True))
    ]
    # What cannot be opened is not taken: it may be readable the next time.
    taken += [
        _taken(one.file, NO_TIME, one.verdict) for one in plan.left_out if one.file is not None
    ]
    parts = tuple(replace(part, file=part.file + first, set=0) for part in plan.parts)
    sets = (0,) * (first + len(taken))
    return Plan(plan.files, sets, parts, verdicts=plan.verdicts, left_out=plan.left_out), taken


def _taken(file: InputFile, first_ns: int, verdict: Verdict) -> Taken:
    status, reason, offset, _ = verdict
    return Taken(
        file.name, file.size, file.modified_ns or 0, first_ns, status.value, reason, offset
    )


def _order(file: Taken) -> tuple[int, str]:
    return file.first_ns, file.name


# -- what Spark does


def decoded(
    spark: SparkSession, plan: Plan, terms: Terms, states: Sequence[Path]
) -> tuple[DataFrame, Learnt]:
    """Decode packets behind the states of their connections; the rows are kept."""
    paths = [path for path in states if path.name.startswith(LIVES)]
    size = plan.bytes + sum(path.stat().st_size for path in paths)
    placing = Placing(partitions(spark, size, terms.options))
    stored = read_states(spark, paths, SCHEMA, partial(state_rows, placing))

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return carry(batches, terms)

    for joined in (False, True):
        rows = packet_rows(spark, plan, placing, joined=joined, more=stored)
        kept = map_in_arrow(rows, step, OUT).persist(StorageLevel.DISK_ONLY)
        told = kept.where("kind = 'facts'").select("body").collect()
        learnt = _sum_up([BatchFacts(*pickle.loads(row["body"])) for row in told])
        if not learnt.all.fragments:
            break
        kept.unpersist()
    return kept, learnt


def _sum_up(told: Sequence[BatchFacts]) -> Learnt:
    return Learnt(
        sorted(first for one in told for first in one.opened),
        frozenset(first for one in told for first in one.live),
        max((one.newest_ns for one in told), default=NO_TIME),
        sum(one.given_up for one in told),
        sum_up(one.facts for one in told),
    )


def told_groups(
    spark: SparkSession, kept: DataFrame, terms: Terms, states: Sequence[Path], plan: Plan
) -> DataFrame:
    """Tell what happened to groups, behind their states."""
    stored = read_states(spark, [path for path in states if path.name.startswith(GROUPS)], ITEMS)
    items = kept.where("kind = 'item'").selectExpr("name as group_id", "at", "n", "body as item")

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return tell_groups(batches, terms)

    rows = items.union(stored).repartition(partitions(spark, plan.bytes, terms.options), "group_id")
    return map_in_arrow(rows.sortWithinPartitions("group_id", "at", "n"), step, OUT)


def state_rows(placing: Placing, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Make rows of states, which come before the packets of their connections."""
    buckets = placing.of(mixed_keys(batch.column("key").to_pylist())).tolist()
    for bucket, state in zip(buckets, batch.to_pylist(), strict=True):
        yield row_of(bucket, Kind.STATE, 0, pickle.dumps(tuple(state.values())))


def read_states(
    spark: SparkSession,
    paths: Sequence[Path],
    schema: pa.Schema,
    made: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]] = lambda batch: [batch],
) -> DataFrame:
    """Read states that an earlier batch wrote; made: what becomes of them."""

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                with pa.ipc.open_stream(str(paths[at])) as stream:
                    for each in stream:
                        yield from made(each)

    tasks = spark.sparkContext.defaultParallelism
    return map_in_arrow(numbers(spark, len(paths), tasks), step, schema)


def write_all(
    spark: SparkSession, kept: DataFrame, terms: Terms, known: Known, folder: Path, plan: Plan
) -> list[Row]:
    """Write rows and states into a folder; gives what was written, and lets go what was kept."""
    frame = kept.where("kind in ('rows', 'state')")
    if GROUPS in terms.tables:
        frame = frame.union(told_groups(spark, kept, terms, known.states, plan))
    files, topics, numbers = len(terms.names), terms.options.topics, known.numbers

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_rows(batches, folder, numbers, files, topics)

    try:
        return map_in_arrow(frame, step, WRITTEN).collect()
    finally:
        kept.unpersist()


# -- what is known from batch to batch


@dataclass(frozen=True, slots=True)
class Known:
    """What a batch goes on from: numbers and names, and files with states."""

    numbers: Numbers
    states: list[Path]

    def without_connections(self) -> Known:
        """Leave but names."""
        return Known(Numbers({}, self.numbers.names), [])

    def and_what(self, learnt: Learnt, count: int) -> Known:
        """Number connections on, behind `count`; the names known first stand."""
        new = {first: count + at for at, first in enumerate(learnt.opened)}
        named = {id: name for (_, id), name in learnt.all.names.items()}
        numbers = {**self.numbers.numbers, **new}
        return Known(Numbers(numbers, {**named, **self.numbers.names}), self.states)

    def keep(self, folder: Path, live: Iterable[int], states: list[str]) -> None:
        """Write it for the next batch: numbers of connections that are spoken of, files of
        states.
        """
        kept = {
            "numbers": {first: self.numbers.numbers[first] for first in live},
            "names": {id.hex(): name for id, name in self.numbers.names.items()},
            "states": states,
        }
        write(folder / KNOWN, json.dumps(kept).encode())


def read_known(folder: Path | None) -> Known:
    """Read what an earlier batch left."""
    if folder is None:
        return Known(Numbers({}, {}), [])
    found = json.loads((folder / KNOWN).read_text())
    names = {bytes.fromhex(id): name for id, name in found["names"].items()}
    numbers = {int(first): number for first, number in found["numbers"].items()}
    return Known(Numbers(numbers, names), [folder / name for name in found["states"]])
