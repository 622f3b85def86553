"""The same requests to a real Apache Kafka and to our cluster: the same responses.

What must differ (ids, addresses, times) is made alike before; every other difference is in
`EXPLAINED`, or a failure.
"""

from __future__ import annotations

import json
import re
import sys
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any, Final

import pytest

import kafkawire
from kafkawire import ErrorCode, Message, Structure
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import BatchBuilder
from tests.interop.implementations import until
from tests.real.java import RELEASE

from ...broker.log.test_log import damaged, gap, old
from ...real.broker import CLUSTER_ID, Broker
from ...real.effects import wait_until_in_effect
from ...real.responses import TRANSIENT, errors
from ...real.wire import Wire
from . import migration_steps

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

E = ErrorCode
TOPIC: Final = "beside"
GROUP: Final = "beside-group"
CONSUMERS: Final = "beside-consumers"
Fields = dict[str, Any]
Step = tuple[str, str, int, Fields]


def batch(*values: bytes, **fields: Any) -> str:
    builder = BatchBuilder(**fields)
    for value in values:
        builder.append(b"k", value, 1_700_000_000_000)
    return text(builder.build())


def text(data: bytes) -> str:
    return b64encode(data).decode()


def uuid(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def produce(records: str | None, topic: str = TOPIC, acks: int = -1) -> Fields:
    data = {"index": 0, "records": records}
    return {
        "transactionalId": None,
        "acks": acks,
        "timeoutMs": 1000,
        "topicData": [{"name": topic, "partitionData": [data]}],
    }


def fetch(offset: int, session_id: int = 0, epoch: int = -1, **partition: Any) -> Fields:
    requested = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20} | partition
    return {
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 1 << 20,
        "isolationLevel": 0,
        "sessionId": session_id,
        "sessionEpoch": epoch,
        "topics": [{"topic": TOPIC, "partitions": [requested]}],
        "forgottenTopicsData": [],
    }


def offsets(timestamp: int, partition: int = 0, topic: str = TOPIC) -> Fields:
    requested = {"partitionIndex": partition, "timestamp": timestamp, "currentLeaderEpoch": -1}
    return {"replicaId": -1, "topics": [{"name": topic, "partitions": [requested]}]}


def commit(
    generation: int = -1, member: str = "", topic: str = TOPIC, partition: int = 0
) -> Fields:
    requested = {"partitionIndex": partition, "committedOffset": 1, "committedMetadata": "m"}
    return {
        "groupId": GROUP,
        "generationIdOrMemberEpoch": generation,
        "memberId": member,
        "topics": [{"name": topic, "partitions": [requested]}],
    }


def created(name: str, partitions: int = 2, factor: int = 1, **more: Any) -> Fields:
    topic = {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": factor,
        "assignments": [],
        "configs": [],
    } | more
    return {"topics": [topic], "timeoutMs": 5000, "validateOnly": False}


def joining(member_id: str = "", session: int = 30_000, kind: str = "consumer") -> Fields:
    return {
        "groupId": GROUP,
        "sessionTimeoutMs": session,
        "rebalanceTimeoutMs": 30_000,
        "memberId": member_id,
        "protocolType": kind,
        "protocols": [{"name": "range", "metadata": "AA=="}],
    }


def configs(name: str, operation: int, value: str | None) -> Fields:
    config = {"name": name, "configOperation": operation, "value": value}
    resource = {"resourceType": 2, "resourceName": TOPIC, "configs": [config]}
    return {"resources": [resource], "validateOnly": False}


def described(*keys: str, kind: int = 2, name: str = TOPIC) -> Fields:
    return {
        "resources": [
            {"resourceType": kind, "resourceName": name, "configurationKeys": list(keys)}
        ],
        "includeSynonyms": True,
    }


def steps() -> Iterator[Step]:
    """Return the requests in order: (case, API, version, fields)."""
    yield from admin()
    yield from records()
    yield from groups()
    yield from consumer_groups()
    yield from migration_steps.steps()
    yield from telemetry()
    yield from unregistrations()
    yield "handshake without SASL", "SaslHandshake", 1, {"mechanism": "PLAIN"}
    yield "cluster", "DescribeCluster", 1, {"endpointType": 1}
    yield "cluster, controllers", "DescribeCluster", 1, {"endpointType": 2}


