"""Runs the scenarios of the interoperability table."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Final

import confluent_kafka
import pytest

from kafkawire.client.consumer.group.requests import decode_assignment
from tests.conftest import ROOT
from tests.real.broker import MECHANISMS, PASSWORD, USER

from . import matrix
from .conftest import TargetCluster
from .implementations import (
    Consume,
    ControllableReader,
    Implementation,
    Member,
    Reader,
    Sasl,
    until,
)
from .implementations.ours import Ours

pytestmark = pytest.mark.timeout(600)
GROUPS = count()
HOUR_MS: Final = 3_600_000


def values(number: int, prefix: str = "v") -> list[bytes]:
    return [f"{prefix}{at}".encode() * 10 for at in range(number)]


def group_id() -> str:
    return f"interop-group-{next(GROUPS)}"


def fill(target: TargetCluster, topic: str, number: int, partitions: int = 1) -> None:
    """Write this many records to each partition."""
    for partition in range(partitions):
        Ours().produce(target.bootstrap, topic, values(number), partition=partition)


def read_records(reader: Reader, number: int) -> list[tuple[int, int]]:
    """Read this many records; returns their partitions and offsets."""
    found: list[tuple[int, int]] = []

    def enough() -> bool:
        found.extend((each.partition, each.offset) for each in reader.poll())
        return len(found) >= number

    until(enough)
    return found


def polled(reader: Reader, happens: Callable[[], bool]) -> None:
    """Poll without getting records, until a condition holds."""

    def so() -> bool:
        assert reader.poll() == []
        return happens()

    until(so)


def all_seen(members: list[Member], expected: list[bytes]) -> bool:
    return {each.value for member in members for each in list(member.seen)} >= set(expected)


def settled(target: TargetCluster, group: str, topic: str, partitions: int, members: int) -> bool:
    """Whether the members share a topic: each partition is assigned, every member has some."""
    found = target.group(group)
    if found is None or found.state != "Stable" or len(found.members) != members:
        return False
    held = [decode_assignment(each.assignment) for each in found.members]
    taken = Counter(where for each in held for where in each)
    return all(held) and dict(taken) == {(topic, at): 1 for at in range(partitions)}


def codecs(implementation: Implementation, target: TargetCluster) -> None:
    topic = target.topic(3)
    sent: list[bytes] = []
    offsets: list[tuple[int, int]] = []
    for codec in implementation.codecs:
        now = values(40, codec)
        offsets += implementation.produce(target.bootstrap, topic, now, codec=codec)
        sent += now
    member = implementation.member(target.bootstrap, topic, group_id())
    member.until(lambda: all_seen([member], sent))
    member.leave()
    found = {(each.partition, each.offset): each.value for each in member.seen}
    assert len(member.seen) == len(sent)
    assert sorted(each or b"" for each in found.values()) == sorted(sent)
    if offsets:
        assert [found[each] for each in offsets] == sent


def acks(implementation: Implementation, target: TargetCluster) -> None:
    topic = target.topic(1)
    sent: list[bytes] = []
    for level in ("0", "1", "all", "idempotent"):
        now = values(20, level)
        idempotent = level == "idempotent"
        delivered = implementation.produce(
            target.bootstrap, topic, now, acks="all" if idempotent else level, idempotent=idempotent
        )
        if delivered:
            unknown = level == "0"
            assert delivered == [(-1, -1) if unknown else (0, len(sent) + at) for at in range(20)]
        sent += now
    member = implementation.member(target.bootstrap, topic, group_id())
    member.until(lambda: all_seen([member], sent))
    member.leave()
    assert [each.value for each in member.seen] == sent


def members(implementation: Implementation, target: TargetCluster) -> None:
    for strategy in implementation.strategies:
        if strategy != "cooperative-sticky":  # tested by another scenario
            come_and_go(implementation, target, strategy)


def come_and_go(
    implementation: Implementation, target: TargetCluster, strategy: str
) -> list[Member]:
    topic, group = target.topic(6), group_id()
    group_members: list[Member] = []
    for number in range(1, 4):
        group_members.append(
            implementation.member(target.bootstrap, topic, group, strategy=strategy)
        )
        until(lambda n=number: settled(target, group, topic, 6, n), group_members)  # type: ignore[misc]
    Ours().produce(target.bootstrap, topic, values(60))
    until(lambda: all_seen(group_members, values(60)), group_members)
    leaver = group_members.pop(0)
    leaver.leave()
    until(lambda: settled(target, group, topic, 6, 2), group_members)
    Ours().produce(target.bootstrap, topic, values(60, "later"))
    until(lambda: all_seen(group_members, values(60, "later")), group_members)
    for member in group_members:
        member.leave()
    # records that were not committed before a rebalance may be read again; none may be lost
    assert all_seen([*group_members, leaver], values(60) + values(60, "later"))
    return [leaver, *group_members]


def cooperative(implementation: Implementation, target: TargetCluster) -> None:
    first, *_ = come_and_go(implementation, target, "cooperative-sticky")
    held: set[tuple[str, int]] = set()
    left: list[int] = []
    for kind, partitions in first.changes:
        if kind == "assigned":
            assert not partitions & held, "retained partitions are not assigned again"
            held |= partitions
        elif partitions:
            held -= partitions
            left.append(len(held))
    assert left[:2] == [3, 2], "of six, three move to the second member, then one to the third"


def static(implementation: Implementation, target: TargetCluster) -> None:
    topic, group = target.topic(2), group_id()
    group_members = [
        implementation.member(target.bootstrap, topic, group, instance=name)
        for name in ("one", "two")
    ]
    until(lambda: all(len(each.assigned) == 1 for each in group_members), group_members)
    until(lambda: settled(target, group, topic, 2, 2), group_members)
    previous, before = group_members[0].assigned, group_members[1].changes
    group_members[0].leave()
    again = implementation.member(target.bootstrap, topic, group, instance="one")
    Ours().produce(target.bootstrap, topic, values(40))
    group_members[0] = again
    until(lambda: all_seen(group_members, values(40)), group_members)
    assert again.assigned == previous
    assert group_members[1].changes == before, "the other member did not rebalance"
    for member in group_members:
        member.leave()


def automatic(implementation: Implementation, target: TargetCluster) -> None:
    topic, group = target.topic(2), group_id()

    def committed(number: int) -> bool:
        return target.committed(group) == {(topic, at): number for at in range(2)}

    fill(target, topic, 5, 2)
    reader = implementation.reader(Consume(target.bootstrap, topic, group, auto_commit_ms=100))
    assert sorted(read_records(reader, 10)) == [(at, n) for at in range(2) for n in range(5)]
    polled(reader, lambda: committed(5))
    reader.close()

    fill(target, topic, 5, 2)
    at_close = implementation.reader(
        Consume(target.bootstrap, topic, group, auto_commit_ms=HOUR_MS)
    )
    assert sorted(read_records(at_close, 10)) == [(at, n) for at in range(2) for n in range(5, 10)]
    assert committed(5) or ("automatic", implementation.name) in matrix.REMARKS
    at_close.close()
    assert committed(10)

    first = implementation.member(target.bootstrap, topic, group, auto_commit_ms=HOUR_MS)
    first.until(lambda: settled(target, group, topic, 2, 1))
    fill(target, topic, 5, 2)
    first.until(lambda: len(first.seen) == 10)
    second = implementation.member(target.bootstrap, topic, group, auto_commit_ms=HOUR_MS)
    until(lambda: settled(target, group, topic, 2, 2), [first, second])
    assert committed(15)
    for member in (first, second):
        member.leave()
    assert second.seen == []


def commits(implementation: Implementation, target: TargetCluster) -> None:
    topic, group = target.topic(1), group_id()
    fill(target, topic, 10)
    reader = implementation.reader(Consume(target.bootstrap, topic, group, auto_commit_ms=None))
    assert isinstance(reader, ControllableReader)
    assert read_records(reader, 10) == [(0, at) for at in range(10)]
    assert target.committed(group) == {}
    reader.commit(3)
    assert target.committed(group) == {(topic, 0): 3}
    polled(reader, reader.commit_async(5))
    assert target.committed(group) == {(topic, 0): 5}
    reader.commit()
    assert target.committed(group) == {(topic, 0): 10}
    reader.commit(7)
    reader.close()
    assert target.committed(group) == {(topic, 0): 7}, "close() commits nothing without auto-commit"
    again = implementation.reader(Consume(target.bootstrap, topic, group, auto_commit_ms=None))
    assert read_records(again, 3) == [(0, at) for at in range(7, 10)]
    again.close()


def resets(implementation: Implementation, target: TargetCluster) -> None:
    topic = target.topic(1)
    bootstrap = target.bootstrap
    yesterday = int(time.time() * 1000) - 24 * HOUR_MS
    Ours().produce(bootstrap, topic, values(10, "old"), timestamp=yesterday)
    Ours().produce(bootstrap, topic, values(10, "new"))
    expected = {
        "earliest": values(10, "old") + values(10, "new"),
        "by_duration:PT1H": values(10, "new"),
    }
    for policy in expected.keys() & set(implementation.resets):
        member = implementation.member(bootstrap, topic, group_id(), reset=policy)
        member.until(lambda m=member: all_seen([m], values(10, "new")))  # type: ignore[misc]
        member.leave()
        assert [each.value for each in member.seen] == expected[policy]
    if "none" in implementation.resets:
        lost = implementation.member(bootstrap, topic, group_id(), reset="none")
        until(lambda: lost.error is not None)
        assert re.search(NO_OFFSET.get(implementation.name, "NoOffset"), repr(lost.error))
    last = implementation.member(bootstrap, topic, group_id(), reset="latest")

    def reached() -> bool:
        Ours().produce(bootstrap, topic, [b"latest"])
        return bool(last.seen)

    last.until(reached)
    last.leave()
    assert {each.value for each in last.seen} == {b"latest"}


NO_OFFSET: Final = {"confluent-kafka": "_AUTO_OFFSET_RESET"}
"""The error of a consumer without a reset policy, where its name lacks `NoOffset`."""


def steering(implementation: Implementation, target: TargetCluster) -> None:
    topic = target.topic(2)
    reader = implementation.reader(
        Consume(target.bootstrap, topic, group_id(), auto_commit_ms=None)
    )
    assert isinstance(reader, ControllableReader)
    polled(reader, lambda: len(reader.assigned) == 2)
    reader.pause(1)
    fill(target, topic, 10, 2)
    assert read_records(reader, 10) == [(0, at) for at in range(10)]
    reader.seek(0, 7)
    assert read_records(reader, 3) == [(0, at) for at in range(7, 10)]
    reader.resume(1)
    assert read_records(reader, 10) == [(1, at) for at in range(10)]
    reader.close()


def refused(implementation: Implementation, target: TargetCluster) -> None:
    topic = target.secret_topic()
    for mechanism in MECHANISMS:
        right, wrong = Sasl(mechanism, USER, PASSWORD), Sasl(mechanism, USER, "mistaken")
        implementation.produce(target.sasl_bootstrap, topic, [mechanism.encode()], sasl=right)
        with pytest.raises(Exception, match=AUTHENTICATION_ERRORS[implementation.name]):
            implementation.produce(target.sasl_bootstrap, topic, [b"v"], sasl=wrong)
    settings = {"sasl": Sasl("PLAIN", USER, PASSWORD)}
    member = implementation.member(target.sasl_bootstrap, topic, group_id(), **settings)
    member.until(lambda: all_seen([member], [each.encode() for each in MECHANISMS]))
    member.leave()
    assert b"v" not in {each.value for each in member.seen}


AUTHENTICATION_ERRORS: Final = {
    "kafkawire": "authentication failed",
    "confluent-kafka": "_AUTHENTICATION",
    "kafka-python": "KafkaTimeoutError",
    "aiokafka": "(?i)authentication|unable to bootstrap",
    "kafkajs": "KafkaJSSASLAuthenticationError",
    "java": "SaslAuthenticationException",
    "java's tools": "SaslAuthenticationException|Authentication failed",
}
"""The error of a producer with the wrong password."""


def mixed(implementation: Implementation, target: TargetCluster) -> None:
    for strategy in Ours.strategies:
        if strategy in implementation.strategies:
            together(implementation, target, strategy)


def together(implementation: Implementation, target: TargetCluster, strategy: str) -> None:
    topic, group = target.topic(4), group_id()
    group_members: list[Member] = []
    for number, each in enumerate((Ours(), implementation, Ours()), 1):
        group_members.append(each.member(target.bootstrap, topic, group, strategy=strategy))
        until(lambda n=number: settled(target, group, topic, 4, n), group_members)  # type: ignore[misc]
    implementation.produce(target.bootstrap, topic, values(60))
    until(lambda: all_seen(group_members, values(60)), group_members)
    leaver = group_members.pop(0)
    leaver.leave()
    until(lambda: settled(target, group, topic, 4, 2), group_members)
    Ours().produce(target.bootstrap, topic, values(60, "later"))
    until(lambda: all_seen([leaver, *group_members], values(60, "later")), group_members)
    for member in group_members:
        member.leave()
    seen = [each for member in (leaver, *group_members) for each in member.seen]
    once = Counter(values(60) + values(60, "later"))
    assert Counter(each.value for each in seen) == once, (
        "all members commit before partitions are revoked"
    )
    ends = Counter((topic, each.partition) for each in seen)
    assert target.committed(group) == dict(ends)


RUNNERS: Final[dict[str, Callable[[Implementation, TargetCluster], None]]] = {
    "codecs": codecs,
    "acks": acks,
    "members": members,
    "static": static,
    "cooperative": cooperative,
    "automatic": automatic,
    "commits": commits,
    "resets": resets,
    "steering": steering,
    "refused": refused,
    matrix.MIXED: mixed,
}
ONE_BROKER: Final = pytest.mark.xdist_group("kafka")


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("scenario", "client", "cluster"),
    [
        pytest.param(*case, id=str(case), marks=ONE_BROKER if case.cluster == matrix.KAFKA else ())
        for case in matrix.cases()
    ],
)
def test_scenario(scenario: str, implementation: Implementation, target: TargetCluster) -> None:
    RUNNERS[scenario](implementation, target)


@pytest.mark.parametrize("cluster", [matrix.OURS, pytest.param(matrix.KAFKA, marks=ONE_BROKER)])
def test_librdkafka_asks_for_all_topics(target: TargetCluster) -> None:
    """Its request then has bytes after its last field."""
    topic = target.topic(3)
    producer = confluent_kafka.Producer({"bootstrap.servers": target.bootstrap, "log_level": 0})
    assert len(producer.list_topics(timeout=100).topics[topic].partitions) == 3


def test_every_scenario_is_run() -> None:
    assert RUNNERS.keys() == {*matrix.SCENARIOS, matrix.MIXED}
    known = {(each, client) for each in RUNNERS for client in matrix.CLIENTS}
    assert matrix.DIFFERENT.keys() | matrix.REMARKS.keys() <= known
    assert not matrix.DIFFERENT.keys() & matrix.REMARKS.keys()


@pytest.mark.parametrize("drawn", [matrix.drawn, matrix.drawn_mixed])
def test_the_docs_show_this_table(drawn: Callable[[], str]) -> None:
    assert drawn() in (ROOT / "docs" / "broker.md").read_text("utf-8")
