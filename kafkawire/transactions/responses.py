"""Responses of the APIs of transactions, and their errors.

An error stands where a client of that version looks for it; PRODUCER_FENCED only in the versions
that have it, INVALID_PRODUCER_EPOCH in those before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..messages import add_partitions_to_txn_request as adding
from ..messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from ..messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from ..messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ..messages.describe_producers_request import DescribeProducersRequest
from ..messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from ..messages.describe_transactions_request import DescribeTransactionsRequest
from ..messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from ..messages.end_txn_request import EndTxnRequest
from ..messages.end_txn_response import EndTxnResponse
from ..messages.list_transactions_request import ListTransactionsRequest
from ..messages.list_transactions_response import ListTransactionsResponse
from ..messages.txn_offset_commit_request import TxnOffsetCommitRequest
from ..messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ..messages.write_txn_markers_request import WriteTxnMarkersRequest
from ..messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from ..primitives import Message
from ..protocol import ErrorCode
from .transaction import TopicPartition

E = ErrorCode
FENCED_FROM: Final = 2
"""The first version of EndTxn, AddPartitionsToTxn and AddOffsetsToTxn with PRODUCER_FENCED."""


def of_version(error: ErrorCode, version: int, fenced_from: int = FENCED_FROM) -> ErrorCode:
    """Return an error as clients of a version know it."""
    old = error is E.PRODUCER_FENCED and version < fenced_from
    return E.INVALID_PRODUCER_EPOCH if old else error


def partitions_of(topics: Iterable[adding.AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    """List the partitions of an AddPartitionsToTxn."""
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def topic_results(
    errors: Mapping[TopicPartition, ErrorCode],
) -> list[AddPartitionsToTxnTopicResult]:
    """Return the errors of partitions, by topic."""
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (name, index), error in errors.items():
        result = AddPartitionsToTxnPartitionResult(
            partition_index=index, partition_error_code=error
        )
        topics.setdefault(name, []).append(result)
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in topics.items()
    ]


def _add_partitions(body: adding.AddPartitionsToTxnRequest, error: ErrorCode) -> Message:
    return AddPartitionsToTxnResponse(
        error_code=error,
        results_by_topic_v3_and_below=topic_results(
            dict.fromkeys(partitions_of(body.v3_and_below_topics), error)
        ),
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=topic_results(dict.fromkeys(partitions_of(each.topics), error)),
            )
            for each in body.transactions
        ],
    )


def _write_markers(body: WriteTxnMarkersRequest, error: ErrorCode) -> Message:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=each, error_code=error)
                            for each in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in body.markers
        ]
    )


def offset_commit(body: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """Return a TxnOffsetCommit's response with the error for each partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _describe(body: DescribeTransactionsRequest, error: ErrorCode) -> Message:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=each, error_code=error)
            for each in body.transactional_ids
        ]
    )


def _describe_producers(body: DescribeProducersRequest, error: ErrorCode) -> Message:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=each, error_code=error)
                    for each in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
    )


ERRORS: Final[Mapping[type[Message], Callable[[Any, ErrorCode], Message]]] = {
    AddOffsetsToTxnRequest: lambda _, error: AddOffsetsToTxnResponse(error_code=error),
    adding.AddPartitionsToTxnRequest: _add_partitions,
    DescribeProducersRequest: _describe_producers,
    DescribeTransactionsRequest: _describe,
    EndTxnRequest: lambda _, error: EndTxnResponse(error_code=error),
    ListTransactionsRequest: lambda _, error: ListTransactionsResponse(error_code=error),
    TxnOffsetCommitRequest: offset_commit,
    WriteTxnMarkersRequest: _write_markers,
}
"""Request -> its response with an error."""
