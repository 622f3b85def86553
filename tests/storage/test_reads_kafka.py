"""Storage opens the data directory of a real Kafka broker, clean and as after a crash; and Kafka
starts on what storage has written there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.storage import FileDisk, LogConfig, LogManager, LogManagerConfig, TopicPartition
from kafkawire.storage.directory_logs import Recovered
from kafkawire.storage.formats import read_meta_properties
from tests.real import traffic
from tests.real.broker import Broker, running
from tests.real.java import Installation

from .logs import TIME, batch, content
from .managers import uuids

TOPIC = "client-none"
pytestmark = pytest.mark.xdist_group("segments")


@pytest.fixture(scope="module")
def broker(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A broker that has run, and has shut down in order."""
    with running(installation, tmp_path_factory.mktemp("kafka")) as broker:
        traffic.run(broker)
        broker.stop()
        yield broker


@pytest.fixture(scope="module")
def data(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of its directory."""
    return Path(shutil.copytree(broker.data, tmp_path_factory.mktemp("copy") / "data"))


def segments(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def manager(data: Path) -> LogManager:
    disk = FileDisk(data)
    meta = read_meta_properties(disk)
    assert meta is not None
    config = LogManagerConfig(meta.cluster_id, meta.node_id, LogConfig(retention_ms=-1))
    return LogManager({"a": disk}, config, uuids())


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_a_directory_of_kafka(clean: bool, data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    marker = tmp_path / "data" / ".kafka_cleanshutdown"
    assert marker.exists()
    if not clean:
        marker.unlink()
        for path in (tmp_path / "data").glob("*-checkpoint"):
            path.unlink()
    logs = manager(tmp_path / "data")
    found = logs.start(TIME)
    recovered = [each for each in found if isinstance(each, Recovered)]
    assert recovered == found, "nothing is damaged"
    assert {each.clean_shutdown for each in recovered} == {clean}
    assert {each.truncated_bytes for each in recovered} == {0}
    assert len(found) > 5
    for partition in logs.partitions:
        log = logs.log(partition)
        assert log is not None
        if log.log_start_offset == log.segments.first.base_offset:
            assert content(log) == segments(data / str(partition)), partition
        for snapshot in log.producers.producers.values():
            assert snapshot.last_record.last_data_offset < log.log_end_offset


def test_kafka_goes_on_with_it(data: Path, broker: Broker) -> None:
    """Kafka's directory, recovered by storage as after a crash, with records that storage added."""
    assert data.exists()
    (broker.data / ".kafka_cleanshutdown").unlink()
    logs = manager(broker.data)
    logs.start(TIME)
    log = logs.log(TopicPartition(TOPIC, 0))
    assert log is not None
    end = log.log_end_offset
    for value in (b"one", b"two"):
        offset = log.log_end_offset
        log.append(batch(offset, (b"key", value), epoch=log.epochs.latest), TIME)
    log.roll(TIME)
    log.append(batch(log.log_end_offset, (b"key", b"three"), epoch=log.epochs.latest), TIME)
    logs.shutdown(TIME)
    broker.start()
    said = broker.installation.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--partition", "0"),
        *("--offset", str(end), "--max-messages", "3", "--timeout-ms", "60000"),
    )
    assert said.split() == ["one", "two", "three"]
    broker.stop()
    complaints = ("orrupt", "Found invalid", "Non-monotonic", "truncating to offset")
    lines = broker.log.read_text().splitlines()
    assert [each for each in lines if any(word in each for word in complaints)] == []
