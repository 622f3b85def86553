"""Simulated clients: each is a generator of pauses that sends requests and responses meanwhile."""

# over 300 lines: all simulated clients, short functions side by side

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

import kafkawire
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.protocol.versioned import encode_versioned

from .cluster import BROKERS, Channel, Cluster, Topic
from .network import Actor

OK: Final = 0
NOT_LEADER: Final = 6
REBALANCE_IN_PROGRESS: Final = 27
UNKNOWN_MEMBER_ID: Final = 25
TOPIC_ALREADY_EXISTS: Final = 36
COMMIT_EVERY: Final = 5
"""Heartbeats between two commits."""


def begin(channel: Channel, cluster: Cluster, topics: list[Topic]) -> Actor:
    """Request versions and metadata, as every client does first."""
    client, rng = channel.client, cluster.rng
    listed = [
        {"apiKey": key.value, "minVersion": each.first, "maxVersion": each.last}
        for key, each in client.versions.items()
    ]
    software = {
        "clientSoftwareName": client.software,
        "clientSoftwareVersion": f"{rng.randrange(4)}.{rng.randrange(9)}.{rng.randrange(3)}",
    }
    versions = software if client.version("ApiVersions") >= 3 else {}
    yield from channel.exchange("ApiVersions", versions, {"apiKeys": listed})
    request = {"topics": [{"name": each.name} for each in topics], "allowAutoTopicCreation": False}
    yield from channel.exchange("Metadata", request, _metadata(cluster, topics))


def _metadata(cluster: Cluster, topics: list[Topic]) -> dict[str, Any]:
    rng = cluster.rng
    brokers = [
        {"nodeId": node, "host": f"kafka-{node}.example", "port": 9092, "rack": f"r{node % 3}"}
        for node in range(BROKERS)
    ]
    return {
        "brokers": brokers,
        "clusterId": "f9Qw2m7eTZ6",
        "controllerId": 1,
        "topics": [
            {"name": each.name, "partitions": [_partition(rng, i) for i in range(each.partitions)]}
            for each in topics
        ],
    }  # fmt: skip


def _partition(rng: random.Random, index: int) -> dict[str, Any]:
    replicas = rng.sample(range(BROKERS), 3)
    in_sync = replicas if rng.random() < 0.9 else replicas[:2]
    return {"partitionIndex": index, "leaderId": replicas[0], "replicaNodes": replicas,
            "isrNodes": in_sync}  # fmt: skip


def producer(cluster: Cluster) -> Actor:
    """Produce to a few topics."""
    rng = cluster.rng
    client = cluster.client("producer")
    topics = rng.sample(cluster.topics, rng.choice((1, 1, 2, 4)))
    channel = cluster.connect(client, rng.randrange(BROKERS))
    yield from begin(channel, cluster, topics)
    if rng.random() < 0.5:
        body = {"transactionalId": None, "transactionTimeoutMs": 60_000}
        producer = {"producerId": rng.randrange(1 << 40), "producerEpoch": 0}
        yield from channel.exchange("InitProducerId", body, producer)
    rate, most = rng.lognormvariate(0, 1), rng.choice((1, 4, 20))
    while True:
        sent = []
        for _ in range(rng.choice((1, 1, 1, 2, 5))):  # in flight at a time
            request, response = _produce(cluster, rng.choice(topics), most)
            sent.append((channel.request("Produce", request), response))
            yield rng.expovariate(2000)
        for correlation_id, response in sent:
            yield rng.lognormvariate(-6, 1)
            channel.respond("Produce", response, correlation_id)
        yield rng.expovariate(rate)


