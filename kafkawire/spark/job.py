"""The job behind `kafkawire spark`: tables of a set of captures as Parquet, and what was done.

Law: what is there after a run is what this run wrote: a table is replaced as a whole, and the
manifest is taken away before the first is touched and written when the last is done.

    output/_manifest                            inputs, rows, bytes accounted for
    output/exchanges/date=2026-11-21/api=Fetch/part-00000-....parquet
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from ..capture.tables import TABLES
from .columns import needed
from .decoding import tune
from .errors import ascii_safe
from .facts import AllFacts
from .options import Options
from .outputs import bodies, in_file
from .planning import Plan, make_plan, numbers
from .reading import Decoded, decode, map_in_arrow
from .session import apart
from .splitting.stores import Store, filesystem, located
from .writing import BY_API, WRITTEN, Folder

MANIFEST: Final = "_manifest"
SCRATCH: Final = ".rows"

FILE_BYTES: Final = 256 << 20
LEAST_BYTES: Final = 32 << 20
"""Bytes of inputs for which there is an output file in a directory at most; and at least, where
more cores are there to write.
"""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written."""

    table: str
    rows: int
    seconds: float


def run(
    spark: SparkSession,
    inputs: Iterable[str],
    output: str,
    tables: Iterable[str],
    options: Options,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Decode a set of captures into tables under `output`; returns the manifest.

    Raises what `make_plan` does; what Spark raises where a worker fails.
    """
    begun = time.time()
    tables = tuple(dict.fromkeys(tables))
    for table in tables:  # an option that one of them has not, before any is made
        needed(table, TABLES[table].schema.names, options)
    spark = apart(spark)
    store, root = _place(output, options)
    plan = make_plan(spark, inputs, options, to_store=not store.is_local)
    say(f"plan: {len(plan.files)} files, {plan.bytes / 1e6:.1f} MB, {len(plan.parts)} splits")
    _forget(filesystem(store), root)
    tasks = writers(plan.bytes, spark.sparkContext.defaultParallelism)
    # What all workers see of a directory, they can hand over there; it costs least.
    scratch = _scratch(root) if store.is_local else None
    written: list[Written] = []
    facts: AllFacts | None = None
    for table in tables:
        since = time.monotonic()
        decoded = decode(spark, plan, replace(options, table=table), folder=scratch)
        facts = decoded.facts
        say(f"{table}: decoded, {facts.sums['messages']} messages; writing")
        folder = Folder(store, f"{root}/{table}", table in BY_API, decoded.finish.batch)
        rows = _write(spark, decoded, folder, tasks, waits=scratch is not None)
        decoded.release()
        written.append(Written(table, rows, time.monotonic() - since))
        say(f"{table}: {rows} rows, {written[-1].seconds:.1f} s")
        if scratch is not None:
            _scratch(root)
    shutil.rmtree(Path(root, SCRATCH), ignore_errors=True)
    manifest = describe(plan, options, written, facts)
    manifest["seconds"] = round(time.time() - begun, 3)
    with filesystem(store).open_output_stream(f"{root}/{MANIFEST}") as out:
        out.write(json.dumps(manifest, indent=1).encode("utf-8", "backslashreplace"))
    return manifest


def _scratch(root: str) -> str:
    """Make an empty directory for rows that wait to be finished."""
    path = Path(root, SCRATCH)
    if path.exists():
        shutil.rmtree(path)
    path.mkdir()
    return str(path)


def writers(size: int, cores: int) -> int:
    """Say how many tasks write the rows of so many bytes."""
    files = -(-size // FILE_BYTES)
    return max(1, files, min(cores, size // LEAST_BYTES))


def _write(
    spark: SparkSession, decoded: Decoded, folder: Folder, tasks: int, *, waits: bool
) -> int:
    """Write a table; waits: its rows wait in files. Returns how many there are."""
    folder.empty()
    rows, given = decoded.rows.select("name", "body").coalesce(tasks), bodies
    if waits:
        # What one task decoded, as it does of a connection with most of the bytes, several write.
        found = decoded.rows.select("name", "n").collect()
        runs = dealt([(row["name"], row["n"]) for row in found], tasks)
        rows, given = numbers(spark, len(runs)), partial(_in_runs, runs)

    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tune()
        return folder.write(given(batches))

    written = map_in_arrow(rows, step, WRITTEN).collect()
    folder.only(row["file"] for row in written)
    return sum(row["rows"] for row in written)


def _in_runs(
    runs: Sequence[Sequence[str]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for at in (at for batch in batches for at in batch.column(0).to_pylist()):
        for name in runs[at]:
            yield from in_file(name)


def dealt(files: Sequence[tuple[str, int]], count: int) -> list[list[str]]:
    """Deal files of rows out to so many tasks, or fewer: stretches with about as many rows each."""
    every = max(1, sum(rows for _, rows in files))
    runs: list[list[str]] = [[] for _ in range(count)]
    before = 0
    for name, rows in files:
        runs[min((2 * before + rows) * count // (2 * every), count - 1)].append(name)
        before += rows
    return [run for run in runs if run]


def describe(
    plan: Plan, options: Options, written: Iterable[Written], facts: AllFacts | None
) -> dict[str, Any]:
    """Make the manifest."""
    made: dict[str, Any] = {
        "inputs": [
            {"name": file.name, "bytes": file.size, "modified_ns": file.modified_ns}
            for file in plan.files
        ],
        "sets": len(set(plan.sets)),
        "splits": len(plan.parts),
        "tables": {one.table: {"rows": one.rows} for one in written},
        "options": _shown(options),
    }
    if facts is not None:
        made["payload"] = account(facts.sums)
        made["messages"] = facts.sums["messages"]
        made["connections"] = facts.sums["connections"]
    return made


def account(sums: Mapping[str, int]) -> dict[str, int]:
    """Say where the captured payload bytes went; `missing` is what was never captured, and
    `unaccounted` is 0.
    """
    went = {
        name: sums.get(f"{kind}_bytes", 0)
        for name, kind in (
            ("messages", "message"),
            ("cut_messages", "truncated"),
            ("unparsed", "unparsed"),
            ("other_protocols", "other_protocol"),
            ("discarded", "discarded"),
            ("conflicting", "conflict"),
            ("repeated", "repeated"),
        )
    }
    captured = sums.get("captured_bytes", 0)
    missing = sums.get("gap_bytes", 0)
    rest = captured - sum(went.values())
    return {"captured": captured, **went, "missing": missing, "unaccounted": rest}


def _shown(options: Options) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "ports": list(options.ports),
        "brokers": list(options.brokers),
        "apis": sorted(options.apis),
        "topics": sorted(options.topics),
        "startTs": options.start_ns,
        "endTs": options.end_ns,
        "sets": options.sets.value,
        "redact": options.redact,
    }
    return {name: value for name, value in shown.items() if value not in (None, [])}


def _place(output: str, options: Options) -> tuple[Store, str]:
    """Say where the output is; a local directory by what it is called everywhere."""
    if "://" not in output:
        return Store(), str(Path(output).absolute())
    store, path = located(output, options.others)
    return store, path.rstrip("/")


def _forget(store: fs.FileSystem, root: str) -> None:
    store.create_dir(root, recursive=True)
    path = f"{root}/{MANIFEST}"
    if store.get_file_info(path).type != fs.FileType.NotFound:
        store.delete_file(path)


def known_tables(given: Iterable[str], options: Options) -> list[str]:
    """Take the tables asked for, or the one of the options where none is. Raises KeyError for one
    there is none of.
    """
    tables = list(given) or [options.table]
    for table in tables:
        TABLES[table]
    return tables
