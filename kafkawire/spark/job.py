"""The job of `kafkawire spark`: tables of a set of captures as Parquet, and a manifest.

The output is that of one run, which has the directory locked. The manifest is deleted before
the files that it names, and written after all others (`write.output_directory`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from ..capture.tables import TABLES
from ..capture.tables.decoded_values import schema
from ..display import plural
from ..values.record_values import RecordValues
from .decode.columns import needed
from .decode.scratch import Scratch, chosen
from .describing import Written, describe, losses_text
from .errors import NoCaptures
from .options import Options, unknown
from .passes import decode_passes
from .plan.facts import AllFacts
from .plan.planning import Plan, input_warnings, make_plan, require_files
from .plan.verdicts import PROBLEMS
from .progress import reported
from .reading import Decoded
from .session import check_spark
from .splitting import inputs
from .splitting.stores import Store, is_uri, located
from .values import RECORDS, DecodedValues, looked_up, require_records
from .write.finishing import Finish
from .write.manifest import manifest_pieces
from .write.output_directory import SCRATCH, OutputDirectory, OutputFile
from .write.output_lock import locked, this_process
from .write.shared_directory import SpilledTable
from .write.writing import BY_API, TableDirectory

FILE_BYTES: Final = 256 << 20
MIN_FILE_BYTES: Final = 32 << 20
"""Bytes of inputs for each output file in a directory; and the minimum, if there are more cores to
write.
"""

Log = Callable[[str], None]


def run(
    spark: SparkSession,
    inputs: Iterable[str],
    output: str,
    tables: Iterable[str],
    options: Options,
    log: Log = lambda _: None,
    values: RecordValues | None = None,
) -> dict[str, Any]:
    """Decode a set of captures into tables under `output`; returns the manifest.

    Its `inputs` are a sequence that makes an entry when it is used. values: decode the keys and
    values in the table `records`.

    An input that is not a capture, or cannot be read, is reported and has an entry in the manifest;
    the others are read. Raises, before anything is written, NoCaptures if there are no others,
    OutputRefused, OutputInUse; what `make_plan` raises; what Spark raises when a worker fails.
    """
    started = time.time()
    check_spark(spark.version)
    tables = tuple(dict.fromkeys(tables))
    inputs = [*inputs]
    output_directory = check_request(inputs, output, tables, options, values)
    store = output_directory.store
    plan = make_plan(spark, inputs, options, to_store=_uses_store(store, options), lenient=True)
    for line in input_warnings(plan):
        log(line)
    require_files(plan)
    splits = plural(len(plan.parts), "split")
    log(f"plan: {plural(len(plan.files), 'file')}, {plan.bytes / 1e6:.1f} MB, {splits}")
    application = spark.sparkContext.applicationId
    with locked(store, output_directory.root, this_process(application)):
        earlier = output_directory.examine(tables)
        output_directory.require_outside(plan.files)
        output_directory.begin(application, tables, earlier)
        with reported(spark, log):
            written, facts = _write_tables(
                spark, plan, tables, options, output_directory, log, values
            )
        if facts is not None and (text := losses_text(tables, options, facts.sums)):
            log(text)
        manifest = {"application": application, **describe(plan, options, written, facts, values)}
        manifest["seconds"] = round(time.time() - started, 3)
        output_directory.complete(manifest_pieces(manifest))
    return manifest


def check_request(
    inputs: Iterable[str],
    output: str,
    tables: Iterable[str],
    options: Options,
    values: RecordValues | None = None,
) -> OutputDirectory:
    """Check what can be checked before Spark starts; returns the output directory.

    Raises BadOption, OutputRefused, ValueError for an unsupported URI, OSError.
    """
    tables = [*tables]
    require_records(tables, options, values)
    for table in tables:
        needed(table, TABLES[table].schema.names, options)
    directory = locate(output, options)
    if not (_uses_store(directory.store, options) or any(map(is_uri, inputs))):
        for name in options.others:  # no store to pass it to
            unknown(name)
    directory.examine(tables)
    return directory


def require_inputs(paths: Iterable[str], options: Options) -> None:
    """Raise NoCaptures if none of some local inputs exists, before Spark starts."""
    missing: list[str] = []
    paths = [*paths]
    if not any(map(is_uri, paths)):
        listed = inputs(paths, options.others, missing=lambda _, error: missing.append(str(error)))
        if not len(listed):
            raise NoCaptures(len(paths), missing[0])


def _write_tables(
    spark: SparkSession,
    plan: Plan,
    tables: Sequence[str],
    options: Options,
    output: OutputDirectory,
    log: Log,
    values: RecordValues | None,
) -> tuple[list[Written], AllFacts | None]:
    """Decode and write tables; returns them in the given order, and what is known of the set."""
    tasks = writers(plan.bytes, spark.sparkContext.defaultParallelism)
    application = spark.sparkContext.applicationId
    written: list[Written] = []
    facts: AllFacts | None = None
    since = time.monotonic()

    def directory(table: str, finish: Finish | DecodedValues) -> TableDirectory:
        path = f"{output.root}/{table}"
        return TableDirectory(output.store, path, table in BY_API, finish.batch, application)

    def early(table: str, finish: Finish) -> TableDirectory | None:
        # The schemas that records name are looked up when all are decoded.
        return None if values and table == RECORDS else directory(table, finish)

    with _scratches(spark, options, output) as make_scratch:
        for together in decode_passes(spark, plan, tables, options, make_scratch, early):
            for table, decoded in together.items():
                facts = decoded.facts
                log(f"{table}: decoded {plural(facts.sums['messages'], 'message')}; writing")
                finish: Finish | DecodedValues = decoded.finish
                columns = decoded.finish.schema
                if values and table == RECORDS:
                    schemas = looked_up(decoded.frame, values)
                    finish = DecodedValues(decoded.finish.batch, schemas)
                    columns = schema(columns, values)
                files = _write(decoded, directory(table, finish), tasks, columns)
                written.append(Written(table, files))
                seconds = time.monotonic() - since
                log(f"{table}: {plural(written[-1].rows, 'row')}, {seconds:.1f} s")
                since = time.monotonic()
            for decoded in together.values():
                decoded.release()
    written.sort(key=lambda one: tables.index(one.table))
    return written, facts


def _write(
    decoded: SpilledTable | Decoded, directory: TableDirectory, tasks: int, columns: pa.Schema
) -> list[OutputFile]:
    """Write the files of a table; returns them."""
    files = decoded.write(directory, tasks)
    return directory.only(files or [directory.write_schema(columns)])


@contextmanager
def _scratches(
    spark: SparkSession, options: Options, output: OutputDirectory
) -> Iterator[Callable[[], Scratch]]:
    """Provide a function that makes an empty directory for spill files; remove them at the end.

    It is the chosen one, or one in the output, if that is a path: it may have more room than a
    local master's temporary files.
    """
    store = output.store
    created: list[Scratch] = []

    def make() -> Scratch:
        scratch = None if store.is_local and options.scratch is None else chosen(spark, options)
        if scratch is None:
            name = f"{SCRATCH}{spark.sparkContext.applicationId}"
            scratch = Scratch(f"{output.root}/{name}", store).make()
        created.append(scratch)
        return scratch

    try:
        yield make
    finally:
        for each in created:
            each.remove()


def writers(size: int, cores: int) -> int:
    """Return the number of tasks that write the rows of `size` bytes of inputs."""
    files = -(-size // FILE_BYTES)
    return max(1, files, min(cores, size // MIN_FILE_BYTES))


def locate(output: str, options: Options) -> OutputDirectory:
    """Return the output directory; the path of a local one is absolute."""
    store, path = located(output, options.others) if is_uri(output) else (Store(), output)
    if store.is_local:
        return OutputDirectory(store, str(Path(path).absolute()))
    return OutputDirectory(store, path.rstrip("/"))


def _uses_store(output: Store, options: Options) -> bool:
    """Return whether unknown options may belong to the store of the output or of spill files."""
    return not output.is_local or (options.scratch is not None and is_uri(options.scratch))


def known_tables(names: Iterable[str], options: Options, *, strict: bool = False) -> list[str]:
    """Return the requested tables, or the one of the options. Raises KeyError for an unknown table.

    strict: with `problems`, whose rows decide about the exit code.
    """
    tables = list(names) or [options.table]
    for table in tables:
        TABLES[table]
    return [*tables, *([PROBLEMS] if strict and PROBLEMS not in tables else [])]
