"""A disk in memory that can crash, fill up and fail.

A crash keeps what was made durable. Of the changes of names in a directory that were not, it
keeps a prefix, by the random function; of bytes, what `MemoryFile` says.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import Final, final

from .disk import DiskUsage, parent
from .memory_file import Choose, MemoryFile, SharedBytes

Fault = Callable[[str, str], float]
"""Called with the name of an operation and its path, before it is carried out: returns how many
seconds it takes; raises OSError for one that fails.
"""
UNLIMITED: Final = 2**63 - 1
"""The bytes of a disk without a capacity."""


@final
class _Directory:
    """A directory. pending: changes of names that are not durable; None removes a name."""

    def __init__(self) -> None:
        self.entries: dict[str, MemoryFile | _Directory] = {}
        self.durable: dict[str, MemoryFile | _Directory] = {}
        self.pending: list[dict[str, MemoryFile | _Directory | None]] = []

    def change(self, changes: dict[str, MemoryFile | _Directory | None]) -> None:
        _apply(self.entries, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        for changes in self.pending:
            _apply(self.durable, changes)
        self.pending.clear()

    def crashed(self, choose: Choose) -> None:
        del self.pending[choose(len(self.pending) + 1) :]
        self.sync()
        self.entries = dict(self.durable)
        for node in self.entries.values():
            node.crashed(choose)


def _apply(
    entries: dict[str, MemoryFile | _Directory], changes: dict[str, MemoryFile | _Directory | None]
) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


@final
class MemoryDisk:
    """A disk in memory.

    capacity: how many bytes files may have together; then appends write what fits, and fail with
        ENOSPC. fault: may fail or slow down any operation; `elapsed_s` is the sum of its delays.
    wall_ms: the clock of the times at which files change. shared: with disks in the same process.
    """

    def __init__(
        self,
        *,
        capacity: int | None = None,
        wall_ms: Callable[[], int] = lambda: 0,
        shared: SharedBytes | None = None,
    ) -> None:
        self.capacity = capacity
        self.fault: Fault | None = None
        self.elapsed_s = 0.0
        self._wall_ms = wall_ms
        self._shared = shared
        self._most_used = 0
        """At least `used`: counted again only when it reaches the capacity."""
        self._root = _Directory()
        self._files: dict[str, MemoryFile] = {}
        """Files that were read or written, by path."""
        self._directories: dict[str, _Directory] = {}
        """Directories that something was looked for in, by path."""

    def crash(self, choose: Choose) -> None:
        """Lose what is not durable."""
        self._files.clear()
        self._directories.clear()
        self._root.crashed(choose)

    @property
    def used(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in _files(self._root))

    def append(self, path: str, data: bytes) -> None:
        if self.fault is not None:
            self._before("append", path)
        file = self._files.get(path)
        if file is None:
            if self._find(path) is None:
                self._directory(parent(path), path).change({_name(path): MemoryFile()})
            file = self._file(path)
        file.modified_ms = self._wall_ms()
        self._most_used += len(data)
        if self.capacity is not None and self._most_used > self.capacity:
            free = max(0, self.capacity - self.used)
            self._most_used = self.used + min(len(data), free)
            if len(data) > free:
                file.append(data[:free], None)
                raise _error(errno.ENOSPC, path)
        file.append(data, self._shared)

    def read(self, path: str, position: int, size: int) -> bytes:
        if self.fault is not None:
            self._before("read", path)
        file = self._files.get(path) or self._file(path)
        return file.read(position, position + size)

    def read_parts(self, path: str, position: int, size: int) -> list[bytes | memoryview]:
        if self.fault is not None:
            self._before("read", path)
        file = self._files.get(path) or self._file(path)
        return file.parts(position, position + size)

    def truncate(self, path: str, size: int) -> None:
        self._before("truncate", path)
        file = self._file(path)
        if size < file.synced:
            if file.before is None:
                file.before = file.read(0, file.synced)
            file.synced = size
        file.truncate(size)
        file.modified_ms = self._wall_ms()

    def fsync(self, path: str) -> None:
        self._before("fsync", path)
        self._file(path).sync()

    def fsync_directory(self, path: str) -> None:
        self._before("fsync_directory", path)
        self._directory(path, path).sync()

    def size(self, path: str) -> int:
        self._before("size", path)
        return self._file(path).size

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def list(self, path: str) -> list[str]:
        self._before("list", path)
        return sorted(self._directory(path, path).entries)

    def lock(self, path: str) -> None:
        """Do nothing: a disk in memory belongs to one process."""

    def unlock(self, path: str) -> None:
        """Do nothing."""

    def make_directory(self, path: str) -> None:
        self._before("make_directory", path)
        if path and self._find(path) is None:
            if self._find(parent(path)) is None:
                self.make_directory(parent(path))
            self._directory(parent(path), path).change({_name(path): _Directory()})

    def rename(self, old: str, new: str) -> None:
        self._before("rename", old)
        node = self._find(old)
        if node is None:
            raise _error(errno.ENOENT, old)
        target = self._find(new)
        if isinstance(target, _Directory):
            if isinstance(node, MemoryFile):
                raise _error(errno.EISDIR, new)
            if target.entries:
                raise _error(errno.ENOTEMPTY, new)
        self._forget(node, old, new)
        source = self._directory(parent(old), old)
        destination = self._directory(parent(new), new)
        if source is destination:
            source.change({_name(old): None, _name(new): node})
        else:
            destination.change({_name(new): node})
            source.change({_name(old): None})

    def delete(self, path: str) -> None:
        self._before("delete", path)
        node = self._find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, _Directory) and node.entries:
            raise _error(errno.ENOTEMPTY, path)
        self._forget(node, path)
        self._directory(parent(path), path).change({_name(path): None})

    def usage(self) -> DiskUsage:
        """Return the capacity; without one, any amount is usable."""
        self._before("usage", "")
        total = UNLIMITED if self.capacity is None else self.capacity
        return DiskUsage(total, max(0, total - self.used))

    def _before(self, operation: str, path: str) -> None:
        if self.fault is not None:
            self.elapsed_s += self.fault(operation, path)

    def _forget(self, node: MemoryFile | _Directory, *paths: str) -> None:
        """Look for paths again that begin or end to be those of a file or directory."""
        if isinstance(node, MemoryFile):
            for path in paths:
                self._files.pop(path, None)
        else:
            self._files.clear()
            self._directories.clear()

    def _find(self, path: str) -> MemoryFile | _Directory | None:
        if not path:
            return self._root
        folder, _, name = path.rpartition("/")
        directory = self._directories.get(folder)
        if directory is None:
            node = self._find(folder)
            if not isinstance(node, _Directory):
                return None
            directory = self._directories[folder] = node
        return directory.entries.get(name)

    def _file(self, path: str) -> MemoryFile:
        file: MemoryFile | _Directory | None = self._files.get(path) or self._find(path)
        if not isinstance(file, MemoryFile):
            raise _error(errno.ENOENT if file is None else errno.EISDIR, path)
        self._files[path] = file
        return file

    def _directory(self, path: str, wanted: str) -> _Directory:
        file = self._find(path)
        if not isinstance(file, _Directory):
            raise _error(errno.ENOENT if file is None else errno.ENOTDIR, wanted)
        return file


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def _files(directory: _Directory) -> Iterator[MemoryFile]:
    for node in directory.entries.values():
        if isinstance(node, MemoryFile):
            yield node
        else:
            yield from _files(node)
