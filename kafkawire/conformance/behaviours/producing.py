"""Produce: offsets, refused batches, and the sequences of idempotent producers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from ...messages.api_key import ApiKey
from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import ApiVersionsResponse
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ...records import BatchBuilder
from ..behaviour import Behaviour, Feature, expect, expect_error, expect_success, expect_that
from ..session import Session, Topic

BATCHES: Final = 3
"""Produce 3 has batches of magic 2 (KIP-98)."""
BY_ID: Final = 13
"""Produce 13 has topic ids (KIP-516)."""
NEWEST: Final = 13
TIMESTAMP: Final = 1_700_000_000_000
ALL, LEADER, NOBODY = -1, 1, 0
"""Values of acks."""
Check = Callable[[Session, int], Coroutine[Any, Any, None]]


def batch(count: int = 1, *, value: bytes = b"value", **fields: Any) -> bytes:
    """Make a batch of records with the same value, one millisecond apart."""
    builder = BatchBuilder(**fields)
    for number in range(count):
        builder.append(b"key", value, TIMESTAMP + number)
    return builder.build()


def produce(
    topic: Topic,
    version: int,
    records: bytes,
    *,
    acks: int = ALL,
    partition: int = 0,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Make a request for one partition."""
    data = PartitionProduceData(index=partition, records=records)
    named = version < BY_ID
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic.name if named else "",
                topic_id=bytes(16) if named else topic.id,
                partition_data=[data],
            )
        ],
    )


async def produced(
    s: Session, topic: Topic, version: int, records: bytes, **options: Any
) -> PartitionProduceResponse:
    """Produce to the leader of a partition; return the partition of the response."""
    to = await s.leader(topic.name)
    response = await to.send(produce(topic, version, records, **options), version, ProduceResponse)
    return only(only(response.responses, topic.name).partition_responses, topic.name)


async def filled(s: Session, count: int = 3, **fields: Any) -> Topic:
    """Create a topic with a batch of records."""
    topic = await s.topic()
    version = s.newest(ApiKey.PRODUCE, NEWEST)
    expect_success(
        (await produced(s, topic, version, batch(count, **fields))).error_code, "Produce"
    )
    return topic


def _counts_offsets(acks: int) -> Check:
    async def check(s: Session, version: int) -> None:
        topic = await s.topic()
        for expected in (0, 3, 6):
            response = await produced(s, topic, version, batch(3), acks=acks)
            expect_success(response.error_code, "error code")
            expect(response.base_offset, expected, "base offset")
            expect(response.log_append_time_ms, -1, "log append time")

    return check


async def _has_log_append_time(s: Session, version: int) -> None:
    topic = await s.topic(configs={"message.timestamp.type": "LogAppendTime"})
    response = await produced(s, topic, version, batch())
    expect_success(response.error_code, "error code")
    expect_that(response.log_append_time_ms > TIMESTAMP, "no log append time")


async def _does_not_respond(s: Session, version: int) -> None:
    topic = await s.topic()
    to = await s.leader(topic.name)
    await to.send_without_response(produce(topic, version, batch(), acks=NOBODY), version)
    await to.send(ApiVersionsRequest(), 0, ApiVersionsResponse)  # the next response is for this
    response = await produced(s, topic, version, batch())
    expect(response.base_offset, 1, "base offset of the next batch")


def _refuses(expected: ErrorCode, records: Callable[[], bytes] = batch, **options: Any) -> Check:
    async def check(s: Session, version: int) -> None:
        topic = await s.topic()
        response = await produced(s, topic, version, records(), **options)
        expect_error(response.error_code, expected, "error code")
        after = await produced(s, topic, version, batch())
        expect(after.base_offset, 0, "base offset of the next batch")

    return check


def _damaged() -> bytes:
    data = bytearray(batch())
    data[-1] ^= 0xFF
    return bytes(data)


async def _refuses_large(s: Session, version: int) -> None:
    topic = await s.topic(configs={"max.message.bytes": "1000"})
    response = await produced(s, topic, version, batch(value=bytes(2000)))
    expect_error(response.error_code, ErrorCode.MESSAGE_TOO_LARGE, "error code")


async def _refuses_unknown_id(s: Session, version: int) -> None:
    topic = (await s.topic())._replace(id=bytes(range(16)))
    response = await produced(s, topic, version, batch())
    expect_error(response.error_code, ErrorCode.UNKNOWN_TOPIC_ID, "error code")


