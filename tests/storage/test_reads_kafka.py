"""Storage opens the data directory of a real Kafka broker: clean, and as after a crash."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkawire.storage import FileDisk, LogConfig, LogManager, LogManagerConfig
from kafkawire.storage.formats import read_meta_properties
from tests.real import traffic
from tests.real.broker import running
from tests.real.java import Installation

from .logs import TIME, content
from .managers import uuids

pytestmark = pytest.mark.xdist_group("segments")


@pytest.fixture(scope="module")
def data(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has run, and has shut down in order."""
    with running(installation, tmp_path_factory.mktemp("kafka")) as broker:
        traffic.run(broker)
    return broker.data


def segments(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_a_directory_of_kafka(clean: bool, data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    marker = tmp_path / "data" / ".kafka_cleanshutdown"
    assert marker.exists()
    if not clean:
        marker.unlink()
        for path in (tmp_path / "data").glob("*-checkpoint"):
            path.unlink()
    disk = FileDisk(tmp_path / "data")
    meta = read_meta_properties(disk)
    assert meta is not None
    config = LogManagerConfig(meta.cluster_id, meta.node_id, LogConfig(retention_ms=-1))
    logs = LogManager({"a": disk}, config, uuids())
    found = logs.start(TIME)
    assert {each.clean_shutdown for each in found} == {clean}
    assert {each.truncated_bytes for each in found} == {0}
    assert len(found) > 5
    for partition in logs.partitions:
        log = logs.log(partition)
        assert log is not None
        if log.log_start_offset == log.segments.first.base_offset:
            assert content(log) == segments(data / str(partition)), partition
        for snapshot in log.producers.producers.values():
            assert snapshot.last_record.last_data_offset < log.log_end_offset
