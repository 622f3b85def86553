"""Runs one batch: decodes packets after the state of their connections, writes, commits.

    packets --.                                 .--> rows --------------------.
              +-- shuffle by key --> decode_batch --> items --> group events --+--> write --> commit
    states ---'                                 `--> facts --> numbers, names -'

A batch is a function of its files and of the state before; repeated, it writes the same. Only
schemas of values may have changed in a registry: each batch looks them up.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession

from ...capture.files.blocks import NO_TIME
from ...display import plural
from ...values.record_values import RecordValues
from ..decode.groups import ITEMS
from ..decode.outputs import OUT
from ..describing import losses_text
from ..options import Options
from ..plan.facts import AllFacts, sum_up
from ..plan.opening import first_packet_time
from ..plan.planning import Plan, input_warnings, make_plan
from ..plan.verdicts import Verdict
from ..reading import map_in_arrow, packet_rows, partitions
from ..shuffle.packets import SCHEMA, Partitioner
from ..splitting import InputFile, Split
from ..values import RECORDS, looked_up
from .checkpoint import Checkpoint, read_checkpoint, read_states, state_rows
from .commit_log import Commit, CommitLog, CommittedFile
from .connections import CONNECTIONS, GROUPS, BatchSettings
from .groups import group_event_batches, group_states
from .state import BatchFacts, decode_batch
from .writing import WRITTEN, finished_records, write_rows

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Work:
    """What is made of every batch. idle_ns, state_bytes: see `WatchOptions`.

    values: decode the keys and values in the table `records`.
    """

    tables: tuple[str, ...]
    options: Options
    idle_ns: int
    state_bytes: int
    values: RecordValues | None = None


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What the tasks of a batch found out together."""

    opened: list[int]
    live: frozenset[int]
    newest_ns: int
    given_up: int
    all: AllFacts


def run(
    spark: SparkSession,
    commit_log: CommitLog,
    work: Work,
    files: Sequence[str],
    *,
    late: bool = False,
    closing: bool = False,
    log: Log = lambda _: None,
) -> Commit:
    """Decode files as the next batch and commit it. Raises what `make_plan` does.

    late: decode the files on their own, and close all connections after them; closing: no more
    files come.
    """
    number = commit_log.next_batch
    plan, taken = planned(spark, commit_log, work.options, files)
    log(f"batch {number}: {plural(len(taken), 'file')}, {plan.bytes / 1e6:.1f} MB")
    for line in input_warnings(plan):
        log(line)
    before = read_checkpoint(commit_log.state)
    if late:
        before = before.without_connections()
    settings = settings_of(commit_log, work, plan, closing=closing or late)
    decoded_rows, summary = decoded(spark, plan, settings, before.states)
    log(f"batch {number}: decoded")
    checkpoint = before.updated(summary.opened, summary.all.names, commit_log.connections)
    folder = commit_log.stage(number)
    written = write_all(spark, decoded_rows, settings, checkpoint, folder, plan, work.values)
    commit_log.ready(folder, {row["file"]: row["table"] for row in written if row["table"]})
    if not late:
        checkpoint.save(
            folder / "state", summary.live, [r["file"] for r in written if not r["table"]]
        )
    log(f"batch {number}: written")
    rows = Counter[str](dict.fromkeys(work.tables, 0))
    for row in written:
        rows.update({row["table"]: row["rows"]} if row["table"] else {})
    commit = commit_of(commit_log, summary, taken, rows, folder.name, late=late, closed=closing)
    commit_log.commit(commit)
    log(f"batch {number}: committed")
    commit_log.publish()
    log(f"batch {number}: " + ", ".join(f"{n} {table}" for table, n in commit.tables.items()))
    if text := losses_text(work.tables, work.options, summary.all.sums):
        log(f"batch {number}: {text}")
    return commit


def settings_of(commit_log: CommitLog, work: Work, plan: Plan, *, closing: bool) -> BatchSettings:
    """Return the settings of the next batch."""
    newest_ns = commit_log.newest_ns
    return BatchSettings(
        work.tables,
        work.options,
        (*commit_log.names, *plan.names),
        newest_ns if newest_ns == NO_TIME else newest_ns - work.idle_ns,
        work.state_bytes,
        closing,
    )


def commit_of(
    commit_log: CommitLog,
    summary: BatchSummary,
    taken: Sequence[CommittedFile],
    rows: Mapping[str, int],
    token: str,
    *,
    late: bool,
    closed: bool,
) -> Commit:
    """Make the commit of a batch. rows: of each table; token: the folder in which it is staged."""
    last = commit_log.last
    return Commit(
        batch=commit_log.next_batch,
        late=late,
        files=tuple(taken),
        tables=dict(rows),
        token=token,
        state=(last.state if last else "") if late else token,
        connections=commit_log.connections + len(summary.opened),
        newest_ns=max(summary.newest_ns, commit_log.newest_ns),
        reached=max([(NO_TIME, ""), *([last.reached] if last else []), *map(_sort_key, taken)]),
        counts={
            "messages": summary.all.sums["messages"],
            "captured_bytes": summary.all.sums["captured_bytes"],
            "connections_given_up": summary.given_up,
        },
        closed=closed,
    )


