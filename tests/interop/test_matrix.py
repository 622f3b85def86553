"""The scenarios of the table, each played by whom it names at whose broker it names."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Final

import confluent_kafka
import pytest

from kafkawire.client.consumer.group.requests import assigned
from tests.conftest import ROOT
from tests.real.broker import MECHANISMS, PASSWORD, USER

from . import matrix
from .conftest import Place
from .makes import Make, Member, Part, Reader, Sasl, Steered, until
from .makes.ours import Ours

pytestmark = pytest.mark.timeout(600)
GROUPS = count()
HOUR_MS: Final = 3_600_000


def values(number: int, prefix: str = "v") -> list[bytes]:
    return [f"{prefix}{at}".encode() * 10 for at in range(number)]


def group_id() -> str:
    return f"interop-group-{next(GROUPS)}"


def fill(place: Place, topic: str, number: int, partitions: int = 1) -> None:
    """Write so many records to each partition."""
    for partition in range(partitions):
        Ours().produce(place.bootstrap, topic, values(number), partition=partition)


def take(reader: Reader, number: int) -> list[tuple[int, int]]:
    """Read so many records; gives where they are: partition, offset."""
    found: list[tuple[int, int]] = []

    def enough() -> bool:
        found.extend((each.partition, each.offset) for each in reader.poll())
        return len(found) >= number

    until(enough)
    return found


def polled(reader: Reader, happens: Callable[[], bool]) -> None:
    """Poll, and see nothing, until something is so."""

    def so() -> bool:
        assert reader.poll() == []
        return happens()

    until(so)


def all_seen(members: list[Member], expected: list[bytes]) -> bool:
    return {each.value for member in members for each in list(member.seen)} >= set(expected)


def settled(place: Place, group: str, topic: str, partitions: int, members: int) -> bool:
    """Whether so many members share a topic: each partition is somebody's, everybody has some."""
    found = place.group(group)
    if found is None or found.state != "Stable" or len(found.members) != members:
        return False
    held = [assigned(each.assignment) for each in found.members]
    taken = Counter(where for each in held for where in each)
    return all(held) and dict(taken) == {(topic, at): 1 for at in range(partitions)}


def codecs(make: Make, place: Place) -> None:
    topic = place.topic(3)
    sent: list[bytes] = []
    places: list[tuple[int, int]] = []
    for codec in make.codecs:
        now = values(40, codec)
        places += make.produce(place.bootstrap, topic, now, codec=codec)
        sent += now
    member = make.member(place.bootstrap, topic, group_id())
    member.until(lambda: all_seen([member], sent))
    member.leave()
    found = {(each.partition, each.offset): each.value for each in member.seen}
    assert len(member.seen) == len(sent)
    assert sorted(each or b"" for each in found.values()) == sorted(sent)
    if places:
        assert [found[each] for each in places] == sent


def acks(make: Make, place: Place) -> None:
    topic = place.topic(1)
    sent: list[bytes] = []
    for said in ("0", "1", "all", "idempotent"):
        now = values(20, said)
        idempotent = said == "idempotent"
        went = make.produce(
            place.bootstrap, topic, now, acks="all" if idempotent else said, idempotent=idempotent
        )
        if went:
            unknown = said == "0"
            assert went == [(-1, -1) if unknown else (0, len(sent) + at) for at in range(20)]
        sent += now
    member = make.member(place.bootstrap, topic, group_id())
    member.until(lambda: all_seen([member], sent))
    member.leave()
    assert [each.value for each in member.seen] == sent


def members(make: Make, place: Place) -> None:
    for strategy in make.strategies:
        if strategy != "cooperative-sticky":  # it has a scenario of its own
            come_and_go(make, place, strategy)


def come_and_go(make: Make, place: Place, strategy: str) -> list[Member]:
    topic, group = place.topic(6), group_id()
    there: list[Member] = []
    for number in range(1, 4):
        there.append(make.member(place.bootstrap, topic, group, strategy=strategy))
        until(lambda n=number: settled(place, group, topic, 6, n), there)  # type: ignore[misc]
    Ours().produce(place.bootstrap, topic, values(60))
    until(lambda: all_seen(there, values(60)), there)
    gone = there.pop(0)
    gone.leave()
    until(lambda: settled(place, group, topic, 6, 2), there)
    Ours().produce(place.bootstrap, topic, values(60, "later"))
    until(lambda: all_seen(there, values(60, "later")), there)
    for member in there:
        member.leave()
    # what was read and not committed before a rebalance may come again; nothing may be lost
    assert all_seen([*there, gone], values(60) + values(60, "later"))
    return [gone, *there]


