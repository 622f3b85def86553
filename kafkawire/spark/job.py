"""The job behind `kafkawire spark`: tables of a set of captures as Parquet, and what was done.

Law: what is there after a run is what this run wrote: a table is replaced as a whole, and the
manifest is taken away before the first is touched and written when the last is done.

    output/_manifest                            inputs, rows, bytes accounted for
    output/exchanges/date=2026-11-21/api=Fetch/part-00000-....parquet
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, date_trunc, lit, to_date

from ..capture.tables import TABLES
from .facts import AllFacts
from .options import Options
from .planning import Plan, make_plan
from .reading import decode

MANIFEST: Final = "_manifest"

FILE_BYTES: Final = 256 << 20
"""Bytes of inputs for which there is an output file, at least."""

BY_API: Final = frozenset({"exchanges", "messages", "partitions"})
"""Tables that are cut by API, too."""

TIMES: Final = ("time", "response_time", "first_time")
"""Columns that say the date of a row, the first one that is there and not null."""

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
    plan = make_plan(spark, inputs, options)
    say(f"plan: {len(plan.files)} files, {plan.bytes / 1e6:.1f} MB, {len(plan.parts)} splits")
    store, root = _store(output)
    _forget(store, root)
    written: list[Written] = []
    facts: AllFacts | None = None
    for table in dict.fromkeys(tables):
        since = time.monotonic()
        decoded = decode(spark, plan, replace(options, table=table))
        facts = decoded.facts
        say(f"{table}: decoded, {facts.sums['messages']} messages; writing")
        rows = _write(decoded.frame, table, f"{output.rstrip('/')}/{table}", plan)
        decoded.release()
        written.append(Written(table, rows, time.monotonic() - since))
        say(f"{table}: {rows} rows, {written[-1].seconds:.1f} s")
    manifest = describe(plan, options, written, facts)
    manifest["seconds"] = round(time.time() - begun, 3)
    with store.open_output_stream(f"{root}/{MANIFEST}") as out:
        out.write(json.dumps(manifest, indent=1).encode("utf-8", "backslashreplace"))
    return manifest


def _write(frame: DataFrame, table: str, path: str, plan: Plan) -> int:
    """Write a table, few files to a directory, in order of time; returns its rows."""
    times = [frame[name] for name in TIMES if name in frame.columns]
    cut = ["date"]
    frame = frame.withColumn("date", to_date(coalesce(*times)))
    if table in BY_API:
        frame = frame.withColumn("api", coalesce(frame["api_name"], lit("unknown")))
        cut.append("api")
    first = next(name for name in TIMES if name in frame.columns)
    files = max(1, -(-plan.bytes // FILE_BYTES))
    # By range Spark would make all rows twice: once to find where to cut.
    minute = date_trunc("minute", coalesce(*times))
    frame = frame.repartition(files, *cut, minute).sortWithinPartitions(*cut, first)
    frame.write.mode("overwrite").partitionBy(*cut).parquet(path, compression="zstd")
    return frame.sparkSession.read.schema(frame.schema).parquet(path).count()


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


def _store(output: str) -> tuple[fs.FileSystem, str]:
    if "://" in output:
        store, root = fs.FileSystem.from_uri(output)
        return store, root.rstrip("/")
    return fs.LocalFileSystem(), output.rstrip("/")


def _forget(store: fs.FileSystem, root: str) -> None:
    store.create_dir(root, recursive=True)
    path = f"{root}/{MANIFEST}"
    if store.get_file_info(path).type != fs.FileType.NotFound:
        store.delete_file(path)


def known_tables(given: Iterable[str]) -> list[str]:
    """Take the tables asked for; exchanges where none is. Raises KeyError for one there is none
    of.
    """
    tables = list(given) or ["exchanges"]
    for table in tables:
        TABLES[table]
    return tables
