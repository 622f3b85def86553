"""What the replicas of a cluster in one process have alike is in memory once."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import pytest

from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.node.local_cluster import Killed, NodeStarted
from kafkawire.storage.disks.memory_file import SHARED_FROM
from tests.new_process import in_new_process

from ..broker.harness import Harness
from .clients import PRODUCE_VERSION, produce

LARGE = 1 << 19
LOG = "t-0/00000000000000000000.log"
FACTOR = 3


@pytest.fixture
def harness() -> Harness:
    return replicated(FACTOR)


def replicated(brokers: int) -> Harness:
    """Create a topic whose partition is on each broker."""
    harness = Harness(brokers)
    harness.create_topic("t", 1, brokers)
    harness.wait(lambda: harness.leader_of("t") > 0)
    return harness


def send(harness: Harness, *values: bytes) -> None:
    """Produce a batch, and wait until all replicas have it."""
    leader = harness.leader_of("t")
    client = harness.client(leader)
    client.send(produce("t", 0, *values), PRODUCE_VERSION)
    harness.wait(lambda: not client.is_waiting())
    response = client.response()
    assert isinstance(response, ProduceResponse)
    assert not response.responses[0].partition_responses[0].error_code
    end = harness.replica("t").log.log_end_offset
    replicas = [harness.replica("t", 0, node) for node in harness.alive]
    harness.wait(lambda: all(each.log.log_end_offset == end for each in replicas))
    harness.effects.clear()  # the reported request has its records


def stored(harness: Harness, node: int, position: int, size: int) -> bytes:
    """Read from the log of a node."""
    [disk] = harness.cluster.nodes[node].disks.values()
    return disk.read(LOG, position, size)


def sizes(harness: Harness) -> set[int]:
    """Return the sizes of the logs of all nodes."""
    return {
        disk.size(LOG)
        for node in harness.alive
        for disk in harness.cluster.nodes[node].disks.values()
    }


def measured(work: Callable[[], object]) -> tuple[int, int]:
    """Return how many bytes are allocated after some work, and at most meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def memory_of_a_batch(brokers: int) -> tuple[int, int]:
    """Return how many bytes a batch of LARGE takes, and at most meanwhile."""
    harness = replicated(brokers)
    send(harness, b"warm")
    value = bytes(LARGE)
    return measured(lambda: send(harness, value))


def test_a_batch_takes_memory_once_whatever_the_number_of_replicas() -> None:
    [(kept, most)] = in_new_process(memory_of_a_batch, [(FACTOR,)])
    assert kept < 1.2 * LARGE
    assert most < 6.5 * LARGE, "a follower copies a batch twice, and forgets both copies"


def test_followers_have_the_bytes_of_their_leader(harness: Harness) -> None:
    send(harness, b"warm")
    before = sizes(harness)
    send(harness, bytes(LARGE))
    [start], [end] = before, sizes(harness)
    assert end - start > LARGE
    first, *others = (stored(harness, node, start, end - start) for node in harness.alive)
    assert len(others) == FACTOR - 1
    assert all(each is first for each in others)


def test_a_follower_that_catches_up_shares_each_batch(harness: Harness) -> None:
    """It fetches several batches at a time."""
    follower = next(each for each in harness.alive if each != harness.leader_of("t"))
    harness.handle(Killed(follower))
    harness.wait(lambda: follower not in harness.alive)
    ends = [0]
    for number in range(4):
        send(harness, bytes([number]) * SHARED_FROM)
        ends += sizes(harness)
    harness.handle(NodeStarted(follower))
    harness.wait(lambda: follower in harness.alive)
    harness.wait(lambda: sizes(harness) == {ends[-1]})
    leader = harness.leader_of("t")
    for start, end in pairwise(ends):
        ours, theirs = (stored(harness, node, start, end - start) for node in (follower, leader))
        assert ours is theirs


def test_logs_that_differ_share_nothing(harness: Harness) -> None:
    """Other bytes with the same header, such as damaged ones, are another chunk."""
    send(harness, b"x" * SHARED_FROM)
    one, other = (harness.cluster.nodes[node].disks["disk-1"] for node in sorted(harness.alive)[:2])
    data = one.read(LOG, 0, one.size(LOG))
    one.append("copy", data[:-1] + b"y")
    other.append("copy", data)
    assert (one.read("copy", 0, 1 << 20), other.read("copy", 0, 1 << 20)) == (
        data[:-1] + b"y",
        data,
    )
    one.truncate(LOG, len(data) - 1)
    assert other.read(LOG, 0, 1 << 20) == data
