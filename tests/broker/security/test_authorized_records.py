"""What a client without all permissions gets when it produces and fetches: a part, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.operations import (
    AclResource,
    Operation,
    bits,
)
from kafkawire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkawire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kafkawire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafkawire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.describe_transactions_request import DescribeTransactionsRequest
from kafkawire.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.list_transactions_request import ListTransactionsRequest
from kafkawire.messages.list_transactions_response import ListTransactionsResponse
from kafkawire.messages.produce_response import ProduceResponse
from tests.broker.fetches import fetch_of
from tests.broker.harness import Client, Harness
from tests.broker.members import coordinator
from tests.broker.security.acls import (
    ALL,
    CLUSTER,
    DENY,
    PREFIXED,
    acl,
    everything,
    set_acls,
)
from tests.broker.security.authorized import HIDDEN, SEEN, producing

E, O, R = ErrorCode, Operation, AclResource  # noqa: E741
TXN = "id"


# -- records


def test_only_what_may_be_written_is(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.WRITE))
    response = client.exchange(producing(HIDDEN, SEEN), 12, ProduceResponse)
    assert {each.name: each.partition_responses[0].error_code for each in response.responses} == {
        SEEN: E.NONE,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
    }
    assert harness.replica(SEEN).log.log_end_offset == 1
    assert harness.replica(HIDDEN).log.log_end_offset == 0


def test_without_a_response_the_connection_is_closed(harness: Harness, client: Client) -> None:
    set_acls(harness, acl(R.TOPIC, SEEN, O.WRITE))
    client.send(producing(SEEN, acks=0), 12)
    assert client.closed is None
    client.send(producing(HIDDEN, SEEN, acks=0), 12)
    assert client.closed == "PRODUCE without a response is not authorized"
    assert harness.replica(SEEN).log.log_end_offset == 2
    assert harness.replica(HIDDEN).log.log_end_offset == 0


@pytest.mark.parametrize("version", [12, 17])
def test_a_session_reads_what_may_be_read_now(
    harness: Harness, client: Client, version: int
) -> None:
    for topic in (SEEN, HIDDEN):
        assert client.exchange(producing(topic), 12, ProduceResponse).responses
    readable = [acl(R.TOPIC, each, O.READ) for each in (SEEN, HIDDEN)]
    set_acls(harness, readable[0])
    session_id, epoch = 0, 0

    def read(first: bool = False) -> dict[str, int]:
        nonlocal session_id, epoch
        keys = [harness.key(topic) for topic in (SEEN, HIDDEN)] if first else []
        request = fetching(keys, version, session_id, epoch)
        response = client.exchange(request, version, FetchResponse)
        assert response.error_code == E.NONE
        session_id, epoch = response.session_id, epoch + 1
        ids = {harness.key(topic).topic_id: topic for topic in (SEEN, HIDDEN)}
        return {
            each.topic or ids[each.topic_id]: each.partitions[0].error_code
            for each in response.responses
        }

    def fetching(keys: Any, version: int, session_id: int, epoch: int) -> FetchRequest:
        names = {harness.key(topic).topic_id: topic for topic in (SEEN, HIDDEN)}
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=names[key.topic_id] if version < 13 else "",
                    topic_id=key.topic_id if version >= 13 else bytes(16),
                    partitions=[
                        FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
                    ],
                )
                for key in keys
            ],
        )

    assert read(first=True) == {SEEN: E.NONE, HIDDEN: E.TOPIC_AUTHORIZATION_FAILED}
    set_acls(harness, *readable)
    assert read() == {SEEN: E.NONE, HIDDEN: E.NONE}
    set_acls(harness, readable[1])
    assert read() == {SEEN: E.TOPIC_AUTHORIZATION_FAILED, HIDDEN: E.NONE}


def test_a_client_that_claims_to_be_a_replica_needs_a_cluster_action(
    harness: Harness, client: Client
) -> None:
    set_acls(harness, acl(R.TOPIC, "*", ALL))
    request = fetch_of(client, SEEN)
    request.replica_id = 2
    response = client.exchange(request, 12, FetchResponse)
    assert response.responses[0].partitions[0].error_code == E.TOPIC_AUTHORIZATION_FAILED
    set_acls(harness, acl(R.CLUSTER, CLUSTER, O.CLUSTER_ACTION))
    response = client.exchange(request, 12, FetchResponse)
    assert response.responses[0].partitions[0].error_code != E.TOPIC_AUTHORIZATION_FAILED


# -- producers


def test_who_may_write_to_any_topic_may_be_an_idempotent_producer(
    harness: Harness, client: Client
) -> None:
    def initialised(*acls: Any) -> int:
        set_acls(harness, *acls)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return client.exchange(request, 4, InitProducerIdResponse).error_code

    write = acl(R.TOPIC, SEEN, O.WRITE)
    assert initialised() == E.CLUSTER_AUTHORIZATION_FAILED
    assert initialised(acl(R.TOPIC, SEEN, O.READ)) == E.CLUSTER_AUTHORIZATION_FAILED
    assert initialised(write) == E.NONE
    denied = acl(R.TOPIC, "s", O.WRITE, DENY, pattern=PREFIXED)
    assert initialised(write, denied) == E.CLUSTER_AUTHORIZATION_FAILED
    assert initialised(acl(R.CLUSTER, CLUSTER, O.IDEMPOTENT_WRITE)) == E.NONE


def test_a_partition_that_may_not_be_written_keeps_all_out_of_a_transaction(
    harness: Harness, client: Client
) -> None:
    set_acls(
        harness,
        acl(R.TRANSACTIONAL_ID, TXN, O.WRITE),
        *(acl(R.TOPIC, name, O.WRITE) for name in (SEEN, "absent", "__consumer_offsets")),
    )
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0])
            for name in (SEEN, HIDDEN, "absent", "__consumer_offsets")
        ],
    )
    response = client.exchange(request, 3, AddPartitionsToTxnResponse)
    found = {
        each.name: each.results_by_partition[0].partition_error_code
        for each in response.results_by_topic_v3_and_below
    }
    assert found == {
        SEEN: E.OPERATION_NOT_ATTEMPTED,
        HIDDEN: E.TOPIC_AUTHORIZATION_FAILED,
        "absent": E.UNKNOWN_TOPIC_OR_PARTITION,
        "__consumer_offsets": E.TOPIC_AUTHORIZATION_FAILED,
    }


def test_transactions_are_listed_to_who_may_describe_them(harness: Harness) -> None:
    client = harness.client()
    for name in (SEEN, HIDDEN):
        find = FindCoordinatorRequest(key=name, key_type=1)
        harness.wait(
            lambda find=find: (  # type: ignore[misc]
                not client.exchange(find, 3, FindCoordinatorResponse).error_code
            )
        )
        begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        harness.wait(
            lambda begin=begin: (  # type: ignore[misc]
                not client.exchange(begin, 4, InitProducerIdResponse).error_code
            )
        )
    writable = [acl(R.TRANSACTIONAL_ID, "*", O.WRITE), acl(R.TOPIC, "*", O.WRITE)]
    set_acls(harness, *writable)
    adding = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=SEEN,
        v3_and_below_producer_id=described_transaction(client, SEEN).producer_id,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (SEEN, HIDDEN)
        ],
    )
    added = client.exchange(adding, 3, AddPartitionsToTxnResponse)
    for each in added.results_by_topic_v3_and_below:
        assert not each.results_by_partition[0].partition_error_code
    for acls, listed, topics in (
        ([], [], []),
        ([acl(R.TRANSACTIONAL_ID, SEEN, O.DESCRIBE)], [SEEN], []),
        ([acl(R.TRANSACTIONAL_ID, SEEN, O.WRITE), acl(R.TOPIC, SEEN, O.READ)], [SEEN], [SEEN]),
        (writable, [HIDDEN, SEEN], [HIDDEN, SEEN]),
    ):
        set_acls(harness, *acls)
        found = client.exchange(ListTransactionsRequest(), 0, ListTransactionsResponse)
        assert sorted(each.transactional_id for each in found.transaction_states) == listed
        state = described_transaction(client, SEEN)
        assert sorted(each.topic for each in state.topics) == topics
        refused = E.NONE if listed else E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert state.error_code == refused


def described_transaction(client: Client, name: str) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    [state] = client.exchange(request, 0, DescribeTransactionsResponse).transaction_states
    return state


def test_a_group_with_topics_that_may_not_be_described_is_hidden(harness: Harness) -> None:
    group = "new-protocol"
    client = coordinator(harness, group)
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[SEEN, HIDDEN],
        topic_partitions=[],
    )
    set_acls(harness, acl(R.GROUP, group, O.READ), acl(R.TOPIC, SEEN, O.READ))
    refused = client.exchange(beat, 1, ConsumerGroupHeartbeatResponse)
    assert refused.error_code == E.TOPIC_AUTHORIZATION_FAILED
    set_acls(harness, *everything())
    assert not client.exchange(beat, 1, ConsumerGroupHeartbeatResponse).error_code
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    describe = acl(R.GROUP, group, O.DESCRIBE)
    for acls, error, members in (
        ([describe], E.TOPIC_AUTHORIZATION_FAILED, 0),
        ([describe, acl(R.TOPIC, SEEN, O.READ)], E.TOPIC_AUTHORIZATION_FAILED, 0),
        ([describe, acl(R.TOPIC, "*", O.READ)], E.NONE, 1),
    ):
        set_acls(harness, *acls)
        [found] = client.exchange(request, 0, ConsumerGroupDescribeResponse).groups
        assert (found.error_code, len(found.members)) == (error, members)
    assert found.authorized_operations == bits(O.DESCRIBE)
