"""Traffic of real clients to a real broker, so that its logs have every kind of record.

Every call has a timeout; topics and groups are named for their purpose.

    administration  topics, configurations, quotas, rules, tokens  ─▶ __cluster_metadata
    producers       codecs, headers, nulls, transactions           ─▶ topics, __transaction_state
    members         classic, consumer, share, streams groups       ─▶ __consumer_offsets,
                                                                      __share_group_state
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from kafkawire import Message
from kafkawire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.records import Headers

from .broker import Broker
from .requests import A_MINUTE_MS, Known, filled
from .responses import insist, opened, prepare
from .wire import Wire

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS: Final = 100.0
GROUP_RESOURCE: Final = 32
CLIENTS: Final = "client-{codec}"
BROKERS: Final = "broker-{codec}"
TRANSACTIONAL: Final = "transactional"
COMPACTED: Final = "compacted"
SHARED: Final = "shared"
GONE: Final = "gone"
BIG: Final = 60_000
MANY: Final = 25
"""Big records that fill more than a segment."""
FEW: Final = 3

TOPICS: Final[dict[str, dict[str, str]]] = {
    **{CLIENTS.format(codec=codec): {"segment.bytes": str(1 << 20)} for codec in CODECS},
    **{BROKERS.format(codec=codec): {"compression.type": codec} for codec in CODECS[1:]},
    "log-append": {"message.timestamp.type": "LogAppendTime"},
    TRANSACTIONAL: {"index.interval.bytes": "1"},
    COMPACTED: {
        "cleanup.policy": "compact",
        "segment.ms": "50",
        "min.cleanable.dirty.ratio": "0.0",
    },
    SHARED: {},
    GONE: {},
}


def run(broker: Broker) -> None:
    """Do all of it."""
    known = prepare(broker)
    with opened(broker, "", known) as wire:
        make_topics(wire)
        administer(wire, known)
        produce(broker)
        transact(broker)
        consume(broker, "consumed-classic", ["^client-.*"], {"session.timeout.ms": 45_000})
        consume(broker, "consumed-next", ["^client-.*"], {"group.protocol": "consumer"})
        share(broker)
        insist(wire, DeleteGroupsRequest(groups_names=["consumed-classic"]), 2)
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=GONE)], timeout_ms=A_MINUTE_MS)
        insist(wire, delete, 6)
    compact(broker)


def until(what: str, done: Callable[[], bool]) -> None:
    """Wait until a condition holds; AssertionError with its name if it does not."""
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


# -- administration: kafkawire's requests


def make_topics(wire: Wire) -> None:
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in TOPICS.items()
    ]
    insist(wire, CreateTopicsRequest(topics=topics, timeout_ms=A_MINUTE_MS), 7)


def administer(wire: Wire, known: Known) -> None:
    """Cause a record of each kind that administration can cause."""

    def exchange(name: str, version: int, **changes: object) -> Message:
        request: Any = filled(name, version, known)
        for attribute, value in changes.items():
            setattr(request, attribute, value)
        return insist(wire, request, version)

    exchange("CreateAclsRequest", 3)
    everybody: Any = filled("DeleteAclsRequest", 3, known)
    everybody.filters[0].principal_filter = None
    insist(wire, everybody, 3)
    exchange("AlterClientQuotasRequest", 1, validate_only=False)
    exchange("IncrementalAlterConfigsRequest", 1, validate_only=False)
    exchange("CreatePartitionsRequest", 3, validate_only=False)
    exchange("CreateDelegationTokenRequest", 3)
    earliest = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    group = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name="shared-group", configs=[earliest]
    )
    insist(wire, IncrementalAlterConfigsRequest(resources=[group]), 1)


# -- producers: librdkafka


class Sent(NamedTuple):
    """A producer's configuration."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def records(topic: str) -> Iterator[Sent]:
    """Yield records of every shape: null, empty, text, big; with and without headers."""
    for number in range(30):
        yield Sent(f"key-{number}".encode(), f"value-{number};".encode() * (number + 1))
    for number in range(MANY if topic.startswith("client") else FEW):
        yield Sent(b"big", (f"{topic} {number} " * BIG).encode()[: BIG - number])
    yield Sent(None, b"without a key")
    yield Sent(b"tombstone", None)
    yield Sent(b"", b"")
    yield Sent(None, None, (("only", b"header"),))
    headers = (("trace", b"1234"), ("empty", b""), ("null", None), ("trace", b"again"))
    yield Sent("schlüssel".encode(), "wert € 😀".encode(), headers)