def admin() -> Iterator[Step]:
    yield "create", "CreateTopics", 6, created(TOPIC)
    yield "create again", "CreateTopics", 6, created(TOPIC)
    yield "create, a bad name", "CreateTopics", 6, created("a b")
    yield "create, no partitions", "CreateTopics", 6, created("x", 0)
    yield "create, no replicas", "CreateTopics", 6, created("x", 1, 0)
    yield "create, many replicas", "CreateTopics", 6, created("x", 1, 9)
    bad = [{"name": "no.such", "value": "1"}]
    yield "create, a bad config", "CreateTopics", 6, created("x", 1, 1, configs=bad)
    for version in range(13):
        for name in (TOPIC, "absent", "a b"):
            requested: Fields = {"topics": [{"name": name}]}
            if version >= 4:
                requested["allowAutoTopicCreation"] = False
            yield f"metadata {name}", "Metadata", version, requested
    for count in (1, 2, 3):
        requested = {"topics": [{"name": TOPIC, "count": count, "assignments": None}]}
        yield f"grow to {count}", "CreatePartitions", 3, requested | {"timeoutMs": 5000}
    requested = {"topics": [{"name": "absent", "count": 2, "assignments": None}]}
    yield "grow nothing", "CreatePartitions", 3, requested | {"timeoutMs": 5000}
    yield "delete nothing", "DeleteTopics", 5, {"topicNames": ["absent"], "timeoutMs": 5000}
    for name, operation, value in (
        ("retention.ms", 0, "1000"),
        ("cleanup.policy", 2, "compact"),
        ("cleanup.policy", 3, "compact"),
        ("retention.ms", 2, "1"),
        ("no.such", 0, "1"),
        ("retention.ms", 0, "x"),
        ("retention.ms", 1, None),
    ):
        yield (
            f"alter {name} {operation} {value}",
            "IncrementalAlterConfigs",
            1,
            configs(name, operation, value),
        )
    keys = ("cleanup.policy", "retention.ms", "min.insync.replicas")
    for version in range(1, 5):
        yield "describe configs", "DescribeConfigs", version, described(*keys)
    yield "describe no topic", "DescribeConfigs", 4, described("x", name="absent")
    page = {"topics": [{"name": TOPIC}], "responsePartitionLimit": 2}
    yield "pages", "DescribeTopicPartitions", 0, page


def records() -> Iterator[Step]:
    for version in range(3, 13):
        yield "produce", "Produce", version, produce(batch(b"a", b"b"))
    bad: dict[str, tuple[str | None, int]] = {
        "two batches": (text(b64decode(batch(b"a")) * 2), 9),
        "damaged": (text(damaged(b64decode(batch(b"a")))), 9),
        "an old format": (text(old(1, b"a")), 9),
        "a gap": (text(gap()), 9),
        "control": (batch(b"a", control=True), 9),
        "nothing": ("", 9),
        "zstd too early": (batch(b"a", compression=kafkawire.records.Compression.ZSTD), 6),
        "sequence 0": (batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0), 9),
        "again": (batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0), 9),
        "a sequence gap": (batch(b"a", producer_id=9, producer_epoch=0, base_sequence=5), 9),
        "epoch 1": (batch(b"a", producer_id=9, producer_epoch=1, base_sequence=0), 9),
        "old epoch": (batch(b"a", producer_id=9, producer_epoch=0, base_sequence=1), 9),
        "epoch 2, not 0": (batch(b"a", producer_id=9, producer_epoch=2, base_sequence=1), 9),
    }
    for what, (data, version) in bad.items():
        yield f"produce {what}", "Produce", version, produce(data)
    yield "produce absent", "Produce", 9, produce(batch(b"a"), "absent")
    yield "produce acks 2", "Produce", 9, produce(batch(b"a"), acks=2)
    yield "produce offsets", "Produce", 9, produce(batch(b"a"), "__consumer_offsets")
    for version in range(1, 11):
        for timestamp in (-1, -2, -3, -4, -5, 0, 1_700_000_000_000, 1_900_000_000_000):
            yield f"offset at {timestamp}", "ListOffsets", version, offsets(timestamp)
    yield "offset of absent", "ListOffsets", 7, offsets(-1, 9)
    for version in range(4, 13):
        for offset in (0, 5, 23, 99):
            yield f"fetch {offset}", "Fetch", version, fetch(offset)
    for epoch in (0, 1):
        requested = fetch(0, currentLeaderEpoch=epoch)
        yield f"fetch in epoch {epoch}", "Fetch", 12, requested
    yield "fetch, diverging", "Fetch", 12, fetch(5, lastFetchedEpoch=3)
    yield "no session", "Fetch", 12, fetch(0, 77, 5)
    for epoch in (0, 1, 5):
        requested = {"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": epoch}
        topics = [{"topic": TOPIC, "partitions": [requested]}]
        yield f"end of {epoch}", "OffsetForLeaderEpoch", 4, {"replicaId": -1, "topics": topics}
    for offset in (2, 99, -1):
        topics = [{"name": TOPIC, "partitions": [{"partitionIndex": 0, "offset": offset}]}]
        yield f"delete to {offset}", "DeleteRecords", 2, {"topics": topics, "timeoutMs": 5000}
    yield "earliest after deletion", "ListOffsets", 7, offsets(-2)
    yield "fetch deleted", "Fetch", 12, fetch(0)


