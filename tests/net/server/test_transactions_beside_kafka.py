"""The same requests about transactions to a real Apache Kafka and to a node: the same errors.

A step is what a client sees of it: the error, and epochs relative to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.list_transactions_request import ListTransactionsRequest
from kafkawire.messages.list_transactions_response import ListTransactionsResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig

from ...interop.implementations import until
from ...real.broker import Broker
from ...real.wire import Wire
from .transactional import Actor, prepared

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

E = ErrorCode


def version_1(actor: Actor) -> None:
    actor.init()
    actor.state()
    for commit in (True, False):
        actor.end(commit)
    actor.send(0)
    actor.send(0, version=11)
    actor.add(0, 7)
    actor.add(0, topic="missing")
    actor.add(0)
    actor.add(0)
    actor.send(0)
    actor.send(1)
    actor.state()
    actor.end(True)
    actor.state()
    for commit in (True, False):
        actor.end(commit)
    actor.send(0, 1)
    actor.add(1)
    actor.send(1)
    actor.end(False)
    for commit in (True, False):
        actor.end(commit)
    actor.state()


def identities(actor: Actor) -> None:
    actor.init()
    for more in ({"producer_id": 1 << 40}, {"producer_epoch": 5}, {"transactional_id": "unknown"}):
        for version in (1, 3):
            actor.add(0, version=version, **more)
            actor.end(True, version=version, **more)
        actor.verify(0, **more)
    actor.verify(0, version=4)
    actor.verify(0, version=5)
    actor.verify(0, only=False)
    actor.verify(0, 1)
    actor.end(False)
    actor.verify(0)


def fencing(actor: Actor) -> None:
    actor.init()
    actor.add(0)
    actor.send(0)
    old = Actor(actor.wire, actor.name)
    old.producer_id, old.epoch, old.trace = actor.producer_id, actor.epoch, actor.trace
    actor.init()
    old.send(0, 1)
    for version in (1, 3):
        old.add(0, version=version)
        old.end(True, version=version)
    old.add_group()
    old.commit_offset(1)
    actor.init(version=3, producer_id=old.producer_id, producer_epoch=old.epoch)
    actor.init(version=4, producer_id=old.producer_id, producer_epoch=old.epoch)
    mine = {"producer_id": actor.producer_id, "producer_epoch": actor.epoch}
    actor.init(**mine)
    actor.init(**mine)
    actor.init(producer_id=1 << 40, producer_epoch=0)
    actor.state()


def version_2(actor: Actor) -> None:
    actor.init()
    actor.end(True, version=5)
    actor.end(False, version=5)
    actor.state()
    actor.send(0, version=12)
    actor.state()
    before = actor.epoch
    actor.end(True, version=5)
    actor.send(0, 1, version=12, epoch=before)
    actor.end(True, version=5, producer_epoch=before)
    actor.end(False, version=5, producer_epoch=before)
    actor.end(True, version=5)
    actor.send(0, version=12)
    actor.end(True, version=5, producer_epoch=before)
    actor.end(False, version=5)
    actor.state()


def offsets(actor: Actor) -> None:
    actor.init()
    actor.commit_offset(1)
    actor.commit_offset(1, version=4)
    actor.add_group()
    actor.commit_offset(1, generation_id_or_member_epoch=1, member_id="m")
    actor.commit_offset(1)
    for stable in (True, False):
        actor.committed(stable)
    actor.end(True)
    actor.committed(True)
    actor.commit_offset(2, version=5)
    actor.committed(True)
    actor.commit_offset(2, member_id="m", generation_id_or_member_epoch=0)
    actor.end(False, version=5)
    actor.committed(True)
    actor.commit_offset(3, version=6, topic_id=actor.topic_id())
    actor.commit_offset(4, version=6, topic_id=bytes(range(16)))
    actor.commit_offset(4, version=6)
    actor.end(True, version=5)
    actor.committed(True)


def epochs(actor: Actor) -> None:
    """Commit with the epochs of a member, of which one is earlier than that of its group."""
    actor.init()
    topic_id = actor.topic_id()

    def commit(index: int, epoch: int, member_id: str = "a") -> None:
        for version in (5, 6):
            actor.commit_offset(
                1,
                version,
                topic_id,
                index,
                member_id=member_id,
                generation_id_or_member_epoch=epoch,
            )

    commit(0, 1)  # the group does not exist
    actor.heartbeat("a", 0)
    actor.heartbeat("a", 2, 0, 1)
    commit(0, 2)
    actor.heartbeat("b", 0)
    waiting = Actor(actor.wire, actor.name)
    kept: list[int] = []

    def is_assigned() -> bool:
        kept[:] = waiting.heartbeat("a", 2, 0, 1)
        return len(kept) == 1

    until(is_assigned)
    actor.heartbeat("a", 2, *kept)
    for index in (kept[0], 1 - kept[0]):
        for epoch in (-1, 1, 2, 3, 4):
            commit(index, epoch)
    commit(0, 3, "unknown")
    actor.end(True, version=5)


def first_batches(actor: Actor) -> None:
    """Send the second batch of a producer when the first was not verified."""
    for version, adds in ((9, True), (11, True), (12, False)):
        one = Actor(actor.wire, f"{actor.name} {version}")
        one.trace = actor.trace
        one.init()
        for partition in (0, 1):
            if adds:
                one.send(partition, 3, version)
                one.send(partition, 2, version)
                one.send(partition, 5, version)
                one.add(partition)
            for sequence in (3, 4, 2, 3, 4):
                one.send(partition, sequence, version)
        one.end(False, 3 if adds else 5)
        if adds:
            one.add(0)
        for sequence in (7, 5, 0):
            one.send(0, sequence, version)
        one.end(True, 3 if adds else 5)


def timed_out(actor: Actor) -> None:
    """End transactions that have timed out, as producers that do not know it yet."""
    producers = {}
    for version, adds in ((3, True), (5, False)):
        for commit in (True, False):
            one = Actor(actor.wire, f"{actor.name} {version} {commit}")
            one.trace = actor.trace
            one.init(timeout_ms=100)
            if adds:
                one.add(0)
            one.send(0, version=9 if adds else 12)
            producers[version, commit] = one
    for (version, commit), one in producers.items():
        until(lambda one=one: one.described().transaction_state == "CompleteAbort")  # type: ignore[misc]
        one.state()
        for _ in range(2):
            one.end(commit, version)
        one.send(0, 1, version=9 if version == 3 else 12)
        one.commit_offset(1, version=5)
        own = {"producer_id": one.producer_id, "producer_epoch": one.epoch}
        for _ in range(2):
            one.init(**own)
        one.init()
        one.init(**own)


def fenced_meanwhile(actor: Actor) -> None:
    """Begin anew after another producer has aborted the transaction, and has not begun yet."""
    actor.init()
    actor.send(0, version=12)
    own = {"producer_id": actor.producer_id, "producer_epoch": actor.epoch}
    request = InitProducerIdRequest(transactional_id=actor.name, transaction_timeout_ms=60_000)
    response = actor.wire.exchange(request, 5, InitProducerIdResponse)
    actor.step("InitProducerId", E(response.error_code))
    until(lambda: actor.described().transaction_state == "CompleteAbort")
    for _ in range(2):
        actor.init(**own)
    actor.init()
    actor.init(**own)


def mistakes(actor: Actor) -> None:
    actor.init(timeout_ms=0)
    actor.init(timeout_ms=1 << 30)
    actor.init(producer_id=5, producer_epoch=5)
    name, actor.name = actor.name, ""
    actor.init()
    actor.state()
    actor.add(0)
    actor.end(True)
    actor.name = f"{name} unknown"
    actor.state()
    actor.end(True)
    request = ListTransactionsRequest(state_filters=["Ongoing", "Unknown"])
    found = actor.wire.exchange(request, 1, ListTransactionsResponse)
    actor.step("ListTransactions", E(found.error_code), found.unknown_state_filters)


def patterns(actor: Actor) -> None:
    name = actor.name
    for suffix in ("", ".1", "-1"):
        actor.name = f"{name}{suffix}"
        actor.init()
    for pattern in (None, "", name, f"{name}.*", f"{name}[.]1|nothing", "beside p", "(", "(?=a)"):
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        found = actor.wire.exchange(request, 2, ListTransactionsResponse)
        ids = {each.transactional_id for each in found.transaction_states}
        ours = sorted(each for each in ids if each.startswith(name) and "probe" not in each)
        actor.step("ListTransactions", pattern, E(found.error_code), ours)


SCENARIOS: Final = (
    version_1,
    identities,
    fencing,
    version_2,
    offsets,
    epochs,
    first_batches,
    timed_out,
    fenced_meanwhile,
    mistakes,
    patterns,
)


def seen(port: int, scenario: Callable[[Actor], None]) -> list[Any]:
    """Return the trace of a scenario."""
    with Wire(port) as wire:
        prepared(wire, scenario.__name__)
        actor = Actor(wire, f"beside {scenario.__name__}")
        scenario(actor)
        return actor.trace


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_node_responds_as_kafka(kafka: Broker, scenario: Callable[[Actor], None]) -> None:
    with ClusterThread(ServerConfig()) as cluster:
        ours = seen(int(cluster.bootstrap.rpartition(":")[2]), scenario)
    assert ours == seen(kafka.port, scenario)
