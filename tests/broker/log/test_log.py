"""The log of a partition: validation, offsets, timestamps, sequences, old formats, lookups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.configs import ResourceType
from kafkawire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkawire.messages.delete_records_response import DeleteRecordsResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
)
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kafkawire.records import (
    Batch,
    BatchBuilder,
    Compression,
    MessageSetBuilder,
    Record,
    RecordBatches,
    TimestampType,
)
from kafkawire.records.checksum import crc32c
from tests.broker.fetches import fetched
from tests.broker.harness import EPOCH_MS, Client, Harness

E = ErrorCode
TRANSACTION = 1
"""The type of a coordinator's key."""


def batch(*values: bytes, at: int = EPOCH_MS, key: bytes | None = b"k", **fields: Any) -> bytes:
    builder = BatchBuilder(**fields)
    for value in values:
        builder.append(key, value, at)
    return builder.build()


def produce_request(
    records: bytes | None, acks: int = -1, topic: str = "t", partition: int = 0
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def produce(
    client: Client,
    records: bytes | None,
    version: int = 9,
    acks: int = -1,
    topic: str = "t",
    partition: int = 0,
) -> PartitionProduceResponse:
    request = produce_request(records, acks, topic, partition)
    response = client.exchange(request, version, ProduceResponse)
    return response.responses[0].partition_responses[0]


def offset_at(client: Client, timestamp: int, version: int = 11) -> ListOffsetsPartitionResponse:
    requested = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[requested])]
    )
    return client.exchange(request, version, ListOffsetsResponse).topics[0].partitions[0]


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 1})


def test_offsets_are_assigned_in_order(harness: Harness) -> None:
    client = harness.client()
    assert produce(client, batch(b"a", b"b")).base_offset == 0
    assert produce(client, batch(b"c")).base_offset == 2
    records = list(RecordBatches(fetched(client)).records())
    assert [(record.offset, record.value) for record in records] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
    ]
    assert [each.partition_leader_epoch for each in RecordBatches(fetched(client))] == [0, 0]


@pytest.mark.parametrize("codec", Compression)
def test_what_is_stored_is_what_was_produced(harness: Harness, codec: Compression) -> None:
    client = harness.client()
    sent = batch(b"x" * 500, b"y" * 500, compression=codec)
    assert produce(client, sent).error_code == E.NONE
    [stored] = RecordBatches(fetched(client))
    assert stored.compression is codec
    assert stored.crc_valid
    assert [record.value for record in stored.records()] == [b"x" * 500, b"y" * 500]


def damaged(data: bytes, at: int = -1) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)


def gap() -> bytes:
    builder = BatchBuilder()
    builder.append(None, b"a", EPOCH_MS, (), 0)
    builder.append(None, b"b", EPOCH_MS, (), 5)
    return builder.build()


def with_field(data: bytes, at: int, value: int, size: int = 4) -> bytes:
    """Change a field of a batch's header, under a valid checksum."""
    changed = bytearray(data)
    changed[at : at + size] = value.to_bytes(size, signed=True)
    crc = crc32c(bytes(changed), 21, len(changed))
    changed[17:21] = crc.to_bytes(4)
    return bytes(changed)


def with_count(data: bytes, count: int) -> bytes:
    return with_field(with_field(data, 57, count), 23, count - 1)


REFUSED: dict[str, tuple[Callable[[], bytes | None], ErrorCode]] = {
    "null": (lambda: None, E.INVALID_RECORD),
    "nothing": (lambda: b"", E.INVALID_RECORD),
    "two batches": (lambda: batch(b"a") + batch(b"b"), E.INVALID_RECORD),
    "an old format": (lambda: old(1, b"a"), E.INVALID_RECORD),
    "a wrong checksum": (lambda: damaged(batch(b"a")), E.CORRUPT_MESSAGE),
    "no records": (lambda: BatchBuilder().build(), E.INVALID_RECORD),
    "a gap in offsets": (gap, E.INVALID_RECORD),
    "a control batch": (lambda: batch(b"a", control=True), E.INVALID_RECORD),
    "a base offset": (lambda: batch(b"a", base_offset=7), E.INVALID_RECORD),
    "a last offset delta": (lambda: with_field(batch(b"a"), 23, 5), E.INVALID_RECORD),
    "too few records": (lambda: with_count(batch(b"a"), 2), E.INVALID_RECORD),
    "too many records": (lambda: with_count(batch(b"a", b"b"), 1), E.INVALID_RECORD),
    "too few records, compressed": (
        lambda: with_count(batch(b"a", compression=Compression.GZIP), 2),
        E.INVALID_RECORD,
    ),
    "not gzip": (lambda: with_field(batch(b"a"), 21, 1, 2), E.CORRUPT_MESSAGE),
    "a malformed record": (lambda: with_field(batch(b"a"), 61, 3, 1), E.INVALID_RECORD),
    "too large": (lambda: batch(b"a" * 2_000_000), E.MESSAGE_TOO_LARGE),
    "from the future": (lambda: batch(b"a", at=EPOCH_MS + 7_200_000), E.INVALID_TIMESTAMP),
    "cut off": (lambda: batch(b"a")[:-1], E.INVALID_RECORD),
}


