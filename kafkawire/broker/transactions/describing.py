"""ListTransactions, DescribeTransactions and DescribeProducers (KIP-664, KIP-994, KIP-1152).

They show what is committed, and change nothing.
"""

from __future__ import annotations

from ...messages.describe_producers_request import DescribeProducersRequest
from ...messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ...messages.describe_transactions_request import DescribeTransactionsRequest
from ...messages.describe_transactions_response import DescribeTransactionsResponse, TopicData
from ...messages.describe_transactions_response import TransactionState as Described
from ...messages.list_transactions_request import ListTransactionsRequest
from ...messages.list_transactions_response import ListTransactionsResponse
from ...messages.list_transactions_response import TransactionState as Listed
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ...storage.producer_entry import ProducerStateEntry
from ...transactions import Transaction, TransactionState
from ..groups.consumer_groups.regular_expressions import matching, pattern_error
from ..machines import Machines
from ..metadata_cache import MetadataCache
from .coordinators import TransactionCoordinators

E = ErrorCode


def list_transactions(
    coordinators: TransactionCoordinators, body: ListTransactionsRequest, wall_ms: int
) -> ListTransactionsResponse:
    """List the transactional ids of this node's coordinators that the filters let through."""
    pattern = body.transactional_id_pattern
    if pattern and pattern_error(pattern) is not None:
        return ListTransactionsResponse(error_code=E.INVALID_REGULAR_EXPRESSION)
    listed = [each for of in coordinators.all() for each in of.transactions.values()]
    if pattern:
        matched = matching(pattern, (each.transactional_id for each in listed))
        listed = [each for each in listed if each.transactional_id in matched]
    labels = {each.label for each in TransactionState}
    states, producers = set(body.state_filters), set(body.producer_id_filters)

    def fits(value: Transaction) -> bool:
        is_long = body.duration_filter < 0 or wall_ms - value.start_ms > body.duration_filter
        of_state = not states or value.state.label in states
        return is_long and of_state and (not producers or value.producer_id in producers)

    return ListTransactionsResponse(
        unknown_state_filters=[each for each in body.state_filters if each not in labels],
        transaction_states=[
            Listed(
                transactional_id=value.transactional_id,
                producer_id=value.producer_id,
                transaction_state=value.state.label,
            )
            for value in listed
            if fits(value)
        ],
    )


def describe_transactions(
    coordinators: TransactionCoordinators, body: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe transactional ids."""
    ids = dict.fromkeys(body.transactional_ids)
    return DescribeTransactionsResponse(
        transaction_states=[_described(coordinators, each) for each in ids]
    )


def _described(coordinators: TransactionCoordinators, transactional_id: str) -> Described:
    coordinator = coordinators.find(transactional_id)
    error = E.NONE
    value = None
    if isinstance(coordinator, ErrorCode):
        error = coordinator
    else:
        value = coordinator.transactions.get(transactional_id)
        error = E.TRANSACTIONAL_ID_NOT_FOUND if value is None else E.NONE
    if value is None:
        return Described(transactional_id=transactional_id, error_code=error)
    topics: dict[str, list[int]] = {}
    for name, index in sorted(value.partitions):
        topics.setdefault(name, []).append(index)
    return Described(
        transactional_id=transactional_id,
        transaction_state=value.state.label,
        transaction_timeout_ms=value.timeout_ms,
        transaction_start_time_ms=value.start_ms,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        topics=[TopicData(topic=name, partitions=indexes) for name, indexes in topics.items()],
    )


def describe_producers(
    machines: Machines, metadata: MetadataCache, body: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of partitions that this node leads."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(machines, metadata, topic.name, each)
                    for each in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
    )


def _partition(
    machines: Machines, metadata: MetadataCache, name: str, index: int
) -> PartitionResponse:
    topic = metadata.topics.get(name)
    if topic is None or topic.partition(index) is None:
        error = E.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(partition_index=index, error_code=error)
    key = TopicIdPartition(topic.topic_id, index)
    replica = machines.replica(key)
    if replica is None or not replica.is_leader:
        return PartitionResponse(partition_index=index, error_code=E.NOT_LEADER_OR_FOLLOWER)
    producers = [_producer(each) for each in machines.producers(key).values()]
    return PartitionResponse(partition_index=index, active_producers=producers)


def _producer(entry: ProducerStateEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.current_txn_first_offset,
    )
