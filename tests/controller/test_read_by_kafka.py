"""Kafka's own tool reads the records that the controller writes, in every metadata.version."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.configs.features import METADATA_VERSIONS
from kafkawire.controller import ControllerConfig
from kafkawire.log import InternalLog, encode_log_message
from kafkawire.records import BatchBuilder

from ..real.dump import dump
from ..real.java import Installation
from .harness import CLUSTER, Harness
from .test_operations import alter, create, fence, reassign

pytestmark = pytest.mark.timeout(300)
LEVELS = (7, 11, 17, 23, 30)


def history(level: int) -> Harness:
    """Make every kind of record that the controller writes."""
    harness = Harness(ControllerConfig(CLUSTER, bootstrap={"metadata.version": level}))
    harness.start(1, 2, 3)
    create(harness, [1, 2], [2, 3], retention_ms="5")
    alter(harness, 1)
    alter(harness, 1, 2)
    reassign(harness, [1, 3])
    alter(harness, 1, 2, 3)
    fence(harness, 1)
    harness.heartbeat(1)
    harness.heartbeat(2, want_shut_down=True)
    return harness


def test_kafka_reads_the_records(installation: Installation, tmp_path: Path) -> None:
    assert set(LEVELS) <= METADATA_VERSIONS.keys()
    written = []
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    offset = 0
    data = b""
    for level in LEVELS:
        records = history(level).log
        builder = BatchBuilder(base_offset=offset, partition_leader_epoch=1)
        for message, version in records:
            builder.append(None, encode_log_message(message, version), 1_700_000_000_000)
            written.append((type(message).__name__, version))
        offset += len(records)
        data += builder.build()
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    dumped = dump(installation, [path], InternalLog.METADATA)
    read = []
    for file in dumped.values():
        for batch in file.batches:
            for record in batch.records:
                content = record.content
                assert isinstance(content, list), content
                content = content[1]
                words = content["type"].split("_")
                read.append(("".join(word.capitalize() for word in words), content["version"]))
    assert read == written
    assert {version for name, version in written if name == "PartitionChangeRecord"} == {0, 1, 2}