def old(magic: int, *values: bytes, **fields: Any) -> bytes:
    builder = MessageSetBuilder(magic, **fields)
    for value in values:
        builder.append(b"k", value, EPOCH_MS if magic else -1)
    return builder.build()


@pytest.mark.parametrize("what", REFUSED)
def test_rejected_records_are_not_stored(harness: Harness, what: str) -> None:
    make, error = REFUSED[what]
    client = harness.client()
    response = produce(client, make())
    assert (response.error_code, response.base_offset) == (error, -1)
    assert response.error_message
    assert fetched(client) == b""


def test_zstd_takes_version_7(harness: Harness) -> None:
    client = harness.client()
    sent = batch(b"a", compression=Compression.ZSTD)
    assert produce(client, sent, 6).error_code == E.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, sent, 7).error_code == E.NONE
    for version in range(10):
        assert fetched(client, version=version, error=E.UNSUPPORTED_COMPRESSION_TYPE) == b""


def test_errors_name_the_records_that_are_wrong(harness: Harness) -> None:
    harness.create_topic("c", cleanup_policy="compact")
    client = harness.client()
    builder = BatchBuilder()
    for key in (b"k", None, b"k", None):
        builder.append(key, b"v", EPOCH_MS)
    response = produce(client, builder.build(), topic="c")
    assert response.error_code == E.INVALID_RECORD
    assert [each.batch_index for each in response.record_errors] == [1, 3]


def test_log_append_time_is_the_brokers(harness: Harness) -> None:
    harness.create_topic("l", message_timestamp_type="LogAppendTime")
    client = harness.client()
    harness.advance(5.0)
    sent = batch(b"a", b"b", at=EPOCH_MS - 1000)
    assert produce(client, sent, topic="l").log_append_time_ms == EPOCH_MS + 5000
    [stored] = RecordBatches(fetched(client, "l"))
    assert stored.crc_valid
    assert stored.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in stored.records()} == {EPOCH_MS + 5000}


def lying(data: bytes, max_timestamp: int, stamped: bool = False) -> bytes:
    """Change the maximum timestamp of a batch, and its timestamp type to LogAppendTime."""
    batch = Batch(data, 0, len(data))
    with_time = with_field(data, 35, max_timestamp, 8)
    return with_field(with_time, 21, batch.attributes | (8 if stamped else 0), 2)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
@pytest.mark.parametrize(
    ("claimed", "stamped"), [(-1, False), (EPOCH_MS + 9, False), (0, False), (EPOCH_MS, True)]
)
def test_the_maximum_timestamp_is_that_of_the_records(
    harness: Harness, codec: Compression, claimed: int, stamped: bool
) -> None:
    """Sarama leaves it at -1; Kafka computes it again, and clears LogAppendTime."""
    client = harness.client()
    builder = BatchBuilder(compression=codec)
    for late in (1, 3, 2):
        builder.append(b"k", b"v", EPOCH_MS + late)
    assert produce(client, lying(builder.build(), claimed, stamped)).error_code == E.NONE
    [stored] = RecordBatches(fetched(client))
    assert stored.crc_valid
    assert stored.timestamp_type is TimestampType.CREATE_TIME
    assert stored.max_timestamp == EPOCH_MS + 3
    assert [each.timestamp for each in stored.records()] == [EPOCH_MS + at for at in (1, 3, 2)]
    assert offset_at(client, -3).offset == 1
    assert offset_at(client, EPOCH_MS + 2).offset == 1
    assert offset_at(client, EPOCH_MS + 4).offset == -1


