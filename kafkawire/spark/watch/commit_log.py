"""What a watch has done: batches on disk, each there as a whole or not at all.

Law: a batch counts from the moment its commit is renamed into place, and is then finished by
whoever comes next; what no commit names is removed, and was never where readers look.

    _watch/staging/<token>/   data and state, being written
    _watch/state/<token>/     connections, groups, names
    _watch/commits/00000007.json                     <- write, fsync, rename: now it counts
    exchanges/batch=7/part-00000-12.parquet          <- rename, once more where it was cut short

Local or mounted directories only: an object store renames nothing in one step.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ..errors import SparkError
from .snapshot import digest

FORMAT: Final = 1


class WatchError(SparkError):
    """A watch cannot begin, or go on."""


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A file that was taken; first_ns: time of its first packet. status, reason, offset: its
    verdict (`kafkawire.spark.plan.verdicts`).
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
    """A batch that counts.

    late: whether its files began before what had been taken; they were then decoded by themselves.
    tables: table -> rows. token: of the folder in which it was staged; state: of the one with what
    the next batch needs. connections: all so far. newest_ns: time of the newest packet so far.
    reached: what sorts the file taken last: its first packet's time, its name. counts: messages,
    connections given up, ... of this batch. closed: whether all was closed behind it.
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
    classes: str = field(default_factory=digest)
    format: int = FORMAT


class CommitLog:
    """The commits under an output directory, which this process alone may add to."""

    def __init__(self, output: Path, tables: tuple[str, ...]) -> None:
        """Begin or go on. Raises WatchError where another process does, or another version did."""
        self.output = output
        self.root = output / "_watch"
        for name in ("staging", "state", "commits"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._lock = (self.root / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.commits = [_read(path) for path in sorted((self.root / "commits").glob("*.json"))]
            self.taken = {Path(f.name).name: f for one in self.commits for f in one.files}
            if self.commits:
                self._publish(self.commits[-1])
                self._check(self.commits[-1], tables)
            self._tidy()
        except BaseException as error:
            self._lock.close()
            if isinstance(error, BlockingIOError):
                raise WatchError(f"{output}: another process watches into it") from None
            raise

    def __enter__(self) -> CommitLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def last(self) -> Commit | None:
        """The batch committed last."""
        return self.commits[-1] if self.commits else None

    @property
    def names(self) -> tuple[str, ...]:
        """What the files taken are called, by their numbers."""
        return tuple(file.name for one in self.commits for file in one.files)

    @property
    def state(self) -> Path | None:
        """The folder with what the next batch needs."""
        return self.root / "state" / self.last.state if self.last and self.last.state else None

    def stage(self, batch: int) -> Path:
        """Make a folder in which tasks write a batch; no task of an earlier attempt knows it."""
        folder = self.root / "staging" / f"{batch:08d}-{time.time_ns()}"
        for name in ("written", "ready", "state"):
            (folder / name).mkdir(parents=True)
        return folder

    def ready(self, folder: Path, written: Mapping[str, str]) -> None:
        """Put the files that count where stray ones cannot come; written: file -> table."""
        for name, table in written.items():
            into = folder / "ready" / table
            into.mkdir(exist_ok=True)
            (folder / "written" / name).rename(into / name)

    def commit(self, made: Commit) -> None:
        """Make a batch count."""
        staged = self.root / "staging" / made.token
        if made.state == made.token:
            (staged / "state").rename(self.root / "state" / made.token)
        for folder in (*(staged / "ready").iterdir(), staged / "ready", self.root / "state"):
            _sync(folder)
        path = self.root / "commits" / f"{made.batch:08d}.json"
        write(path, json.dumps(asdict(made), indent=1).encode())
        self.commits.append(made)
        self.taken.update({Path(file.name).name: file for file in made.files})

    def publish(self) -> None:
        """Put the batch committed last where readers look."""
        self._publish(self.commits[-1])
        self._tidy()

    def _publish(self, made: Commit) -> None:
        ready = self.root / "staging" / made.token / "ready"
        if not ready.is_dir():
            return
        for folder in sorted(ready.iterdir()):
            table = self.output / folder.name
            table.mkdir(exist_ok=True)
            folder.rename(table / f"batch={made.batch}")
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
                f"{self.output}: that watch makes the tables {', '.join(sorted(last.tables))}"
            )
        if not last.closed and (last.format, last.classes) != (FORMAT, digest()):
            raise WatchError(
                f"{self.output}: its connections were carried by another version of kafkawire; end "
                "it with that one (`--end`) before going on with this one"
            )


def write(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
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


def _read(path: Path) -> Commit:
    found: dict[str, Any] = json.loads(path.read_text())
    files = tuple(CommittedFile(**each) for each in found.pop("files"))
    return Commit(**{**found, "files": files, "reached": tuple(found["reached"])})