def cooperative(make: Make, place: Place) -> None:
    first, *_ = come_and_go(make, place, "cooperative-sticky")
    held: set[tuple[str, int]] = set()
    left: list[int] = []
    for kind, partitions in first.changes:
        if kind == "assigned":
            assert not partitions & held, "what it keeps is not given to it again"
            held |= partitions
        elif partitions:
            held -= partitions
            left.append(len(held))
    assert left[:2] == [3, 2], "of six, three are for the second member, then one for the third"


def static(make: Make, place: Place) -> None:
    topic, group = place.topic(2), group_id()
    there = [make.member(place.bootstrap, topic, group, instance=name) for name in ("one", "two")]
    until(lambda: all(len(each.assigned) == 1 for each in there), there)
    until(lambda: settled(place, group, topic, 2, 2), there)
    had, before = there[0].assigned, there[1].changes
    there[0].leave()
    again = make.member(place.bootstrap, topic, group, instance="one")
    Ours().produce(place.bootstrap, topic, values(40))
    there[0] = again
    until(lambda: all_seen(there, values(40)), there)
    assert again.assigned == had
    assert there[1].changes == before, "the other has not been asked to join again"
    for member in there:
        member.leave()


def automatic(make: Make, place: Place) -> None:
    topic, group = place.topic(2), group_id()

    def committed(number: int) -> bool:
        return place.committed(group) == {(topic, at): number for at in range(2)}

    fill(place, topic, 5, 2)
    reader = make.reader(Part(place.bootstrap, topic, group, auto_commit_ms=100))
    assert sorted(take(reader, 10)) == [(at, n) for at in range(2) for n in range(5)]
    polled(reader, lambda: committed(5))
    reader.close()

    fill(place, topic, 5, 2)
    at_close = make.reader(Part(place.bootstrap, topic, group, auto_commit_ms=HOUR_MS))
    assert sorted(take(at_close, 10)) == [(at, n) for at in range(2) for n in range(5, 10)]
    assert committed(5) or ("automatic", make.name) in matrix.REMARKS
    at_close.close()
    assert committed(10)

    first = make.member(place.bootstrap, topic, group, auto_commit_ms=HOUR_MS)
    first.until(lambda: settled(place, group, topic, 2, 1))
    fill(place, topic, 5, 2)
    first.until(lambda: len(first.seen) == 10)
    second = make.member(place.bootstrap, topic, group, auto_commit_ms=HOUR_MS)
    until(lambda: settled(place, group, topic, 2, 2), [first, second])
    assert committed(15)
    for member in (first, second):
        member.leave()
    assert second.seen == []


def commits(make: Make, place: Place) -> None:
    topic, group = place.topic(1), group_id()
    fill(place, topic, 10)
    reader = make.reader(Part(place.bootstrap, topic, group, auto_commit_ms=None))
    assert isinstance(reader, Steered)
    assert take(reader, 10) == [(0, at) for at in range(10)]
    assert place.committed(group) == {}
    reader.commit(3)
    assert place.committed(group) == {(topic, 0): 3}
    polled(reader, reader.commit_async(5))
    assert place.committed(group) == {(topic, 0): 5}
    reader.commit()
    assert place.committed(group) == {(topic, 0): 10}
    reader.commit(7)
    reader.close()
    assert place.committed(group) == {(topic, 0): 7}, "at close it commits nothing by itself"
    again = make.reader(Part(place.bootstrap, topic, group, auto_commit_ms=None))
    assert take(again, 3) == [(0, at) for at in range(7, 10)]
    again.close()


def resets(make: Make, place: Place) -> None:
    topic = place.topic(1)
    bootstrap = place.bootstrap
    yesterday = int(time.time() * 1000) - 24 * HOUR_MS
    Ours().produce(bootstrap, topic, values(10, "old"), timestamp=yesterday)
    Ours().produce(bootstrap, topic, values(10, "new"))
    expected = {
        "earliest": values(10, "old") + values(10, "new"),
        "by_duration:PT1H": values(10, "new"),
    }
    for policy in expected.keys() & set(make.resets):
        member = make.member(bootstrap, topic, group_id(), reset=policy)
        member.until(lambda m=member: all_seen([m], values(10, "new")))  # type: ignore[misc]
        member.leave()
        assert [each.value for each in member.seen] == expected[policy]
    if "none" in make.resets:
        lost = make.member(bootstrap, topic, group_id(), reset="none")
        until(lambda: lost.error is not None)
        assert re.search(NO_OFFSET.get(make.name, "NoOffset"), repr(lost.error))
    last = make.member(bootstrap, topic, group_id(), reset="latest")

    def reached() -> bool:
        Ours().produce(bootstrap, topic, [b"latest"])
        return bool(last.seen)

    last.until(reached)
    last.leave()
    assert {each.value for each in last.seen} == {b"latest"}


NO_OFFSET: Final = {"confluent-kafka": "_AUTO_OFFSET_RESET"}
"""What a consumer says that may not reset, where that has not `NoOffset` in its name."""


