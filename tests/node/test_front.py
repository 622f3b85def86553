"""A node and its clients: what outlives the process, what the controller decides, its listeners."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkawire import ApiKey
from kafkawire.broker import Received
from kafkawire.broker.apis import Listener, served_on, supported_apis
from kafkawire.broker.releases import LATEST
from kafkawire.broker.request_handler import METADATA_WAIT_SECONDS
from kafkawire.controller.operations.alter_configs import DELETE, SET
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkawire.messages.delete_records_response import DeleteRecordsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kafkawire.messages.describe_quorum_response import DescribeQuorumResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.produce_request import PartitionProduceData as ProduceData
from kafkawire.messages.produce_request import ProduceRequest, TopicProduceData
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.node import LogRecovered, SegmentRolled
from kafkawire.protocol import ErrorCode as E
from kafkawire.protocol import encode_frame
from kafkawire.records import RecordBatches
from kafkawire.replication import AppendResult
from kafkawire.storage import TopicPartition

from ..broker.consumer import (
    Consumer,
    commit,
    commit_error,
    commit_request,
    committed,
    coordinator,
    described,
    stable,
)
from ..broker.fetches import fetched
from ..broker.harness import Client, metadata
from ..broker.log.test_log import batch, offset_at, produce, produce_request
from .front_harness import NodeClient, NodeHarness


@pytest.fixture
def harness() -> NodeHarness:
    harness = NodeHarness(topics={"t": 1})
    coordinator(harness.client())
    harness.advance(1.0)
    return harness


def test_rolled_segments_and_recovered_logs_are_reported() -> None:
    harness = NodeHarness()
    harness.create_topic("t", segment_bytes="1048576")
    half = batch(bytes(600_000))
    for _ in range(2):
        assert not produce(harness.client(), half).error_code
    partition = TopicPartition("t", 0)
    assert harness.reports == [SegmentRolled(partition, 1)]
    harness.disk.append("t-0/00000000000000000001.log", b"torn")
    harness.reports.clear()
    harness.restart()
    assert harness.reports == [LogRecovered(partition, 2, 4)]
    harness.shut_down()
    harness.reports.clear()
    harness.restart()
    assert harness.reports == []


def test_pipelined_requests_wait_for_no_timer() -> None:
    """However many time slices they take."""
    harness = NodeHarness(topics={"t": 1})
    client = harness.client()
    request = produce_request(batch(bytes(60_000)))
    frames = [encode_frame(request, 9, number, client_id="c") for number in range(100)]
    now = harness.now
    harness.handle(Received(client.number, b"".join(frames)))
    assert harness.now == now
    responses = 0
    while client.received:
        size = int.from_bytes(client.received[:4], "big")
        client.received = client.received[4 + size :]
        responses += 1
    assert responses == len(frames)


def values(client: Client, topic: str = "t") -> list[bytes | None]:
    return [each.value for each in RecordBatches(fetched(client, topic)).records()]


def producer_id(client: NodeClient) -> int:
    response = client.exchange(
        InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse
    )
    assert response.error_code == E.NONE
    return response.producer_id


@pytest.mark.parametrize("in_order", [True, False], ids=["shut down", "killed"])
def test_what_was_acknowledged_outlives_the_process(harness: NodeHarness, in_order: bool) -> None:
    one = Consumer(harness)  # type: ignore[arg-type]
    stable(one)
    client = harness.client()
    assert produce(client, batch(b"a", b"b")).error_code == E.NONE
    assert one.commits(1) == E.NONE
    first = producer_id(client)
    assert producer_id(client) == first + 1
    if in_order:
        harness.shut_down()
        assert harness.stopped is not None
        assert harness.stopped.failure is None
    harness.restart()
    again = harness.client()
    assert values(again) == [b"a", b"b"]
    assert committed(again) == 1
    group = described(again)
    assert (group.group_state, len(group.members)) == ("Stable", 1)
    assert producer_id(again) > first + 1, "the rest of the block is lost"
    one.client = again
    assert one.beats() == E.NONE


def test_a_batch_is_stored_once_however_often_the_process_is_killed(harness: NodeHarness) -> None:
    number = producer_id(harness.client())
    sent = batch(b"a", producer_id=number, producer_epoch=0, base_sequence=0)
    for _ in range(3):
        assert produce(harness.client(), sent).base_offset == 0
        harness.restart()
    assert values(harness.client()) == [b"a"]


def test_a_topic_is_created_when_it_is_first_used(harness: NodeHarness) -> None:
    client = harness.client()
    topic = metadata(client, "new").topics[0]
    assert (topic.error_code, topic.partitions[0].leader_id) == (E.NONE, 1)
    for name in ("a b", "__transaction_state"):
        metadata(client, name)
    harness.advance(0.1)
    assert [topic.name for topic in harness.cluster.topics] == ["t", "__consumer_offsets", "new"]


def test_a_client_does_not_wait_for_a_topic_that_is_refused() -> None:
    harness = NodeHarness({"default.replication.factor": "2"})
    client = harness.client()
    since = harness.now
    for _ in range(2):
        topic = metadata(client, "new").topics[0]
        assert topic.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.now == since


def test_a_client_waits_only_so_long_for_a_topic(
    harness: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller does not respond."""
    monkeypatch.setattr(harness.front.broker._creation, "_submit", lambda *_: None)
    waiting, gone = harness.client(), harness.client()
    gone.send(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 12)
    gone.disconnect()
    since = harness.now
    topic = metadata(waiting, "new").topics[0]
    assert topic.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.now == since + METADATA_WAIT_SECONDS