def groups() -> Iterator[Step]:
    for version in range(7):
        keys: Fields = {"key": GROUP} if version < 4 else {"coordinatorKeys": [GROUP]}
        if version:
            keys["keyType"] = 0
        yield "coordinator", "FindCoordinator", version, keys
    for version in range(2, 10):
        yield "commit", "OffsetCommit", version, commit()
        yield "commit absent", "OffsetCommit", version, commit(topic="absent")
        yield "commit partition 9", "OffsetCommit", version, commit(partition=9)
        yield "commit as nobody", "OffsetCommit", version, commit(3, "nobody")
    for version in range(1, 8):
        topics = [{"name": TOPIC, "partitionIndexes": [0, 9]}]
        yield "committed", "OffsetFetch", version, {"groupId": GROUP, "topics": topics}
        if version >= 2:
            yield "all committed", "OffsetFetch", version, {"groupId": GROUP, "topics": None}
    several = [{"groupId": each, "topics": None} for each in (GROUP, "absent")]
    for version in (8, 9):
        yield "committed of several", "OffsetFetch", version, {"groups": several}
    for version in range(7):
        yield "describe", "DescribeGroups", version, {"groups": [GROUP, "absent"]}
    member = {"groupId": GROUP, "generationId": 1, "memberId": "nobody"}
    yield "heartbeat of nobody", "Heartbeat", 4, member
    yield "sync of nobody", "SyncGroup", 4, member | {"assignments": []}
    yield "leave of nobody", "LeaveGroup", 2, {"groupId": GROUP, "memberId": "nobody"}
    nobody = [{"memberId": "nobody", "groupInstanceId": None}]
    yield "several leave", "LeaveGroup", 5, {"groupId": GROUP, "members": nobody}
    yield "no group", "Heartbeat", 4, member | {"groupId": "absent"}
    yield "an empty id", "Heartbeat", 4, member | {"groupId": ""}
    yield "join as nobody", "JoinGroup", 9, joining("nobody")
    yield "join, short session", "JoinGroup", 9, joining(session=1)
    yield "join, no kind", "JoinGroup", 9, joining(kind="")
    yield "join at once", "JoinGroup", 3, joining()
    yield "commit beside members", "OffsetCommit", 8, commit()
    yield "describe a joined one", "DescribeGroups", 5, {"groups": [GROUP]}
    yield "delete it", "DeleteGroups", 2, {"groupsNames": [GROUP, "absent"]}
    topics = [{"name": TOPIC, "partitions": [{"partitionIndex": 0}]}]
    yield "offsets of nobody", "OffsetDelete", 0, {"groupId": "absent", "topics": topics}
    yield "offsets", "OffsetDelete", 0, {"groupId": GROUP, "topics": topics}
    filters = {"statesFilter": ["Empty"]}
    yield "list", "ListGroups", 4, filters
    yield "join for an id", "JoinGroup", 9, joining()


def beat(member_id: str, epoch: int = 0, group: str = CONSUMERS, **more: Any) -> Fields:
    joins = {"rebalanceTimeoutMs": 30_000, "subscribedTopicNames": [TOPIC], "topicPartitions": []}
    return {
        "groupId": group,
        "memberId": member_id,
        "memberEpoch": epoch,
        **(joins if epoch == 0 else {}),
        **more,
    }


