"""The logs of a broker: directories, checkpoints, failures, deletion, retention, configs."""

from __future__ import annotations

import errno
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkawire.storage import names
from kafkawire.storage.config import LogConfig, LogManagerConfig
from kafkawire.storage.directory_logs import Recovered
from kafkawire.storage.disks.files import FileDisk
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.errors import CorruptFile, KafkaStorageError, StorageError
from kafkawire.storage.formats import read_offset_checkpoint
from kafkawire.storage.log_manager import LogManager, Place
from kafkawire.storage.names import TopicPartition, partition_of

from .logs import ORDERS, SMALL, TIME, content, filled
from .managers import started, uuids
from .test_unified_log import producer, transaction

MINUTE = 60_000


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("orders", n) for n in range(count)]


def test_new_logs_go_to_the_directory_with_the_fewest() -> None:
    disks = {"a": MemoryDisk(), "b": MemoryDisk()}
    logs = started(disks)
    for each in partitions(5):
        logs.get_or_create(each, TIME)
    assert [sum(map(disk.is_directory, disk.list(""))) for disk in disks.values()] == [3, 2]
    logs.shutdown(TIME)
    again = started(disks)
    assert sorted(again.partitions) == partitions(5)
    again.get_or_create(TopicPartition("orders", 5), TIME)
    assert [sum(map(disk.is_directory, disk.list(""))) for disk in disks.values()] == [3, 3]


def test_a_clean_shutdown_needs_no_recovery() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    log = filled(logs.get_or_create(ORDERS, TIME))
    log.update_high_watermark(60)
    log.delete_before(7)
    before = content(log)
    logs.shutdown(TIME, broker_epoch=5)
    disk.crash(lambda _count: 0)
    read: list[str] = []

    def fault(operation: str, path: str) -> float:
        if operation == "read" and path.endswith(".log"):
            read.append(path)
        return 0

    disk.fault = fault
    again = LogManager({"a": disk}, LogManagerConfig("cluster", 1, SMALL), uuids())
    found = again.start(TIME)
    [recovered] = found
    assert isinstance(recovered, Recovered)
    assert (recovered.clean_shutdown, recovered.truncated_bytes) == (True, 0)
    closed = [path for path in read if f"{log.segments.active.base_offset:020}" not in path]
    assert len(closed) == len(set(closed)), "only the end of each closed segment is read"
    reopened = again.log(ORDERS)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.high_watermark) == (7, 60)
    assert content(reopened) == before
    assert not disk.exists(names.CLEAN_SHUTDOWN)


def test_a_failing_directory_takes_its_logs_offline() -> None:
    disks = {"a": MemoryDisk(), "b": MemoryDisk()}
    logs = started(disks, flush_scheduler_interval_ms=1000)
    for each in partitions(4):
        filled(logs.get_or_create(each, TIME), 2)

    def fault(_operation: str, path: str) -> float:
        raise OSError(errno.EIO, "Input/output error", path)

    disks["a"].fault = fault
    with pytest.raises(KafkaStorageError, match="Input/output error"):
        filled(logs.get_or_create(ORDERS, TIME))
    disks["a"].fault = None  # what failed once stays offline
    assert logs.offline_directories == {"a": "Input/output error"}
    assert [each.partition for each in logs.partitions] == [1, 3]
    with pytest.raises(KafkaStorageError):
        logs.log(ORDERS)
    with pytest.raises(KafkaStorageError):
        logs.get_or_create(TopicPartition("other", 0), TIME, is_new=False)
    logs.get_or_create(TopicPartition("other", 0), TIME)
    logs.advance(TIME + 100 * MINUTE)
    logs.shutdown(TIME)
    again = started({"a": MemoryDisk(capacity=0), "b": disks["b"]})
    assert again.offline_directories == {"a": "No space left on device"}
    assert sorted(again.partitions) == [("orders", 1), ("orders", 3), ("other", 0)]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_directory_that_fails_when_a_log_is_created(is_new: bool) -> None:
    disks = {"a": MemoryDisk(), "b": MemoryDisk()}
    logs = started(disks)

    def fault(_operation: str, path: str) -> float:
        raise OSError(errno.EIO, "Input/output error", path)

    disks["a"].fault = fault
    if is_new:
        filled(logs.get_or_create(ORDERS, TIME), 2)
        found = logs.directory_of(ORDERS)
        assert found is not None
        assert found.name == "b"
    else:  # it may be in the directory that failed
        with pytest.raises(KafkaStorageError, match="Input/output error"):
            logs.get_or_create(ORDERS, TIME, is_new=False)
        assert logs.directory_of(ORDERS) is None
    assert logs.offline_directories == {"a": "Input/output error"}
    disks["b"].fault = fault
    with pytest.raises(KafkaStorageError, match="Input/output error"):
        logs.get_or_create(TopicPartition("orders", 7), TIME)