def _produce(cluster: Cluster, topic: Topic, most: int) -> tuple[ProduceRequest, dict[str, Any]]:
    rng = cluster.rng
    indices = rng.sample(range(topic.partitions), min(topic.partitions, rng.choice((1, 1, 2, 3))))
    batches, results = [], []
    for index in indices:
        data, number = cluster.records(topic, 0, most)
        batches.append(PartitionProduceData(index=index, records=data))
        failed = rng.random() < 0.01
        results.append({"index": index, "errorCode": NOT_LEADER if failed else OK,
                        "baseOffset": -1 if failed else topic.ends[index]})  # fmt: skip
        topic.ends[index] += 0 if failed else number
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic.name, partition_data=batches)],
    )
    return request, {"responses": [{"name": topic.name, "partitionResponses": results}]}


class Group:
    """A consumer group: its members, topics and generation."""

    def __init__(self, cluster: Cluster) -> None:
        rng = cluster.rng
        self.name = f"{cluster.word(6)}-{rng.choice(('service', 'etl', 'search', 'audit'))}"
        self.topics = rng.sample(cluster.topics, rng.choice((1, 1, 2, 3)))
        self.generation = 1
        self.members: list[str] = []
        self.broker = rng.randrange(BROKERS)

    def join(self, member: str) -> None:
        """Add a member: a new generation."""
        self.members.append(member)
        self.generation += 1

    def leave(self, member: str) -> None:
        self.members.remove(member)
        self.generation += 1

    def assigned(self, member: str) -> dict[str, list[int]]:
        """The partitions of a member: each members-th one."""
        at, number = self.members.index(member), len(self.members)
        return {each.name: list(range(at, each.partitions, number)) for each in self.topics}


def member(cluster: Cluster, group: Group) -> Actor:
    """Take part in a group, on a connection of its own; fetch on another."""
    rng = cluster.rng
    client = cluster.client("consumer")
    name = f"{client.name}-{rng.randbytes(16).hex()}"
    channel = cluster.connect(client, group.broker)
    yield from begin(channel, cluster, group.topics)
    where = {"nodeId": group.broker, "host": f"kafka-{group.broker}.example", "port": 9092}
    yield from channel.exchange("FindCoordinator", {"key": group.name}, where)
    cluster.simulation.start(fetcher(cluster, group))
    group.join(name)
    left = rng.randrange(20, 400)
    generation = 0
    while left:
        if generation != group.generation:
            generation = group.generation
            yield from _join(channel, cluster, group, name, generation)
        yield from _heartbeat(channel, group, name, generation)
        if left % COMMIT_EVERY == 0:
            yield from _commit(channel, cluster, group, name, generation)
        left -= 1
        yield 3 * rng.uniform(0.9, 1.1)
    yield from channel.exchange("LeaveGroup", _leaving(channel, group, name), {"errorCode": OK})
    group.leave(name)
    channel.close()
    cluster.simulation.start(member(cluster, group), rng.expovariate(0.1))


def _leaving(channel: Channel, group: Group, name: str) -> dict[str, Any]:
    if channel.client.version("LeaveGroup") >= 3:
        return {"groupId": group.name, "members": [{"memberId": name}]}
    return {"groupId": group.name, "memberId": name}


def _join(
    channel: Channel, cluster: Cluster, group: Group, name: str, generation: int
) -> Iterator[float]:
    topics = {"topics": [each.name for each in group.topics]}
    subscription = _embedded("ConsumerProtocolSubscription", topics)
    leads = group.members[0] == name
    parts = {each: _assignment(group, each) for each in group.members} if leads else {}
    request = {"groupId": group.name, "memberId": name, "protocolType": "consumer",
               "sessionTimeoutMs": 10_000,
               "protocols": [{"name": "range", "metadata": subscription}]}  # fmt: skip
    joined = {"generationId": generation, "protocolName": "range", "memberId": name,
              "leader": group.members[0], "members": [
                  {"memberId": each, "metadata": subscription} for each in parts]}  # fmt: skip
    waits = cluster.rng.expovariate(2)
    yield from channel.exchange("JoinGroup", request, joined, waits)
    own = {"groupId": group.name, "generationId": generation, "memberId": name}
    assignments = [{"memberId": each, "assignment": data} for each, data in parts.items()]
    assigned = {"assignment": _assignment(group, name)}
    yield from channel.exchange("SyncGroup", own | {"assignments": assignments}, assigned)