def test_topics_are_not_created_where_the_settings_forbid_it() -> None:
    harness = NodeHarness({"auto.create.topics.enable": "false"})
    for _ in range(2):
        topic = metadata(harness.client(), "new").topics[0]
        assert topic.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
        harness.advance(0.1)


def test_the_controller_decides_what_brokers_forward(harness: NodeHarness) -> None:
    client = harness.client()
    more = CreatePartitionsTopic(name="t", count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[more], timeout_ms=1000)
    assert client.exchange(request, 3, CreatePartitionsResponse).results[0].error_code == E.NONE
    assert len(metadata(client, "t").topics[0].partitions) == 3
    state = DeleteTopicState(name="t")
    deletion = DeleteTopicsRequest(topics=[state], timeout_ms=1000)
    assert client.exchange(deletion, 6, DeleteTopicsResponse).responses[0].error_code == E.NONE
    assert "t" not in harness.cluster.topics


@pytest.mark.parametrize(
    ("kind", "name", "key"), [(2, "t", "max.message.bytes"), (4, "", "message.max.bytes")]
)
def test_configs_are_in_effect_at_once_and_after_a_restart(
    harness: NodeHarness, kind: int, name: str, key: str
) -> None:
    change = AlterableConfig(name=key, config_operation=SET, value="100")
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])

    def altered() -> int:
        response = harness.client().exchange(request, 1, IncrementalAlterConfigsResponse)
        return response.responses[0].error_code

    def produced() -> int:
        return produce(harness.client(), batch(b"x" * 200)).error_code

    assert altered() == E.NONE
    assert produced() == E.MESSAGE_TOO_LARGE
    harness.restart()
    assert produced() == E.MESSAGE_TOO_LARGE
    change.config_operation, change.value = DELETE, None
    assert altered() == E.NONE
    assert produced() == E.NONE


def test_offsets_of_a_deleted_topic_are_deleted(harness: NodeHarness) -> None:
    client = harness.client()
    assert commit(client, "t", 5) == E.NONE
    state = DeleteTopicState(name="t")
    deletion = DeleteTopicsRequest(topics=[state], timeout_ms=1000)
    client.exchange(deletion, 6, DeleteTopicsResponse)
    harness.create_topic("t")
    assert committed(client) == -1
    harness.restart()
    assert committed(harness.client()) == -1