@pytest.mark.parametrize(
    ("topic", "claimed"), [("t", -1), ("t", EPOCH_MS + 7_200_000), ("l", EPOCH_MS)]
)
def test_a_log_append_time_is_not_a_clients(harness: Harness, topic: str, claimed: int) -> None:
    harness.create_topic("l", message_timestamp_type="LogAppendTime")
    client = harness.client()
    response = produce(client, lying(batch(b"a", b"b"), claimed, stamped=True), topic=topic)
    assert response.error_code == E.INVALID_TIMESTAMP
    assert [each.batch_index for each in response.record_errors] == [0, 1]
    assert fetched(client, topic) == b""


def test_a_batch_of_a_transaction_needs_a_transactional_id(harness: Harness) -> None:
    """Without one the whole Produce is refused, as a client that may not use the id is."""
    client = harness.client()
    request = produce_request(batch(b"a"))
    of_transaction = batch(b"b", transactional=True, producer_id=1, producer_epoch=0)
    request.topic_data.append(
        TopicProduceData(
            name="absent", partition_data=[PartitionProduceData(index=0, records=of_transaction)]
        )
    )
    response = client.exchange(request, 9, ProduceResponse)
    errors = [each.error_code for row in response.responses for each in row.partition_responses]
    assert errors == [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert fetched(client) == b""
    request.acks = 0
    client.send(request, 9)
    assert client.frame() is None
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in (client.closed or "")


def test_a_batch_of_no_transaction_is_refused(harness: Harness) -> None:
    client = harness.client()
    client.exchange(
        FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["x"]),
        4,
        FindCoordinatorResponse,
    )
    producer = client.exchange(
        InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
        4,
        InitProducerIdResponse,
    )
    assert producer.error_code == E.NONE
    fields: dict[str, Any] = {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "base_sequence": 0,
    }
    request = produce_request(batch(b"a", transactional=True, **fields))
    request.transactional_id = "x"
    response = client.exchange(request, 9, ProduceResponse)
    [partition] = response.responses[0].partition_responses
    assert partition.error_code == E.INVALID_TXN_STATE
    assert fetched(client) == b""


@pytest.mark.parametrize("second", [2, 1])
def test_an_old_produce_has_one_batch_of_magic_2_or_messages_of_one_magic(
    harness: Harness, second: int
) -> None:
    client = harness.client()
    more = batch(b"b", control=False) if second == 2 else old(1, b"b")
    assert produce(client, batch(b"a") + more, version=2).error_code == E.INVALID_RECORD
    assert fetched(client) == b""


def test_a_topic_may_want_its_own_codec(harness: Harness) -> None:
    harness.create_topic("z", compression_type="zstd")
    client = harness.client()
    produce(client, batch(b"a" * 1000, compression=Compression.GZIP), topic="z")
    [stored] = RecordBatches(fetched(client, "z"))
    assert stored.compression is Compression.ZSTD


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.SNAPPY])
@pytest.mark.parametrize("produced", [0, 2, 9])
@pytest.mark.parametrize("read", range(13))
def test_every_format_is_read_by_every_version(
    harness: Harness, produced: int, read: int, codec: Compression
) -> None:
    client = harness.client()
    if produced == 9:
        sent = batch(b"a", b"b", b"c", compression=codec)
    else:
        sent = old(0 if produced == 0 else 1, b"a", b"b", b"c", compression=codec)
    assert produce(client, sent, produced).error_code == E.NONE
    records = list(RecordBatches(fetched(client, version=read)).records())
    expected = [
        Record(at, EPOCH_MS if produced and read >= 2 else -1, b"k", value)
        for at, value in enumerate((b"a", b"b", b"c"))
    ]
    assert records == expected
    magic = 0 if read < 2 else 1 if read < 4 else 2
    assert {each.magic for each in RecordBatches(fetched(client, version=read))} == {magic}


# -- idempotent producers


