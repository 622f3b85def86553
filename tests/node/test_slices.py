"""Work for many partitions is divided: other events are handled in between."""

from __future__ import annotations

from dataclasses import replace
from threading import get_ident
from typing import Any

import pytest

from kafkawire.controller import ControllerConfig
from kafkawire.controller import state as controller_state
from kafkawire.metadata import loader, replay
from kafkawire.node import Node
from kafkawire.node.broker.broker_server import SLICE
from kafkawire.protocol import ErrorCode
from kafkawire.raft import Timeouts
from kafkawire.replication.replicas import Replicas
from kafkawire.storage import MemoryDisk

from .cluster import Cluster, combined

MANY = 200
DELETED_AFTER = 61.0
"""Seconds: `file.delete.delay.ms`, and a bit."""
MOST_FSYNCS = 300
"""Of one event, whatever the number of partitions: a slice opens or closes 16 logs."""


class Counted:
    """The fsyncs of each event that nodes of this thread handle, and the bytes of all.

    In another one there may be a cluster that other tests use.
    """

    def __init__(self) -> None:
        self.thread = get_ident()
        self.total = 0
        self.written = 0
        self.by_event: list[int] = []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    count = Counted()

    def counting(name: str) -> None:
        original = getattr(MemoryDisk, name)

        def fsync(self: MemoryDisk, path: str) -> None:
            count.total += get_ident() == count.thread
            original(self, path)

        monkeypatch.setattr(MemoryDisk, name, fsync)

    append = MemoryDisk.append

    def counted_append(self: MemoryDisk, path: str, data: bytes) -> None:
        if get_ident() == count.thread:
            count.written += len(data)
        append(self, path, data)

    monkeypatch.setattr(MemoryDisk, "append", counted_append)
    counting("fsync")
    counting("fsync_directory")
    run = Node._run

    def counted_run(self: Node, work: Any, now: float) -> Any:
        before = count.total
        try:
            return run(self, work, now)
        finally:
            if get_ident() == count.thread:
                count.by_event.append(count.total - before)

    monkeypatch.setattr(Node, "_run", counted_run)
    return count


def hosts_all(cluster: Cluster, name: str, count: int) -> bool:
    """Whether the broker leads all partitions of a topic."""
    return all(cluster._leader(name, index) == 1 for index in range(count))


def test_creating_many_partitions_leaves_room_for_other_events(counted: Counted) -> None:
    cluster = Cluster(combined(1))
    cluster.create("many", MANY, 1)
    cluster.wait(lambda: hosts_all(cluster, "many", MANY))
    assert max(counted.by_event) < MOST_FSYNCS


@pytest.mark.parametrize("topics", [1, MANY])
def test_deleting_many_partitions_leaves_room_for_other_events(
    topics: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event stops all replicas, renames all logs or deletes all of their files."""
    counts = dict.fromkeys(("remove", "rename", "delete"), 0)
    most = dict(counts)
    total = dict(counts)
    here = get_ident()

    def count(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def counted(self: Any, *arguments: Any) -> Any:
            counts[name] += get_ident() == here
            return original(self, *arguments)

        monkeypatch.setattr(owner, name, counted)

    cluster = Cluster(combined(1))
    for topic in range(topics):
        cluster.create(f"t{topic}", MANY // topics, 1)
    cluster.wait(lambda: len(cluster.broker(1).replicas.partitions) == MANY)
    run = Node._run

    def counted_run(self: Node, work: Any, now: float) -> Any:
        if get_ident() != here:  # see `Counted`
            return run(self, work, now)
        counts.update(dict.fromkeys(counts, 0))
        try:
            return run(self, work, now)
        finally:
            for name, number in counts.items():
                most[name] = max(most[name], number)
                total[name] += number

    count(Replicas, "remove")
    count(MemoryDisk, "rename")
    count(MemoryDisk, "delete")
    monkeypatch.setattr(Node, "_run", counted_run)
    cluster.delete(*(f"t{topic}" for topic in range(topics)))
    cluster.wait(lambda: not cluster.broker(1).logs.partitions)
    cluster.run(cluster.now + DELETED_AFTER)
    assert total["remove"] == MANY
    assert total["rename"] >= MANY
    assert total["delete"] >= MANY
    assert not [each for each in cluster.processes[1].disk.list("") if each.startswith("t")]
    assert most["remove"] <= SLICE
    assert most["rename"] < MANY / 2, "logs, checkpoints and segments"
    assert most["delete"] < MANY / 2


def test_no_event_applies_all_records_of_a_large_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller decides on a slice, and it and the broker apply one that is committed."""
    count = 0
    most = 0

    def counted(*arguments: Any) -> None:
        nonlocal count
        count += 1
        replay(*arguments)

    run = Node._run

    def counted_run(self: Node, work: Any, now: float) -> Any:
        nonlocal count, most
        count = 0
        try:
            return run(self, work, now)
        finally:
            most = max(most, count)

    for module in (loader, controller_state):
        monkeypatch.setattr(module, "replay", counted)
    monkeypatch.setattr(Node, "_run", counted_run)
    at_once = Timeouts(append_linger=0.0)
    cluster = Cluster([replace(each, quorum=at_once) for each in combined(1)])
    slice = ControllerConfig("").slice
    cluster.create("many", 5 * slice, 1)
    assert slice <= most <= 3 * slice


def test_a_shutdown_closes_logs_in_slices_and_is_clean(counted: Counted) -> None:
    cluster = Cluster(combined(1))
    cluster.create("many", MANY, 1)
    cluster.wait(lambda: hosts_all(cluster, "many", MANY))
    assert cluster.produce("many", b"kept", index=MANY - 1).error_code == ErrorCode.NONE
    counted.by_event.clear()
    cluster.shut_down(1)
    assert max(counted.by_event) < MOST_FSYNCS
    cluster.start(1)
    cluster.unfenced(1)
    cluster.wait(lambda: hosts_all(cluster, "many", MANY))
    assert cluster.read("many", MANY - 1) == [b"kept"]
    assert cluster.broker(1).logs.clean_shutdown_epoch >= 0


def test_work_of_creating_and_deleting_is_linear(counted: Counted) -> None:
    written = []
    for partitions in (20, MANY):
        cluster = Cluster(combined(1))
        before = counted.written
        cluster.create("many", partitions, 1)
        cluster.wait(lambda: hosts_all(cluster, "many", partitions))  # noqa: B023
        cluster.delete("many")
        cluster.wait(lambda: not cluster.broker(1).logs.partitions)  # noqa: B023
        written.append(counted.written - before)
    assert written[1] < 1.5 * MANY / 20 * written[0]
