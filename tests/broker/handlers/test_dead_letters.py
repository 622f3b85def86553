"""Dead letter queues of share groups (KIP-1191): which records, where, retries, new leaders."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.share.dead_letter_batch import DeadLetter
from kafkawire.broker.share.states import Cause, RecordState
from kafkawire.broker.share_coordinator.state import ShareKey
from kafkawire.configs import ResourceType
from kafkawire.messages.share_fetch_response import ShareFetchResponse
from kafkawire.records import BatchBuilder, Record, RecordBatches
from kafkawire.records.checksum import crc32c
from tests.broker.harness import Harness

from .test_share_groups import REJECT, RELEASE, Consumer, configure, harness_of, produce

GAP = 0
QUEUE = "dlq.g"
NAME = "errors.deadletterqueue.topic.name"
COPIES = "errors.deadletterqueue.copy.record.enable"
CREATES = "errors.deadletterqueue.auto.create.topics.enable"
ENABLED = {"errors.deadletterqueue.group.enable": "true"}


def cluster(brokers: int = 1, partitions: int = 1, **queue: str) -> Harness:
    """Return a cluster with a queue for the group `g`."""
    harness = harness_of(brokers)
    harness.create_topic(QUEUE, partitions, factor=min(brokers, 3), **(ENABLED | queue))
    configure(harness, **{NAME: QUEUE})
    return harness


def member_of(harness: Harness, count: int = 3) -> Consumer:
    """Return a member that has acquired as many records."""
    consumer = Consumer(harness)
    consumer.join()
    produce(harness, count)
    assert waited(consumer) == [(0, count - 1, 1)]
    return consumer


def waited(consumer: Consumer) -> list[tuple[int, ...]]:
    """Fetch, and wait for records; of another broker, the state comes from there first."""
    consumer.client.send(consumer.request(max_wait_ms=5_000), 2)
    consumer.harness.wait(lambda: not consumer.client.is_waiting())
    return consumer.taken(consumer.client.receive(ShareFetchResponse))


def acknowledge(consumer: Consumer, first: int, last: int, kind: int) -> None:
    """Acknowledge in the next fetch, which waits for the share coordinator."""
    consumer.client.send(consumer.request((first, last, kind)), 2)
    consumer.harness.advance(1.0)
    consumer.taken(consumer.client.receive(ShareFetchResponse))


def records(harness: Harness, name: str = QUEUE, index: int = 0) -> list[Record]:
    """Return the records of a queue."""
    log = harness.replica(name, index).log
    data = log.read(0, 1 << 30, log.high_watermark, True) if log.high_watermark else b""
    return [each for batch in RecordBatches(data) for each in batch.records()]


def offsets(harness: Harness, name: str = QUEUE) -> list[int]:
    """Return the offsets of the originals of a queue's records."""
    return [
        int(dict(each.headers)["__dlq.errors.offset"] or b"") for each in records(harness, name)
    ]


def states(harness: Harness) -> list[tuple[int, int, RecordState]]:
    """Return the runs of the only share partition."""
    shares = harness.broker(harness.leader_of("t")).shares.partitions
    [key] = shares.of_partition(harness.key("t"))
    share = shares.loaded(key)
    assert not isinstance(share, ErrorCode)
    return [(each.first, each.last, each.state) for each in share.in_flight]


def start_offset(harness: Harness) -> int:
    shares = harness.broker(harness.leader_of("t")).shares.partitions
    share = shares.loaded(shares.of_partition(harness.key("t"))[0])
    assert not isinstance(share, ErrorCode)
    return share.start_offset