def steering(make: Make, place: Place) -> None:
    topic = place.topic(2)
    reader = make.reader(Part(place.bootstrap, topic, group_id(), auto_commit_ms=None))
    assert isinstance(reader, Steered)
    polled(reader, lambda: len(reader.assigned) == 2)
    reader.pause(1)
    fill(place, topic, 10, 2)
    assert take(reader, 10) == [(0, at) for at in range(10)]
    reader.seek(0, 7)
    assert take(reader, 3) == [(0, at) for at in range(7, 10)]
    reader.resume(1)
    assert take(reader, 10) == [(1, at) for at in range(10)]
    reader.close()


def refused(make: Make, place: Place) -> None:
    topic = place.secret_topic()
    for mechanism in MECHANISMS:
        right, wrong = Sasl(mechanism, USER, PASSWORD), Sasl(mechanism, USER, "mistaken")
        make.produce(place.sasl_bootstrap, topic, [mechanism.encode()], sasl=right)
        with pytest.raises(Exception, match=TOLD[make.name]):
            make.produce(place.sasl_bootstrap, topic, [b"v"], sasl=wrong)
    asked = {"sasl": Sasl("PLAIN", USER, PASSWORD)}
    member = make.member(place.sasl_bootstrap, topic, group_id(), **asked)
    member.until(lambda: all_seen([member], [each.encode() for each in MECHANISMS]))
    member.leave()
    assert b"v" not in {each.value for each in member.seen}


TOLD: Final = {
    "kafkawire": "authentication failed",
    "confluent-kafka": "_AUTHENTICATION",
    "kafka-python": "KafkaTimeoutError",
    "aiokafka": "(?i)authentication|unable to bootstrap",
    "kafkajs": "KafkaJSSASLAuthenticationError",
    "java": "SaslAuthenticationException",
    "java's tools": "SaslAuthenticationException|Authentication failed",
}
"""What a producer with the wrong password raises or says."""


def mixed(make: Make, place: Place) -> None:
    for strategy in Ours.strategies:
        if strategy in make.strategies:
            together(make, place, strategy)


def together(make: Make, place: Place, strategy: str) -> None:
    topic, group = place.topic(4), group_id()
    there: list[Member] = []
    for number, each in enumerate((Ours(), make, Ours()), 1):
        there.append(each.member(place.bootstrap, topic, group, strategy=strategy))
        until(lambda n=number: settled(place, group, topic, 4, n), there)  # type: ignore[misc]
    make.produce(place.bootstrap, topic, values(60))
    until(lambda: all_seen(there, values(60)), there)
    gone = there.pop(0)
    gone.leave()
    until(lambda: settled(place, group, topic, 4, 2), there)
    Ours().produce(place.bootstrap, topic, values(60, "later"))
    until(lambda: all_seen([gone, *there], values(60, "later")), there)
    for member in there:
        member.leave()
    seen = [each for member in (gone, *there) for each in member.seen]
    once = Counter(values(60) + values(60, "later"))
    assert Counter(each.value for each in seen) == once, "all commit before they give up partitions"
    ends = Counter((topic, each.partition) for each in seen)
    assert place.committed(group) == dict(ends)


PLAYED: Final[dict[str, Callable[[Make, Place], None]]] = {
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


@pytest.mark.parametrize(
    ("scenario", "client", "cluster"),
    [
        pytest.param(*case, id=str(case), marks=ONE_BROKER if case.cluster == matrix.KAFKA else ())
        for case in matrix.cases()
    ],
)
def test_scenario(scenario: str, make: Make, place: Place) -> None:
    PLAYED[scenario](make, place)


@pytest.mark.parametrize("cluster", [matrix.OURS, pytest.param(matrix.KAFKA, marks=ONE_BROKER)])
def test_librdkafka_asks_for_all_topics(place: Place) -> None:
    """Its request has bytes behind its last field then."""
    topic = place.topic(3)
    asker = confluent_kafka.Producer({"bootstrap.servers": place.bootstrap, "log_level": 0})
    assert len(asker.list_topics(timeout=100).topics[topic].partitions) == 3


def test_every_scenario_is_played() -> None:
    assert PLAYED.keys() == {*matrix.SCENARIOS, matrix.MIXED}
    known = {(each, client) for each in PLAYED for client in matrix.CLIENTS}
    assert matrix.DIFFERENT.keys() | matrix.REMARKS.keys() <= known
    assert not matrix.DIFFERENT.keys() & matrix.REMARKS.keys()


@pytest.mark.parametrize("drawn", [matrix.drawn, matrix.drawn_mixed])
def test_the_table_in_the_docs_is_this_one(drawn: Callable[[], str]) -> None:
    assert drawn() in (ROOT / "docs" / "broker.md").read_text("utf-8")
