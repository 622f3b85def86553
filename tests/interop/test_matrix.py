"""The scenarios of the table, each played by whom it names at whose broker it names."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Final

import confluent_kafka
import pytest

from kafkawire.client.consumer.group_requests import assigned
from tests.conftest import ROOT
from tests.net.server.clients import Make, Member, Sasl, until
from tests.real.broker import MECHANISMS, USER

from . import matrix, steering
from .clients import KafkaJs, Ours
from .conftest import Place
from .matrix import Case

pytestmark = [pytest.mark.timeout(150), pytest.mark.xdist_group("kafka")]
GROUPS = count()


def values(number: int, prefix: str = "v") -> list[bytes]:
    return [f"{prefix}{at}".encode() * 10 for at in range(number)]


def group_id() -> str:
    return f"interop-group-{next(GROUPS)}"


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
    for codec in make.codecs:
        sent += (now := values(40, codec))
        make.produce(place.bootstrap, topic, now, codec=codec)
    member = make.member(place.bootstrap, topic, group_id(), strategy=make.strategies[0])
    member.until(lambda: all_seen([member], sent))
    member.leave()
    assert sorted(each.value or b"" for each in member.seen) == sorted(sent)


def acks(make: Make, place: Place) -> None:
    topic = place.topic(1)
    sent: list[bytes] = []
    for said in ("0", "1", "all", "idempotent"):
        now = values(20, said)
        idempotent = said == "idempotent"
        went = make.produce(
            place.bootstrap, topic, now, acks="all" if idempotent else said, idempotent=idempotent
        )
        if went and said != "0":
            assert went == [(0, len(sent) + at) for at in range(20)]
        sent += now
    member = make.member(place.bootstrap, topic, group_id(), strategy=make.strategies[0])
    member.until(lambda: all_seen([member], sent))
    member.leave()
    assert [each.value for each in member.seen] == sent


def members(make: Make, place: Place) -> None:
    come_and_go(make, place, make.strategies[0])


def cooperative(make: Make, place: Place) -> None:
    come_and_go(make, place, "cooperative-sticky")


def come_and_go(make: Make, place: Place, strategy: str) -> None:
    topic, group = place.topic(6), group_id()
    there: list[Member] = []
    for number in range(1, 4):
        there.append(make.member(place.bootstrap, topic, group, strategy=strategy))
        until(lambda number=number: settled(place, group, topic, 6, number))  # type: ignore[misc]
    Ours().produce(place.bootstrap, topic, values(60))
    until(lambda: all_seen(there, values(60)))
    gone = there.pop(0)
    gone.leave()
    until(lambda: settled(place, group, topic, 6, 2))
    Ours().produce(place.bootstrap, topic, values(60, "later"))
    until(lambda: all_seen(there, values(60, "later")) or all(each.error for each in there))
    for member in there:
        member.leave()
    # what was read and not committed before a rebalance may come again; nothing may be lost
    assert all_seen([*there, gone], values(60) + values(60, "later"))


def static(make: Make, place: Place) -> None:
    topic, group = place.topic(2), group_id()
    there = [make.member(place.bootstrap, topic, group, instance=name) for name in ("one", "two")]
    until(lambda: settled(place, group, topic, 2, 2))

    def has(instance: str) -> tuple[object, ...]:
        found = place.group(group)
        assert found is not None
        [held] = [each for each in found.members if each.group_instance_id == instance]
        return assigned(held.assignment)

    had = has("one")
    there[0].leave()
    again = make.member(place.bootstrap, topic, group, instance="one")
    Ours().produce(place.bootstrap, topic, values(40))
    until(lambda: all_seen([again, there[1]], values(40)))
    assert has("one") == had
    for member in (again, there[1]):
        member.leave()


def commits(make: Make, place: Place) -> None:
    topic, group = place.topic(1), group_id()
    for number, batch in enumerate(("first", "second")):
        Ours().produce(place.bootstrap, topic, values(10, batch))
        member = make.member(place.bootstrap, topic, group, strategy=make.strategies[0])
        member.until(lambda m=member, b=batch: all_seen([m], values(10, b)))  # type: ignore[misc]
        member.leave()
        assert [each.value for each in member.seen] == values(10, batch)
        assert place.committed(group) == {(topic, 0): 10 * (number + 1)}


def reset(make: Make, place: Place) -> None:
    topic = place.topic(1)
    Ours().produce(place.bootstrap, topic, values(10, "old"))
    start = make.strategies[0]
    first = make.member(place.bootstrap, topic, group_id(), reset="earliest", strategy=start)
    first.until(lambda: all_seen([first], values(10, "old")))
    first.leave()
    last = make.member(place.bootstrap, topic, group_id(), reset="latest", strategy=start)

    def reached() -> bool:
        Ours().produce(place.bootstrap, topic, [b"new"])
        return bool(last.seen)

    last.until(reached)
    last.leave()
    assert {each.value for each in last.seen} == {b"new"}


def steered(make: Make, place: Place) -> None:
    story = (
        steering.kafkajs(make.node) if isinstance(make, KafkaJs) else steering.STORIES[make.name]
    )
    topic = place.topic(2)

    def write() -> None:
        for partition in range(2):
            fill(place, topic, partition)

    assert story(place.bootstrap, topic, write) == steering.EXPECTED


def fill(place: Place, topic: str, partition: int) -> None:
    """Write to one partition."""
    import asyncio

    from kafkawire.net.producer import Producer

    async def send() -> None:
        async with Producer({"bootstrap.servers": place.bootstrap}) as producer:
            for _ in range(steering.MANY):
                await producer.send(topic, b"v", partition=partition)

    asyncio.run(send())


def refused(make: Make, place: Place) -> None:
    for mechanism in MECHANISMS[:2]:
        wrong = Sasl(mechanism, USER, "mistaken")
        with pytest.raises(Exception, match=TOLD[make.name]):
            make.produce(place.sasl_bootstrap, "secret", [b"v"], sasl=wrong)


TOLD: Final = {
    "kafkawire": "refused our credentials",
    "aiokafka": "(?i)authentication|unable to bootstrap",
    "kafkajs": "KafkaJSSASLAuthenticationError",
    "java": "SaslAuthenticationException|Authentication failed",
}
"""What a producer with the wrong password raises or says."""


def mixed(make: Make, place: Place) -> None:
    topic, group = place.topic(4), group_id()
    there: list[Member] = []
    for number, each in enumerate((Ours(), make, Ours()), 1):
        there.append(each.member(place.bootstrap, topic, group, strategy="range"))
        until(lambda number=number: settled(place, group, topic, 4, number))  # type: ignore[misc]
    make.produce(place.bootstrap, topic, values(60))
    until(lambda: all_seen(there, values(60)))
    there.pop(0).leave()
    until(lambda: settled(place, group, topic, 4, 2))
    Ours().produce(place.bootstrap, topic, values(60, "later"))
    until(lambda: all_seen(there, values(60, "later")))
    for member in there:
        member.leave()


PLAYED: Final[dict[str, Callable[[Make, Place], None]]] = {
    "codecs": codecs,
    "acks": acks,
    "members": members,
    "static": static,
    "cooperative": cooperative,
    "commits": commits,
    "reset": reset,
    "steering": steered,
    "refused": refused,
    "mixed": mixed,
}


@pytest.mark.parametrize(
    ("scenario", "client", "cluster"),
    [pytest.param(*case, id=str(case)) for case in matrix.cases()],
)
def test_scenario(scenario: str, make: Make, place: Place) -> None:
    PLAYED[scenario](make, place)


@pytest.mark.parametrize("cluster", [matrix.OURS, matrix.KAFKA])
def test_librdkafka_asks_for_all_topics(place: Place) -> None:
    """Its request has bytes behind its last field then."""
    topic = place.topic(3)
    asker = confluent_kafka.Producer({"bootstrap.servers": place.bootstrap, "log_level": 0})
    assert len(asker.list_topics(timeout=20).topics[topic].partitions) == 3


def test_every_scenario_is_played_or_played_elsewhere() -> None:
    assert PLAYED.keys() == matrix.SCENARIOS.keys()
    for where in matrix.ELSEWHERE.values():
        path, _, name = where.partition("::")
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        assert callable(getattr(module, name))
    assert Case("codecs", "java", "kafkawire") in set(matrix.cases())


def test_the_table_in_the_docs_is_this_one() -> None:
    assert matrix.drawn() in (ROOT / "docs" / "broker.md").read_text("utf-8")