def produce(broker: Broker) -> None:
    """Write to all topics, with each codec by the client, and each by the broker."""
    for codec in CODECS:
        send(broker, CLIENTS.format(codec=codec), {"compression.type": codec})
    for codec in CODECS[1:]:
        send(broker, BROKERS.format(codec=codec), {"enable.idempotence": True})
    for topic in ("log-append", SHARED, GONE):
        send(broker, topic, {})


def send(broker: Broker, topic: str, configuration: dict[str, object]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **configuration})
    for number, record in enumerate(records(topic)):
        headers: list[tuple[str, str | bytes | None]] = [*record.headers]
        producer.produce(topic, key=record.key, value=record.value, headers=headers)
        if number == FEW:
            producer.flush(SECONDS)  # so that there is more than one batch
    assert producer.flush(SECONDS) == 0


def transact(broker: Broker) -> None:
    """Commit a transaction, abort one and commit one that have offsets, leave one open."""
    group = {"bootstrap.servers": broker.bootstrap, "group.id": "transactional-group"}
    with Consumer(group) as consumer:
        member = consumer.consumer_group_metadata()
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": "transactor",
            "compression.type": "lz4",
        }
    )
    producer.init_transactions(SECONDS)
    for number, end in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        for record in range(5):
            producer.produce(TRANSACTIONAL, key=f"{number}-{record}", value=b"in a transaction")
        producer.flush(SECONDS)
        if number:
            where = [TopicPartition(TRANSACTIONAL, 0, number)]
            producer.send_offsets_to_transaction(where, member, SECONDS)
        end(SECONDS)
    producer.begin_transaction()
    producer.produce(TRANSACTIONAL, key=b"open", value=b"never to be committed")
    assert producer.flush(SECONDS) == 0


# -- members: librdkafka


def consume(
    broker: Broker, group: str, topics: list[str], configuration: dict[str, object]
) -> None:
    """Join a group, read, commit offsets with metadata, leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **configuration,
        }
    )
    read: list[Any] = []
    try:
        consumer.subscribe(topics)

        def some() -> bool:
            read.extend(consumer.consume(100, timeout=0.5))
            return len(read) >= 100

        until(f"{group} read nothing", some)
        consumer.commit(asynchronous=False)
        where = TopicPartition(CLIENTS.format(codec="none"), 0, 7, metadata="a note")
        consumer.commit(offsets=[where], asynchronous=False)
    finally:
        consumer.close()


def share(broker: Broker) -> None:
    """Read as a member of a share group, and acknowledge."""
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": "shared-group"})
    read: list[Any] = []
    try:
        consumer.subscribe([SHARED])

        def some() -> bool:
            read.extend(consumer.poll(timeout=0.5))
            return len(read) >= 20

        until("the share group read nothing", some)
        consumer.commit_sync(SECONDS)
    finally:
        consumer.close()


# -- compaction


def compact(broker: Broker) -> None:
    """Write the same keys repeatedly, and wait until the broker has compacted them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    segment = broker.data / f"{COMPACTED}-0" / "00000000000000000000.log"
    until("the topic has no log", segment.exists)
    written = segment.stat().st_ino  # before there is anything to compact
    for version in range(3):
        for key in range(10):
            kept = version < 2 or key % 3
            producer.produce(COMPACTED, key=f"{key}", value=f"version {version}" if kept else None)
        assert producer.flush(SECONDS) == 0
        time.sleep(0.06)  # segment.ms: the next record begins a segment
    producer.produce(COMPACTED, key=b"last", value=b"in the active segment")
    assert producer.flush(SECONDS) == 0
    until("nothing was compacted", lambda: is_replaced(segment, written))


def is_replaced(segment: Path, inode: int) -> bool:
    """Return whether the file was replaced by a compacted one."""
    try:
        return segment.stat().st_ino != inode
    except FileNotFoundError:
        return False
