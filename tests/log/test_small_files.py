"""Tests producer snapshots and text files, valid and invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.log import LeaderEpoch, PartitionOffset, ProducerState, Property, Rule

from . import written
from .written import TIME, TOPIC_ID, both, findings, rows

SNAPSHOT = f"{150:020}.snapshot"


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rules(path: Path) -> list[tuple[Rule, int]]:
    return [(found.rule, found.position) for found in findings(path)]


def test_a_producer_snapshot(tmp_path: Path) -> None:
    assert rows(file(tmp_path, SNAPSHOT, written.snapshot())) == [
        ProducerState(0, 7, 1, 35, 146, 0, 0, 0, 0),
        ProducerState(1, 8, 0, 0, 0, 0, TIME, 0, -1),
    ]


def test_a_producer_snapshot_with_a_wrong_checksum(tmp_path: Path) -> None:
    path = file(tmp_path, SNAPSHOT, written.snapshot()[:-1] + b"\0")
    assert rules(path) == [(Rule.CRC, 2)]
    assert findings(path, verify=False) == []


def test_a_truncated_producer_snapshot(tmp_path: Path) -> None:
    whole = written.snapshot()
    for cut in range(len(whole)):
        made, found = both(file(tmp_path, SNAPSHOT, whole[:cut]))
        assert len(made) == max(cut - 10, 0) // 46
        assert [one.rule for one in found] == [Rule.ENTRY_SIZE if cut < 10 else Rule.COUNT]


def test_a_producer_snapshot_with_another_version_or_extra_bytes(tmp_path: Path) -> None:
    whole = written.snapshot()
    assert rules(file(tmp_path, SNAPSHOT, b"\0\2" + whole[2:])) == [(Rule.VERSION, 0)]
    assert rules(file(tmp_path, SNAPSHOT, whole + b"x")) == [(Rule.COUNT, 6)]


def test_an_offset_checkpoint(tmp_path: Path) -> None:
    path = file(tmp_path, "replication-offset-checkpoint", "0\n2\norders 3 42\n__x-y.z 0 -1\n")
    assert rows(path) == [PartitionOffset(3, "orders", 3, 42), PartitionOffset(4, "__x-y.z", 0, -1)]


def test_a_leader_epoch_checkpoint(tmp_path: Path) -> None:
    path = file(tmp_path, "leader-epoch-checkpoint", "0\n2\n0 0\n5 17\n")
    assert rows(path) == [LeaderEpoch(3, 0, 0), LeaderEpoch(4, 5, 17)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("0\n0\n", []),
        ("1\n0\n", [(Rule.VERSION, 1)]),
        ("0\n", [(Rule.COUNT, 1)]),
        ("0\n3\n0 0\n1 5\n", [(Rule.COUNT, 2)]),
        ("0\nx\n", [(Rule.LINE, 2), (Rule.COUNT, 2)]),
        ("0\n2\n0 0\nhello\n1 5\n", [(Rule.LINE, 4)]),
        ("0\n1\n0 99999999999999999999\n", [(Rule.LINE, 3), (Rule.COUNT, 2)]),
        ("0\n2\n5 10\n4 20\n", [(Rule.ENTRY_ORDER, 4)]),
        ("0\n2\n5 10\n6 9\n", [(Rule.ENTRY_ORDER, 4)]),
        ("0\n1\n0 " + "1" * 100_000, [(Rule.LINE, 3), (Rule.COUNT, 2)]),
    ],
)
def test_invalid_checkpoints(tmp_path: Path, text: str, expected: list[tuple[Rule, int]]) -> None:
    assert rules(file(tmp_path, "leader-epoch-checkpoint", text)) == expected


def test_a_line_of_invalid_utf8(tmp_path: Path) -> None:
    path = file(tmp_path, "leader-epoch-checkpoint", b"0\n1\n\xff\xfe\n0 7\n")
    assert rules(path) == [(Rule.LINE, 3)]
    assert both(path)[0] == [LeaderEpoch(4, 0, 7)]


def test_partition_metadata(tmp_path: Path) -> None:
    path = file(tmp_path, "partition.metadata", f"version: 0 \ntopic_id: {TOPIC_ID}")
    assert rows(path) == [Property(1, "version", "0"), Property(2, "topic_id", TOPIC_ID)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 1\ntopic_id: " + TOPIC_ID, [(Rule.VERSION, 1)]),
        ("version: 0\ntopic_id: orders", [(Rule.VERSION, 2)]),
        ("version: 0\n", [(Rule.MISSING, 1)]),
        ("version: 0\n???\ntopic_id: " + TOPIC_ID, [(Rule.LINE, 2)]),
    ],
)
def test_invalid_partition_metadata(
    tmp_path: Path, text: str, expected: list[tuple[Rule, int]]
) -> None:
    assert rules(file(tmp_path, "partition.metadata", text)) == expected


def test_java_properties(tmp_path: Path) -> None:
    text = (
        "#\n#Sat Nov 21 2026\n! also a remark\n\nversion=1\nnode.id = 1\nk\\:ey:v\\u00e9\\n\\=x\n"
    )
    assert rows(file(tmp_path, "meta.properties", text + "p=\\ud83d\\ude00 \\ud83d\n")) == [
        Property(5, "version", "1"),
        Property(6, "node.id", "1"),
        Property(7, "k:ey", "v\u00e9\n=x"),
        Property(8, "p", "\U0001f600 \ufffd"),
    ]
    assert rules(file(tmp_path, "meta.properties", "version=7\n")) == [(Rule.VERSION, 1)]
    assert rules(file(tmp_path, "meta.properties", "a=b\n")) == [(Rule.MISSING, 1)]


def test_a_quorum_state(tmp_path: Path) -> None:
    text = '{"leaderId":1,"leaderEpoch":4,"data_version":1}'
    assert rows(file(tmp_path, "quorum-state", text)) == [
        Property(1, "leaderId", "1"),
        Property(1, "leaderEpoch", "4"),
        Property(1, "data_version", "1"),
    ]
    assert rules(file(tmp_path, "quorum-state", "{")) == [(Rule.LINE, 1)]
    assert rules(file(tmp_path, "quorum-state", "[1]")) == [(Rule.LINE, 1)]
    assert rules(file(tmp_path, "quorum-state", "[" * 60_000)) == [(Rule.LINE, 1)]
    assert rules(file(tmp_path, "quorum-state", '{"data_version":9}')) == [(Rule.VERSION, 1)]
