"""What storage needs of a disk: files that grow at their end, names, and when both are durable.

An operation that fails raises OSError. Bytes are durable after `fsync` of their file, names
(created, renamed, deleted) after `fsync_directory` of their directory; a crash may lose the rest.

    paths are relative to the root of the disk, with / between names; "" is the root
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

TEMPORARY: Final = ".tmp"
"""The suffix of a file that is being written, before it takes its name."""


class DiskUsage(NamedTuple):
    """The bytes of the volume that a disk is on: all of them, and those that may be written."""

    total: int
    usable: int


class Disk(Protocol):
    """A directory tree."""

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, which is created if it does not exist."""

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer at the end of the file."""

    def read_parts(self, path: str, position: int, size: int) -> list[bytes | memoryview]:
        """Read as `read`, in the parts that the disk has, which together are the bytes."""

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to at most `size` bytes."""

    def fsync(self, path: str) -> None:
        """Make the content of a file durable."""

    def fsync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def size(self, path: str) -> int:
        """Return the size of a file."""

    def modified_ms(self, path: str) -> int:
        """Return when a file was last changed, in milliseconds since the epoch."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of that name."""

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory of that name."""

    def list(self, path: str) -> list[str]:
        """List the names in a directory, sorted."""

    def lock(self, path: str) -> None:
        """Keep other processes from a file, until this one ends or unlocks it.

        Raises BlockingIOError if another process has locked it.
        """

    def unlock(self, path: str) -> None:
        """Unlock a file, if it is locked."""

    def make_directory(self, path: str) -> None:
        """Create a directory, unless it exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory; a file replaces the file of the new name."""

    def delete(self, path: str) -> None:
        """Delete a file or an empty directory."""

    def usage(self) -> DiskUsage:
        """Return how much room there is."""


def parent(path: str) -> str:
    """Return the directory of a path."""
    return path.rpartition("/")[0]


def join(folder: str, name: str) -> str:
    """Join a directory and a name in it."""
    return f"{folder}/{name}" if folder else name


def read_whole(disk: Disk, path: str) -> bytes:
    """Read a whole file."""
    return disk.read(path, 0, disk.size(path))


def replace(disk: Disk, path: str, data: bytes) -> None:
    """Write a file so that a crash leaves its old or its new content, and make it durable."""
    temporary = path + TEMPORARY
    if disk.exists(temporary):
        disk.delete(temporary)
    disk.append(temporary, data)
    disk.fsync(temporary)
    disk.rename(temporary, path)
    disk.fsync_directory(parent(path))


def delete_tree(disk: Disk, path: str) -> None:
    """Delete a directory with what is in it."""
    for name in disk.list(path):
        inner = join(path, name)
        if disk.is_directory(inner):
            delete_tree(disk, inner)
        else:
            disk.delete(inner)
    disk.delete(path)
