"""Recovery: torn tails, corrupt batches, missing and corrupt indexes, interrupted compaction."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from kafkawire.records import RecordBatches
from kafkawire.storage.disks.disk import read_whole
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.names import numbered

from .logs import SMALL, TIME, content, filled, open_log, records

FOLDER = "orders-0"


def written(count: int = 20) -> MemoryDisk:
    disk = MemoryDisk()
    log = filled(open_log(disk), count)
    log.flush(TIME)
    return disk


def last_segment(disk: MemoryDisk) -> str:
    return f"{FOLDER}/" + max(name for name in disk.list(FOLDER) if name.endswith(".log"))


def test_a_torn_tail_is_cut_at_every_byte() -> None:
    whole = content(open_log(written()))
    ends = {0}
    for each in RecordBatches(whole):
        ends.add(each.end)
    disk = written()
    path = last_segment(disk)
    before = len(whole) - disk.size(path)
    for size in range(disk.size(path)):
        disk = written()
        disk.truncate(path, size)
        log = open_log(disk)
        assert content(log) == whole[: max(end for end in ends if end <= before + size)]
        assert log.truncated_bytes == before + size - len(content(log))
        filled(log, 2)


@pytest.mark.parametrize(
    "tail", [bytes(5), bytes(500), b"\xff" * 100, b"\0" * 11 + b"\x20" + bytes(99)]
)
def test_what_is_no_batch_is_cut(tail: bytes) -> None:
    disk = written()
    expected = content(open_log(disk))
    disk.append(last_segment(disk), tail)
    log = open_log(disk)
    assert (content(log), log.truncated_bytes) == (expected, len(tail))


def test_nothing_is_kept_after_a_corrupt_batch() -> None:
    disk = written()
    log = open_log(disk)
    second = log.segments.base_offsets[1]
    path = f"{FOLDER}/{second:020}.log"
    data = bytearray(read_whole(disk, path))
    data[len(data) // 2] ^= 1
    disk.truncate(path, 0)
    disk.append(path, bytes(data))
    again = open_log(disk)
    assert again.truncated_bytes > 0
    assert second < again.log_end_offset < log.segments.base_offsets[2]
    assert [row[0] for row in records(again)] == list(range(again.log_end_offset))
    assert len(again.segments) == 2
    assert again.epochs.latest == again.epochs.epoch_of(again.log_end_offset - 1)


def test_before_the_recovery_point_only_the_ends_of_segments_are_read() -> None:
    disk = written()
    log = open_log(disk)
    read: Counter[str] = Counter()

    def fault(operation: str, path: str) -> float:
        read[path] += operation == "read" and path.endswith(".log")
        return 0

    disk.fault = fault
    open_log(disk, recovery_point=log.log_end_offset)
    last = read.pop(last_segment(disk))
    assert last > 1
    assert set(read.values()) <= {0, 1}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "short", "garbage", "empty folder"])
def test_indexes_are_rebuilt(suffix: str, damage: str, clean: bool) -> None:
    disk = written()
    end = open_log(disk).log_end_offset
    expected = {name: read_whole(disk, f"{FOLDER}/{name}") for name in disk.list(FOLDER)}
    for name in disk.list(FOLDER):
        if name.endswith(suffix) and (damage == "empty folder" or numbered(name)[0] > 0):  # type: ignore[index]
            path = f"{FOLDER}/{name}"
            if damage == "short":
                disk.append(path, b"x")
            elif damage == "garbage":
                disk.truncate(path, 0)
                disk.append(path, b"\xff" * 24)
            else:
                disk.delete(path)
    log = open_log(disk, recovery_point=end, clean_shutdown=clean)
    log.close(TIME)
    found = {name: read_whole(disk, f"{FOLDER}/{name}") for name in disk.list(FOLDER)}
    for name, data in expected.items():
        if name.endswith((".log", ".index")):
            assert found[name] == data, name


def test_files_without_a_segment() -> None:
    disk = written()
    for name in ("5.index", "x.log", f"{7:020}.timeindex", f"{7:020}.log.deleted"):
        disk.append(f"{FOLDER}/{name}", b"x")
    expected = content(open_log(disk))
    left = disk.list(FOLDER)
    assert f"{7:020}.timeindex" not in left
    assert f"{7:020}.log.deleted" not in left
    assert {"5.index", "x.log"} <= set(left)  # not Kafka's names
    assert content(open_log(disk)) == expected


def test_interrupted_compaction() -> None:
    disk = written()
    log = open_log(disk)
    first, second = log.segments.base_offsets[:2]
    expected = content(log)
    for state in (".cleaned", ".swap"):
        for kind in (".log", ".index", ".timeindex"):
            disk.append(
                f"{FOLDER}/{first:020}{kind}{state}",
                read_whole(disk, f"{FOLDER}/{first:020}{kind}"),
            )
        if state == ".cleaned":  # not complete: it goes
            again = open_log(disk)
            assert not any(name.endswith(state) for name in disk.list(FOLDER))
            assert content(again) == expected
    disk.delete(f"{FOLDER}/{first:020}.log")
    again = open_log(disk)  # complete: it takes its place
    assert content(again) == expected
    assert again.segments.base_offsets[:2] == [first, second]


def test_a_log_that_ends_before_it_starts() -> None:
    log = open_log(written(), log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, content(log)) == (500, 500, b"")
    assert filled(log, 1).log_end_offset == 503
    assert content(open_log(log.disk, log_start_offset=500)) == content(log)


def test_the_configuration_may_change_between_starts() -> None:
    disk = written()
    expected = content(open_log(disk))
    log = open_log(disk, replace(SMALL, segment_bytes=200, segment_index_bytes=24))
    assert content(log) == expected
    filled(log, 3, size=1)


def cut_short(left: int, keep: int, mutant: bool) -> tuple[bytes, int]:
    """Truncate a log, and crash at an operation; return what is recovered, and the rest of `left`.

    keep: how many of the changes of names that are not durable survive.
    """
    disk = written()
    log = open_log(disk)
    log.flush(TIME)
    if mutant:
        original = log._remove
        log._remove = lambda segments, now_ms: original(segments[::-1], now_ms)  # type: ignore[method-assign]

    def fault(operation: str, path: str) -> float:
        nonlocal left
        left -= operation not in ("read", "size", "list")
        if left < 0:
            raise OSError(5, operation, path)
        return 0

    disk.fault = fault
    with suppress(OSError):
        log.truncate(7, TIME)
    disk.fault = None
    disk.crash(lambda count: min(keep, count - 1))
    return content(open_log(disk)), left


@pytest.mark.parametrize("mutant", [False, True], ids=["", "removed from the first on"])
def test_a_crash_at_any_operation_of_a_truncation(mutant: bool) -> None:
    """The log is a prefix of what was written, at any operation; not so in another order."""
    whole = content(open_log(written()))
    lost = 0
    for at in range(1000):
        for keep in (0, 2, 1000):
            found, left = cut_short(at, keep, mutant)
            lost += not whole.startswith(found)
        if left >= 0:
            break
    assert at > 20
    assert bool(lost) is mutant
