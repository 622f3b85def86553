"""The commit log of a watch: each batch on disk is there as a whole or not at all.

A batch is committed when its commit file is renamed into place; the next run finishes
publishing it. Data that no commit names is removed, and was never visible to readers.

    _watch/staging/<token>/   data and state, being written
    _watch/state/<token>/     connections, groups, names
    _watch/commits/00000007.json                     <- write, fsync, rename: committed
    exchanges/batch=7/part-00000-12.parquet          <- rename, repeated after a crash

Only local or mounted directories: object stores have no atomic rename.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ...capture.files.blocks import NO_TIME
from ...capture.files.listing import HIDDEN
from ...capture.snapshot import STATE_VERSION
from ..errors import SparkError
from ..splitting.stores import Store
from ..write.output_directory import MANIFEST, UNFINISHED, WATCH
from ..write.output_lock import OutputInUse, locked, this_process

FORMAT: Final = 4
"""Of commits and of the states that this package writes; `STATE_VERSION` is that of the engine."""


class WatchError(SparkError):
    """A watch cannot start or continue."""


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A file that was taken.

    first_ns: time of its first packet. status, reason, offset: its verdict
    (`kafkawire.spark.plan.verdicts`).
    """

    name: str
    bytes: int
    modified_ns: int
    first_ns: int
    status: str = "ok"
    reason: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed batch.

    late: whether its files began before files that were already taken; they were decoded on their
    own. tables: table -> rows. token: folder in which it was staged; state: folder with the state
    for the next batch. connections: number of all so far. newest_ns: time of the newest packet so
    far. reached: sort key of the last file taken: time of its first packet, name. counts: messages,
    connections given up, ... of this batch. closed: whether all connections were closed after it.
    """

    batch: int
    late: bool
    files: tuple[CommittedFile, ...]
    tables: Mapping[str, int]
    token: str
    state: str
    connections: int
    newest_ns: int
    reached: tuple[int, str]
    counts: Mapping[str, int]
    closed: bool = False
    state_version: int = STATE_VERSION
    format: int = FORMAT


class CommitLog:
    """The commits under an output directory; only one process may add to them."""

    def __init__(self, output: Path, tables: tuple[str, ...]) -> None:
        """Open the log.

        Raises WatchError if another process has it open, another version wrote the state, or the
        directory has files that are not of this watch.
        """
        self.output = output
        self.root = output / WATCH
        try:
            with locked(Store(), str(output), this_process("watch")):
                require_own(output, tables)
                for name in ("staging", "state", "commits"):
                    (self.root / name).mkdir(parents=True, exist_ok=True)
        except OutputInUse as error:
            raise WatchError(str(error)) from None
        self._lock = (self.root / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.commits = [
                read_commit(path) for path in sorted((self.root / "commits").glob("*.json"))
            ]
            self.taken = {Path(f.name).name: f for one in self.commits for f in one.files}
            if self.commits:
                self._publish(self.commits[-1])
                self._check(self.commits[-1], tables)
            self._tidy()
        except BaseException as error:
            self._lock.close()
            if isinstance(error, BlockingIOError):
                raise WatchError(f"{output}: another watch is writing to this directory") from None
            raise

    def __enter__(self) -> CommitLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def last(self) -> Commit | None:
        """The last committed batch."""
        return self.commits[-1] if self.commits else None

    @property
    def next_batch(self) -> int:
        """The number of the next batch."""
        return self.last.batch + 1 if self.last else 0

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self.last.connections if self.last else 0

    @property
    def newest_ns(self) -> int:
        """The time of the newest packet so far."""
        return self.last.newest_ns if self.last else NO_TIME

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files taken, by their numbers."""
        return tuple(file.name for one in self.commits for file in one.files)

    @property
    def state(self) -> Path | None:
        """The folder with the state for the next batch."""
        return self.root / "state" / self.last.state if self.last and self.last.state else None

    def stage(self, batch: int) -> Path:
        """Make a folder in which tasks write a batch; tasks of earlier attempts do not know it."""
        folder = self.root / "staging" / f"{batch:08d}-{time.time_ns()}"
        for name in ("written", "ready", "state"):
            (folder / name).mkdir(parents=True)
        return folder

    def ready(self, folder: Path, written: Mapping[str, str]) -> None:
        """Move the reported files away from those of failed attempts. written: file -> table."""
        for name, table in written.items():
            into = folder / "ready" / table
            into.mkdir(exist_ok=True)
            (folder / "written" / name).rename(into / name)

    def commit(self, commit: Commit) -> None:
        """Commit a batch."""
        staged = self.root / "staging" / commit.token
        if commit.state == commit.token:
            (staged / "state").rename(self.root / "state" / commit.token)
        for folder in (*(staged / "ready").iterdir(), staged / "ready", self.root / "state"):
            _sync(folder)
        path = self.root / "commits" / f"{commit.batch:08d}.json"
        write(path, json.dumps(asdict(commit), indent=1).encode())
        self.commits.append(commit)
        self.taken.update({Path(file.name).name: file for file in commit.files})

    def publish(self) -> None:
        """Make the last committed batch visible to readers."""
        self._publish(self.commits[-1])
        self._tidy()

    def _publish(self, commit: Commit) -> None:
        ready = self.root / "staging" / commit.token / "ready"
        if not ready.is_dir():
            return
        for folder in sorted(ready.iterdir()):
            table = self.output / folder.name
            table.mkdir(exist_ok=True)
            folder.rename(table / f"batch={commit.batch}")
            _sync(table)

    def _tidy(self) -> None:
        """Remove what no commit names."""
        state = self.state
        for folder in (self.root / "state").iterdir():
            if folder != state:
                shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.root / "staging").iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        for path in (self.root / "commits").glob("*.tmp"):
            path.unlink()

    def _check(self, last: Commit, tables: tuple[str, ...]) -> None:
        if set(tables) != set(last.tables):
            raise WatchError(
                f"{self.output}: this watch writes the tables {', '.join(sorted(last.tables))}"
            )
        if not last.closed and (last.format, last.state_version) != (FORMAT, STATE_VERSION):
            raise WatchError(
                f"{self.output}: the state was written by another version of kafkawire; end the "
                "watch with that version (`--end`) before continuing with this one"
            )


def require_own(output: Path, tables: Iterable[str]) -> None:
    """Raise WatchError if a job writes to an output directory, or it has files of others."""
    if any((output / name).exists() for name in (MANIFEST, UNFINISHED)):
        raise WatchError(
            f"{output}: a job writes to this directory; a watch needs another output directory"
        )
    folders = [output / table for table in tables]
    present = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    commits = (output / WATCH / "commits").glob("*.json")  # later: a batch is committed first
    own = {f"batch={int(path.stem)}" for path in commits if path.stem.isdigit()}
    for path in sorted(present):
        if path.name not in own and not path.name.startswith(HIDDEN):
            raise WatchError(f"{path} is not of this watch; move it, or write to another directory")


def write(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    beside = path.with_suffix(".tmp")
    with beside.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    beside.rename(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    if folder.exists():
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_commit(path: Path) -> Commit:
    """Read a commit. Raises ValueError, TypeError and KeyError for another file."""
    stored: dict[str, Any] = json.loads(path.read_text())
    files = tuple(CommittedFile(**each) for each in stored.pop("files"))
    if stored.pop("classes", None):  # format 1
        stored["state_version"] = 0
    return Commit(**{**stored, "files": files, "reached": tuple(stored["reached"])})