def group_configs() -> Iterator[Step]:
    key = "consumer.heartbeat.interval.ms"
    resource = {"resourceType": 32, "resourceName": CONSUMERS}
    for what, config, value in (
        ("set", key, "600"),
        ("too low", key, "0"),
        ("not a number", key, "soon"),
        ("unknown", "consumer.heartbeats", "1"),
    ):
        change = {"name": config, "configOperation": 0, "value": value}
        changed = {"resources": [resource | {"configs": [change]}], "validateOnly": False}
        yield f"group config: {what}", "IncrementalAlterConfigs", 1, changed
    yield "group configs", "DescribeConfigs", 4, described(key, kind=32, name=CONSUMERS)
    yield "group configs unset", "DescribeConfigs", 4, described(key, kind=32, name="absent")
    yield "config resources", "ListConfigResources", 0, {}
    for types in ([], [2], [4], [8], [16], [32], [32, 2, 32], [0], [99], [32, 99]):
        requested: Fields = {"resourceTypes": types}
        yield f"config resources of types {types}", "ListConfigResources", 1, requested


def missed_responses(name: str) -> Iterator[Step]:
    """Let a member have the epoch before its own; an assignment is computed at once."""
    group = f"{CONSUMERS}-missed"
    change = {"name": "consumer.assignment.interval.ms", "configOperation": 0, "value": "0"}
    resource = {"resourceType": 32, "resourceName": group, "configs": [change]}
    changed = {"resources": [resource], "validateOnly": False}
    yield "no assignment interval", "IncrementalAlterConfigs", 1, changed
    nothing_of = [{"topicId": uuid(bytes(15) + b"\7"), "partitions": []}]
    both: Fields = {"subscribedTopicNames": [TOPIC, "absent"]}
    yield "join another group", name, 1, beat("a", group=group)
    for what, more in (
        ("no partitions of a topic", {"topicPartitions": nothing_of}),
        ("another subscription", both),
        ("a missed response", {"topicPartitions": []}),
        ("a missed response, no list", {}),
        ("a missed response, no partitions of a topic", {"topicPartitions": nothing_of}),
    ):
        yield what, name, 1, {**beat("a", 2, group), **more}


def consumer_groups() -> Iterator[Step]:
    name = "ConsumerGroupHeartbeat"
    yield "no such consumer group", name, 1, beat("a", 1)
    for what, fields in (
        ("no group id", beat("a", group="")),
        ("no member id", beat("")),
        ("no instance id", beat("a", instanceId="")),
        ("no rack", beat("a", rackId="")),
        ("no timeout", beat("a", rebalanceTimeoutMs=-1)),
        ("no partitions", beat("a", topicPartitions=None)),
        (
            "a topic without partitions",
            beat("a", topicPartitions=[{"topicId": uuid(bytes(15) + b"\7"), "partitions": []}]),
        ),
        ("no topics", beat("a", subscribedTopicNames=None)),
        ("epoch -2 of a dynamic member", beat("a", -2)),
        ("epoch -3", beat("a", -3)),
        ("an unknown assignor", beat("a", serverAssignor="sticky")),
        ("a bad expression", beat("a", subscribedTopicRegex="(")),
    ):
        yield what, name, 1, fields
    yield from group_configs()
    yield "join", name, 1, beat("a", instanceId="i")
    yield "nothing new", name, 1, beat("a", 2, instanceId="i")
    yield "a full request", name, 1, beat("a") | {"memberEpoch": 2}
    yield "a greater epoch", name, 1, beat("a", 7)
    yield "an unknown member", name, 1, beat("b", 1)
    yield "an unknown instance", name, 1, beat("a", 1, instanceId="j")
    yield "an instance in use", name, 1, beat("b", instanceId="i")
    yield "an instance of another", name, 1, beat("b", 1, instanceId="i")
    group = {"groupIds": [CONSUMERS, GROUP, "absent"], "includeAuthorizedOperations": True}
    for version in (0, 1):
        yield "describe", "ConsumerGroupDescribe", version, group
    yield "describe as classic", "DescribeGroups", 6, {"groups": [CONSUMERS]}
    yield "describe as classic", "DescribeGroups", 5, {"groups": [CONSUMERS]}
    for types in (["consumer"], ["Consumer"]):
        yield f"list {types}", "ListGroups", 5, {"typesFilter": types, "statesFilter": []}
    for epoch, member in ((2, "a"), (1, "a"), (9, "a"), (1, "b"), (-1, "")):
        committed = commit(epoch, member) | {"groupId": CONSUMERS}
        yield f"commit of {member} in {epoch}", "OffsetCommit", 9, committed
        yield f"commit of {member} in {epoch}", "OffsetCommit", 8, committed
        fetched = {"groupId": CONSUMERS, "memberId": member, "memberEpoch": epoch, "topics": None}
        yield f"offsets for {member} in {epoch}", "OffsetFetch", 9, {"groups": [fetched]}
    topics = [{"name": TOPIC, "partitions": [{"partitionIndex": 0}]}]
    yield "offsets in use", "OffsetDelete", 0, {"groupId": CONSUMERS, "topics": topics}
    yield "delete with members", "DeleteGroups", 2, {"groupsNames": [CONSUMERS]}
    yield "leave for a while", name, 1, beat("a", -2, instanceId="i")
    yield "describe who is away", "ConsumerGroupDescribe", 1, group
    yield "come back", name, 1, beat("c", instanceId="i")
    yield "the one before", name, 1, beat("a", 2, instanceId="i")
    yield "leave", name, 1, beat("c", -1, instanceId="i")
    yield "leave again", name, 1, beat("c", -1)
    yield "describe an empty one", "ConsumerGroupDescribe", 1, group
    yield "a classic group", name, 1, beat("a", 1, group=GROUP)
    yield "delete an empty one", "DeleteGroups", 2, {"groupsNames": [CONSUMERS]}
    yield "describe no more", "ConsumerGroupDescribe", 1, group
    yield from missed_responses(name)