def test_a_full_disk() -> None:
    disk = MemoryDisk(capacity=8000)
    logs = started({"a": disk})
    log = logs.get_or_create(ORDERS, TIME)
    with pytest.raises(KafkaStorageError, match="No space left"):
        filled(log, 1000)
    disk.capacity = None
    again = started({"a": disk}).log(ORDERS)
    assert again is not None
    assert again.truncated_bytes > 0
    assert (
        content(again)
        == content(filled(started({"b": MemoryDisk()}).get_or_create(ORDERS, TIME), 1000))[
            : again.size
        ]
    )


def test_directories_belong_to_a_node() -> None:
    disk = MemoryDisk()
    started({"a": disk})
    other = LogManager({"a": disk}, LogManagerConfig("cluster", 2), uuids())
    with pytest.raises(CorruptFile, match="is of node 1 in cluster 'cluster', not of node 2"):
        other.start(TIME)


def test_a_partition_in_two_directories() -> None:
    disks = {"a": MemoryDisk(), "b": MemoryDisk()}
    started(disks).shutdown(TIME)
    for disk in disks.values():
        disk.make_directory("orders-0")
    with pytest.raises(StorageError, match="orders-0 is in 'a' and in 'b'"):
        started(disks)


def test_a_log_without_a_topic_id_gets_one() -> None:
    disk = MemoryDisk()
    started({"a": disk})
    disk.make_directory("orders-0")  # all that a crash left of its creation
    logs = started({"a": disk})
    logs.get_or_create(ORDERS, TIME)
    assert logs.topic_id(ORDERS) is None
    logs.get_or_create(ORDERS, TIME, topic_id=b"1" * 16)
    assert logs.topic_id(ORDERS) == b"1" * 16
    logs.get_or_create(ORDERS, TIME, topic_id=b"2" * 16)
    logs.shutdown(TIME)
    assert started({"a": disk}).topic_id(ORDERS) == b"1" * 16


def test_deletion_is_asynchronous() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    filled(logs.get_or_create(ORDERS, TIME, topic_id=bytes(16)))
    logs.delete([ORDERS], TIME)
    assert logs.log(ORDERS) is None
    (renamed,) = (name for name in disk.list("") if disk.is_directory(name))
    assert renamed.startswith("orders-0.")
    assert renamed.endswith("-delete")
    assert content(logs.get_or_create(ORDERS, TIME)) == b""
    logs.advance(TIME + SMALL.file_delete_delay_ms - 1)
    assert disk.exists(renamed)
    assert logs.next_deadline() is not None
    logs.advance(TIME + SMALL.file_delete_delay_ms)
    assert not disk.exists(renamed)


def test_what_was_being_deleted_is_deleted_after_a_restart() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    logs.get_or_create(ORDERS, TIME)
    logs.delete([ORDERS], TIME)
    disk.crash(lambda _count: 0)
    again = started({"a": disk})
    again.advance(TIME)
    assert not any(map(disk.is_directory, disk.list("")))