def _embedded(name: str, body: dict[str, Any]) -> str:
    """Encode an embedded payload, as base64."""
    return b64encode(encode_versioned(kafkawire.from_json(name, 0, body), 0)).decode()


def _assignment(group: Group, name: str) -> str:
    parts = [
        {"topic": topic, "partitions": partitions}
        for topic, partitions in group.assigned(name).items()
    ]
    return _embedded("ConsumerProtocolAssignment", {"assignedPartitions": parts})


def _heartbeat(channel: Channel, group: Group, name: str, generation: int) -> Iterator[float]:
    rebalances = generation != group.generation
    yield from channel.exchange(
        "Heartbeat",
        {"groupId": group.name, "generationId": generation, "memberId": name},
        {"errorCode": REBALANCE_IN_PROGRESS if rebalances else OK},
    )


def _commit(
    channel: Channel, cluster: Cluster, group: Group, name: str, generation: int
) -> Iterator[float]:
    rng = cluster.rng
    own = group.assigned(name)
    commits, results = [], []
    for topic in group.topics:
        at = {index: max(topic.ends[index] - rng.randrange(50), 0) for index in own[topic.name]}
        commits.append({"name": topic.name, "partitions": [
            {"partitionIndex": index, "committedOffset": offset, "committedMetadata": ""}
            for index, offset in at.items()]})  # fmt: skip
        results.append({"name": topic.name, "partitions": [
            {"partitionIndex": index, "errorCode": OK} for index in at]})  # fmt: skip
    body = {"groupId": group.name, "generationIdOrMemberEpoch": generation, "memberId": name}
    yield from channel.exchange("OffsetCommit", body | {"topics": commits}, {"topics": results})


def fetcher(cluster: Cluster, group: Group) -> Actor:
    """Fetch a group's topics with a fetch session."""
    rng = cluster.rng
    client = cluster.client("consumer")
    channel = cluster.connect(client, rng.randrange(BROKERS))
    yield from begin(channel, cluster, group.topics)
    mine = [
        (topic, index) for topic in group.topics for index in range(topic.partitions)
        if rng.random() < 0.5
    ] or [(group.topics[0], 0)]  # fmt: skip
    offsets = {(topic.name, index): topic.ends[index] for topic, index in mine}
    yield from channel.exchange("ListOffsets", *_list_offsets(mine))
    session = rng.randrange(1, 1 << 31)
    for epoch in range(rng.randrange(30, 2000)):
        named = mine if epoch == 0 else rng.sample(mine, min(len(mine), rng.randrange(3)))
        request = _fetch_request(named, offsets, session if epoch else 0, epoch)
        response = _fetch_response(cluster, mine, offsets, session, full=epoch == 0)
        waits = 0.0 if response.responses else 0.5
        yield from channel.exchange("Fetch", request, response, waits)
        yield rng.expovariate(1)
    channel.close()


def _list_offsets(mine: list[tuple[Topic, int]]) -> tuple[dict[str, Any], dict[str, Any]]:
    requested = [{"name": topic.name, "partitions": [{"partitionIndex": index, "timestamp": -1}]}
                 for topic, index in mine]  # fmt: skip
    topics = [{"name": topic.name, "partitions": [
        {"partitionIndex": index, "offset": topic.ends[index], "timestamp": -1}]}
        for topic, index in mine]  # fmt: skip
    return {"replicaId": -1, "topics": requested}, {"topics": topics}


def _fetch_request(
    named: list[tuple[Topic, int]], offsets: dict[tuple[str, int], int], session: int, epoch: int
) -> dict[str, Any]:
    topics = [{"topic": topic.name, "partitions": [
        {"partition": index, "fetchOffset": offsets[topic.name, index],
         "partitionMaxBytes": 1 << 20}]}
        for topic, index in named]  # fmt: skip
    return {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 52_428_800,
            "sessionId": session, "sessionEpoch": epoch, "topics": topics}  # fmt: skip