def test_records_of_internal_topics_are_not_deleted(harness: NodeHarness) -> None:
    client = harness.client()
    produce(client, batch(b"a"))
    names = ["__consumer_offsets", "t", "__consumer_offsets", "absent"]
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    topics = [DeleteRecordsTopic(name=name, partitions=[partition]) for name in names]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=1000)
    response = client.exchange(request, 2, DeleteRecordsResponse)
    assert [(topic.name, topic.partitions[0].error_code) for topic in response.topics] == [
        ("__consumer_offsets", E.INVALID_TOPIC_EXCEPTION),
        ("t", E.NONE),
        ("__consumer_offsets", E.INVALID_TOPIC_EXCEPTION),
        ("absent", E.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_commit_that_the_log_refuses_is_not_acknowledged(
    harness: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = harness.client()
    assert commit(client, "t", 1) == E.NONE
    machines = harness.front.machines

    def refuse(*_: Any) -> tuple[int, AppendResult]:
        return 0, AppendResult(E.NOT_ENOUGH_REPLICAS)

    with monkeypatch.context() as patch:
        patch.setattr(machines, "append", refuse)
        response = client.exchange(commit_request("t", 2), 8, OffsetCommitResponse)
        assert commit_error(response) == E.COORDINATOR_NOT_AVAILABLE
    assert committed(client) == 1
    assert commit(client, "t", 3) == E.NONE
    assert committed(client) == 3


def test_requests_wait_for_a_block_of_producer_ids(harness: NodeHarness) -> None:
    clients = [harness.client() for _ in range(3)]
    for client in clients:
        client.send(InitProducerIdRequest(transactional_id=None), 4)
    harness.advance(1.0)
    ids = [client.receive(InitProducerIdResponse).producer_id for client in clients]
    assert ids == [ids[0], ids[0] + 1, ids[0] + 2]


def test_each_listener_has_its_own_apis(harness: NodeHarness) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    found = {}
    for listener in ("PLAINTEXT", "CONTROLLER"):
        client = harness.client(listener=listener)
        response = client.exchange(request, 3, ApiVersionsResponse)
        found[listener] = {ApiKey(each.api_key) for each in response.api_keys}
    assert ApiKey.PRODUCE in found["PLAINTEXT"] - found["CONTROLLER"]
    assert ApiKey.VOTE in found["CONTROLLER"] - found["PLAINTEXT"]
    assert ApiKey.DESCRIBE_QUORUM in found["CONTROLLER"] & found["PLAINTEXT"]


def test_the_quorum_is_described_through_a_broker(harness: NodeHarness) -> None:
    topic = TopicData(
        topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
    )
    response = harness.client().exchange(
        DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse
    )
    assert response.topics[0].partitions[0].leader_id == 1


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
def test_hostile_bytes_close_their_connection_and_no_other(
    harness: NodeHarness, listener: str
) -> None:
    rng = random.Random(5)
    for _ in range(100):
        size = rng.randrange(1, 80)
        client = harness.client(listener=listener)
        header = rng.choice([*ApiKey]).to_bytes(2, "big") + rng.randrange(5).to_bytes(2, "big")
        frame = header + rng.randbytes(size)
        harness.handle(Received(client.number, len(frame).to_bytes(4, "big") + frame))
    assert harness.stopped is None
    assert produce(harness.client(), batch(b"a")).error_code == E.NONE


def every_version(key: ApiKey) -> range:
    versions = supported_apis(LATEST, served_on(Listener.BROKER)).served[key]
    return range(versions.first, versions.last + 1)


def by_id(harness: NodeHarness, version: int, first: int) -> dict[str, Any]:
    """Return what a request names a topic by: its name, from version `first` on its id."""
    topic = harness.cluster.topics.get("t")
    assert topic is not None
    return {"topic_id": topic.topic_id} if version >= first else {"topic": "t"}


def test_records_are_the_same_in_every_version(harness: NodeHarness) -> None:
    client = harness.client()
    for version in every_version(ApiKey.PRODUCE):
        name = by_id(harness, version, 13)
        topic = TopicProduceData(
            name=name.get("topic", ""),
            topic_id=name.get("topic_id", bytes(16)),
            partition_data=[ProduceData(index=0, records=batch(b"%d" % version))],
        )
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        response = client.exchange(request, version, ProduceResponse)
        assert response.responses[0].partition_responses[0].error_code == E.NONE
    sent = [b"%d" % version for version in every_version(ApiKey.PRODUCE)]
    for version in every_version(ApiKey.FETCH):
        one = FetchTopic(
            partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)],
            **by_id(harness, version, 13),
        )
        fetch = FetchRequest(max_bytes=1 << 20, session_epoch=-1, topics=[one])
        found = client.exchange(fetch, version, FetchResponse).responses[0].partitions[0]
        assert [each.value for each in RecordBatches(found.records or b"").records()] == sent
    for version in every_version(ApiKey.LIST_OFFSETS):
        assert offset_at(client, -1, version).offset == len(sent)


def test_an_idle_connection_is_closed() -> None:
    harness = NodeHarness({"connections.max.idle.ms": "5000"})
    idle = harness.client()
    harness.advance(6.0)
    assert idle.closed == "no request within connections.max.idle.ms"


def test_a_full_disk_stops_the_node_and_acknowledges_nothing(harness: NodeHarness) -> None:
    client = harness.client()
    harness.disk.capacity = harness.disk.used
    client.send(commit_request("t", 1), 8)
    harness.wait(lambda: harness.stopped is not None)
    assert client.received == b""
    assert harness.front.next_deadline() is None
    assert harness.stopped is not None
    assert harness.stopped.failure
