"""Moves between log directories, and the lock of a log directory."""

from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.storage.config import MAX_INT64, LogConfig
from kafkawire.storage.disks.disk import Disk
from kafkawire.storage.disks.files import FileDisk
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.errors import (
    KafkaStorageError,
    LogDirectoryLocked,
    LogDirNotFound,
    StorageError,
)
from kafkawire.storage.formats import read_partition_metadata_file
from kafkawire.storage.log_manager import LogManager
from kafkawire.storage.names import TopicPartition, future_of
from kafkawire.storage.unified_log import UnifiedLog
from tests.conftest import ROOT

from .logs import ORDERS, SMALL, TIME, content, filled, records
from .managers import started

TOPIC_ID = bytes(range(16))
SLOWLY: Final[dict[str, Any]] = {
    "replica_fetch_max_bytes": 400,
    "alter_log_dirs_io_max_bytes_per_second": 1000,
}


def folders(disk: Disk) -> list[str]:
    return [name for name in disk.list("") if disk.is_directory(name)]


def log_of(logs: LogManager) -> UnifiedLog:
    found = logs.log(ORDERS)
    assert found is not None
    return found


def run_moves(logs: LogManager, now_ms: int = TIME) -> int:
    """Advance until nothing is moved; return when that is."""
    while logs.moves:
        now_ms = max(now_ms, logs.next_deadline() or 0)
        logs.advance(now_ms)
    return now_ms


@pytest.fixture(params=["memory", "files"])
def disks(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Disk]:
    if request.param == "files":
        return {name: FileDisk(tmp_path / name) for name in "ab"}
    return {name: MemoryDisk() for name in "ab"}


def test_a_log_is_moved(disks: dict[str, Disk]) -> None:
    logs = started(disks, **SLOWLY)
    log = filled(logs.get_or_create(ORDERS, TIME, TOPIC_ID))
    log.update_high_watermark(60)
    logs.delete_records(ORDERS, 7)
    expected = content(log)
    logs.move(ORDERS, "b", TIME)
    assert logs.moves == {ORDERS: "b"}
    [future] = folders(disks["b"])
    assert future_of(future) == ORDERS
    logs.advance(TIME)
    assert log_of(logs) is log
    filled(log, 1)  # appended meanwhile
    ended_ms = run_moves(logs)
    assert ended_ms - TIME >= len(expected) * 1000 // 1000 - 700  # as fast as it may
    moved = log_of(logs)
    assert moved is not log
    assert (moved.log_start_offset, moved.log_end_offset, moved.high_watermark) == (7, 93, 60)
    assert content(moved).startswith(expected)
    assert moved.epochs.entries == log.epochs.entries
    assert folders(disks["b"]) == ["orders-0"]
    [deleted] = folders(disks["a"])
    assert deleted.endswith("-delete")
    assert read_partition_metadata_file(disks["b"], "orders-0") == TOPIC_ID
    filled(moved, 2)
    expected = content(moved)
    logs.shutdown(ended_ms)
    again = started(disks)
    assert content(log_of(again)) == expected
    again.advance(ended_ms + SMALL.file_delete_delay_ms)
    assert folders(disks["a"]) == []


def test_a_move_goes_on_after_a_restart() -> None:
    disks = {name: MemoryDisk() for name in "ab"}
    logs = started(disks, **SLOWLY)
    expected = content(filled(logs.get_or_create(ORDERS, TIME)))
    logs.move(ORDERS, "b", TIME)
    logs.advance(TIME)
    logs.shutdown(TIME)
    again = started(disks, **SLOWLY)
    assert again.moves == {ORDERS: "b"}
    before = disks["b"].used
    assert before > 400  # what was copied stays
    run_moves(again)
    assert content(log_of(again)) == expected
    assert folders(disks["b"]) == ["orders-0"]


def test_a_move_ends_with_another_one_or_with_the_log() -> None:
    disks = {name: MemoryDisk() for name in "abc"}
    logs = started(disks, **SLOWLY)
    log = filled(logs.get_or_create(ORDERS, TIME))
    logs.move(ORDERS, "b", TIME)
    logs.advance(TIME)
    logs.move(ORDERS, "c", TIME)
    assert logs.moves == {ORDERS: "c"}
    [given_up] = folders(disks["b"])
    assert given_up.endswith("-delete")
    logs.move(ORDERS, "a", TIME)  # where it is
    assert (logs.moves, log_of(logs)) == ({}, log)
    logs.move(ORDERS, "c", TIME)
    logs.delete([ORDERS], TIME)
    assert logs.moves == {}
    logs.advance(TIME + SMALL.file_delete_delay_ms)
    assert [folders(disk) for disk in disks.values()] == [[], [], []]


def test_a_truncation_reaches_the_copy() -> None:
    disks = {name: MemoryDisk() for name in "ab"}
    logs = started(disks, replica_fetch_max_bytes=700)
    log = filled(logs.get_or_create(ORDERS, TIME))
    logs.move(ORDERS, "b", TIME)
    for _ in range(3):
        logs.advance(TIME)
    assert logs.moves == {ORDERS: "b"}
    logs.truncate(ORDERS, 9, TIME)
    expected = content(filled(log, 3))
    run_moves(logs)
    assert content(log_of(logs)) == expected


