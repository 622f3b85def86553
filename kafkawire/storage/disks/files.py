"""A disk of the operating system's files.

Every call is a system call, nothing is buffered here; at most `MAX_OPEN` files are open.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from .disk import DiskUsage

MAX_OPEN: Final = 256
OPEN_FLAGS: Final = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
MODE: Final = 0o644
MILLISECOND_NS: Final = 1_000_000


def _lockf() -> Callable[[int], None] | None:
    """Return how to lock a whole file without waiting; None on systems that have no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    return lambda descriptor: fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


LOCKF: Final = _lockf()


@final
class FileDisk:
    """The files under a directory, which is created if it does not exist."""

    def __init__(self, root: str | Path, max_open: int = MAX_OPEN) -> None:
        self._root = str(root)
        self._max_open = max_open
        self._open: OrderedDict[str, int] = OrderedDict()
        """Path -> file descriptor, the one used longest ago first."""
        self._locks: dict[str, int] = {}
        Path(self._root).mkdir(parents=True, exist_ok=True)

    def append(self, path: str, data: bytes) -> None:
        descriptor = self._descriptor(path, os.O_CREAT)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def read(self, path: str, position: int, size: int) -> bytes:
        descriptor = self._descriptor(path)
        data = os.pread(descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        while data:  # a signal, or more than the system reads at once
            size -= len(data)
            position += len(data)
            data = os.pread(descriptor, size, position) if size else b""
            parts.append(data)
        return b"".join(parts)

    def read_parts(self, path: str, position: int, size: int) -> list[bytes | memoryview]:
        return [self.read(path, position, size)]

    def truncate(self, path: str, size: int) -> None:
        descriptor = self._descriptor(path)
        if size < os.fstat(descriptor).st_size:
            os.ftruncate(descriptor, size)

    def fsync(self, path: str) -> None:
        os.fsync(self._descriptor(path))

    def fsync_directory(self, path: str) -> None:
        descriptor = os.open(self._full(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        return os.stat(self._full(path)).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(self._full(path)).st_mtime_ns // MILLISECOND_NS

    def exists(self, path: str) -> bool:
        return os.path.lexists(self._full(path))

    def is_directory(self, path: str) -> bool:
        return Path(self._full(path)).is_dir()

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(self._full(path)))

    def lock(self, path: str) -> None:
        """Lock a file as Java's FileChannel does (POSIX record locks)."""
        if path in self._locks or LOCKF is None:
            return
        descriptor = os.open(self._full(path), OPEN_FLAGS | os.O_CREAT, MODE)
        try:
            LOCKF(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path) from None
            raise
        self._locks[path] = descriptor

    def unlock(self, path: str) -> None:
        descriptor = self._locks.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def make_directory(self, path: str) -> None:
        Path(self._full(path)).mkdir(parents=True, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        self._close(old)
        self._close(new)
        os.replace(self._full(old), self._full(new))

    def delete(self, path: str) -> None:
        self._close(path)
        full = Path(self._full(path))
        if full.is_dir() and not full.is_symlink():
            full.rmdir()
        else:
            full.unlink()

    def usage(self) -> DiskUsage:
        usage = shutil.disk_usage(self._root)
        return DiskUsage(usage.total, usage.free)

    def close(self) -> None:
        """Close all files; locks end."""
        for descriptors in (self._open, self._locks):
            while descriptors:
                os.close(descriptors.popitem()[1])

    def _full(self, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"path {path!r} leaves the directory")
        return f"{self._root}/{path}" if path else self._root

    def _descriptor(self, path: str, create: int = 0) -> int:
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        opened = os.open(self._full(path), OPEN_FLAGS | create, MODE)
        self._open[path] = opened
        if len(self._open) > self._max_open:
            os.close(self._open.popitem(last=False)[1])
        return opened

    def _close(self, path: str) -> None:
        """Close a file, or all files in a directory, before its name changes."""
        for name in [each for each in self._open if each == path or each.startswith(path + "/")]:
            os.close(self._open.pop(name))
