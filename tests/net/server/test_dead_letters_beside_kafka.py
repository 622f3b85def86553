"""Dead letter queues of share groups (KIP-1191): those of a real Apache Kafka and of our broker.

Invariant: the queues have the same records, but for their timestamps and the batches they are in;
the states of the share partitions are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pytest

from kafkawire.broker.share.states import RecordState
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.records import BatchBuilder, Record, RecordBatches
from tests.interop.implementations import until

from ...real.broker import Broker
from ...real.wire import Wire
from .test_beside_kafka import Fields, created, described, text, uuid
from .test_shares_beside_kafka import (
    GROUP,
    SOON,
    TOPIC,
    Peer,
    acknowledge,
    compare,
    config,
    fetch,
    produce,
    settled_member,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

NAME: Final = "errors.deadletterqueue.topic.name"
COPIES: Final = "errors.deadletterqueue.copy.record.enable"
CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
ENABLED: Final = "errors.deadletterqueue.group.enable"
QUEUE: Final = "dlq.queue"
CLOSED: Final = "dlq.closed"
OTHER: Final = "queue"
MADE: Final = "dlq.made"
ACCEPT, RELEASE_, REJECT, GAP = 1, 2, 3, 0
TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED.value, RecordState.ARCHIVED.value})
RECORDS: Final = (
    (b"k", b"v", (("h", b"1"),)),
    (None, b"no key", ()),
    (b"tombstone", None, ()),
    (b"last", b"one", (("a", None), ("a", b"2"))),
)


class Member(Peer):
    """The member of the group, with its session. offset: after what was produced."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.epochs: Iterator[int] = count()
        self.offset = 0

    def deliver(self) -> list[tuple[int, int, int]]:
        """Fetch until records are acquired; return their offsets and delivery counts."""
        acquired: list[tuple[int, int, int]] = []

        def delivered() -> bool:
            wanted = fetch(self, next(self.epochs), **SOON)
            response: Any = self.exchange("ShareFetch", 2, wanted)
            acquired.extend(
                (each.first_offset, each.last_offset, each.delivery_count)
                for topic in response.responses
                for partition in topic.partitions
                for each in partition.acquired_records
            )
            return bool(acquired)

        until(delivered)
        return acquired

    def produce(self, records: Any = RECORDS) -> int:
        """Produce a batch; return its first offset."""
        builder = BatchBuilder()
        for key, value, headers in records:
            builder.append(key, value, 1_700_000_000_000, headers)
        produce(self, text(builder.build()))
        self.offset += len(records)
        return self.offset - len(records)

    def acknowledge(self, first: int, kinds: list[int]) -> None:
        batch = first, first + len(kinds) - 1, kinds
        self.exchange("ShareAcknowledge", 2, acknowledge(self, next(self.epochs), batch))

    def read(self, topic: str, least: int) -> list[Record]:
        """Read a queue until it has records, which have no order between batches."""
        records: list[Record] = []

        def complete() -> bool:
            records[:] = self._records(topic)
            return len(records) >= least

        until(complete)
        return sorted(records, key=lambda each: int(dict(each.headers)["__dlq.errors.offset"] or 0))

    def _records(self, topic: str) -> list[Record]:
        partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
        response: Any = self.exchange("Fetch", 12, {
            "maxWaitMs": 0, "minBytes": 0, "maxBytes": 1 << 20, "isolationLevel": 0, "sessionId": 0,
            "sessionEpoch": -1, "topics": [{"topic": topic, "partitions": [partition]}],
            "forgottenTopicsData": [],
        })  # fmt: skip
        records = response.responses[0].partitions[0].records or b""
        return [each for batch in RecordBatches(records) for each in batch.records()]

    def show(self, what: str, topic: str, least: int) -> None:
        """Compare the records of a queue."""
        for each in self.read(topic, least):
            self.responses.append((what, f"{each.key!r} {each.value!r} {each.headers}"))

    def settle(self) -> None:
        """Wait until all that was produced is accepted or archived."""
        topic = {"topicId": self.topic_id, "partitions": [{"partition": 0, "leaderEpoch": 0}]}
        state = {"groupId": GROUP, "topics": [topic]}

        def settled() -> bool:
            response: Any = self.exchange("ReadShareGroupState", 0, state)
            stored = response.results[0].partitions[0]
            ended = {
                offset
                for each in stored.state_batches
                for offset in range(each.first_offset, each.last_offset + 1)
                if each.delivery_state in TERMINAL
            }
            return ended.issuperset(range(stored.start_offset, self.offset))

        until(settled)


