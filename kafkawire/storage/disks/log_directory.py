"""A log directory: a disk that is offline after its first error.

Law: an operation that fails (a full disk, an I/O error) takes the directory offline; it and all
later ones raise KafkaStorageError, so no caller can go on with half of a change. Deleting
a file that does not exist is not a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CorruptFile, KafkaStorageError, LogDirectoryLocked
from .disk import Disk, DiskUsage


class LogDirectory:
    """A disk with a name. offline: why it is offline; None if it is not."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name = name
        self.offline: str | None = None
        self._disk = disk

    @contextmanager
    def _guarded(self) -> Iterator[Disk]:
        if self.offline is not None:
            raise KafkaStorageError(self.name, self.offline)
        try:
            yield self._disk
        except BlockingIOError:
            raise LogDirectoryLocked(self.name) from None
        except OSError as error:
            self.offline = error.strerror or str(error)
            raise KafkaStorageError(self.name, self.offline) from error

    def append(self, path: str, data: bytes) -> None:
        with self._guarded() as disk:
            disk.append(path, data)

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read as `Disk.read`. Raises CorruptFile if the file alone is missing."""
        with self._guarded() as disk:
            try:
                return disk.read(path, position, size)
            except FileNotFoundError:
                if not disk.is_directory(""):
                    raise
        raise CorruptFile(path, "the file is missing")

    def truncate(self, path: str, size: int) -> None:
        with self._guarded() as disk:
            disk.truncate(path, size)

    def fsync(self, path: str) -> None:
        with self._guarded() as disk:
            disk.fsync(path)

    def fsync_directory(self, path: str) -> None:
        with self._guarded() as disk:
            disk.fsync_directory(path)

    def size(self, path: str) -> int:
        with self._guarded() as disk:
            return disk.size(path)

    def modified_ms(self, path: str) -> int:
        with self._guarded() as disk:
            return disk.modified_ms(path)

    def exists(self, path: str) -> bool:
        with self._guarded() as disk:
            return disk.exists(path)

    def is_directory(self, path: str) -> bool:
        with self._guarded() as disk:
            return disk.is_directory(path)

    def list(self, path: str) -> list[str]:
        with self._guarded() as disk:
            return disk.list(path)

    def lock(self, path: str) -> None:
        with self._guarded() as disk:
            disk.lock(path)

    def unlock(self, path: str) -> None:
        with self._guarded() as disk:
            disk.unlock(path)

    def make_directory(self, path: str) -> None:
        with self._guarded() as disk:
            disk.make_directory(path)

    def rename(self, old: str, new: str) -> None:
        with self._guarded() as disk:
            disk.rename(old, new)

    def delete(self, path: str) -> None:
        with self._guarded() as disk:
            try:
                disk.delete(path)
                return
            except FileNotFoundError as error:
                missing = error
        raise missing

    def usage(self) -> DiskUsage:
        with self._guarded() as disk:
            return disk.usage()
