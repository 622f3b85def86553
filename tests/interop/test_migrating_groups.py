"""Groups of several implementations that migrate between the protocols (KIP-848).

Invariant: each record is read once, and what was read is committed, at our broker as at Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from kafkawire.blocking import Admin, Producer
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.real.broker import running
from tests.real.java import Installation

from .implementations import Implementation, Member, until
from .implementations.aio_kafka import AioKafka
from .implementations.java import Java, Jvm
from .implementations.kafka_python import KafkaPython
from .implementations.librdkafka import Confluent
from .implementations.ours import Ours

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

TOPIC: Final = "migrating"
PARTITIONS: Final = 6
CONSUMER: Final = {"protocol": "consumer"}
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


@pytest.fixture(scope="module", params=["kafkawire", "Apache Kafka"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "kafkawire":
        with ServerThread(ServerConfig(settings=SETTINGS)) as server:
            yield server.bootstrap
    else:
        installation: Installation = request.getfixturevalue("installation")
        with running(installation, tmp_path_factory.mktemp("migrating"), SETTINGS) as broker:
            yield broker.bootstrap


class Group:
    """A group whose members come and go, while records are written. topic: also its id."""

    def __init__(self, bootstrap: str, topic: str, admin: Admin, producer: Producer) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.members: list[Member] = []
        self.written = 0
        self._admin = admin
        self._producer = producer
        self._gone: list[Member] = []

    @property
    def type(self) -> str:
        [listing] = [row for row in self._admin.list_groups() if row.group_id == self.topic]
        return listing.type.lower()

    @property
    def read(self) -> Counter[tuple[int, int]]:
        """How often each record was read, by partition and offset."""
        every = [*self._gone, *self.members]
        return Counter((record.partition, record.offset) for it in every for record in it.seen)

    def join(self, implementation: Implementation, protocol: str = "classic") -> Member:
        member = implementation.member(
            self.bootstrap, self.topic, self.topic, protocol=protocol, auto_commit_ms=100
        )
        self.members.append(member)
        self._settle()
        return member

    def leave(self, member: Member) -> None:
        member.leave()
        self.members.remove(member)
        self._gone.append(member)
        if self.members:
            self._settle()

    def _settle(self) -> None:
        """Write until each member has its share of the partitions, and all is read."""

        def settled() -> bool:
            self._write()
            assigned = [index for member in self.members for _, index in member.assigned]
            return sorted(assigned) == list(range(PARTITIONS)) and all(
                member.assigned for member in self.members
            )

        until(settled, self.members)
        for _ in range(PARTITIONS):
            self._write()
        until(lambda: len(self.read) == self.written, self.members)

    def _write(self) -> None:
        partition = self.written % PARTITIONS
        self._producer.deliver(self.topic, b"v", key=b"k", partition=partition)
        self.written += 1

    def committed(self) -> dict[tuple[str, int], int]:
        offsets = self._admin.group_offsets(self.topic)
        return {partition: offset.offset for partition, offset in offsets.items()}


@contextmanager
def group(bootstrap: str, topic: str) -> Iterator[Group]:
    here = {"bootstrap.servers": bootstrap}
    with Admin(here) as admin, Producer(here) as producer:
        admin.create_topic(topic, partitions=PARTITIONS)
        yield Group(bootstrap, topic, admin, producer)


@pytest.mark.parametrize("classic", [KafkaPython, AioKafka], ids=lambda it: it.name)
def test_each_record_is_read_once(bootstrap: str, classic: type[Implementation], jvm: Jvm) -> None:
    """Members of the classic protocol, then of both, then of the new one alone, and back."""
    with group(bootstrap, f"{TOPIC}-{classic.name}") as it:
        first = it.join(classic())
        assert it.type == "classic"
        ours = it.join(Ours(), "consumer")
        assert it.type == "consumer"
        theirs = it.join(Confluent(), "consumer")
        it.leave(first)
        assert it.type == "consumer"
        second = it.join(classic())
        java = it.join(Java(jvm), "consumer")
        it.leave(theirs)
        it.leave(java)
        it.leave(ours)
        assert it.type == "classic"
        last = it.join(Ours())
        it.leave(second)
        it.leave(last)
        assert set(it.read.values()) == {1}
        assert len(it.read) == it.written
        assert sum(it.committed().values()) == it.written