def test_checkpoints_forget_logs_before_they_are_deleted_one_by_one() -> None:
    """Once for all: also the periodic ones, and whether or not the logs are used until then."""
    disk = MemoryDisk()
    logs = started({"a": disk})
    every = partitions(40)
    for each in every:
        filled(logs.get_or_create(each, TIME), 10).flush(TIME)
    retired, lasting = every[1:], {every[0]}
    logs.retire(retired)
    for path in (names.RECOVERY_POINTS, names.HIGH_WATERMARKS):
        assert read_offset_checkpoint(disk, path).keys() == lasting
    written: list[str] = []

    def fault(_operation: str, path: str) -> float:
        written.append(path)
        return 0.0

    disk.fault = fault
    for each in retired:
        assert content(filled(logs.get_or_create(each, TIME), 5))
        logs.delete([each], TIME)
    checkpoints = (names.RECOVERY_POINTS, names.LOG_START_OFFSETS, names.HIGH_WATERMARKS)
    assert not [each for each in written if each.startswith(checkpoints)]
    disk.fault = None
    logs.get_or_create(every[1], TIME)
    logs.advance(TIME + MINUTE)
    for path in (names.RECOVERY_POINTS, names.HIGH_WATERMARKS):
        assert read_offset_checkpoint(disk, path).keys() == {*lasting, every[1]}


def test_retired_logs_are_in_no_checkpoint_that_is_written_later() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    for each in partitions(2):
        logs.get_or_create(each, TIME)
    logs.retire(partitions(1))
    logs.advance(TIME + MINUTE)
    for path in (names.RECOVERY_POINTS, names.HIGH_WATERMARKS):
        assert list(read_offset_checkpoint(disk, path)) == partitions(2)[1:]


def test_files_of_deleted_logs_are_deleted_a_few_at_a_time() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    for each in partitions(50):
        logs.get_or_create(each, TIME)
    logs.delete(partitions(50), TIME)
    due = TIME + SMALL.file_delete_delay_ms
    logs.advance(due - 1)
    left = 50
    while left:
        assert logs.next_deadline() == due
        before = left
        logs.advance(due)
        left = sum(map(disk.is_directory, disk.list("")))
        assert before - 20 < left < before
    assert (logs.next_deadline() or 0) > due


def test_configs_of_many_topics_change_in_one_pass() -> None:
    logs = started({"a": MemoryDisk()})
    topics = [f"t{number}" for number in range(30)]
    for each in topics:
        logs.get_or_create(TopicPartition(each, 0), TIME)
    passes = 0

    class Counted(dict[TopicPartition, Place]):
        def items(self) -> Any:
            nonlocal passes
            passes += 1
            return super().items()

    logs._places = Counted(logs._places)
    changed = replace(SMALL, retention_bytes=1)
    logs.update_configs(dict.fromkeys(topics[1:], changed))
    assert passes == 1
    configs = [logs.place(TopicPartition(each, 0)).log.config for each in topics]
    assert configs == [SMALL, *[changed] * 29]


def test_a_new_log_is_not_taken_for_the_deleted_one() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    filled(logs.get_or_create(ORDERS, TIME), 60).delete_before(150)
    logs.advance(TIME + MINUTE)
    logs.delete([ORDERS], TIME)
    log = filled(logs.get_or_create(ORDERS, TIME), 10)
    log.flush(TIME)
    expected = content(log)
    disk.crash(lambda _count: 0)
    again = started({"a": disk}).log(ORDERS)
    assert again is not None
    assert content(again) == expected


def test_truncation_lowers_the_checkpoint_first() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    log = filled(logs.get_or_create(ORDERS, TIME))
    log.flush(TIME)
    logs.advance(TIME + MINUTE)
    path = names.RECOVERY_POINTS
    assert read_offset_checkpoint(disk, path) == {ORDERS: 90}
    logs.truncate(ORDERS, 30, TIME)
    assert read_offset_checkpoint(disk, path) == {ORDERS: 30}