def sequenced(sequence: int, count: int = 1, producer: int = 7, epoch: int = 0) -> bytes:
    values = [b"v"] * count
    return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def test_a_batch_that_comes_again_is_stored_once(harness: Harness) -> None:
    client = harness.client()
    offsets = [produce(client, sequenced(at)).base_offset for at in range(6)]
    assert offsets == [0, 1, 2, 3, 4, 5]
    for at in range(1, 6):
        response = produce(client, sequenced(at))
        assert (response.error_code, response.base_offset) == (E.NONE, at)
    assert produce(client, sequenced(0)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert offset_at(client, -1).offset == 6


def test_a_gap_in_the_sequence_is_rejected(harness: Harness) -> None:
    client = harness.client()
    assert produce(client, sequenced(0, 3)).error_code == E.NONE
    assert produce(client, sequenced(4)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, sequenced(3)).error_code == E.NONE


def test_sequences_wrap(harness: Harness) -> None:
    client = harness.client()
    last = 2**31 - 1
    assert produce(client, sequenced(last - 1, 2)).error_code == E.NONE
    assert produce(client, sequenced(0)).error_code == E.NONE
    assert produce(client, sequenced(last - 1, 2)).base_offset == 0


def test_epochs_fence(harness: Harness) -> None:
    client = harness.client()
    assert produce(client, sequenced(0, epoch=1)).error_code == E.NONE
    assert produce(client, sequenced(1, epoch=0)).error_code == E.INVALID_PRODUCER_EPOCH
    assert produce(client, sequenced(1, epoch=2)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, sequenced(0, epoch=2)).base_offset == 1, "no copy of that of epoch 1"
    assert produce(client, sequenced(0, epoch=1)).error_code == E.INVALID_PRODUCER_EPOCH
    assert offset_at(client, -1).offset == 2


def test_a_batch_that_an_unclean_leader_lost_is_stored_when_it_comes_again() -> None:
    harness = Harness(2)
    harness.create_topic("t", 1, 2, unclean_leader_election_enable="true")
    first = harness.leader_of("t")
    client = harness.client(first)
    assert produce(client, sequenced(0)).base_offset == 0

    def lost() -> None:
        assert [produce(client, sequenced(at)).base_offset for at in (1, 2)] == [1, 2]

    harness.elect_uncleanly("t", 3 - first, lost)
    moved = harness.client(3 - first)
    assert offset_at(moved, -1).offset == 1
    assert produce(moved, sequenced(2)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [produce(moved, sequenced(at)).base_offset for at in (1, 2)] == [1, 2]
    assert offset_at(moved, -1).offset == 3


# -- lookups


def test_offsets_by_time(harness: Harness) -> None:
    client = harness.client()
    for at in (10, 30, 20):
        produce(client, batch(b"v", at=EPOCH_MS + at))
    found = {
        timestamp: (response.offset, response.timestamp)
        for timestamp in (5, 10, 11, 30, 31)
        for response in [offset_at(client, EPOCH_MS + timestamp)]
    }
    assert found == {
        5: (0, EPOCH_MS + 10),
        10: (0, EPOCH_MS + 10),
        11: (1, EPOCH_MS + 30),
        30: (1, EPOCH_MS + 30),
        31: (-1, -1),
    }
    special = {timestamp: offset_at(client, timestamp).offset for timestamp in range(-6, 0)}
    assert special == {-1: 3, -2: 0, -3: 1, -4: 0, -5: -1, -6: -1}


def test_special_times_have_their_versions(harness: Harness) -> None:
    client = harness.client()
    produce(client, batch(b"v"))
    for timestamp, since in ((-3, 7), (-4, 8), (-5, 9), (-6, 11)):
        assert offset_at(client, timestamp, since - 1).error_code == E.UNSUPPORTED_VERSION
        assert offset_at(client, timestamp, since).error_code == E.NONE


def test_old_style_offsets(harness: Harness) -> None:
    client = harness.client()
    for _ in range(3):
        produce(client, batch(b"v"))
    for timestamp, most, expected in ((-1, 10, [3, 0]), (-1, 1, [3]), (-2, 10, [0])):
        requested = ListOffsetsPartition(
            partition_index=0, timestamp=timestamp, max_num_offsets=most
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[requested])]
        )
        response = client.exchange(request, 0, ListOffsetsResponse).topics[0].partitions[0]
        assert response.old_style_offsets == expected


def delete(client: Client, offset: int) -> tuple[int, int]:
    requested = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=[requested])
    client.send(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)
    client.harness.wait(lambda: not client.is_waiting())  # followers learn of it when they fetch
    response = client.receive(DeleteRecordsResponse).topics[0].partitions[0]
    return response.error_code, response.low_watermark


