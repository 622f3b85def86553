"""Transactions: listed, described, found to be hanging and aborted (KIP-664).

A transaction hangs where a partition has records of it, but its coordinator does not know of that:
nobody will ever write its marker there, and consumers with read_committed wait before it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from ...client.admin.calls import LeaderOf
from ...client.failures import BrokerError
from ...client.requests import Coordinator, CoordinatorKind, Destination
from ...messages.api_key import ApiKey
from ...messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from ...messages.describe_producers_response import DescribeProducersResponse, ProducerState
from ...messages.describe_transactions_request import DescribeTransactionsRequest
from ...messages.describe_transactions_response import DescribeTransactionsResponse
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...messages.list_transactions_request import ListTransactionsRequest
from ...messages.list_transactions_response import ListTransactionsResponse
from ...messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ...messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WriteTxnMarkersResponse,
)
from ...protocol.error_code import ErrorCode
from .calls import CallRunner, check, only
from .values import HangingTransaction, ProducerInfo, TransactionInfo, TransactionListing

DURATION_FROM: Final = 1
PATTERN_FROM: Final = 2
OPEN: Final = 0
"""The least start offset of a transaction that is open."""
MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""What a broker responds that is no longer the leader of a partition, or not yet."""
Partition = tuple[str, int]


async def list_transactions(
    calls: CallRunner, brokers: Iterable[int], request: ListTransactionsRequest
) -> list[TransactionListing]:
    """List the transactional ids that the filters of the request let through, sorted."""
    lowest = DURATION_FROM if request.duration_filter >= 0 else 0
    lowest = PATTERN_FROM if request.transactional_id_pattern else lowest

    async def of_broker(broker: int) -> list[TransactionListing]:
        response = await calls.call(
            broker,
            ApiKey.LIST_TRANSACTIONS,
            ListTransactionsResponse,
            lambda _: request,
            lambda response: [response.error_code],
            lowest=lowest,
        )
        check(response.error_code, f"transactions of broker {broker}")
        return [
            TransactionListing(row.transactional_id, row.producer_id, row.transaction_state)
            for row in response.transaction_states
        ]

    listings = await asyncio.gather(*map(of_broker, brokers))
    return sorted({row for rows in listings for row in rows})


async def describe_transaction(calls: CallRunner, transactional_id: str) -> TransactionInfo:
    """Describe the transaction of a transactional id."""
    response = await calls.call(
        Coordinator(CoordinatorKind.TRANSACTION, transactional_id),
        ApiKey.DESCRIBE_TRANSACTIONS,
        DescribeTransactionsResponse,
        lambda _: DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        lambda response: [row.error_code for row in response.transaction_states],
    )
    row = only(response.transaction_states, f"transactional id {transactional_id}")
    check(row.error_code, f"transactional id {transactional_id}")
    return TransactionInfo(
        row.transactional_id,
        row.transaction_state,
        row.producer_id,
        row.producer_epoch,
        row.transaction_timeout_ms,
        row.transaction_start_time_ms,
        tuple(sorted((topic.topic, index) for topic in row.topics for index in topic.partitions)),
    )


async def describe_producers(calls: CallRunner, partition: Partition) -> tuple[ProducerInfo, ...]:
    """Describe the producers of a partition, by their ids."""
    response = await _producers(calls, LeaderOf(*partition), [partition])
    topic, index = partition
    rows = [row for each in response.topics for row in each.partitions]
    row = only(rows, f"{topic}-{index}")
    check(row.error_code, f"{topic}-{index}", row.error_message)
    return tuple(sorted(map(_producer, row.active_producers)))