def telemetry() -> Iterator[Step]:
    """Ask as several clients: Kafka throttles one that asks again too soon."""
    for instance in (b"sixteen bytes id", bytes(range(199, 215)), bytes(15) + b"\1"):
        requested: Fields = {"clientInstanceId": uuid(instance)}
        yield f"metrics of {instance.hex()}", "GetTelemetrySubscriptions", 0, requested
    subscribed = {
        "none": (bytes(15) + b"\2", 7, 0),
        "of no client": (bytes(16), 7, 0),
        "of a reserved id": (bytes(15) + b"\1", -725_132_321, 0),
        "its own": (bytes(15) + b"\3", -725_132_321 ^ 2, 4),
        "its own, uncompressed": (bytes(15) + b"\4", -725_132_321 ^ 5, 0),
        "its own, an unknown codec": (bytes(15) + b"\5", -725_132_321 ^ 4, 5),
    }
    for what, (instance, subscription, codec) in subscribed.items():
        pushed = {
            "clientInstanceId": uuid(instance),
            "subscriptionId": subscription,
            "terminating": False,
            "compressionType": codec,
            "metrics": "",
        }
        yield f"push to a subscription: {what}", "PushTelemetry", 0, pushed


def unregistrations() -> Iterator[Step]:
    for controller_id in (99, -1, 1):  # the last is the active controller
        fields: Fields = {"controllerId": controller_id}
        yield f"unregister {controller_id}", "UnregisterController", 0, fields


EXPLAINED: Final[dict[str, str]] = {
    "CreateTopics v6: create$": "the properties of that broker set segment.index.bytes, and it "
    "sets min.insync.replicas itself when it begins (KIP-966)",
    "DescribeConfigs v[0-9]: describe configs": "min.insync.replicas as above; log.retention.ms is "
    "null there, log.retention.hours has the default",
}
"""Accepted differences and their reasons."""

ALIKE: Final = {
    "port": 9092,
    "leaderId": 1,
    "controllerId": 1,
    "sessionId": 0,
    "topicId": "id",
    "throttleTimeMs": 0,
    "errorMessage": None,
    "batchIndexErrorMessage": "",
}
"""Fields specific to one broker, and free texts."""
NAMES: Final = {"groupId", "configSource", "memberEpoch", "resourceName"}
"""Lists without a defined order."""
MEMBER: Final = re.compile(r"(kafkawire-tests)-[0-9a-f-]{32,36}")