@pytest.mark.parametrize("offset", [0, 9, 500])
def test_a_truncation_of_all_reaches_the_copy(offset: int) -> None:
    disks = {name: MemoryDisk() for name in "ab"}
    logs = started(disks, replica_fetch_max_bytes=700)
    log = filled(logs.get_or_create(ORDERS, TIME))
    logs.move(ORDERS, "b", TIME)
    for _ in range(3):
        logs.advance(TIME)
    assert logs.moves == {ORDERS: "b"}
    logs.truncate_fully(ORDERS, offset, TIME)
    expected = content(filled(log, 3))
    run_moves(logs)
    assert content(log_of(logs)) == expected
    assert log_of(logs).log_start_offset == offset


def test_what_is_moved_is_not_compacted() -> None:
    config = LogConfig(
        segment_bytes=700, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0
    )
    logs = started({name: MemoryDisk() for name in "ab"}, config, replica_fetch_max_bytes=10)
    log = filled(logs.get_or_create(ORDERS, TIME), 40)
    log.update_high_watermark(MAX_INT64)
    logs.move(ORDERS, "b", TIME)
    count = len(records(log))
    logs.advance(TIME + 60_000)
    assert len(records(log)) == count
    logs.move(ORDERS, "a", TIME)
    filled(log, 40).update_high_watermark(MAX_INT64)
    logs.advance(TIME + 120_000)
    assert len(records(log)) < 2 * count


def test_a_target_that_fails() -> None:
    disks = {name: MemoryDisk() for name in "ab"}
    logs = started(disks)
    log = filled(logs.get_or_create(ORDERS, TIME))
    logs.move(ORDERS, "b", TIME)
    disks["b"].capacity = disks["b"].used + 500
    logs.advance(TIME)
    assert logs.offline_directories == {"b": "No space left on device"}
    logs.advance(TIME)
    assert (logs.moves, log_of(logs)) == ({}, log)
    with pytest.raises(KafkaStorageError):
        logs.move(ORDERS, "b", TIME)


def test_a_log_that_cannot_be_copied() -> None:
    disks = {name: MemoryDisk() for name in "ab"}
    logs = started(disks)
    log = filled(logs.get_or_create(ORDERS, TIME), 1)
    path = f"orders-0/{0:020}.log"
    damaged = disks["a"].read(path, 0, 1000)
    disks["a"].truncate(path, 0)
    disks["a"].append(path, damaged[:-1] + bytes([damaged[-1] ^ 1]))
    logs.move(ORDERS, "b", TIME)
    logs.advance(TIME)
    assert (logs.moves, log_of(logs)) == ({}, log)
    assert logs.failed_moves[ORDERS].startswith("CORRUPT_MESSAGE: batch[0]: the checksum is")
    assert not logs.offline_directories


def test_a_future_log_without_its_log() -> None:
    disks = {name: MemoryDisk() for name in "ab"}
    logs = started(disks, **SLOWLY)
    filled(logs.get_or_create(ORDERS, TIME))
    logs.move(ORDERS, "b", TIME)
    logs.advance(TIME)

    def fault(_operation: str, path: str) -> float:
        raise OSError(errno.EIO, "Input/output error", path)

    disks["a"].fault = fault
    offline = started(disks)  # its log may come back
    assert (offline.moves, [future_of(each) for each in folders(disks["b"])]) == ({}, [ORDERS])
    replaced = started({"a": MemoryDisk(), "b": disks["b"]})  # it does not
    assert replaced.log(ORDERS) is None
    assert [each.endswith("-delete") for each in folders(disks["b"])] == [True]


def test_invalid_moves() -> None:
    logs = started({name: MemoryDisk() for name in "ab"})
    logs.get_or_create(ORDERS, TIME)
    with pytest.raises(LogDirNotFound, match="no log directory 'x'"):
        logs.move(ORDERS, "x", TIME)
    long = TopicPartition("x" * 249, 0)
    logs.get_or_create(long, TIME)
    with pytest.raises(StorageError, match="too long to move"):
        logs.move(long, "a", TIME)
    assert logs.moves == {}


# -- the lock

HOLDER = """
import sys
from tests.storage.managers import started
from kafkawire.storage import FileDisk
logs = started({"data": FileDisk(sys.argv[1])})
print("started", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "started\n"
        disk = FileDisk(tmp_path)
        with pytest.raises(LogDirectoryLocked, match="'data' is in use by another process"):
            started({"data": disk})
        other.kill()
    logs = started({"data": disk})  # the lock ends with its process
    assert not logs.offline_directories
    disk.close()


@pytest.mark.parametrize("ending", ["close", "shutdown"])
def test_the_end_of_the_logs_unlocks_their_directory(tmp_path: Path, ending: str) -> None:
    disk = FileDisk(tmp_path)
    logs = started({"data": disk}, replace(SMALL))
    if ending == "close":
        disk.close()
    else:
        logs.shutdown(TIME)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "started\n")