def test_records_are_deleted_up_to_an_offset(harness: Harness) -> None:
    client = harness.client()
    produce(client, batch(b"a", b"b", b"c"))
    produce(client, batch(b"d"))
    assert delete(client, 5) == (E.OFFSET_OUT_OF_RANGE, -1)
    assert delete(client, 2) == (E.NONE, 2)
    assert offset_at(client, -2).offset == 2
    fetched(client, offset=1, error=E.OFFSET_OUT_OF_RANGE)
    assert [r.offset for r in RecordBatches(fetched(client, offset=2)).records()] == [0, 1, 2, 3]
    assert delete(client, -1) == (E.NONE, 4)
    assert fetched(client, offset=4) == b""
    assert produce(client, batch(b"e")).base_offset == 4


def test_a_log_keeps_to_its_retention_bytes() -> None:
    harness = Harness(settings={"log.retention.check.interval.ms": "1000"})
    harness.create_topic("t", retention_bytes="3000", internal_segment_bytes="1000")
    client = harness.client()
    for _ in range(50):
        assert produce(client, batch(b"x" * 500)).error_code == E.NONE
    harness.advance(31.0)  # the first check is after 30 seconds
    start = offset_at(client, -2).offset
    assert start > 40
    assert 3000 <= len(fetched(client, offset=start)) <= 3000 + 1000, "up to a segment more"


def test_acks_0_has_no_response_and_an_error_closes(harness: Harness) -> None:
    client = harness.client()
    data = PartitionProduceData(index=0, records=batch(b"a"))
    request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    client.send(request, 9)
    client.in_flight.pop()
    assert offset_at(client, -1).offset == 1
    request.topic_data[0].name = "absent"
    client.send(request, 9)
    assert client.frame() is None
    assert client.closed is not None
    assert "UNKNOWN_TOPIC_OR_PARTITION" in client.closed


def test_acks_0_closes_where_the_log_refuses_the_records(harness: Harness) -> None:
    client = harness.client()
    client.send(produce_request(sequenced(4), acks=0), 9)
    client.send(produce_request(sequenced(6), acks=0), 9)
    assert client.frame() is None
    assert client.closed is not None
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in client.closed


def test_who_sends_invalid_records_gets_the_log_start_offset(harness: Harness) -> None:
    client = harness.client()
    produce(client, batch(b"a", b"b", b"c"))
    delete(client, 2)
    late = produce(client, batch(b"d", at=EPOCH_MS + (1 << 40)))
    assert (late.error_code, late.log_start_offset) == (E.INVALID_TIMESTAMP, 2)
    assert produce(client, b"no batch").log_start_offset == -1


def test_acks_are_0_1_or_all(harness: Harness) -> None:
    assert produce(harness.client(), batch(b"a"), acks=2).error_code == E.INVALID_REQUIRED_ACKS


def test_too_few_in_sync_replicas_reject_acks_all() -> None:
    harness = Harness(2)
    harness.create_topic("t", 1, 2, min_insync_replicas="2")
    client = harness.client(harness.leader_of("t"))
    assert produce(client, batch(b"a")).error_code == E.NONE
    harness.stop_broker(3 - harness.leader_of("t"))
    assert produce(client, batch(b"a")).error_code == E.NOT_ENOUGH_REPLICAS
    assert produce(client, batch(b"a"), acks=1).error_code == E.NONE


def test_a_topic_and_a_broker_that_are_configured_anew_take_what_they_now_may(
    harness: Harness,
) -> None:
    """What was read of a configuration does not outlive it."""
    client = harness.client()
    large = batch(b"x" * 500)
    assert produce(client, large).error_code == E.NONE
    harness.alter_configs(ResourceType.TOPIC, "t", {"max.message.bytes": "100"})
    assert produce(client, large).error_code == E.MESSAGE_TOO_LARGE
    harness.alter_configs(ResourceType.TOPIC, "t", {"max.message.bytes": None})
    assert produce(client, large).error_code == E.NONE
    harness.alter_configs(ResourceType.BROKER, "", {"message.max.bytes": "100"})
    assert produce(client, large).error_code == E.MESSAGE_TOO_LARGE
    harness.alter_configs(ResourceType.BROKER, "", {"message.max.bytes": None})
    assert produce(client, large).error_code == E.NONE
    harness.delete_topics("t")
    harness.create_topic("t", 1, max_message_bytes="100")
    assert produce(client, large).error_code == E.MESSAGE_TOO_LARGE
