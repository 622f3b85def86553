"""The job of `kafkawire spark`: tables of a set of captures as Parquet, and a manifest.

Law: the output is that of one run. A table is replaced as a whole; the manifest is deleted before
the first table is replaced, and written after the last one.

    output/_manifest                            inputs, rows, bytes accounted for
    output/exchanges/date=2026-11-21/api=Fetch/part-00000-....parquet
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyarrow import fs
from pyspark.sql import SparkSession

from ..capture.tables import TABLES
from ..display import plural
from .decode.columns import needed
from .decode.scratch import Scratch, chosen
from .options import Options
from .passes import decode_passes
from .plan.facts import AllFacts
from .plan.planning import Plan, input_warnings, make_plan, require_files
from .plan.verdicts import PROBLEMS, REFUSED, FileStatus, code
from .reading import Decoded
from .splitting.stores import Store, filesystem, located
from .write.finishing import Finish
from .write.manifest import InputEntries, manifest_pieces
from .write.shared_directory import SpilledTable
from .write.writing import BY_API, TableDirectory

MANIFEST: Final = "_manifest"
SCRATCH: Final = ".rows"

FILE_BYTES: Final = 256 << 20
MIN_FILE_BYTES: Final = 32 << 20
"""Bytes of inputs for each output file in a directory; and the minimum, if there are more cores to
write.
"""

Log = Callable[[str], None]


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
    log: Log = lambda _: None,
) -> dict[str, Any]:
    """Decode a set of captures into tables under `output`; returns the manifest.

    Its `inputs` are a sequence that makes an entry when it is used.

    An input that is not a capture, or cannot be read, is reported and has an entry in the manifest;
    the others are read. Raises NoCaptures, before anything is written, if there are no others; what
    `make_plan` raises; what Spark raises when a worker fails.
    """
    started = time.time()
    tables = tuple(dict.fromkeys(tables))
    for table in tables:  # an option that it does not have raises before anything is written
        needed(table, TABLES[table].schema.names, options)
    store, root = _locate(output, options)
    plan = make_plan(spark, inputs, options, to_store=not store.is_local, lenient=True)
    for line in input_warnings(plan):
        log(line)
    require_files(plan)
    splits = plural(len(plan.parts), "split")
    log(f"plan: {plural(len(plan.files), 'file')}, {plan.bytes / 1e6:.1f} MB, {splits}")
    _remove_manifest(filesystem(store), root)
    tasks = writers(plan.bytes, spark.sparkContext.defaultParallelism)
    written: list[Written] = []
    facts: AllFacts | None = None
    since = time.monotonic()
    make_scratch = partial(_scratch, spark, options, store, root)

    def directory(table: str, finish: Finish) -> TableDirectory:
        return TableDirectory(store, f"{root}/{table}", table in BY_API, finish.batch)

    for together in decode_passes(spark, plan, tables, options, make_scratch, directory):
        for table, decoded in together.items():
            facts = decoded.facts
            log(f"{table}: decoded {plural(facts.sums['messages'], 'message')}; writing")
            rows = _write(decoded, directory(table, decoded.finish), tasks)
            written.append(Written(table, rows, time.monotonic() - since))
            log(f"{table}: {plural(rows, 'row')}, {written[-1].seconds:.1f} s")
            since = time.monotonic()
        for decoded in together.values():
            decoded.release()
    written.sort(key=lambda one: tables.index(one.table))
    manifest = describe(plan, options, written, facts)
    manifest["seconds"] = round(time.time() - started, 3)
    with filesystem(store).open_output_stream(f"{root}/{MANIFEST}") as out:
        for piece in manifest_pieces(manifest):
            out.write(piece.encode("utf-8", "backslashreplace"))
    return manifest


def _write(decoded: SpilledTable | Decoded, directory: TableDirectory, tasks: int) -> int:
    """Replace the files of a table; returns how many rows there are."""
    files = decoded.write(directory, tasks)
    directory.only(file for file, _ in files)
    return sum(rows for _, rows in files)


def _scratch(spark: SparkSession, options: Options, store: Store, root: str) -> Scratch:
    """Make an empty directory for spill files: the chosen one, or one in the output.

    In the output, if that is a path: it may have more room than a local master's temporary files.
    """
    found = None if store.is_local and options.scratch is None else chosen(spark, options)
    return found or Scratch(f"{root}/{SCRATCH}", store).make()


def writers(size: int, cores: int) -> int:
    """Return the number of tasks that write the rows of `size` bytes of inputs."""
    files = -(-size // FILE_BYTES)
    return max(1, files, min(cores, size // MIN_FILE_BYTES))


def describe(
    plan: Plan, options: Options, written: Iterable[Written], facts: AllFacts | None
) -> dict[str, Any]:
    """Return the manifest."""
    made: dict[str, Any] = {
        "inputs": InputEntries(plan),
        "sets": len(set(plan.sets)),
        "splits": len(plan.parts),
        "tables": {one.table: {"rows": one.rows} for one in written},
        "options": _options_json(options),
    }
    if facts is not None:
        made["payload"] = account(facts.sums)
        made["messages"] = facts.sums["messages"]
        made["connections"] = facts.sums["connections"]
    return made


def exit_code(manifest: Mapping[str, Any], *, strict: bool) -> int:
    """Return the exit code of a run, as `kafkawire decode` does.

    It is 2 if an input was refused; with strict 1 if there are rows of `problems`.
    """
    refused = any(FileStatus(each["status"]) in REFUSED for each in manifest["inputs"])
    return code(refused=refused, findings=strict and manifest["tables"][PROBLEMS]["rows"] > 0)


def account(sums: Mapping[str, int]) -> dict[str, int]:
    """Account for the captured payload bytes.

    `missing` counts bytes that were never captured, and `unaccounted` is 0.
    """
    by_kind = {
        name: sums.get(f"{kind}_bytes", 0)
        for name, kind in (
            ("messages", "message"),
            ("cut_messages", "truncated"),
            ("unparsed", "unparsed"),
            ("tls", "tls"),
            ("proxy", "proxy"),
            ("other_protocols", "other_protocol"),
            ("discarded", "discarded"),
            ("conflicting", "conflict"),
            ("repeated", "repeated"),
        )
    }
    captured = sums.get("captured_bytes", 0)
    missing = sums.get("gap_bytes", 0)
    accounted = captured - sum(by_kind.values())
    return {"captured": captured, **by_kind, "missing": missing, "unaccounted": accounted}


def _options_json(options: Options) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "ports": list(options.ports),
        "brokers": list(options.brokers),
        "apis": sorted(options.apis),
        "topics": sorted(options.topics),
        "where": options.where,
        "startTs": options.start_ns,
        "endTs": options.end_ns,
        "sets": options.sets.value,
        "redact": options.redact,
    }
    return {name: value for name, value in shown.items() if value not in (None, [])}


def _locate(output: str, options: Options) -> tuple[Store, str]:
    """Return the store and path of the output; the path of a local directory is absolute."""
    if "://" not in output:
        return Store(), str(Path(output).absolute())
    store, path = located(output, options.others)
    return store, path.rstrip("/")


def _remove_manifest(store: fs.FileSystem, root: str) -> None:
    store.create_dir(root, recursive=True)
    path = f"{root}/{MANIFEST}"
    if store.get_file_info(path).type != fs.FileType.NotFound:
        store.delete_file(path)


def known_tables(given: Iterable[str], options: Options, *, strict: bool = False) -> list[str]:
    """Return the requested tables, or the one of the options. Raises KeyError for an unknown table.

    strict: with `problems`, whose rows decide about the exit code.
    """
    tables = list(given) or [options.table]
    for table in tables:
        TABLES[table]
    return [*tables, *([PROBLEMS] if strict and PROBLEMS not in tables else [])]