def planned(
    spark: SparkSession, commit_log: CommitLog, options: Options, files: Sequence[str]
) -> tuple[Plan, list[CommittedFile]]:
    """Plan files, numbered after those of earlier batches."""
    if not files:
        return Plan((), (), ()), []
    plan = make_plan(spark, files, options, lenient=True)
    first = len(commit_log.names)
    splits: dict[int, list[Split]] = {file_index: [] for file_index in range(len(plan.files))}
    for part in plan.parts:
        splits[part.file].append(part.split)
    taken = [
        _taken(file, first_packet_time(splits[file_index])[0], verdict)
        for file_index, (file, verdict) in enumerate(zip(plan.files, plan.verdicts, strict=True))
    ]
    # A file that cannot be opened is not taken: it may be readable the next time.
    taken += [
        _taken(one.file, NO_TIME, one.verdict) for one in plan.skipped if one.file is not None
    ]
    parts = tuple(replace(part, file=part.file + first, set=0) for part in plan.parts)
    sets = (0,) * (first + len(taken))
    return Plan(plan.files, sets, parts, verdicts=plan.verdicts, skipped=plan.skipped), taken


def _taken(file: InputFile, first_ns: int, verdict: Verdict) -> CommittedFile:
    status, reason, offset, _ = verdict
    return CommittedFile(
        file.name, file.size, file.modified_ns or 0, first_ns, status.value, reason, offset
    )


def _sort_key(file: CommittedFile) -> tuple[int, str]:
    return file.first_ns, file.name


def decoded(
    spark: SparkSession, plan: Plan, settings: BatchSettings, states: Sequence[Path]
) -> tuple[DataFrame, BatchSummary]:
    """Decode packets after the states of their connections; the rows are persisted."""
    paths = [path for path in states if path.name.startswith(CONNECTIONS)]
    size = plan.bytes + sum(path.stat().st_size for path in paths)
    partitioner = Partitioner(partitions(spark, size, settings.options))
    state_frame = read_states(spark, paths, SCHEMA, partial(state_rows, partitioner))

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return decode_batch(batches, settings)

    for joined in (False, True):
        rows = packet_rows(spark, plan, partitioner, joined=joined, more=state_frame)
        decoded_rows = map_in_arrow(rows, step, OUT).persist(StorageLevel.DISK_ONLY)
        collected = decoded_rows.where("kind = 'facts'").select("body").collect()
        summary = _sum_up([BatchFacts(*pickle.loads(row["body"])) for row in collected])
        if not summary.all.fragments:
            break
        decoded_rows.unpersist()
    return decoded_rows, summary


def _sum_up(collected: Sequence[BatchFacts]) -> BatchSummary:
    return BatchSummary(
        sorted(first for one in collected for first in one.opened),
        frozenset(first for one in collected for first in one.live),
        max((one.newest_ns for one in collected), default=NO_TIME),
        sum(one.given_up for one in collected),
        sum_up(one.facts for one in collected),
    )


def group_event_frame(
    spark: SparkSession,
    decoded_rows: DataFrame,
    settings: BatchSettings,
    states: Sequence[Path],
    plan: Plan,
) -> DataFrame:
    """Make the group events, from group items after the states of their groups."""
    state_frame = read_states(
        spark, [path for path in states if path.name.startswith(GROUPS)], ITEMS, group_states
    )
    items = decoded_rows.where("kind = 'item'").selectExpr(
        "name as group_id", "at", "n", "body as item"
    )

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return group_event_batches(batches, settings)

    rows = items.union(state_frame).repartition(
        partitions(spark, plan.bytes, settings.options), "group_id"
    )
    return map_in_arrow(rows.sortWithinPartitions("group_id", "at", "n"), step, OUT)


def write_all(
    spark: SparkSession,
    decoded_rows: DataFrame,
    settings: BatchSettings,
    checkpoint: Checkpoint,
    folder: Path,
    plan: Plan,
    values: RecordValues | None = None,
) -> list[Row]:
    """Write rows and states into a folder; returns what was written, and unpersists the rows."""
    frame = decoded_rows.where("kind in ('rows', 'state')")
    if GROUPS in settings.tables:
        frame = frame.union(
            group_event_frame(spark, decoded_rows, settings, checkpoint.states, plan)
        )
    files, options, numbers = len(settings.names), settings.options, checkpoint.numbers

    try:
        schemas = None
        if values is not None:
            schemas = looked_up(
                decoded_rows.where(f"kind = 'rows' and name = '{RECORDS}'"),
                values,
                lambda batches: finished_records(batches, numbers, files, options),
            )

        def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return write_rows(batches, folder, numbers, files, options, schemas)

        return map_in_arrow(frame, step, WRITTEN).collect()
    finally:
        decoded_rows.unpersist()
