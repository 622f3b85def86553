"""Locks an output directory, so that one job writes to it at a time.

    local, mounted   `flock` of the file `_lock`; the system releases it with the process
    store            an object `_lock/<application>-<token>`; the others are listed after it is made

A store must list what was created before (S3, GCS, Azure and HDFS do). Then of two jobs at least
one sees the other: they never both go on, but both may refuse if they start at the same moment. A
job that was killed leaves its object, which the error names.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from pyarrow import fs

from ..errors import SparkError
from ..splitting.stores import Store, explained, filesystem

LOCK: Final = "_lock"

HOLDER_BYTES: Final = 4096
"""Bytes of a lock that are read at most."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock. token: makes its object unique in a store."""

    application: str
    host: str
    process: int
    token: str

    def __str__(self) -> str:
        return f"application {self.application} on {self.host} (process {self.process})"


def this_process(application: str) -> Holder:
    """Return this process as the holder of a lock."""
    return Holder(application, socket.gethostname(), os.getpid(), secrets.token_hex(4))


class OutputInUse(SparkError):
    """Another job writes to the output directory. lock: its path; holder: who, if known."""

    def __init__(self, lock: str, holder: str, *, expires: bool) -> None:
        super().__init__(lock, holder, expires)
        self.lock, self.holder, self.expires = lock, holder, expires

    def __str__(self) -> str:
        text = f"{self.lock}: {self.holder} is writing to this directory"
        if self.expires:
            return text
        return f"{text}, or was killed; if it has ended, delete this object and run again"


@contextmanager
def locked(store: Store, root: str, holder: Holder) -> Iterator[None]:
    """Hold the lock of a directory. Raises OutputInUse, OSError."""
    with _locked_file(root, holder) if store.is_local else _locked_object(store, root, holder):
        yield


@contextmanager
def _locked_file(root: str, holder: Holder) -> Iterator[None]:
    Path(root).mkdir(parents=True, exist_ok=True)
    path = Path(root) / LOCK
    with _open_locked(path) as file:
        try:
            file.truncate(0)
            file.write(_json(holder))
            file.flush()
            yield
        finally:
            path.unlink(missing_ok=True)


def _open_locked(path: Path) -> IO[bytes]:
    """Open and lock a file; again if its holder removed it meanwhile."""
    while True:
        file = path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
            file.close()
        except BlockingIOError:
            with file:
                file.seek(0)
                raise OutputInUse(
                    str(path), _holder(file.read(HOLDER_BYTES)), expires=True
                ) from None
        except OSError as error:
            file.close()
            raise OSError(f"{path}: cannot be locked: {error.strerror or error}") from error


@contextmanager
def _locked_object(store: Store, root: str, holder: Holder) -> Iterator[None]:
    files, folder = filesystem(store), f"{root}/{LOCK}"
    own = f"{folder}/{holder.application}-{holder.token}"
    with explained(store.uri(folder)):
        files.create_dir(folder, recursive=True)
        with files.open_output_stream(own) as out:
            out.write(_json(holder))
    try:
        with explained(store.uri(folder)):
            other = _other(files, folder, own)
        if other is not None:
            path, data = other
            raise OutputInUse(store.uri(path), _holder(data), expires=False)
        yield
    finally:
        with suppress(FileNotFoundError):
            files.delete_file(own)


def _other(files: fs.FileSystem, folder: str, own: str) -> tuple[str, bytes] | None:
    """Return the path and content of the lock of another job, if there is one."""
    name = own.rpartition("/")[2]
    for about in files.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        # an empty object whose name ends in a slash is a directory marker
        if about.type != fs.FileType.File or about.base_name in ("", name):
            continue
        with suppress(FileNotFoundError), files.open_input_stream(about.path) as source:
            return about.path, source.read(HOLDER_BYTES)
    return None


def _json(holder: Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def _holder(data: bytes) -> str:
    """Describe a holder by the content of its lock."""
    try:
        values: dict[str, Any] = json.loads(data)
        return str(Holder(**values))
    except (ValueError, TypeError):
        return "another job"