def _fetch_response(
    cluster: Cluster,
    mine: list[tuple[Topic, int]],
    offsets: dict[tuple[str, int], int],
    session: int,
    full: bool,
) -> FetchResponse:
    rng = cluster.rng
    number = min(len(mine), rng.choice((0, 0, 1, 1, 2, 4)))
    chosen = mine if full else rng.sample(mine, number)
    responses = []
    for at, (topic, index) in enumerate(chosen):
        offset = offsets[topic.name, index]
        data: bytes | None = None
        if at < number:
            data, count = cluster.records(topic, offset, rng.choice((1, 5, 30)))
            offsets[topic.name, index] = offset + count
            topic.ends[index] = max(topic.ends[index], offset + count)
        partition = PartitionData(
            partition_index=index,
            high_watermark=topic.ends[index],
            last_stable_offset=topic.ends[index],
            records=data,
        )
        responses.append(FetchableTopicResponse(topic=topic.name, partitions=[partition]))
    return FetchResponse(session_id=session, responses=responses)


def administrator(cluster: Cluster, groups: list[Group]) -> Actor:
    """Look at groups, topics and configurations, and create topics."""
    rng = cluster.rng
    channel = cluster.connect(cluster.client("admin"), rng.randrange(BROKERS))
    yield from begin(channel, cluster, [])
    while True:
        some = rng.sample(groups, min(len(groups), 8))
        listed = [{"groupId": each.name, "protocolType": "consumer"} for each in some]
        yield from channel.exchange("ListGroups", {}, {"groups": listed})
        yield from channel.exchange(
            "DescribeGroups",
            {"groups": [each.name for each in some]},
            {"groups": [_described(each) for each in some]},
        )
        topics = rng.sample(cluster.topics, min(len(cluster.topics), 20))
        yield from channel.exchange("Metadata", {"topics": None}, _metadata(cluster, topics))
        yield from channel.exchange("DescribeConfigs", *_configs(rng, topics[0]))
        yield from channel.exchange("CreateTopics", *_created(cluster))
        yield rng.expovariate(0.2)


def _described(group: Group) -> dict[str, Any]:
    members = [
        {"memberId": each, "clientId": each[:14], "clientHost": "/10.1.2.3",
         "memberMetadata": "", "memberAssignment": _assignment(group, each)}
        for each in group.members
    ]  # fmt: skip
    return {"groupId": group.name, "groupState": "Stable", "protocolType": "consumer",
            "protocolData": "range", "members": members}  # fmt: skip


def _configs(rng: random.Random, topic: Topic) -> tuple[dict[str, Any], dict[str, Any]]:
    values = {
        "retention.ms": rng.randrange(10**9), "segment.bytes": rng.randrange(10**9),
        "cleanup.policy": rng.choice(("delete", "compact")),
    }  # fmt: skip
    configs = [{"name": name, "value": str(value), "configSource": 5}
               for name, value in values.items()]  # fmt: skip
    resource = {"resourceType": 2, "resourceName": topic.name}
    request = {"resources": [resource | {"configurationKeys": None}]}
    return request, {"results": [resource | {"configs": configs}]}


def _created(cluster: Cluster) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = cluster.rng
    name = f"new.{cluster.word(10)}"
    config = {"name": "retention.ms", "value": str(rng.randrange(10**9))}
    topic = {"name": name, "numPartitions": rng.randrange(1, 30), "replicationFactor": 3,
             "configs": [config]}  # fmt: skip
    exists = rng.random() < 0.2
    result = {"name": name, "errorCode": TOPIC_ALREADY_EXISTS if exists else OK,
              "errorMessage": f"Topic '{name}' already exists." if exists else None}  # fmt: skip
    return {"topics": [topic]}, {"topics": [result]}