def test_rejected_records_are_written_to_the_queue_and_archived() -> None:
    harness = cluster()
    member = member_of(harness)
    assert member.acknowledge(0, 1, REJECT) is ErrorCode.NONE
    assert offsets(harness) == [0, 1]
    assert start_offset(harness) == 2
    [first, _] = records(harness)
    assert (first.key, first.value) == (None, None)
    assert first.headers == (
        ("__dlq.errors.topic", b"t"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"0"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", b"Offset rejected by client."),
    )


def test_records_of_a_member_that_is_gone_are_written_after_their_last_delivery() -> None:
    harness = cluster()
    configure(harness, **{"share.delivery.count.limit": "2", COPIES: "true"})
    member = member_of(harness, 1)
    assert member.acknowledge(0, 0, RELEASE) is ErrorCode.NONE
    assert member.fetch() == [(0, 0, 2)]
    member.client.disconnect()
    harness.advance(1.0)
    [record] = records(harness)
    assert (record.key, record.value) == (b"k", b"v")
    assert record.headers[4:] == (
        ("__dlq.errors.delivery.count", b"2"),
        ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
    )


@pytest.mark.parametrize("rejects", [True, False])
def test_a_new_leader_writes_what_was_not_archived(rejects: bool) -> None:
    harness = cluster(3)
    configure(harness, **{"share.delivery.count.limit": "2"})
    member = member_of(harness)
    configure(harness, **{NAME: "dlq.later"})
    harness.alter_configs(ResourceType.BROKER, "", {CREATES: "true"})
    if not rejects:
        acknowledge(member, 0, 2, RELEASE)
    for each in (1, 2, 3):  # so that the queue cannot be created before the leader has moved
        harness.front(each).broker._creation._in_flight.add("dlq.later")
    acknowledge(member, 0, 2, REJECT if rejects else RELEASE)
    assert [each[2] for each in states(harness)] == [RecordState.ARCHIVING]
    harness.kill_broker(harness.leader_of("t"))
    harness.wait(lambda: harness.leader_of("t") in harness.alive)
    configure(harness, **{NAME: QUEUE})
    waited(Consumer(harness, "b"))
    harness.wait(lambda: offsets(harness) == [0, 1, 2])
    message = dict(records(harness)[0].headers)["__dlq.errors.message"]
    cause = b"rejected by client." if rejects else b"delivery count exceeded the threshold."
    assert message == b"Offset " + cause
    harness.wait(lambda: start_offset(harness) == 3)


def test_a_queue_that_does_not_exist_is_created() -> None:
    harness = cluster()
    harness.alter_configs(ResourceType.BROKER, "", {CREATES: "true"})
    configure(harness, **{NAME: "dlq.new"})
    member = member_of(harness)
    member.acknowledge(0, 2, REJECT)
    harness.wait(lambda: start_offset(harness) == 3)
    assert offsets(harness, "dlq.new") == [0, 1, 2]
    topic = harness.topic("dlq.new")
    assert topic is not None
    assert topic.configs == ENABLED | {"message.timestamp.type": "CreateTime"}


@pytest.mark.parametrize("name", ["", "dlq.absent", "dlq.closed", "other"])
def test_without_a_queue_that_may_be_written_to_records_are_archived(name: str) -> None:
    harness = cluster()
    harness.create_topic("dlq.closed", 1)
    harness.create_topic("other", 1, 1, **ENABLED)
    configure(harness, **{NAME: name})
    member = member_of(harness)
    member.acknowledge(0, 2, REJECT)
    assert start_offset(harness) == 3
    assert harness.topic("dlq.absent") is None
    assert not offsets(harness) + offsets(harness, "dlq.closed") + offsets(harness, "other")


def test_records_are_archived_when_all_attempts_have_failed() -> None:
    harness = cluster()
    harness.alter_configs(ResourceType.BROKER, "", {CREATES: "true"})
    configure(harness, **{NAME: "dlq.never"})
    member = member_of(harness)
    harness.front().broker._creation._in_flight.add("dlq.never")
    member.acknowledge(0, 2, REJECT)
    harness.advance(14.9)
    assert [each[2] for each in states(harness)] == [RecordState.ARCHIVING]
    harness.advance(0.2)
    assert start_offset(harness) == 3


@pytest.mark.parametrize("large", [590, 700])
def test_batches_are_no_larger_than_the_queue_allows(large: int) -> None:
    harness = cluster(1, 1, **{"max.message.bytes": "600"})
    configure(harness, **{COPIES: "true"})
    consumer = Consumer(harness)
    consumer.join()
    builder = BatchBuilder()
    for size in (10, large, 10, 10, 10):
        builder.append(None, bytes(size), 1_700_000_000_000)
    harness.front().machines.append(harness.key("t"), builder.build(), harness.now)
    harness.advance(1.0)
    consumer.fetch()
    consumer.acknowledge(0, 4, REJECT)
    assert offsets(harness) == [0, 1, 2, 3, 4]
    assert [len(each.value or b"") for each in records(harness)] == [10, 0, 10, 10, 10]
    log = harness.replica(QUEUE).log
    batches = list(RecordBatches(log.read(0, 1 << 30, log.high_watermark, True)))
    assert len(batches) > 1
    assert all(each.end - each.start <= 600 for each in batches)


def test_records_that_cannot_be_read_are_not_copied() -> None:
    harness = cluster(1, 1)
    configure(harness, **{COPIES: "true"})
    consumer = Consumer(harness)
    consumer.join()
    builder = BatchBuilder()
    builder.append(None, b"value", 1_700_000_000_000)
    corrupt = bytearray(builder.build())
    corrupt[22] = 1  # gzip, which the records are not
    corrupt[17:21] = crc32c(bytes(corrupt), 21, len(corrupt)).to_bytes(4)
    for batch in (builder.build(), bytes(corrupt), builder.build()):
        harness.front().machines.append(harness.key("t"), batch, harness.now)
    harness.advance(1.0)
    consumer.fetch()
    consumer.acknowledge(0, 2, REJECT)
    assert offsets(harness) == [0, 1, 2]
    assert [each.value for each in records(harness)] == [b"value", None, None]


def test_the_leader_of_the_queue_may_be_another_broker() -> None:
    harness = cluster(3, 3, **{"max.message.bytes": "600"})
    harness.move_leader(QUEUE, 0, other_than(harness.leader_of("t")))
    member = member_of(harness)
    produce(harness, 3)
    assert waited(member) == [(3, 5, 1)]
    acknowledge(member, 0, 5, REJECT)
    harness.wait(lambda: start_offset(harness) == 6)
    assert offsets(harness) == [0, 1, 2, 3, 4, 5]


def other_than(leader: int) -> int:
    return next(each for each in (1, 2, 3) if each != leader)


def test_records_wait_for_the_leader_of_the_queue() -> None:
    harness = harness_of(3)
    harness.create_topic(QUEUE, 3, 1, **ENABLED)
    configure(harness, **{NAME: QUEUE})
    leaders = [harness.leader_of(QUEUE, each) for each in range(3)]
    index = leaders.index(other_than(harness.leader_of("t")))
    member = member_of(harness)
    harness.kill_broker(leaders[index])
    write(harness, index, 0, 2)
    harness.advance(2.0)
    harness.start_broker(leaders[index])
    harness.wait(lambda: len(records(harness, index=index)) == 3)
    assert member.acknowledge(0, 2, RELEASE) is ErrorCode.NONE


def write(harness: Harness, partition: int, first: int, last: int) -> None:
    """Write a dead letter of any partition of the topic, there or not."""
    key = ShareKey("g", harness.key("t").topic_id, partition)
    letter = DeadLetter(key, first, last, 1, Cause.REJECTED)
    broker = harness.broker(harness.leader_of("t"))
    broker.shares.partitions._dead_letters.write(letter, lambda _now: None, harness.now)


def test_the_partition_of_a_queue_is_that_of_the_topic_modulo_how_many_there_are() -> None:
    harness = cluster(partitions=2)
    for partition, last in ((0, 0), (3, 2), (4, 1)):
        write(harness, partition, 0, last)
    assert [len(records(harness, index=each)) for each in (0, 1)] == [3, 3]


def test_a_gap_is_no_dead_letter() -> None:
    harness = cluster()
    member = member_of(harness)
    assert member.acknowledge(0, 0, GAP) is ErrorCode.NONE
    assert member.acknowledge(1, 1, REJECT) is ErrorCode.NONE
    assert offsets(harness) == [1]


def test_records_whose_last_lock_ends_are_written() -> None:
    harness = cluster()
    configure(harness, **{"share.delivery.count.limit": "2"})
    member = member_of(harness)
    harness.advance(31.0)
    assert member.fetch() == [(0, 2, 2)]
    harness.advance(31.0)
    assert offsets(harness) == [0, 1, 2]
    assert start_offset(harness) == 3


def test_a_dead_letter_that_is_being_written_is_not_written_again() -> None:
    harness = cluster(3, 3)
    harness.move_leader(QUEUE, 0, other_than(harness.leader_of("t")))
    for _ in range(2):
        write(harness, 0, 0, 1)
    harness.advance(1.0)
    assert offsets(harness) == [0, 1]
