"""A log directory: a disk that is offline after its first error.

An operation that fails (a full disk, an I/O error) takes the directory offline; it and all
later ones raise KafkaStorageError, so no caller can go on with half of a change. Deleting
a file that does not exist is not a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..errors import CorruptFile, KafkaStorageError, LogDirectoryLocked
from .disk import Disk, DiskUsage

P = ParamSpec("P")
T = TypeVar("T")


class LogDirectory:
    """A disk with a name. offline: why it is offline; None if it is not."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name = name
        self.offline: str | None = None
        self._disk = disk

    def _do(self, operation: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        if self.offline is not None:
            raise KafkaStorageError(self.name, self.offline)
        try:
            return operation(*arguments, **keywords)
        except BlockingIOError:
            raise LogDirectoryLocked(self.name) from None
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> KafkaStorageError:
        """Go offline."""
        self.offline = error.strerror or str(error)
        return KafkaStorageError(self.name, self.offline)

    # what each record takes is called directly, not by `_do`

    def append(self, path: str, data: bytes) -> None:
        if self.offline is not None:
            raise KafkaStorageError(self.name, self.offline)
        try:
            self._disk.append(path, data)
        except OSError as error:
            raise self._failed(error) from error

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read as `Disk.read`. Raises CorruptFile if the file alone is missing."""
        if self.offline is not None:
            raise KafkaStorageError(self.name, self.offline)
        try:
            return self._disk.read(path, position, size)
        except OSError as error:
            raise self._unreadable(path, error) from error

    def read_parts(self, path: str, position: int, size: int) -> list[bytes | memoryview]:
        """Read as `Disk.read_parts`. Raises CorruptFile if the file alone is missing."""
        if self.offline is not None:
            raise KafkaStorageError(self.name, self.offline)
        try:
            return self._disk.read_parts(path, position, size)
        except OSError as error:
            raise self._unreadable(path, error) from error

    def _unreadable(self, path: str, error: OSError) -> KafkaStorageError | CorruptFile:
        if isinstance(error, FileNotFoundError) and self._do(self._disk.is_directory, ""):
            return CorruptFile(path, "the file is missing")
        return self._failed(error)

    def truncate(self, path: str, size: int) -> None:
        self._do(self._disk.truncate, path, size)

    def fsync(self, path: str) -> None:
        self._do(self._disk.fsync, path)

    def fsync_directory(self, path: str) -> None:
        self._do(self._disk.fsync_directory, path)

    def size(self, path: str) -> int:
        return self._do(self._disk.size, path)

    def modified_ms(self, path: str) -> int:
        return self._do(self._disk.modified_ms, path)

    def exists(self, path: str) -> bool:
        return self._do(self._disk.exists, path)

    def is_directory(self, path: str) -> bool:
        return self._do(self._disk.is_directory, path)

    def list(self, path: str) -> list[str]:
        return self._do(self._disk.list, path)

    def lock(self, path: str) -> None:
        self._do(self._disk.lock, path)

    def unlock(self, path: str) -> None:
        self._do(self._disk.unlock, path)

    def make_directory(self, path: str) -> None:
        self._do(self._disk.make_directory, path)

    def rename(self, old: str, new: str) -> None:
        self._do(self._disk.rename, old, new)

    def delete(self, path: str) -> None:
        missing = self._do(self._delete, path)
        if missing is not None:
            raise missing

    def _delete(self, path: str) -> FileNotFoundError | None:
        try:
            self._disk.delete(path)
        except FileNotFoundError as error:
            return error
        return None

    def usage(self) -> DiskUsage:
        return self._do(self._disk.usage)