async def _producers(
    calls: CallRunner, to: Destination | LeaderOf, partitions: Collection[Partition]
) -> DescribeProducersResponse:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for name, index in partitions:
        topics[name].append(index)
    retries = isinstance(to, LeaderOf)
    return await calls.call(
        to,
        ApiKey.DESCRIBE_PRODUCERS,
        DescribeProducersResponse,
        lambda _: DescribeProducersRequest(
            topics=[
                TopicRequest(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        ),
        lambda response: [
            row.error_code for topic in response.topics for row in topic.partitions if retries
        ],
    )


def _producer(row: ProducerState) -> ProducerInfo:
    return ProducerInfo(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.coordinator_epoch,
        row.current_txn_start_offset,
    )


async def open_transactions(
    calls: CallRunner, leaders: Iterable[tuple[int, Partition]], before_ms: int
) -> list[HangingTransaction]:
    """Find the open transactions of partitions whose last record is older than a time.

    leaders: the leader of each partition.
    """
    by_leader: defaultdict[int, list[Partition]] = defaultdict(list)
    for leader, partition in leaders:
        by_leader[leader].append(partition)
    responses = await asyncio.gather(
        *(_producers(calls, leader, partitions) for leader, partitions in by_leader.items())
    )
    producers: dict[Partition, Sequence[ProducerInfo]] = {}
    moved: list[Partition] = []
    for response in responses:
        for topic in response.topics:
            for row in topic.partitions:
                where = topic.name, row.partition_index
                if row.error_code in MOVED:
                    moved.append(where)
                    continue
                check(row.error_code, f"{topic.name}-{row.partition_index}", row.error_message)
                producers[where] = [_producer(each) for each in row.active_producers]
    described = await asyncio.gather(*(describe_producers(calls, each) for each in moved))
    producers |= zip(moved, described, strict=True)
    return [
        HangingTransaction(
            *where,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.start_offset,
            each.last_timestamp,
        )
        for where, of_partition in sorted(producers.items())
        for each in of_partition
        if each.start_offset >= OPEN and each.last_timestamp < before_ms
    ]


async def hanging(
    calls: CallRunner, brokers: Collection[int], candidates: Sequence[HangingTransaction]
) -> list[HangingTransaction]:
    """Return those of the open transactions that no coordinator will end."""
    if not candidates:
        return []
    producer_ids = sorted({each.producer_id for each in candidates})
    request = ListTransactionsRequest(producer_id_filters=producer_ids)
    listed = await list_transactions(calls, brokers, request)
    ends = await asyncio.gather(*(_to_end(calls, each) for each in listed))
    partitions = {each for of_transaction in ends for each in of_transaction}
    return [
        each
        for each in candidates
        if (each.producer_id, (each.topic, each.partition)) not in partitions
    ]


async def _to_end(calls: CallRunner, listing: TransactionListing) -> list[tuple[int, Partition]]:
    """Return the partitions where the coordinator of a transactional id will end a transaction."""
    try:
        described = await describe_transaction(calls, listing.transactional_id)
    except BrokerError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return []  # it has expired since
        raise
    return [(described.producer_id, each) for each in described.partitions]


async def abort(calls: CallRunner, hanging: HangingTransaction) -> None:
    """Write the marker of an aborted transaction to a partition."""
    marker = WritableTxnMarker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        # -1 where no transaction of the producer has ended yet
        coordinator_epoch=max(hanging.coordinator_epoch, 0),
        topics=[WritableTxnMarkerTopic(name=hanging.topic, partition_indexes=[hanging.partition])],
    )
    response = await calls.call(
        LeaderOf(hanging.topic, hanging.partition),
        ApiKey.WRITE_TXN_MARKERS,
        WriteTxnMarkersResponse,
        lambda _: WriteTxnMarkersRequest(markers=[marker]),
        lambda response: [row.error_code for row in _marked(response)],
    )
    for row in _marked(response):
        check(row.error_code, f"{hanging.topic}-{row.partition_index}")


def _marked(response: WriteTxnMarkersResponse) -> list[WritableTxnMarkerPartitionResult]:
    return [
        row for marker in response.markers for topic in marker.topics for row in topic.partitions
    ]


async def fence(calls: CallRunner, transactional_id: str, timeout_ms: int) -> None:
    """Raise the epoch of a transactional id's producer (InitProducerId), which fences it."""
    response = await calls.call(
        Coordinator(CoordinatorKind.TRANSACTION, transactional_id),
        ApiKey.INIT_PRODUCER_ID,
        InitProducerIdResponse,
        lambda _: InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        ),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"transactional id {transactional_id}")