def broker_config(key: str, value: str) -> Fields:
    change = {"name": key, "configOperation": 0, "value": value}
    resource = {"resourceType": 4, "resourceName": "", "configs": [change]}
    return {"resources": [resource], "validateOnly": False}


def topics(member: Member) -> None:
    enabled = [{"name": ENABLED, "value": "true"}]
    member.exchange("CreateTopics", 7, created(TOPIC))
    member.exchange("CreateTopics", 7, created(QUEUE, partitions=1, configs=enabled))
    member.exchange("CreateTopics", 7, created(OTHER, partitions=1, configs=enabled))
    member.exchange("CreateTopics", 7, created(CLOSED, partitions=1))
    named = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    metadata = member.wire.exchange(named, 12, MetadataResponse)
    member.topic_id = uuid(metadata.topics[0].topic_id)


def configs(member: Member) -> None:
    alter = "IncrementalAlterConfigs"
    for key, value in (
        (NAME, "__queue"),
        (NAME, "not a topic!"),
        (NAME, QUEUE),
        (COPIES, "perhaps"),
        (COPIES, "false"),
        ("share.auto.offset.reset", "earliest"),
        ("share.delivery.count.limit", "2"),
        ("share.record.lock.duration.ms", "1000"),
    ):
        member.say(f"{key}={value}", alter, 1, config(key, value))
    for key, value in ((PREFIX, ""), (PREFIX, "dlq."), (CREATES, "maybe"), (CREATES, "false")):
        member.say(f"{key}={value}", alter, 1, broker_config(key, value))
    wanted = described(NAME, COPIES, kind=32, name=GROUP)
    member.say("of the group", "DescribeConfigs", 4, wanted)


def letters(member: Member) -> None:
    """Reject records, and release others until they were delivered too often."""
    for kind, key in ((0, GROUP), (2, f"{GROUP}:{member.topic_id}:0")):
        member.exchange("FindCoordinator", 6, {"keyType": kind, "coordinatorKeys": [key]})
    settled_member(member, "m")
    for copies in ("false", "true"):
        member.exchange("IncrementalAlterConfigs", 1, config(COPIES, copies))
        first = member.produce()
        member.deliver()
        member.acknowledge(first, [REJECT, RELEASE_, REJECT, ACCEPT])
        member.deliver()
        member.acknowledge(first + 1, [RELEASE_])
        member.settle()
        first = member.produce()
        member.deliver()
        member.acknowledge(first, [REJECT] * 4)
        member.settle()
    member.show("rejected", QUEUE, 14)


def expired(member: Member) -> None:
    """Let acquisition locks end until records were delivered too often; gaps are not written."""
    first = member.produce(RECORDS[:2])
    assert member.deliver() == [(first, first + 1, 1)]
    assert member.deliver() == [(first, first + 1, 2)]
    member.settle()
    first = member.produce(RECORDS[:1])
    member.deliver()
    member.acknowledge(first, [GAP])
    member.settle()
    member.show("locks that ended", QUEUE, 16)


def unwritable(member: Member) -> None:
    """Reject records for queues that may not be written to: they are archived."""
    for name in (CLOSED, OTHER, "dlq.absent", ""):
        member.exchange("IncrementalAlterConfigs", 1, config(NAME, name))
        first = member.produce(RECORDS[:1])
        member.deliver()
        member.acknowledge(first, [REJECT])
        member.settle()
    member.show("not written", QUEUE, 16)
    assert not member.read(CLOSED, 0) + member.read(OTHER, 0)


def made(member: Member) -> None:
    """Reject a record for a queue that does not exist yet."""
    member.say("creates", "IncrementalAlterConfigs", 1, broker_config(CREATES, "true"))
    member.exchange("IncrementalAlterConfigs", 1, config(NAME, MADE))
    first = member.produce(RECORDS[:1])
    member.deliver()
    member.acknowledge(first, [REJECT])
    member.settle()
    member.show("created", MADE, 1)
    keys = ENABLED, "message.timestamp.type"
    member.say("its configs", "DescribeConfigs", 4, described(*keys, name=MADE))


def story(port: int) -> list[tuple[str, str]]:
    with Wire(port) as wire:
        member = Member(wire)
        topics(member)
        configs(member)
        letters(member)
        expired(member)
        unwritable(member)
        made(member)
        return member.responses


def test_dead_letters_equal_kafkas(own_kafka: Broker) -> None:
    assert compare(story, own_kafka) > 30
