"""Both disks do the same; the one in memory loses in a crash what is not durable, and only that."""

from __future__ import annotations

import copy
import errno
import random
from pathlib import Path

import pytest

from kafkawire.storage.disks.disk import Disk, delete_tree, read_whole, replace
from kafkawire.storage.disks.files import FileDisk
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.disks.memory_file import (
    ALL,
    BUFFER,
    NONE,
    PREFIX,
    SHARED_FROM,
    ZEROS,
    SharedBytes,
)


@pytest.fixture(params=["memory", "files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else FileDisk(tmp_path / "root", max_open=3)


def test_files_grow_and_are_cut(disk: Disk) -> None:
    disk.append("a", b"12345")
    disk.append("a", b"67")
    assert (disk.read("a", 2, 3), disk.read("a", 5, 99), disk.read("a", 99, 1)) == (
        b"345",
        b"67",
        b"",
    )
    disk.truncate("a", 99)
    assert disk.size("a") == 7
    disk.truncate("a", 2)
    disk.append("a", b"x")
    assert read_whole(disk, "a") == b"12x"
    assert disk.modified_ms("a") >= 0


SIZES = (1, 7, SHARED_FROM - 1, SHARED_FROM, SHARED_FROM + 1, BUFFER)


@pytest.mark.parametrize("seed", range(20))
def test_a_file_has_what_was_appended_and_not_cut(seed: int) -> None:
    """Of small and large appends, alike and not, on two disks that share bytes."""
    rng = random.Random(seed)
    shared = SharedBytes()
    disks = [MemoryDisk(shared=shared), MemoryDisk(shared=shared)]
    expected = [b"", b""]
    for disk in disks:
        disk.append("a", b"")
    for _ in range(40):
        at = rng.randrange(2)
        disk = disks[at]
        if rng.random() < 0.7:
            data = bytes([rng.randrange(3)]) * rng.choice(SIZES)
            disk.append("a", data)
            expected[at] += data
        else:
            size = rng.randrange(len(expected[at]) + 2)
            disk.truncate("a", size)
            expected[at] = expected[at][:size]
        start = rng.randrange(len(expected[at]) + 2)
        size = rng.choice((1, SHARED_FROM, 3 * BUFFER))
        assert disk.read("a", start, size) == expected[at][start : start + size]
        assert disk.size("a") == disk.used == len(expected[at])
    assert [read_whole(disk, "a") for disk in disks] == expected


def test_equal_bytes_are_on_two_disks_once_and_gone_with_both() -> None:
    shared = SharedBytes()
    disks = [MemoryDisk(shared=shared), MemoryDisk(shared=shared)]
    for disk in disks:
        disk.append("a", bytes(SHARED_FROM))
    one, other = (read_whole(disk, "a") for disk in disks)
    assert one is other
    copied = copy.deepcopy(disks[0])
    copied.append("b", bytes(SHARED_FROM))
    assert read_whole(copied, "b") is one
    for disk in (*disks, copied):
        disk.truncate("a", 1)
    copied.truncate("b", 1)
    disks[0].append("a", bytes(SHARED_FROM))
    assert disks[0].read("a", 1, SHARED_FROM) is not one


def test_names(disk: Disk) -> None:
    disk.make_directory("d/e")
    disk.make_directory("d/e")
    for name in "abcdef":
        disk.append(f"d/{name}{name}", name.encode())
    disk.rename("d/aa", "d/bb")
    assert disk.list("d") == ["bb", "cc", "dd", "e", "ee", "ff"]
    assert read_whole(disk, "d/bb") == b"a"
    disk.rename("d", "moved")
    assert (disk.exists("d"), disk.is_directory("moved"), disk.is_directory("moved/bb")) == (
        False,
        True,
        False,
    )
    disk.append("moved/bb", b"+")
    assert read_whole(disk, "moved/bb") == b"a+"
    with pytest.raises(OSError) as found:
        disk.delete("moved")
    assert found.value.errno == errno.ENOTEMPTY
    delete_tree(disk, "moved")
    assert disk.list("") == []


def test_a_path_is_that_of_what_has_its_name_now(disk: Disk) -> None:
    for folder, content in ("old", b"1"), ("new", b"2"):
        disk.make_directory(f"{folder}/inner")
        disk.append(f"{folder}/inner/file", content)
        assert disk.size(f"{folder}/inner/file") == 1
    delete_tree(disk, "new")
    disk.rename("old", "new")
    assert not disk.exists("old/inner/file")
    assert read_whole(disk, "new/inner/file") == b"1"
    with pytest.raises(FileNotFoundError):
        disk.append("old/inner/file", b"3")
    disk.append("new/inner/other", b"4")
    disk.rename("new/inner/other", "new/inner/file")
    assert read_whole(disk, "new/inner/file") == b"4"
    disk.make_directory("new/empty")
    with pytest.raises(IsADirectoryError):
        disk.rename("new/inner/file", "new/empty")
    assert disk.list("new") == ["empty", "inner"]


def test_what_does_not_exist(disk: Disk) -> None:
    for call in (disk.size, disk.fsync, disk.delete, disk.list, disk.fsync_directory):
        with pytest.raises(FileNotFoundError):
            call("absent")
    with pytest.raises(FileNotFoundError):
        disk.append("absent/file", b"")


def test_paths_stay_inside(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path / "root")
    for path in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(ValueError, match="leaves"):
            disk.append(path, b"")


def crashed(loss: int, cut: int = 0) -> MemoryDisk:
    """Write a file, half of it durable, and crash: the loss and the cut are given."""
    disk = MemoryDisk()
    disk.append("a", b"durable")
    disk.fsync("a")
    disk.fsync_directory("")
    disk.append("a", b"later")
    choices = iter([0, loss, cut])
    disk.crash(lambda count: min(next(choices), count - 1))
    return disk


def test_bytes_that_are_not_durable_may_be_lost() -> None:
    assert read_whole(crashed(NONE), "a") == b"durable"
    assert read_whole(crashed(ALL), "a") == b"durablelater"
    assert read_whole(crashed(PREFIX, 2), "a") == b"durablela"
    assert read_whole(crashed(ZEROS, 2), "a") == b"durablela\0\0\0"


def test_names_that_are_not_durable_may_be_lost() -> None:
    seen = set()
    for seed in range(40):
        disk = MemoryDisk()
        disk.append("a", b"")
        disk.fsync_directory("")
        disk.rename("a", "b")
        disk.append("c", b"")
        disk.crash(random.Random(seed).randrange)
        seen.add(tuple(disk.list("")))
    assert seen == {("a",), ("b",), ("b", "c")}  # in order, and a rename is one change


def test_a_cut_that_is_not_durable_may_come_back() -> None:
    seen = set()
    for seed in range(60):
        disk = MemoryDisk()
        disk.append("a", b"12345")
        disk.fsync("a")
        disk.fsync_directory("")
        disk.truncate("a", 2)
        disk.append("a", b"x")
        disk.crash(random.Random(seed).randrange)
        seen.add(read_whole(disk, "a"))
    assert seen == {b"12345", b"12", b"12x", b"12\0"}


def test_a_replaced_file_is_old_or_new() -> None:
    for seed in range(200):
        disk = MemoryDisk()
        replace(disk, "a", b"old")
        left = random.Random(seed).randrange(6)

        def fault(operation: str, path: str) -> float:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.EIO, operation, path)
            return 0.5

        disk.fault = fault
        try:
            replace(disk, "a", b"new")
            expected = {b"new"}
        except OSError:
            expected = {b"old", b"new"}
        disk.fault = None
        disk.crash(random.Random(seed).randrange)
        assert read_whole(disk, "a") in expected
        assert disk.elapsed_s > 0 or left < 0


def test_a_full_disk_writes_what_fits() -> None:
    disk = MemoryDisk(capacity=8)
    disk.append("a", b"123456")
    with pytest.raises(OSError) as found:
        disk.append("b", b"123456")
    assert found.value.errno == errno.ENOSPC
    assert (disk.size("b"), disk.used) == (2, 8)
    disk.delete("a")
    disk.append("b", b"3456")
    assert read_whole(disk, "b") == b"123456"