def alike(found: Any) -> Any:
    """Normalise a response for comparison."""
    if isinstance(found, list):
        made = [alike(each) for each in found]
        named = all(isinstance(each, dict) and NAMES & each.keys() for each in made)
        return sorted(made, key=json.dumps) if named else made
    if isinstance(found, str):
        return MEMBER.sub(r"\1-id", found)
    if not isinstance(found, dict):
        return found
    return {key: ALIKE.get(key, alike(value)) for key, value in found.items()}


def in_version(cls: type[Structure], version: int, fields: Any) -> Any:
    """Remove the fields that a version lacks."""
    if isinstance(fields, list):
        return [in_version(cls, version, each) for each in fields]
    if not isinstance(fields, dict):
        return fields
    module = sys.modules[cls.__module__]
    rows = {row.json_name: row for row in cls.__fields__ if row.first <= version <= row.last}
    return {
        name: in_version(getattr(module, row.type.removeprefix("[]"), cls), version, fields[name])
        for name, row in rows.items()
        if name in fields
    }


def exchanged(wire: Wire, step: Step) -> str:
    """Send a request, again while the broker is not ready; return the normalised response."""
    _, name, version, fields = step
    cls = kafkawire.REGISTRY.load(f"{name}Request")
    request = kafkawire.from_json(f"{name}Request", version, in_version(cls, version, fields))
    responses: list[Message] = []

    def settled() -> bool:
        responses.append(wire.send(request, version).frame.body)
        return not errors(responses[-1]) & PASSING

    until(settled)
    if name == "IncrementalAlterConfigs":
        wait_until_in_effect(wire)
    return json.dumps(alike(kafkawire.to_json(responses[-1], version)), sort_keys=True)


PASSING: Final = TRANSIENT - {E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_ID}


def compared(port: int, other: int) -> Iterator[tuple[Step, str, str]]:
    with Wire(port) as theirs, Wire(other) as ours:
        for step in steps():
            yield step, exchanged(theirs, step), exchanged(ours, step)


def test_responses_equal_kafkas(own_kafka: Broker) -> None:
    settings = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }
    different: dict[str, tuple[str, str]] = {}
    count = 0
    with ServerThread(ServerConfig(settings=settings)) as server:
        for front in server.server.machine.fronts.values():
            front.broker.broker.context.cluster_id = CLUSTER_ID
        port = server.server.endpoints[0].port
        for (what, name, version, _), theirs, ours in compared(own_kafka.port, port):
            count += 1
            if theirs != ours:
                different[f"{name} v{version}: {what}"] = theirs, ours
    unexplained = {
        key: pair
        for key, pair in different.items()
        if not any(re.search(each, key) for each in EXPLAINED)
    }
    assert not unexplained, "\n".join(
        f"{key}\n  Kafka {theirs}\n  ours  {ours}" for key, (theirs, ours) in unexplained.items()
    )
    assert count > 200


def test_versions_are_listed_as_kafka_lists_them(own_kafka: Broker) -> None:
    with ServerThread(ServerConfig(release=RELEASE)) as server:
        port = server.server.endpoints[0].port
        for version in (0, 1, 2, 3, 4):
            listed = []
            for each in (own_kafka.port, port):
                with Wire(each) as wire:
                    request = ApiVersionsRequest()
                    if version >= 3:
                        request.client_software_name = request.client_software_version = "1"
                    response = wire.exchange(request, version, ApiVersionsResponse)
                    assert response.error_code == E.NONE
                    listed.append(
                        {k.api_key: (k.min_version, k.max_version) for k in response.api_keys}
                    )
            theirs, ours = listed
            assert ours == {key: theirs[key] for key in ours}


def test_an_unknown_version_of_api_versions_gets_the_same_response(own_kafka: Broker) -> None:
    with ServerThread(ServerConfig(release=RELEASE)) as server:
        responses = []
        for port in (own_kafka.port, server.server.endpoints[0].port):
            with Wire(port) as wire:
                body = bytes.fromhex("0012 0063 0000002a 0004 74657374 00 0261 0261 00")
                wire.socket.sendall(len(body).to_bytes(4, "big") + body)
                responses.append(wire._read(int.from_bytes(wire._read(4), "big")))
        assert responses[0] == responses[1]
