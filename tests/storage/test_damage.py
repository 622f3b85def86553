"""Damaged logs: the partition alone is offline, nothing durable is cut, errors name the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafkawire.storage import CorruptFile, KafkaStorageError, LogDamaged, names
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.log_manager import LogManager
from kafkawire.storage.names import TopicPartition

from .damaged import files, flip, read, write
from .logs import ORDERS, SMALL, TIME, content, filled, open_log
from .managers import started

OTHER = TopicPartition("other", 0)
IDS = {ORDERS: b"o" * 16, OTHER: b"t" * 16}


def stopped() -> tuple[MemoryDisk, list[int], bytes]:
    """Fill two logs and shut down; return the disk, the segments of one, and what is in it."""
    disk = MemoryDisk()
    logs = started({"a": disk})
    for partition, topic_id in IDS.items():
        filled(logs.get_or_create(partition, TIME, topic_id))
    log = logs.log(ORDERS)
    assert log is not None
    segments, data = log.segments.base_offsets, content(log)
    logs.shutdown(TIME)
    return disk, segments, data


def path_of(base_offset: int, suffix: str = names.LOG) -> str:
    return f"{ORDERS}/{base_offset:020}{suffix}"


def offline(logs: LogManager) -> str:
    """Return why the log is offline; the other log is not."""
    other = logs.log(OTHER)
    assert other is not None
    assert content(other)
    with pytest.raises(LogDamaged) as raised:
        logs.get_or_create(ORDERS, TIME, IDS[ORDERS])
    assert logs.log(ORDERS) is None
    return str(raised.value)


def emptied(disk: MemoryDisk, path: str) -> None:
    write(disk, path, b"")


def shortened(disk: MemoryDisk, path: str) -> None:
    """Cut the last batch off."""
    data = read(disk, path)
    position = 0
    while True:
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        if position + size >= len(data):
            break
        position += size
    write(disk, path, data[:position])


def deleted(disk: MemoryDisk, path: str) -> None:
    disk.delete(path)


LOSSES = [deleted, emptied, shortened]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("lose", LOSSES)
def test_a_hole_between_segments_is_found(
    lose: Callable[[MemoryDisk, str], None], clean: bool
) -> None:
    disk, segments, _ = stopped()
    if not clean:
        disk.delete(names.CLEAN_SHUTDOWN)
    lose(disk, path_of(segments[1]))
    before = {path: read(disk, path) for path in files(disk) if path.endswith(names.LOG)}
    reason = offline(started({"a": disk}))
    assert reason.startswith("a/orders-0/")
    if clean:
        assert path_of(segments[1]) in reason
    else:
        assert f"{segments[2] - 1} are missing" in reason
    assert before == {path: read(disk, path) for path in files(disk) if path.endswith(names.LOG)}


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("at", [0, -1])
def test_lost_ends_of_a_log_are_found_after_a_clean_shutdown(
    lose: Callable[[MemoryDisk, str], None], at: int
) -> None:
    disk, segments, _ = stopped()
    lose(disk, path_of(segments[at]))
    assert path_of(segments[at]) in offline(started({"a": disk}))


def test_a_compacted_log_may_have_gaps() -> None:
    """Also one that another broker has compacted, before it was replicated to here."""
    disk, segments, _ = stopped()
    disk.delete(names.CLEAN_SHUTDOWN)
    disk.delete(path_of(segments[1]))
    compacted = replace(SMALL, cleanup_policy=frozenset({"compact"}))
    logs = started({"a": disk})
    logs.update_configs({ORDERS.topic: compacted})
    assert logs.get_or_create(ORDERS, TIME, IDS[ORDERS]).log_end_offset > segments[2]
    disk, segments, _ = stopped()
    disk.delete(names.CLEAN_SHUTDOWN)
    disk.delete(path_of(segments[1]))
    logs = started({"a": disk})
    with pytest.raises(LogDamaged):
        logs.get_or_create(ORDERS, TIME, IDS[ORDERS])


def test_what_was_durable_is_not_cut_when_an_index_is_rebuilt() -> None:
    disk, segments, _ = stopped()
    disk.delete(path_of(segments[1], names.INDEX))
    flip(disk, path_of(segments[1]), 61)
    before = read(disk, path_of(segments[1]))
    reason = offline(started({"a": disk}))
    assert f"damaged at byte 0, offset {segments[1]}" in reason
    assert read(disk, path_of(segments[1])) == before


def test_a_damaged_log_is_damaged_at_the_next_start_too() -> None:
    """Also after a crash: the checkpoints still have it."""
    disk, segments, _ = stopped()
    disk.delete(path_of(segments[1], names.INDEX))
    flip(disk, path_of(segments[1]), 61)
    first = offline(started({"a": disk}))
    logs = started({"a": disk})
    assert offline(logs) == first
    logs.shutdown(TIME)
    assert offline(started({"a": disk})) == first


def test_a_log_of_another_topic_is_set_aside() -> None:
    disk, segments, _ = stopped()
    disk.delete(path_of(segments[1]))
    logs = started({"a": disk})
    log = logs.get_or_create(ORDERS, TIME, b"n" * 16)
    assert log.log_end_offset == 0
    strays = [name for name in disk.list("") if name.endswith(names.STRAY_DIRECTORY)]
    assert len(strays) == 1
    assert path_of(segments[0]).rpartition("/")[2] in disk.list(strays[0])


def test_the_marker_of_a_clean_shutdown_is_there_until_all_logs_are_loaded() -> None:
    disk, _, data = stopped()
    checkpoint = read(disk, names.RECOVERY_POINTS)
    write(disk, names.RECOVERY_POINTS, b"0\nnot a number\n")
    with pytest.raises(CorruptFile, match=names.RECOVERY_POINTS):
        started({"a": disk})
    write(disk, names.RECOVERY_POINTS, checkpoint)
    assert disk.exists(names.CLEAN_SHUTDOWN)
    logs = started({"a": disk})
    log = logs.log(ORDERS)
    assert log is not None
    assert content(log) == data
    assert not disk.exists(names.CLEAN_SHUTDOWN)


def test_logs_without_metadata_are_kept() -> None:
    disk, segments, _ = stopped()
    logs = started({"a": disk})
    [stray] = logs.set_aside([ORDERS])
    assert (stray.partition, stray.directory) == (ORDERS, "a")
    assert disk.exists(f"{stray.folder}/{segments[0]:020}.log")
    logs.advance(TIME + 10**9)
    again = started({"a": disk})
    assert again.partitions == [OTHER]
    assert disk.exists(f"{stray.folder}/{segments[0]:020}.log")


def test_a_segment_that_was_cut_while_it_was_written_is_found_when_it_is_rolled() -> None:
    disk = MemoryDisk()
    log = filled(open_log(disk))
    active = log.segments.active
    disk.truncate(active.path, 10)
    with pytest.raises(CorruptFile, match=f"10 bytes long, but {active.size} were written"):
        log.roll(TIME)


def test_tasks_pass_by_damaged_logs() -> None:
    disk, segments, _ = stopped()
    reports: list[tuple[TopicPartition, str]] = []
    config = replace(SMALL, retention_ms=1)
    logs = started({"a": disk}, config)
    logs.on_damage = lambda partition, error: reports.append((partition, str(error)))
    for partition in (ORDERS, OTHER):
        log = logs.log(partition)
        assert log is not None
        log.update_high_watermark(log.log_end_offset)
    write(disk, path_of(segments[0]), bytes(disk.size(path_of(segments[0]))))
    for _ in range(3):
        logs.advance(TIME + 10**9)
    other = logs.log(OTHER)
    assert other is not None
    assert other.log_start_offset > 0, "retention goes on elsewhere"
    assert len(reports) <= 1


def test_a_missing_file_is_the_damage_of_a_partition_not_of_its_directory() -> None:
    disk, segments, _ = stopped()
    logs = started({"a": disk})
    log = logs.log(ORDERS)
    assert log is not None
    disk.delete(path_of(segments[1]))
    with pytest.raises(CorruptFile, match="missing"):
        log.read(segments[1], 1 << 20, at_least_one=True)
    assert logs.offline_directories == {}
    disk.fault = _fails
    with pytest.raises(KafkaStorageError):
        log.read(segments[0], 1 << 20, at_least_one=True)


def _fails(_operation: str, _path: str) -> float:
    raise OSError("no disk")
