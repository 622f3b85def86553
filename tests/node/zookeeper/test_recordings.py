"""What our brokers send each other, compared with recordings of Apache Kafka 2.2, 2.4 and 2.7.

The same changes make the same requests for each broker, in that order, with equal fields, but
for ids that ZooKeeper gives: broker epochs are compared by their order, the second controller is
whichever broker won.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import pytest

from kafkawire import Message
from kafkawire.capture import decode_capture
from kafkawire.messages.controlled_shutdown_request import ControlledShutdownRequest
from kafkawire.messages.leader_and_isr_request import LeaderAndIsrRequest
from kafkawire.messages.stop_replica_request import StopReplicaRequest
from kafkawire.messages.update_metadata_request import UpdateMetadataRequest

from ...conftest import ROOT
from . import links as link
from .links import Links

RECORDINGS: Final = {
    release: ROOT / "fixtures" / "zookeeper" / f"kafka-{version}.pcap.gz"
    for release, version in (
        *(("2.2", "2.2.2"), ("2.3", "2.3.1"), ("2.4", "2.4.1")),
        *(("2.5", "2.5.1"), ("2.6", "2.6.3"), ("2.7", "2.7.2")),
    )
}
STOPPED: Final = {(1, 0), (2, 0), (2, 1)}
"""The lives of brokers that end in the recordings: broker, number of the life."""


class Request(NamedTuple):
    """A request between brokers, without what only one cluster has."""

    api: str
    version: int
    controller_epoch: int
    brokers: tuple[int, ...]
    """Live brokers of UpdateMetadata, live leaders of LeaderAndIsr."""
    partitions: tuple[Any, ...]


def normalised(body: Message, version: int) -> Request:
    """Return a request in the form that is compared, hashable, whatever the order of its parts."""
    partitions: list[Any] = []
    brokers: list[int] = []
    match body:
        case LeaderAndIsrRequest():
            brokers = [each.broker_id for each in body.live_leaders]
            partitions = [
                (
                    *(topic.topic_name, each.partition_index, each.controller_epoch, each.leader),
                    *(each.leader_epoch, tuple(sorted(each.isr)), each.partition_epoch),
                    *(tuple(each.replicas), tuple(each.adding_replicas), each.is_new),
                )
                for topic in body.topic_states
                for each in topic.partition_states
            ]
        case UpdateMetadataRequest():
            brokers = [each.id for each in body.live_brokers]
            assert all(each.rack == f"r{each.id}" for each in body.live_brokers)
            assert {e.listener for each in body.live_brokers for e in each.endpoints} == {
                "PLAINTEXT"
            }
            partitions = [
                (
                    *(topic.topic_name, each.partition_index, each.controller_epoch, each.leader),
                    *(each.leader_epoch, tuple(sorted(each.isr)), each.zk_version),
                    *(tuple(each.replicas), tuple(each.offline_replicas)),
                )
                for topic in body.topic_states
                for each in topic.partition_states
            ]
        case StopReplicaRequest():
            delete = body.delete_partitions
            partitions = [
                (topic.name, index, delete)
                for topic in body.topics
                for index in topic.partition_indexes
            ] + [
                (topic.topic_name, each.partition_index, each.leader_epoch, each.delete_partition)
                for topic in body.topic_states
                for each in topic.partition_states
            ]
    epoch = getattr(body, "controller_epoch", 0)
    api = type(body).__name__.removesuffix("Request")
    return Request(api, version, epoch, tuple(sorted(brokers)), tuple(sorted(partitions)))


class Sent(NamedTuple):
    """A request as it was sent: by which broker, to which."""

    source: str
    target: int
    broker_epoch: int
    request: Request


def recorded(release: str) -> list[Sent]:
    """Read the requests of a recording, in order."""
    found = []
    for located in decode_capture(RECORDINGS[release]):
        row = located.row
        if row.direction == "request":
            assert row.message is not None
            assert located.broker is not None
            assert row.api_version is not None
            target = int(located.broker.rpartition(":")[2]) % 10  # the ports end in broker ids
            found.append(sent(row.client_id, target, row.message, row.api_version))
    return found


def sent(client_id: str | None, target: int, body: Message, version: int) -> Sent:
    assert client_id is not None
    epoch: int = getattr(body, "broker_epoch")  # noqa: B009 - each of the four has it
    if not isinstance(body, ControlledShutdownRequest):
        assert getattr(body, "controller_id") == int(client_id)  # noqa: B009
    return Sent(client_id, target, epoch, normalised(body, version))


def ours(release: str, assignments: dict[str, list[list[int]]]) -> list[Sent]:
    """Make the changes of the recordings in a cluster of ours; return its requests, in order."""
    links = Links(release)
    orders = assignments["orders"]
    links.create("orders", orders[:2])
    links.extend("orders", orders[2:])
    links.create("kept", assignments["kept"])
    links.delete("orders")
    links.shut_down(2)
    links.start(2)
    links.stop(2)
    links.start(2)
    links.shut_down(1)
    return [
        sent(each.client_id, each.node_id, each.body, each.version)
        for each in sorted(links.take(), key=order)
    ]


def order(each: link.Sent) -> tuple[int, int]:
    """By controller, then by its correlation ids: those of each broker begin at 0."""
    return getattr(each.body, "controller_epoch", 0), each.correlation_id


def assignments_of(requests: Iterable[Sent]) -> dict[str, list[list[int]]]:
    """Return the replicas of each partition, of the requests that create it."""
    found: dict[str, dict[int, list[int]]] = {}
    for each in requests:
        if each.request.api == "LeaderAndIsr":
            for name, index, *_, replicas, _adding, _new in each.request.partitions:
                found.setdefault(name, {})[index] = list(replicas)
    return {name: [by[index] for index in sorted(by)] for name, by in found.items()}


def lives(requests: Iterable[Sent]) -> dict[tuple[int, int], list[Request]]:
    """Broker and number of its life -> the requests that it got after all had started, in order.

    Runs whose order is that of a hash table in Kafka, or of leaders, are sorted.
    """
    by_epoch: dict[tuple[int, int], list[Request]] = {}
    for each in requests:
        if each.request.api == "ControlledShutdown":
            continue
        by_epoch.setdefault((each.target, each.broker_epoch), []).append(each.request)
    found = {}
    for target in {target for target, _ in by_epoch}:
        epochs = sorted(epoch for node, epoch in by_epoch if node == target)
        for life, epoch in enumerate(epochs):
            found[target, life] = list(in_order(by_epoch[target, epoch], first=life == 0))
    return found


def in_order(requests: list[Request], first: bool) -> Iterator[Request]:
    start = next((at for at, each in enumerate(requests) if each.partitions), 0) if first else 0
    for _, run in groupby(requests[start:], key=kind):
        yield from sorted(run)


def kind(request: Request) -> tuple[str, bool, object]:
    """What a run of requests has in common whose order is not compared."""
    is_stop = request.api == "StopReplica" and request.partitions
    return request.api, bool(request.partitions), request.partitions[0][-1] if is_stop else None


def isr_changes(requests: Iterable[Request]) -> list[Request]:
    """Find the requests with ISRs that leaders have written: no LeaderAndIsr has their version."""
    chosen = [each for each in requests if each.partitions]
    known = {
        (name, index, version)
        for each in chosen
        if each.api == "LeaderAndIsr"
        for name, index, _, _, _, _, version, *_ in each.partitions
    }
    return [
        each
        for each in chosen
        if each.api == "UpdateMetadata"
        and all((state[0], state[1], state[6]) not in known for state in each.partitions)
        and any(state[6] for state in each.partitions)
    ]


@pytest.mark.parametrize("release", RECORDINGS)
def test_each_broker_gets_the_requests_of_kafka(release: str) -> None:
    theirs = recorded(release)
    made = ours(release, assignments_of(theirs))
    expected, found = lives(theirs), lives(made)
    assert found.keys() == expected.keys() == {(1, 0), (2, 0), (2, 1), (2, 2), (3, 0)}
    for life in expected:
        requests, mine = (without_isr_changes(side, life) for side in (expected, found))
        if life in STOPPED:  # it does not get all that was queued for it, and how much is chance
            requests = requests[: len(mine)]
            mine = mine[: len(requests)]
        assert mine == requests, life
        assert len(mine) >= 3


def without_isr_changes(
    requests: dict[tuple[int, int], list[Request]], life: tuple[int, int]
) -> list[Request]:
    """Leave out what Kafka before 2.7 sends seconds later, and the end that chance cuts off.

    A controller that finds such changes when it is elected repeats a part of what it has sent.
    """
    later = isr_changes(each for group in requests.values() for each in group)
    kept = [each for each in requests[life] if each not in later]
    updates = [set(each.partitions) for each in kept if each.api == "UpdateMetadata"]
    kept = [
        each
        for each in kept
        if each.api != "UpdateMetadata"
        or not each.partitions
        or not any(set(each.partitions) < whole for whole in updates)
    ]
    while life in STOPPED and kept[-1].api == "StopReplica":
        kept.pop()
    return kept


def test_brokers_get_isrs_that_grew_as_in_kafka() -> None:
    theirs = recorded("2.7")
    made = ours("2.7", assignments_of(theirs))
    expected, found = lives(theirs), lives(made)
    every = [
        isr_changes(each for group in side.values() for each in group) for side in (expected, found)
    ]
    assert sorted(every[0]) == sorted(every[1])
    assert len(every[0]) == 12  # two leaders, three brokers, twice


@pytest.mark.parametrize("release", RECORDINGS)
def test_a_broker_that_stops_sends_what_kafka_sends(release: str) -> None:
    theirs = [each for each in recorded(release) if each.request.api == "ControlledShutdown"]
    made = ours(release, assignments_of(recorded(release)))
    mine = [each for each in made if each.request.api == "ControlledShutdown"]
    assert [each[:2] for each in mine] == [each[:2] for each in theirs] == [("2", 1), ("1", 1)]
    assert [each.request for each in mine] == [each.request for each in theirs]


@pytest.mark.parametrize("release", RECORDINGS)
def test_the_epochs_of_brokers_rise_with_each_life(release: str) -> None:
    theirs = recorded(release)
    for requests in (theirs, ours(release, assignments_of(theirs))):
        epochs = {each.target: [] for each in requests}  # type: dict[int, list[int]]
        for each in requests:
            if each.request.api != "ControlledShutdown":
                epochs[each.target].append(each.broker_epoch)
        assert min(epochs[1]) < min(epochs[2]) < min(epochs[3])
        assert len(set(epochs[2])) == 3
        assert len(set(epochs[1])) == len(set(epochs[3])) == 1
