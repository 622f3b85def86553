"""Watches a directory: finished files become the next batch, until the watch ends.

    directory --finished--> not yet taken --in order of first packets--> batches --> commits
                                  `--before a file already taken: late--> a batch on its own

A file is taken once, whatever happens; the commits list the files that were.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ...capture.files.blocks import NO_TIME
from ...capture.tables import TABLES
from ...display import plural
from ...values.record_values import RecordValues
from ..decode.columns import needed
from ..options import Options, Sets, unknown
from ..plan.opening import open_input
from ..plan.verdicts import PROBLEMS, REFUSED, FileStatus, code
from ..session import check_spark
from ..splitting import InputFile, inputs
from ..splitting.stores import Store, is_uri, located
from ..values import require_records
from .arrivals import Arrivals
from .batch import Log, Work, run
from .commit_log import Commit, CommitLog, WatchError, require_own
from .options import WatchOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Mode(StrEnum):
    """When a watch ends.

    FOREVER: on SIGTERM. ONCE: when the finished files are taken; connections stay open for the next
    run. END: the same, but all files count as finished, and all connections are closed.
    """

    FOREVER = "forever"
    ONCE = "once"
    END = "end"


class Watcher:
    """Takes files into the tables under an output directory, each once.

    Close it to release the directory.

    values: decode the keys and values in the table `records`.
    refused: names of the files so far that are not captures or cannot be opened; findings: rows of
    `problems` written so far. Raises WatchError if another process watches into the directory, or
    another version wrote its state; BadOption.
    """

    def __init__(
        self,
        spark: SparkSession,
        output: str | Path,
        tables: Sequence[str],
        options: Options,
        rules: WatchOptions | None = None,
        log: Log = lambda _: None,
        values: RecordValues | None = None,
    ) -> None:
        rules = rules or WatchOptions()
        check_spark(spark.version)
        output = check_output(output, tables, options, values)
        self._work = Work(
            tuple(dict.fromkeys(tables)), options, rules.idle_ns, rules.state_bytes, values
        )
        self._spark = spark
        self._rules = rules
        self._log = log
        self._first_packet_ns: dict[str, int] = {}
        self._ignored: set[str] = set()
        self.refused: set[str] = set()
        self.findings = 0
        self._changed: set[str] = set()
        self.commit_log = CommitLog(output, self._work.tables)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.commit_log.__exit__()

    def take(
        self, files: Iterable[InputFile], *, closing: bool = False, stop: Callable[[], bool] = bool
    ) -> list[Commit]:
        """Take the files that were not taken yet, in as many batches as needed.

        closing: no more files come after them. stop: called between batches.
        """
        examined = [file for file in self._untaken(files) if self._examine(file)]
        fresh = sorted((self._first_packet_ns[file.name], file.name, file) for file in examined)
        last = self.commit_log.last
        reached = last.reached if last else (NO_TIME, "")
        late: list[InputFile] = []
        regular: list[InputFile] = []
        for first_packet_ns, name, file in fresh:
            is_late = first_packet_ns != NO_TIME and (first_packet_ns, name) < reached
            (late if is_late else regular).append(file)
        commits: list[Commit] = []
        for chunk in self._chunks(late):
            if stop():
                return commits
            commits.append(self._run(chunk, late=True))
        open = self.commit_log.last is not None and not self.commit_log.last.closed
        chunks = list(self._chunks(regular)) or ([[]] if closing and open else [])
        for number, chunk in enumerate(chunks, 1):
            if stop():
                return commits
            commits.append(self._run(chunk, closing=closing and number == len(chunks)))
        return commits

    def take_frame(self, frame: DataFrame, _batch_id: int) -> None:
        """Take the files whose paths are in a batch of a stream: a function for `foreachBatch`.

        After a restart the stream may repeat a batch or form other batches: files that were taken
        are skipped.
        """
        paths = [_local(row["path"]) for row in frame.select("path").collect()]
        if paths:
            self.take(inputs(paths))

    def _run(self, files: Sequence[InputFile], **kind: bool) -> Commit:
        names = [file.name for file in files]
        commit = run(self._spark, self.commit_log, self._work, names, log=self._log, **kind)
        self.refused |= {file.name for file in commit.files if FileStatus(file.status) in REFUSED}
        self.findings += commit.tables.get(PROBLEMS, 0)
        return commit

    def _untaken(self, files: Iterable[InputFile]) -> Iterator[InputFile]:
        for file in files:
            taken = self.commit_log.taken.get(Path(file.name).name)
            if taken is None:
                yield file
            elif (taken.bytes, taken.modified_ns) != (file.size, file.modified_ns or 0):
                if taken.name not in self._changed:
                    self._log(f"{file.name}: changed after it was read; it is not read again")
                self._changed.add(taken.name)

    def _examine(self, file: InputFile) -> bool:
        """Find the time of the first packet of a file.

        Returns False for a file that is not taken: neither name nor content are those of a capture,
        or it cannot be opened. That is reported once; unreadable files are tried again at the next
        poll.
        """
        if file.name in self._ignored:
            return False
        if file.name not in self._first_packet_ns:
            opened = open_input(file, None, walk=False, lenient=True)
            if opened.verdict.status is FileStatus.IGNORED:
                self._ignored.add(file.name)
                self._log(f"{file.name}: {opened.verdict}")
                return False
            if not opened.splits:
                if file.name not in self.refused:
                    self._log(f"{file.name}: {opened.verdict}")
                self.refused.add(file.name)
                return False
            self.refused.discard(file.name)
            self._first_packet_ns[file.name] = opened.first_ns
        return True

    def _chunks(self, files: Sequence[InputFile]) -> Iterator[list[InputFile]]:
        chunk: list[InputFile] = []
        size = 0
        for file in files:
            if chunk and size + file.size > self._rules.batch_bytes:
                yield chunk
                chunk, size = [], 0
            chunk.append(file)
            size += file.size
        if chunk:
            yield chunk


def check_output(
    output: str | Path,
    tables: Sequence[str],
    options: Options,
    values: RecordValues | None = None,
) -> Path:
    """Check what can be checked before Spark starts; returns the path of the output directory.

    Raises WatchError, BadOption.
    """
    store, path = located(str(output), {}) if is_uri(str(output)) else (Store(), str(output))
    if not store.is_local:
        raise WatchError(f"{output}: a watch needs a local or mounted output directory")
    if options.sets is not Sets.ALL:
        raise WatchError(
            "option sets: a watch reads a single set (all); watch each directory separately"
        )
    require_records(tables, options, values)
    for table in tables:
        needed(table, TABLES[table].schema.names, replace(options, table=table))
    for name in options.others:  # no store to pass it to
        unknown(name)
    require_own(Path(path), tables)
    return Path(path)


def check_request(
    directory: str | Path,
    output: str | Path,
    tables: Sequence[str],
    options: Options,
    values: RecordValues | None = None,
) -> Path:
    """Check a watch before Spark starts; returns the path of the directory that it watches.

    Raises WatchError, BadOption.
    """
    watched = Path(_local(str(directory)))
    if not watched.is_dir():
        raise WatchError(f"{watched}: no such directory")
    path = check_output(output, tables, options, values)
    if watched.resolve().is_relative_to(path.resolve()):
        raise WatchError(f"{path}: holds the inputs {watched}; write to another directory")
    return watched


def watch(  # noqa: PLR0913 - the arguments are the options of a command
    spark: SparkSession,
    directory: str | Path,
    output: str | Path,
    tables: Sequence[str],
    options: Options,
    rules: WatchOptions | None = None,
    *,
    mode: Mode = Mode.FOREVER,
    strict: bool = False,
    clock: Callable[[], float],
    sleep: Callable[[float], object],
    stop: Callable[[], bool] = bool,
    log: Log = lambda _: None,
    values: RecordValues | None = None,
) -> int:
    """Take captures as they arrive in a directory, until `stop` returns true or `mode` ends it.

    Returns the exit code: 2 if a file was refused, 1 if `strict` and there are rows of `problems`.

    clock: monotonic seconds. sleep: waits for at most so many seconds. log: called with a line for
    each step. values: decode the keys and values in the table `records`.
    Raises what Watcher does; OSError if the directory cannot be read.
    """
    rules = rules or WatchOptions()
    watched = check_request(directory, output, tables, options, values)
    arrivals = Arrivals(watched, rules.finished, rules.still_seconds, clock)
    with Watcher(spark, output, tables, options, rules, log, values) as watcher:
        while not stop():
            closing = mode is Mode.END
            commits = watcher.take(arrivals.finished(all=closing), closing=closing, stop=stop)
            if mode is not Mode.FOREVER:
                if not commits:
                    log("no new files")
                if arrivals.unfinished:
                    left = plural(arrivals.unfinished, "file")
                    log(f"{left} left for a later run: not finished (rule: {rules.finished})")
                break
            if not stop():
                sleep(rules.poll_seconds)
        return code(refused=bool(watcher.refused), findings=strict and watcher.findings > 0)


@contextmanager
def sigterm_event() -> Iterator[threading.Event]:
    """Provide an event that SIGTERM sets; the current batch is committed first."""
    event = threading.Event()
    before: Any = signal.signal(signal.SIGTERM, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGTERM, before)


def _local(path: str) -> str:
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" else path
