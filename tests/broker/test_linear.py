"""The work of a request grows with the request alone, or with what it returns, not with their
product: counted at n and 10 n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kafkawire
from kafkawire import ErrorCode, Message
from kafkawire.broker import Bounds, Received
from kafkawire.broker.groups.offsets import Committed, offset_record
from kafkawire.broker.topics import OFFSETS_TOPIC
from kafkawire.controller.operations.alter_configs import APPEND, SUBTRACT
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.list_offsets_response import ListOffsetsResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkawire.messages.offset_delete_response import OffsetDeleteResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.records import RecordBatches

from .consumer import AT_ONCE
from .fetches import LARGE, fetch_of, only
from .groups.test_group_bounds import commit, grouped, join
from .harness import Client, Harness
from .log.test_log import batch, produce, produce_request
from .members import SUBSCRIBED, coordinator
from .work import steps

E = ErrorCode
BOUND = 13
"""How many times as much ten times as much may cost: a part of the work is there for n = 0, too."""


def cost(client: Client, request: Message, version: int) -> int:
    """Count the steps that a request takes."""
    frame = kafkawire.encode_frame(request, version, 1, client_id="c")
    return steps(lambda: client.harness.cluster.handle(Received(client.number, frame), 0.0))


def grows_linearly(work: Callable[[int], int], n: int = 20) -> None:
    """Whether ten times as much costs ten times as much. The first run warms caches up."""
    work(n)
    small, large = work(n), work(10 * n)
    assert large <= BOUND * small, (small, large)


def constant(work: Callable[[int], int], n: int = 20) -> None:
    """Whether one request costs the same, however much there is."""
    work(n)
    small, large = work(n), work(10 * n)
    assert large <= 1.2 * small, (small, large)


# -- topics


def test_deleting_topics_looks_at_committed_offsets_once() -> None:
    def work(n: int) -> int:
        harness = Harness(topics={f"t{at}": 1 for at in range(n)})
        coordinator(harness, "g")
        found = harness.groups().of(0)
        assert not isinstance(found, ErrorCode)
        names = [f"t{at}" for at in range(n)]
        for group in range(n // 10):
            given = {(name, 0): Committed(1, -1, "", 0) for name in names}
            records = [offset_record(f"g{group}", *each) for each in given.items()]
            found.commit(f"g{group}", given, 0.0, records)
        return cost(harness.client(), DeleteTopicsRequest(topic_names=names), 5)

    # n topics have n * n / 10 offsets, each of which is deleted and each looked at once
    work(50)
    small, large = work(50), work(200)
    assert large <= 4 * 4 * 1.3 * small


# -- fetching


def delayed_fetch(harness: Harness, count: int, *, distinct: bool) -> Client:
    """Let a client wait for so many partitions of topic t."""
    client = harness.client()
    requested = [
        FetchPartition(partition=at if distinct else 0, fetch_offset=0, partition_max_bytes=LARGE)
        for at in range(count)
    ]
    request = FetchRequest(
        max_wait_ms=600_000,
        min_bytes=LARGE,
        max_bytes=LARGE,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=requested)],
    )
    client.send(request, 12)
    assert client.is_waiting()
    return client


@pytest.mark.parametrize("distinct", [True, False])
def test_an_append_does_not_look_at_all_partitions_of_a_delayed_fetch(distinct: bool) -> None:
    def work(n: int) -> int:
        harness = Harness(topics={"t": n})
        produce(harness.client(), batch(b"a"))  # the first request looks at all of the topic
        delayed_fetch(harness, n, distinct=distinct)
        return cost(harness.client(), produce_request(batch(b"a")), 9)

    constant(work)


def test_an_append_does_not_look_at_all_records_since_a_fetch_was_delayed() -> None:
    harness = Harness(topics={"t": 1})
    delayed_fetch(harness, 1, distinct=True)
    writer = harness.client()

    def work(n: int) -> int:
        for _ in range(n):
            produce(writer, batch(b"a"))
        return cost(writer, produce_request(batch(b"a")), 9)

    constant(work)


def test_a_partition_that_is_named_twice_is_fetched_once() -> None:
    harness = Harness(topics={"t": 1})
    client = harness.client()
    produce(client, batch(b"a"))
    requested = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=LARGE)] * 3
    request = FetchRequest(
        session_epoch=-1, max_bytes=LARGE, topics=[FetchTopic(topic="t", partitions=requested)]
    )
    [topic] = client.exchange(request, 12, FetchResponse).responses
    assert len(topic.partitions) == 1


@pytest.mark.parametrize("timestamp", [1, -3, 2**60])
def test_a_lookup_by_time_does_not_look_at_every_batch(timestamp: int) -> None:
    harness = Harness(topics={"t": 1})
    client = harness.client()

    def work(n: int) -> int:
        for _ in range(n):
            produce(client, batch(b"a"))
        requested = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[requested])])
        client.exchange(request, 8, ListOffsetsResponse)
        return cost(client, request, 8)

    constant(work)


def test_a_partition_is_looked_up_once_in_a_request() -> None:
    client = Harness(topics={"t": 2}).client()
    requested = [ListOffsetsPartition(partition_index=at, timestamp=-1) for at in (0, 1, 0)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=requested)])
    [topic] = client.exchange(request, 8, ListOffsetsResponse).topics
    codes = [each.error_code for each in topic.partitions]
    assert codes == [E.INVALID_REQUEST, E.NONE, E.INVALID_REQUEST]


# -- groups


def test_members_that_join_do_not_each_look_at_all_others() -> None:
    """A rebalance of n members costs n joins and one response for each, the leader's apart."""

    def work(n: int) -> int:
        harness = Harness(settings=AT_ONCE | {"group.initial.rebalance.delay.ms": "3000"})
        coordinator(harness, "g")
        clients = [harness.client() for _ in range(n)]
        total = 0
        for client in clients:
            member = join(client, "g").member_id
            total += steps(lambda: _rejoin(client, member))  # noqa: B023
        return total + steps(lambda: harness.advance(11))

    grows_linearly(work)


