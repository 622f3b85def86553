"""Damaged data directories of nodes: one partition, or a clear refusal to start."""

from __future__ import annotations

import random

import pytest

from kafkawire.errors import KafkaWireError
from kafkawire.node import Node
from kafkawire.node.quorum.metadata_log import FOLDER, QUORUM_STATE
from kafkawire.protocol import ErrorCode
from kafkawire.storage import CorruptFile, MemoryDisk, names
from tests.fuzzing import replayable, seeds
from tests.storage.damaged import damage, files, flip, read, write

from .clients import FETCH_VERSION, fetch, fetched
from .cluster import Cluster, combined

E = ErrorCode
TOPICS = ("one", "two")
VALUES = [b"%d" % n + bytes(600) for n in range(20)]
"""So many bytes that the index has entries, and not all is read at start."""


def filled() -> Cluster:
    """Run a node with records in two topics."""
    cluster = Cluster(combined(1))
    for topic in TOPICS:
        cluster.create(topic, 1, 1)
        for value in VALUES:
            assert cluster.produce(topic, value).error_code == E.NONE
    return cluster


def disk_of(cluster: Cluster) -> MemoryDisk:
    return cluster.processes[1].disk


def error_of(cluster: Cluster, topic: str, offset: int = 0) -> int:
    """Return the error of a fetch."""
    key = cluster.key(topic)
    assert key is not None
    body = cluster.exchange(1, FETCH_VERSION, fetch(key.topic_id, 0, offset))
    error: int = fetched(body).error_code
    return error


def log_of(topic: str) -> str:
    return f"{topic}-0/{0:020}{names.LOG}"


def batches(data: bytes) -> list[int]:
    """List where batches begin."""
    starts, position = [], 0
    while position < len(data):
        starts.append(position)
        position += int.from_bytes(data[position + 8 : position + 12], "big") + 12
    return starts


def start(cluster: Cluster) -> Node:
    """Start a node as `Network.start`, but raise what keeps it from it."""
    process = cluster.processes[1]
    rng = random.Random(1)
    return Node(process.config, process.disks, rng, lambda: rng.randbytes(16), cluster.now)


def set_aside(disk: MemoryDisk, topic: str) -> bool:
    """Whether the log of a topic is kept under another name."""
    folders = [name for name in disk.list("") if name.endswith(names.STRAY_DIRECTORY)]
    return [name.partition("-")[0] for name in folders] == [topic]


def refused(cluster: Cluster) -> str | None:
    """Return why a node does not start; None if it does."""
    try:
        start(cluster)
    except (KafkaWireError, OSError) as error:
        return str(error)
    return None


def test_a_flipped_length_is_the_damage_of_one_partition() -> None:
    cluster = filled()
    cluster.shut_down(1)
    disk = disk_of(cluster)
    position = batches(read(disk, log_of("one")))[3]
    flip(disk, log_of("one"), position + 9)
    for restart in range(2):
        cluster.start(1)
        cluster.unfenced(1)
        cluster.wait(lambda: cluster._leader("two", 0) == 1)
        assert error_of(cluster, "one", 3) == E.KAFKA_STORAGE_ERROR
        assert error_of(cluster, "one", 3) == E.KAFKA_STORAGE_ERROR
        assert cluster.read("two") == VALUES + [b"more"] * restart
        assert cluster.produce("two", b"more").error_code == E.NONE
        [damaged] = cluster.broker(1)._reported
        assert f"data/{log_of('one')}" in damaged.reason
        assert f"byte {position}" in damaged.reason
        cluster.shut_down(1)


def test_a_hole_is_the_damage_of_one_partition() -> None:
    cluster = filled()
    cluster.shut_down(1)
    disk_of(cluster).delete(log_of("one"))
    cluster.start(1)
    cluster.unfenced(1)
    assert error_of(cluster, "one") == E.KAFKA_STORAGE_ERROR
    assert cluster.read("two") == VALUES


@pytest.mark.parametrize("missing", [False, True])
def test_a_damaged_metadata_log_is_refused_after_a_clean_stop(missing: bool) -> None:
    cluster = filled()
    cluster.shut_down(1)
    disk = disk_of(cluster)
    path = f"{FOLDER}/{0:020}{names.LOG}"
    starts = batches(read(disk, path))
    if missing:
        write(disk, path, read(disk, path)[: starts[-1]])
    else:
        flip(disk, path, starts[2] + 70)
    before = read(disk, path)
    with pytest.raises(CorruptFile) as raised:
        start(cluster)
    assert str(raised.value).startswith(f"data/{FOLDER}/")
    assert ("missing" if missing else f"damaged at byte {starts[2]}") in str(raised.value)
    assert read(disk, path) == before
    assert {f"{topic}-0" for topic in TOPICS} <= set(disk.list(""))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"data_version":7}'])
def test_a_damaged_quorum_state_is_named(content: bytes) -> None:
    cluster = filled()
    cluster.shut_down(1)
    write(disk_of(cluster), QUORUM_STATE, content)
    with pytest.raises(CorruptFile, match=r"^data/__cluster_metadata-0/quorum-state: "):
        start(cluster)


def test_logs_without_metadata_are_kept() -> None:
    cluster = filled()
    cluster.shut_down(1)
    disk = disk_of(cluster)
    records = read(disk, log_of("one"))
    disk.make_directory("lost-0")
    disk.append(log_of("lost"), records)
    cluster.start(1)
    cluster.unfenced(1)
    [folder] = [name for name in disk.list("") if name.endswith(names.STRAY_DIRECTORY)]
    assert folder.startswith("lost-0.")
    cluster.run(cluster.now + 600, lambda: False)
    assert read(disk, f"{folder}/{0:020}{names.LOG}") == records


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(30))
def test_any_damaged_file(seed: int) -> None:
    """A clear error, recovery, or one partition offline; nothing acknowledged is lost silently."""
    rng = random.Random(seed)
    with replayable(seed):
        cluster = filled()
        cluster.shut_down(1)
        disk = disk_of(cluster)
        done = damage(disk, rng.choice(files(disk)), rng)
        refusal = refused(cluster)
        if refusal is not None:
            of_metadata = done.path.startswith(FOLDER) and FOLDER in refusal
            assert of_metadata or done.path.partition(".")[0] in refusal, (done, refusal)
            return
        cluster.start(1)
        cluster.unfenced(1)
        for topic in TOPICS:
            assert cluster.newest().topic(topic) is not None, (done, "a topic is gone")
            if done.path == f"{topic}-0/{names.PARTITION_METADATA}" and set_aside(disk, topic):
                continue  # the log says that it is of another topic
            if done.path.startswith(f"{topic}-0/") and error_of(cluster, topic):
                assert cluster.broker(1)._reported or cluster.broker(1).logs.damaged, done
                continue
            assert cluster.read(topic) == VALUES, done
        assert cluster.processes[1].failure is None