def test_flush_by_time() -> None:
    logs = started(
        {"a": MemoryDisk()}, replace(SMALL, flush_ms=5000), flush_scheduler_interval_ms=1000
    )
    log = filled(logs.get_or_create(ORDERS, TIME), 1)
    logs.advance(TIME + 4000)
    assert log.is_dirty
    logs.advance(TIME + 5000)
    assert not log.is_dirty


def test_retention_and_configs_at_run_time() -> None:
    disk = MemoryDisk()
    logs = started({"a": disk})
    log = filled(logs.get_or_create(ORDERS, TIME))
    segments = len(log.segments)
    later = TIME + 5 * MINUTE
    logs.advance(later)
    assert len(log.segments) == segments
    logs.update_configs({"orders": replace(SMALL, retention_bytes=2000)})
    log.update_high_watermark(20)
    logs.advance(later := later + 5 * MINUTE)
    assert 0 < log.log_start_offset <= 20  # what is not replicated stays
    log.update_high_watermark(90)
    logs.advance(later := later + 5 * MINUTE)
    assert 2000 <= log.size < 2700
    assert log.log_start_offset == log.segments.first.base_offset > 20
    deleted = [name for name in disk.list("orders-0") if name.endswith(".deleted")]
    assert deleted
    logs.update_configs({"orders": replace(SMALL, retention_ms=MINUTE)})
    logs.advance(later := later + 5 * MINUTE)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (90, 90, 0)
    logs.advance(later + MINUTE)
    assert not any(name.endswith(".deleted") for name in disk.list("orders-0"))
    logs.update_configs({"orders": None})
    assert log.config == SMALL


def test_retention_by_log_start_offset() -> None:
    logs = started({"a": MemoryDisk()}, replace(SMALL, cleanup_policy=frozenset({"compact"})))
    log = filled(logs.get_or_create(ORDERS, TIME))
    log.update_high_watermark(90)
    log.delete_before(50)
    logs.advance(TIME + 5 * MINUTE)
    assert log.segments.first.base_offset <= 50 < log.segments.base_offsets[1]


def test_producers_expire() -> None:
    logs = started({"a": MemoryDisk()}, producer_id_expiration_ms=1000)
    log = logs.get_or_create(ORDERS, TIME)
    log.append(producer(0, 0), TIME)
    transaction(log, 3)
    logs.advance(TIME + 600_000)
    assert list(log.producers.producers) == [3]  # it has a transaction


@pytest.mark.parametrize(
    "name", ["a", "a-", "-1", "a-01", "a b-1", "..-1", "a/b-1", "x" * 250 + "-0"]
)
def test_names_that_are_no_partitions(name: str) -> None:
    assert partition_of(name) is None


def test_invalid_topic_names() -> None:
    logs = started({"a": MemoryDisk()})
    with pytest.raises(ValueError, match="invalid topic name"):
        logs.get_or_create(TopicPartition("../x", 0), TIME)


def test_configs_in_kafkas_names() -> None:
    config = LogConfig.of({"cleanup.policy": "compact, delete", "segment.bytes": "99", "x": "y"})
    assert (config.compact, config.delete, config.segment_bytes) == (True, True, 99)
    for name, value in (("cleanup.policy", "x"), ("segment.ms", "soon")):
        with pytest.raises(ValueError, match=name):
            LogConfig.of({name: value})


def contents(logs: LogManager) -> dict[TopicPartition, bytes]:
    found = {each: logs.log(each) for each in logs.partitions}
    return {each: content(log) for each, log in found.items() if log is not None}


def test_on_real_files(tmp_path: Path) -> None:
    disks = {name: FileDisk(tmp_path / name) for name in "ab"}
    logs = started(disks)
    rng = random.Random(1)
    for each in partitions(6):
        filled(logs.get_or_create(each, TIME, rng.randbytes(16)))
    expected = contents(logs)
    logs.delete([ORDERS], TIME)
    again = started({name: FileDisk(tmp_path / name) for name in "ab"})
    again.advance(TIME)
    del expected[ORDERS]
    assert contents(again) == expected
