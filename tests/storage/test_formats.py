"""Kafka's small files: what is written reads back here and in `kafkawire log`, errors are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.log import Finding, ProducerState, Property, read, recognise
from kafkawire.storage import formats
from kafkawire.storage.disks.disk import replace
from kafkawire.storage.disks.files import FileDisk
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.errors import CorruptFile
from kafkawire.storage.formats import EpochEntry, MetaProperties
from kafkawire.storage.names import TopicPartition

ID = bytes(range(16))
PRODUCER = ProducerState(0, 7, 1, 35, 146, 2, 1_700_000_000_000, 3, -1)


def test_what_is_written_reads_back() -> None:
    disk = MemoryDisk()
    offsets = {TopicPartition("a-1", 0): 5, TopicPartition("b", 12): 2**62}
    formats.write_offset_checkpoint(disk, "recovery-point-offset-checkpoint", offsets)
    assert formats.read_offset_checkpoint(disk, "recovery-point-offset-checkpoint") == offsets
    epochs = [EpochEntry(0, 0), EpochEntry(4, 17)]
    formats.write_epoch_checkpoint(disk, "", epochs)
    assert formats.read_epoch_checkpoint(disk, "") == epochs
    formats.write_partition_metadata_file(disk, "", ID)
    assert formats.read_partition_metadata_file(disk, "") == ID
    for meta in (MetaProperties("a:b=c #!\\", 3, ID), MetaProperties("x", 0, None)):
        formats.write_meta_properties(disk, meta)
        assert formats.read_meta_properties(disk) == meta
    formats.write_snapshot(disk, "1.snapshot", [PRODUCER])
    assert formats.read_snapshot(disk, "1.snapshot") == [PRODUCER]


def test_without_files() -> None:
    disk = MemoryDisk()
    assert formats.read_offset_checkpoint(disk, "x-offset-checkpoint") == {}
    assert formats.read_epoch_checkpoint(disk, "") == []
    assert formats.read_partition_metadata_file(disk, "") is None
    assert formats.read_meta_properties(disk) is None
    assert formats.read_clean_shutdown(disk) is None
    formats.remove_clean_shutdown(disk)


def test_the_marker_of_a_clean_shutdown_stays_until_it_is_removed() -> None:
    disk = MemoryDisk()
    formats.write_clean_shutdown(disk, 12)
    disk.crash(lambda count: count - 1)
    assert formats.read_clean_shutdown(disk) == formats.read_clean_shutdown(disk) == 12
    formats.remove_clean_shutdown(disk)
    disk.crash(lambda _count: 0)
    assert formats.read_clean_shutdown(disk) is None
    replace(disk, ".kafka_cleanshutdown", b"")  # of Kafka before 3.7
    assert formats.read_clean_shutdown(disk) == -1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1\n0\n", "unsupported version"),
        (b"0\n2\na 0 1\n", "expected 2 entries"),
        (b"0\n1\na 0\n", "invalid entry"),
        (b"\xff\n", "UTF-8"),
    ],
)
def test_corrupt_checkpoints(content: bytes, reason: str) -> None:
    disk = MemoryDisk()
    replace(disk, "x", content)
    with pytest.raises(CorruptFile, match=reason):
        formats.read_offset_checkpoint(disk, "x")


@pytest.mark.parametrize("content", [b"version=1\n", b"version=1\ncluster.id=a\nnode.id=b\n"])
def test_incomplete_meta_properties(content: bytes) -> None:
    disk = MemoryDisk()
    replace(disk, "meta.properties", content)
    with pytest.raises(CorruptFile, match="missing or invalid"):
        formats.read_meta_properties(disk)


@pytest.mark.parametrize("damage", [slice(0, 5), slice(0, 30), slice(1, None)])
def test_corrupt_snapshots(damage: slice) -> None:
    disk = MemoryDisk()
    formats.write_snapshot(disk, "a", [PRODUCER])
    replace(disk, "b", disk.read("a", 0, 99)[damage])
    with pytest.raises(CorruptFile):
        formats.read_snapshot(disk, "b")


def test_the_reader_of_log_directories_agrees(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path)
    formats.write_meta_properties(disk, MetaProperties("cluster", 1, ID))
    formats.write_snapshot(disk, f"{5:020}.snapshot", [PRODUCER])
    found = {}
    for path in sorted(tmp_path.iterdir()):
        file = recognise(path)
        assert file is not None
        rows = list(read(file))
        assert not any(isinstance(each, Finding) for each in rows)
        found[path.name] = rows
    assert found[f"{5:020}.snapshot"] == [PRODUCER]
    pairs = [each[1:] for each in found["meta.properties"] if isinstance(each, Property)]
    assert pairs[:2] == [("version", "1"), ("cluster.id", "cluster")]