async def _needs_keys_where_compacted(s: Session, version: int) -> None:
    topic = await s.topic(configs={"cleanup.policy": "compact"})
    builder = BatchBuilder()
    builder.append(None, b"value", TIMESTAMP)
    response = await produced(s, topic, version, builder.build())
    expect_error(response.error_code, ErrorCode.INVALID_RECORD, "error code")


# Idempotent producers.


async def new_producer(s: Session, version: int) -> InitProducerIdResponse:
    """Return a producer id without a transactional id."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    async def attempt() -> tuple[int, InitProducerIdResponse]:
        response = await s.send(request, version, InitProducerIdResponse)
        return response.error_code, response

    return await s.settled(attempt, "InitProducerId")


async def _gives_producer_ids(s: Session, version: int) -> None:
    first, second = await new_producer(s, version), await new_producer(s, version)
    expect_that(first.producer_id >= 0, f"producer id {first.producer_id}")
    expect_that(first.producer_id != second.producer_id, "two producers have the same id")
    expect(first.producer_epoch, 0, "epoch")


def _sequences(*steps: tuple[int, int, ErrorCode, int]) -> Check:
    """Check the results of batches: (epoch, sequence, error, base offset) of each."""

    async def check(s: Session, version: int) -> None:
        topic = await s.topic()
        producer = await new_producer(s, s.newest(ApiKey.INIT_PRODUCER_ID, 4))
        for epoch, sequence, error, offset in steps:
            records = batch(
                2, producer_id=producer.producer_id, producer_epoch=epoch, base_sequence=sequence
            )
            response = await produced(s, topic, version, records)
            what = f"epoch {epoch}, sequence {sequence}"
            expect_error(response.error_code, error, what)
            if error is ErrorCode.NONE:
                expect(response.base_offset, offset, f"{what}: base offset")

    return check


R, A, E = Feature.RECORDS, ApiKey, ErrorCode
OK: Final = E.NONE
BEHAVIOURS: Final = (
    Behaviour(R, A.PRODUCE, "counts offsets up, acks=all", _counts_offsets(ALL), BATCHES),
    Behaviour(R, A.PRODUCE, "counts offsets up, acks=1", _counts_offsets(LEADER), BATCHES),
    Behaviour(R, A.PRODUCE, "does not respond, acks=0", _does_not_respond, BATCHES),
    Behaviour(
        R, A.PRODUCE, "refuses other acks", _refuses(E.INVALID_REQUIRED_ACKS, acks=7), BATCHES
    ),
    Behaviour(
        R, A.PRODUCE, "says the time of a topic with LogAppendTime", _has_log_append_time, BATCHES
    ),
    Behaviour(
        R,
        A.PRODUCE,
        "refuses a batch whose CRC is wrong",
        _refuses(E.CORRUPT_MESSAGE, _damaged),
        BATCHES,
    ),
    Behaviour(
        R,
        A.PRODUCE,
        "refuses a partition that does not exist",
        _refuses(E.UNKNOWN_TOPIC_OR_PARTITION, partition=99),
        BATCHES,
    ),
    Behaviour(R, A.PRODUCE, "refuses a topic id that does not exist", _refuses_unknown_id, BY_ID),
    Behaviour(
        R, A.PRODUCE, "refuses a batch larger than max.message.bytes", _refuses_large, BATCHES
    ),
    Behaviour(
        R,
        A.PRODUCE,
        "refuses a record without a key in a compacted topic",
        _needs_keys_where_compacted,
        BATCHES,
    ),
    Behaviour(R, A.INIT_PRODUCER_ID, "gives each producer an id of its own", _gives_producer_ids),
    Behaviour(
        R,
        A.PRODUCE,
        "writes a batch that is repeated once",
        _sequences((0, 0, OK, 0), (0, 2, OK, 2), (0, 0, OK, 0), (0, 4, OK, 4)),
        BATCHES,
        needs={A.INIT_PRODUCER_ID: 0},
    ),
    Behaviour(
        R,
        A.PRODUCE,
        "refuses a gap in the sequence of a producer",
        _sequences((0, 0, OK, 0), (0, 7, E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), (0, 2, OK, 2)),
        BATCHES,
        needs={A.INIT_PRODUCER_ID: 0},
    ),
    Behaviour(
        R,
        A.PRODUCE,
        "refuses an older epoch of a producer",
        _sequences((1, 0, OK, 0), (0, 2, E.INVALID_PRODUCER_EPOCH, -1), (1, 2, OK, 2)),
        BATCHES,
        needs={A.INIT_PRODUCER_ID: 0},
    ),
)
