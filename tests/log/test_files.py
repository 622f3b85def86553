"""Tests file names: kinds, internal logs, the active segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.log import FileKind, InternalLog, LogFile, recognise, walk

NUMBER = "00000000000000000042"


@pytest.mark.parametrize(
    ("path", "kind", "base_offset", "topic", "partition"),
    [
        (f"orders-3/{NUMBER}.log", FileKind.SEGMENT, 42, "orders", 3),
        (f"orders-3/{NUMBER}.log.deleted", FileKind.SEGMENT, 42, "orders", 3),
        (f"a-b-0.0f3c-delete/{NUMBER}.index", FileKind.OFFSET_INDEX, 42, "a-b", 0),
        (f"a-1.0123456789abcdef-future/{NUMBER}.timeindex", FileKind.TIME_INDEX, 42, "a", 1),
        (f"orders-3/{NUMBER}.txnindex", FileKind.TRANSACTION_INDEX, 42, "orders", 3),
        (f"orders-3/{NUMBER}.snapshot", FileKind.PRODUCER_SNAPSHOT, 42, "orders", 3),
        (f"orders-3/{NUMBER}.timeindex.swap", FileKind.TIME_INDEX, 42, "orders", 3),
        ("orders-3/leader-epoch-checkpoint", FileKind.LEADER_EPOCHS, None, "orders", 3),
        ("orders-3/partition.metadata", FileKind.PARTITION_METADATA, None, "orders", 3),
        ("data/replication-offset-checkpoint", FileKind.OFFSETS, None, None, None),
        ("data/recovery-point-offset-checkpoint", FileKind.OFFSETS, None, None, None),
        ("data/log-start-offset-checkpoint", FileKind.OFFSETS, None, None, None),
        ("data/meta.properties", FileKind.PROPERTIES, None, None, None),
        ("data/bootstrap.checkpoint", FileKind.METADATA_SNAPSHOT, None, None, None),
        (
            f"__cluster_metadata-0/{NUMBER}-0000000007.checkpoint",
            FileKind.METADATA_SNAPSHOT,
            42,
            "__cluster_metadata",
            0,
        ),
        ("__cluster_metadata-0/quorum-state", FileKind.QUORUM_STATE, None, "__cluster_metadata", 0),
        ("anywhere/copied.log", FileKind.SEGMENT, None, None, None),
    ],
)
def test_names(
    path: str, kind: FileKind, base_offset: int | None, topic: str | None, partition: int | None
) -> None:
    here = Path("/kafka", path)
    assert recognise(here) == LogFile(here, kind, base_offset, topic, partition)


@pytest.mark.parametrize("name", ["server.properties", "x.checkpoint", "notes.txt", "log", ".lock"])
def test_unknown_names(name: str) -> None:
    assert recognise(Path("/kafka/orders-3", name)) is None


@pytest.mark.parametrize(
    ("folder", "log"),
    [
        ("__consumer_offsets-12", InternalLog.OFFSETS),
        ("__transaction_state-3", InternalLog.TRANSACTIONS),
        ("__share_group_state-0", InternalLog.SHARE),
        ("__cluster_metadata-0", InternalLog.METADATA),
        ("__remote_log_metadata-7", InternalLog.REMOTE),
        ("orders-0", None),
        ("elsewhere", None),
    ],
)
def test_the_internal_log_of_a_segment(folder: str, log: InternalLog | None) -> None:
    file = recognise(Path("/kafka", folder, f"{NUMBER}.log"))
    assert file is not None
    assert file.log is log


def test_a_snapshot_of_the_metadata_log_needs_no_folder() -> None:
    file = recognise(Path("/copied/bootstrap.checkpoint"))
    assert file is not None
    assert file.log is InternalLog.METADATA


def test_the_last_segment_is_active(tmp_path: Path) -> None:
    for offset in (0, 42):
        (tmp_path / f"{offset:020}.log").touch()
    active = [file.is_active for file in map(recognise, sorted(tmp_path.iterdir())) if file]
    assert active == [False, True]


def test_the_segment_of_an_index() -> None:
    file = recognise(Path(f"/kafka/orders-3/{NUMBER}.timeindex.deleted"))
    assert file is not None
    assert file.segment == Path(f"/kafka/orders-3/{NUMBER}.log.deleted")


def test_walk_yields_all_files_below_a_directory(tmp_path: Path) -> None:
    for name in ("b-0/2.log", "b-0/1.log", "a-0/1.log", "meta.properties", ".lock"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = [str(path.relative_to(tmp_path)) for path in walk(tmp_path)]
    assert found == ["meta.properties", "a-0/1.log", "b-0/1.log", "b-0/2.log"]
