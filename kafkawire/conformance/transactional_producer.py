"""Transactional producers of version 1: clients add the partitions (KIP-98)."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ..messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ..messages.api_key import ApiKey
from ..messages.end_txn_request import EndTxnRequest
from ..messages.end_txn_response import EndTxnResponse
from ..messages.init_producer_id_request import InitProducerIdRequest
from ..messages.init_producer_id_response import InitProducerIdResponse
from ..net.admin.calls import only
from ..protocol.error_code import ErrorCode
from .behaviour import expect_success
from .behaviours.offsets import LATEST, READ_COMMITTED, listed
from .behaviours.producing import batch, produced
from .connection import Connection
from .session import TRANSACTION, Session, Topic

TIMEOUT_MS: Final = 60_000
EXPLICIT: Final = 4
"""EndTxn and AddPartitionsToTxn up to 3, InitProducerId and EndTxn up to 4: transactions of version
1, in which clients add partitions (KIP-98, KIP-890)."""
EXPLICIT_PRODUCE: Final = 11
FOR_CLIENTS: Final = 3
"""AddPartitionsToTxn 4 is for brokers."""
VERSION_2: Final = 5
"""EndTxn 5 returns a new epoch."""


class Producer(NamedTuple):
    """A transactional producer."""

    coordinator: Connection
    transactional_id: str
    id: int
    epoch: int


async def producer(
    s: Session, version: int | None = None, transactional_id: str | None = None
) -> Producer:
    """Get a producer id and an epoch for a transactional id."""
    name = s.name() if transactional_id is None else transactional_id
    to = await s.coordinator(name, TRANSACTION)
    version = s.newest(ApiKey.INIT_PRODUCER_ID, EXPLICIT) if version is None else version
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)

    async def attempt() -> tuple[int, InitProducerIdResponse]:
        response = await to.send(request, version, InitProducerIdResponse)
        return response.error_code, response

    response = await s.settled(attempt, "InitProducerId")
    return Producer(to, name, response.producer_id, response.producer_epoch)


async def add(s: Session, one: Producer, topic: str, version: int | None = None) -> None:
    """Add partition 0 of a topic to the transaction."""
    version = s.newest(ApiKey.ADD_PARTITIONS_TO_TXN, FOR_CLIENTS) if version is None else version
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=one.transactional_id,
        v3_and_below_producer_id=one.id,
        v3_and_below_producer_epoch=one.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )

    async def attempt() -> tuple[int, None]:
        response = await one.coordinator.send(request, version, AddPartitionsToTxnResponse)
        result = only(response.results_by_topic_v3_and_below, topic)
        return only(result.results_by_partition, topic).partition_error_code, None

    await s.settled(attempt, "AddPartitionsToTxn")


async def write(s: Session, one: Producer, topic: Topic, sequence: int, value: bytes) -> None:
    """Produce a record in the transaction."""
    records = batch(
        value=value,
        producer_id=one.id,
        producer_epoch=one.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    version = s.newest(ApiKey.PRODUCE, EXPLICIT_PRODUCE)
    response = await produced(s, topic, version, records, transactional_id=one.transactional_id)
    expect_success(response.error_code, "Produce")


async def end(
    s: Session, one: Producer, *, commit: bool, version: int | None = None
) -> EndTxnResponse:
    """Commit or abort."""
    version = s.newest(ApiKey.END_TXN, EXPLICIT) if version is None else version
    request = EndTxnRequest(
        transactional_id=one.transactional_id,
        producer_id=one.id,
        producer_epoch=one.epoch,
        committed=commit,
    )

    async def attempt() -> tuple[int, EndTxnResponse]:
        response = await one.coordinator.send(request, version, EndTxnResponse)
        return response.error_code, response

    return await s.settled(attempt, "EndTxn")


async def wait_for_end(s: Session, topic: Topic, offset: int) -> None:
    """Wait until the marker of a transaction is in the log: the last stable offset is the end."""

    async def attempt() -> tuple[int, None]:
        version = s.newest(ApiKey.LIST_OFFSETS, 9)
        stable = await listed(s, topic.name, version, LATEST, isolation=READ_COMMITTED)
        behind = stable.offset != offset
        return ErrorCode.CONCURRENT_TRANSACTIONS if behind else stable.error_code, None

    await s.settled(attempt, "last stable offset")