def _rejoin(client: Client, member_id: str) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED)],
    )
    client.send(request, 9)


def test_offsets_are_deleted_in_one_batch() -> None:
    harness, client = grouped(Bounds())
    commit(client, "g", *range(8))
    partition = harness.groups().partition_of("g")
    loaded = harness.groups().of(partition)
    assert not isinstance(loaded, ErrorCode)
    loaded.groups["g"].protocol_type = "consumer"  # it had members once
    requested = [OffsetDeleteRequestPartition(partition_index=at % 8) for at in range(100)]
    topics = [OffsetDeleteRequestTopic(name="t", partitions=requested)]

    def batches() -> int:
        fetch = fetch_of(client, OFFSETS_TOPIC, partition=partition)
        response = client.exchange(fetch, 12, FetchResponse)
        return len(list(RecordBatches(only(response).records or b"")))

    before = batches()
    client.exchange(OffsetDeleteRequest(group_id="g", topics=topics), 0, OffsetDeleteResponse)
    assert batches() == before + 1
    assert not loaded.offsets["g"]


# -- what a few bytes have described again and again


def test_a_resource_that_is_named_often_is_described_once() -> None:
    client = Harness(topics={"t": 1}).client()
    resources = [DescribeConfigsResource(resource_type=2, resource_name="t")] * 500
    request = DescribeConfigsRequest(resources=resources)
    assert len(client.exchange(request, 4, DescribeConfigsResponse).results) == 1


def test_a_group_that_is_named_often_is_described_once() -> None:
    _, client = grouped(Bounds())
    commit(client, "g", *range(8))
    described = DescribeGroupsRequest(groups=["g"] * 500)
    assert len(client.exchange(described, 5, DescribeGroupsResponse).groups) == 1
    requested = [OffsetFetchRequestGroup(group_id="g", topics=None)] * 500
    [found] = client.exchange(OffsetFetchRequest(groups=requested), 8, OffsetFetchResponse).groups
    assert len(found.topics[0].partitions) == 8


# -- configuration


def altered(client: Client, operation: int, value: str) -> Any:
    change = AlterableConfig(
        name="follower.replication.throttled.replicas", config_operation=operation, value=value
    )
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [found] = client.exchange(request, 1, IncrementalAlterConfigsResponse).responses
    return found


def test_a_list_does_not_grow_for_ever_and_has_each_value_once() -> None:
    harness = Harness(topics={"t": 1})
    client = harness.client()
    key = "follower.replication.throttled.replicas"

    def throttled() -> str:
        topic = harness.topic("t")
        assert topic is not None
        return topic.configs[key]

    assert altered(client, APPEND, "0:1,0:2,0:1").error_code == E.NONE
    assert altered(client, APPEND, "0:2,0:3").error_code == E.NONE
    assert throttled() == "0:1,0:2,0:3"
    assert altered(client, SUBTRACT, "0:2,9:9").error_code == E.NONE
    assert throttled() == "0:1,0:3"
    found = altered(client, APPEND, "1:" + "4" * 32_000)
    assert found.error_code == E.NONE
    found = altered(client, APPEND, "2:" + "5" * 1_000)
    assert found.error_code == E.INVALID_CONFIG
    assert "32767" in found.error_message


# -- rules, and everything else that is remembered of topics


def test_nothing_is_remembered_of_deleted_topics() -> None:
    harness = Harness()
    client = harness.client()
    for at in range(20):
        harness.create_topic(f"t{at}")
        produce(client, batch(b"a"), topic=f"t{at}")
        harness.delete_topics(f"t{at}")
    assert harness.image.indexes.count == 0
    assert not harness.broker().rules


def test_the_work_of_large_requests_is_linear() -> None:
    """Metadata for unknown topics, one after the other: what others wait for grows with it."""

    def work(n: int) -> int:
        harness = Harness(settings={"auto.create.topics.enable": "false"})
        requested = [MetadataRequestTopic(name=f"t{at}") for at in range(n)]
        return cost(harness.client(), MetadataRequest(topics=requested), 9)

    grows_linearly(work)
