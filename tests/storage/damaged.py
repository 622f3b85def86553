"""Damages the files of a disk: single bytes, truncations, deletions."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from kafkawire.storage.disks.disk import join
from kafkawire.storage.disks.memory import MemoryDisk


def files(disk: MemoryDisk, folder: str = "") -> list[str]:
    """List all files of a disk."""
    paths: list[str] = []
    for name in disk.list(folder):
        path = join(folder, name)
        paths += files(disk, path) if disk.is_directory(path) else [path]
    return paths


def read(disk: MemoryDisk, path: str) -> bytes:
    """Read a file."""
    return disk.read(path, 0, disk.size(path))


def write(disk: MemoryDisk, path: str, data: bytes) -> None:
    """Replace a file."""
    disk.truncate(path, 0)
    disk.append(path, data)
    disk.fsync(path)


def flip(disk: MemoryDisk, path: str, position: int, mask: int = 0xFF) -> None:
    """Change a byte of a file."""
    data = bytearray(read(disk, path))
    data[position] ^= mask
    write(disk, path, bytes(data))


class Damage(NamedTuple):
    """What was done to which file."""

    kind: str
    path: str
    position: int = 0


KINDS: Final = ("flip", "truncate", "delete")


def damage(disk: MemoryDisk, path: str, rng: random.Random) -> Damage:
    """Damage a file in one of the KINDS of ways."""
    kind, size = rng.choice(KINDS), disk.size(path)
    if kind == "delete" or not size:
        disk.delete(path)
        return Damage("delete", path)
    position = rng.randrange(size)
    if kind == "flip":
        flip(disk, path, position, 1 << rng.randrange(8))
    else:
        write(disk, path, read(disk, path)[:position])
    return Damage(kind, path, position)
