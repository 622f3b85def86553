"""Share groups: the same requests to a real Apache Kafka and to our broker, the same responses.

Invariant: every field of every response is equal, but texts, ids and addresses.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

import pytest

import kafkawire
from kafkawire import Message
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import RecordBatches
from tests.interop.implementations import until
from tests.real.java import RELEASE

from ...real.broker import Broker
from ...real.effects import wait_until_in_effect
from ...real.responses import errors
from ...real.wire import Wire
from .test_beside_kafka import (
    PASSING,
    Fields,
    alike,
    batch,
    commit,
    created,
    in_version,
    joining,
    uuid,
)
from .test_beside_kafka import beat as consumer_beat

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

TOPIC: Final = "beside-shares"
GROUP: Final = "beside-share-group"
OTHER: Final = "beside-share-others"
EPOCHS: Final = {"maxWaitMs": 0, "minBytes": 0, "maxBytes": 1 << 20, "batchSize": 100}
ABSENT: Final = uuid(bytes(15) + b"\7")
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Peer:
    """A broker, and what it has responded with. topic_id: of the topic."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.topic_id = ""
        self.responses: list[tuple[str, str]] = []

    def exchange(self, name: str, version: int, fields: Fields) -> Message:
        """Send a request, again while the broker is not ready; changes of configs are in effect."""
        cls = kafkawire.REGISTRY.load(f"{name}Request")
        request = kafkawire.from_json(f"{name}Request", version, in_version(cls, version, fields))
        responses: list[Message] = []

        def settled() -> bool:
            responses.append(self.wire.send(request, version).frame.body)
            return not errors(responses[-1]) & PASSING

        until(settled)
        if name == "IncrementalAlterConfigs":
            wait_until_in_effect(self.wire)
        return responses[-1]

    def say(self, what: str, name: str, version: int, fields: Fields) -> Any:
        """Send a request whose response is compared; return it."""
        response = self.exchange(name, version, fields)
        found = kafkawire.to_json(response, version)
        text = json.dumps(plain(found), sort_keys=True).replace(self.topic_id or ABSENT, "id")
        self.responses.append((f"{name} v{version}: {what}", text))
        return response


def plain(found: Any) -> Any:
    """Normalise a response: batches of records are their offsets."""
    if isinstance(found, dict):
        made = {key: plain(value) for key, value in found.items()}
        if isinstance(made.get("records"), str):
            data = b64decode(made["records"])
            made["records"] = [[b.base_offset, b.last_offset] for b in RecordBatches(data)]
        made.pop("leaderEpoch", None)
        made.pop("acknowledgeErrorMessage", None)
        return alike(made)
    if isinstance(found, list) and found and isinstance(found[0], dict) and "topicName" in found[0]:
        return sorted((plain(each) for each in found), key=lambda each: str(each["topicName"]))
    return [plain(each) for each in found] if isinstance(found, list) else alike(found)


def beat(member: str, epoch: int = 0, group: str = GROUP, **more: Any) -> Fields:
    joins = {"subscribedTopicNames": [TOPIC]} if epoch == 0 else {"subscribedTopicNames": None}
    return {"groupId": group, "memberId": member, "memberEpoch": epoch, "rackId": None, **joins,
            **more}  # fmt: skip


def config(key: str, value: str | None, group: str = GROUP) -> Fields:
    change = {"name": key, "configOperation": int(value is None), "value": value}
    resource = {"resourceType": 32, "resourceName": group, "configs": [change]}
    return {"resources": [resource], "validateOnly": False}


def create_topic(peer: Peer, topic: str, group: str, partitions: int = 2) -> None:
    """Create a topic, and wait until the coordinator of a group assigns its partitions.

    A group that joins before has a greater epoch: it is assigned what is new.
    """
    peer.exchange("CreateTopics", 7, created(topic, partitions))
    for group_id in (group, "probe"):
        peer.exchange("FindCoordinator", 6, {"keyType": 0, "coordinatorKeys": [group_id]})
    settled_consumer(peer, "probe", topic)
    peer.exchange("ConsumerGroupHeartbeat", 1, consumer_beat("a", -1, group="probe"))
    peer.exchange("DeleteGroups", 2, {"groupsNames": ["probe"]})


def settled_consumer(peer: Peer, group: str, topic: str, **more: str) -> None:
    """Send heartbeats of the member of a consumer group until it has partitions."""
    joins = {**consumer_beat("a", group=group), "subscribedTopicNames": [topic], **more}
    responses: list[Any] = [peer.exchange("ConsumerGroupHeartbeat", 1, joins)]

    def has_partitions() -> bool:
        last = responses[-1]
        if last.assignment is not None and last.assignment.topic_partitions:
            return True
        goes_on = consumer_beat("a", last.member_epoch, group=group)
        responses.append(peer.exchange("ConsumerGroupHeartbeat", 1, goes_on))
        return False

    until(has_partitions)


def settled_member(peer: Peer, member: str, group: str = GROUP) -> int:
    """Send heartbeats until a member has its partitions; return its epoch."""
    epochs = [0]

    def assigned() -> bool:
        response: Any = peer.exchange("ShareGroupHeartbeat", 1, beat(member, epochs[-1], group))
        epochs.append(response.member_epoch)
        return response.assignment is not None and bool(response.assignment.topic_partitions)

    until(assigned)
    return epochs[-1]


def coordinators(peer: Peer) -> None:
    name, key = "FindCoordinator", f"{GROUP}:{peer.topic_id}:0"
    peer.exchange(name, 6, {"keyType": 0, "coordinatorKeys": [GROUP]})
    peer.exchange(name, 6, {"keyType": 2, "coordinatorKeys": [key]})
    for what, each in (
        ("no key", ""),
        ("no topic", GROUP),
        ("no partition", key[:-2]),
        ("not a partition", f"{key[:-1]}x"),
        ("not a topic id", "g:t:0"),
    ):
        peer.say(what, name, 6, {"keyType": 2, "coordinatorKeys": [each]})
    peer.say("before share groups", name, 5, {"keyType": 2, "coordinatorKeys": [key]})


def groups(peer: Peer) -> None:
    name = "ShareGroupHeartbeat"
    peer.say("no such group", name, 1, beat("m", 1))
    for what, fields in (
        ("no group id", beat("m", group="")),
        ("no member id", beat("")),
        ("no rack", beat("m", rackId="")),
        ("no topics", beat("m", subscribedTopicNames=None)),
        ("empty topics", beat("m", subscribedTopicNames=[])),
        ("epoch -2", beat("m", -2)),
    ):
        peer.say(what, name, 1, fields)
    peer.say("join", name, 1, beat("m"))
    epoch = settled_member(peer, "m")
    for what, fields in (
        ("nothing new", beat("m", epoch)),
        ("all fields", beat("m", epoch, subscribedTopicNames=[TOPIC])),
        ("a greater epoch", beat("m", epoch + 7)),
        ("a previous epoch", beat("m", epoch - 1)),
        ("a smaller epoch", beat("m", 1)),
        ("an unknown member", beat("n", 1)),
    ):
        peer.say(what, name, 1, fields)
    described = {"groupIds": [GROUP, "absent", OTHER], "includeAuthorizedOperations": True}
    peer.say("describe", "ShareGroupDescribe", 1, described)
    for types in (["share"], ["Share"], ["classic"]):
        listed = {"typesFilter": types, "statesFilter": []}
        peer.say(f"list {types}", "ListGroups", 5, listed)
    peer.say("as a consumer group", "ConsumerGroupDescribe", 1, described)
    peer.say("as a classic group", "DescribeGroups", 6, {"groups": [GROUP]})
    consumer = {"groupId": GROUP, "memberId": "c", "memberEpoch": 0, "rebalanceTimeoutMs": 30000,
                "subscribedTopicNames": [TOPIC], "topicPartitions": []}  # fmt: skip
    peer.say("join as a consumer", "ConsumerGroupHeartbeat", 1, consumer)
    peer.say("join as classic", "JoinGroup", 5, joining() | {"groupId": GROUP})
    topics = [{"name": TOPIC, "partitions": [{"partitionIndex": 0}]}]
    for version in (8, 9):
        committed = commit(-1, "", TOPIC) | {"groupId": GROUP}
        peer.say("commit", "OffsetCommit", version, committed)
    fetched = {"groupId": GROUP, "memberId": "m", "memberEpoch": epoch, "topics": None}
    peer.say("offsets for a member", "OffsetFetch", 9, {"groups": [fetched]})
    peer.say("delete offsets", "OffsetDelete", 0, {"groupId": GROUP, "topics": topics})
    peer.say("a consumer group", "OffsetCommit", 8, commit(-1, "", TOPIC) | {"groupId": OTHER})
    peer.say("a classic group", name, 1, beat("m", group=OTHER))
    peer.say("delete with members", "DeleteGroups", 2, {"groupsNames": [GROUP]})


def configs(peer: Peer) -> None:
    name = "IncrementalAlterConfigs"
    for key, *values in (
        ("share.auto.offset.reset", "never", "by_duration:P", "by_duration:-PT1S", "earliest"),
        ("share.isolation.level", "read", "read_committed", "read_uncommitted"),
        ("share.record.lock.duration.ms", "999", "1000", "60001", "soon", "60000"),
        ("share.delivery.count.limit", "1", "11", "3"),
        ("share.partition.max.record.locks", "99", "5000", "200"),
        ("share.renew.acknowledge.enable", "yes", "true"),
        ("share.assignment.interval.ms", "-1", "15001", "0"),
        ("share.heartbeat.interval.ms", "0", "499"),
        ("share.session.timeout.ms", "0", "1"),
    ):
        for value in values:
            peer.say(f"{key}={value}", name, 1, config(key, value))
    keys = ["share.auto.offset.reset", "share.isolation.level", "share.delivery.count.limit"]
    resource = {"resourceType": 32, "resourceName": GROUP, "configurationKeys": keys}
    peer.say("configs", "DescribeConfigs", 4, {"resources": [resource], "includeSynonyms": True})


def produce(peer: Peer, records: str, partition: int = 0) -> None:
    data = {"index": partition, "records": records}
    peer.exchange("Produce", 12, {
        "transactionalId": None, "acks": -1, "timeoutMs": 1000,
        "topicData": [{"name": TOPIC, "partitionData": [data]}],
    })  # fmt: skip


def fetch(peer: Peer, epoch: int, *acknowledged: Any, **more: Any) -> Fields:
    """Return a ShareFetch. acknowledged: (first, last, types) of partition 0."""
    partition = {"partitionIndex": 0, "acknowledgementBatches": batches(acknowledged)}
    topics = [{"topicId": peer.topic_id, "partitions": [partition]}]
    requested = {"groupId": GROUP, "memberId": "m", "shareSessionEpoch": epoch, "maxRecords": 100,
                 "shareAcquireMode": 0, "isRenewAck": False, "forgottenTopicsData": [],
                 "topics": topics if epoch == 0 or acknowledged else []}  # fmt: skip
    return requested | EPOCHS | more


def batches(acknowledged: Any) -> list[Fields]:
    return [
        {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": types}
        for first, last, types in acknowledged
    ]


def acknowledge(peer: Peer, epoch: int, *acknowledged: Any, **more: Any) -> Fields:
    partition = {"partitionIndex": 0, "acknowledgementBatches": batches(acknowledged)}
    topics = [{"topicId": peer.topic_id, "partitions": [partition]}]
    return {"groupId": GROUP, "memberId": "m", "shareSessionEpoch": epoch, "isRenewAck": False,
            "topics": topics if acknowledged else [], **more}  # fmt: skip


def sessions(peer: Peer) -> None:
    name = "ShareFetch"
    peer.say("no session", name, 2, fetch(peer, 1))
    peer.say("no session to close", name, 2, fetch(peer, -1))
    peer.say("no session to acknowledge", "ShareAcknowledge", 2, acknowledge(peer, 1, (0, 0, [1])))
    peer.say("acknowledges at first", name, 2, fetch(peer, 0, (0, 0, [1])))
    peer.exchange(name, 2, fetch(peer, 0, **EMPTY))
    peer.say("a wrong epoch", name, 2, fetch(peer, 7))
    peer.say("epoch 0", "ShareAcknowledge", 2, acknowledge(peer, 0, (0, 0, [1])))
    peer.say("renews, with bytes", name, 2, fetch(peer, 1, (0, 0, [4]), isRenewAck=True))


EMPTY: Final = {"maxRecords": 0}
SOON: Final = {"maxWaitMs": 10_000, "minBytes": 1}
"""Waits until the share partition is loaded."""
NOTHING: Final = {"maxBytes": 0, "minBytes": 0, "maxRecords": 0, "maxWaitMs": 0}


def deliveries(peer: Peer) -> None:
    name, more = "ShareFetch", "ShareAcknowledge"
    for size in (3, 2, 5):
        produce(peer, batch(*[b"v"] * size))
    steps: list[tuple[str, str, Fields]] = [
        ("two records", name, fetch(peer, 1, maxRecords=2, **SOON)),
        ("three more", name, fetch(peer, 2, maxRecords=3, shareAcquireMode=1)),
        ("one of a batch", name, fetch(peer, 3, maxRecords=1, shareAcquireMode=1)),
        ("in small batches", name, fetch(peer, 4, batchSize=2)),
        ("nothing left", name, fetch(peer, 5)),
        ("accept", more, acknowledge(peer, 6, (0, 1, [1]))),
        ("release, reject", more, acknowledge(peer, 7, (2, 4, [2, 3, 2]))),
        ("again", name, fetch(peer, 8)),
        ("accept twice", more, acknowledge(peer, 9, (0, 1, [1]))),
        ("what was rejected", more, acknowledge(peer, 10, (3, 3, [1]))),
        ("past the end", more, acknowledge(peer, 11, (9, 30, [1]))),
        ("backwards", more, acknowledge(peer, 12, (5, 4, [1]))),
        ("overlapping", more, acknowledge(peer, 13, (5, 6, [1]), (6, 7, [1]))),
        ("types of another number", more, acknowledge(peer, 14, (5, 6, [1, 1, 1]))),
        ("no types", more, acknowledge(peer, 15, (5, 6, []))),
        ("an unknown type", more, acknowledge(peer, 16, (5, 6, [9]))),
        ("renew without saying so", more, acknowledge(peer, 17, (5, 6, [4]))),
        ("renew", more, acknowledge(peer, 18, (5, 6, [4]), isRenewAck=True)),
        ("renew by a fetch", name, fetch(peer, 19, (5, 6, [4]), isRenewAck=True, **NOTHING)),
        ("accept by a fetch", name, fetch(peer, 20, (5, 6, [1]))),
        ("accept by a fetch what is accepted", name, fetch(peer, 21, (5, 6, [1]))),
        ("a gap", more, acknowledge(peer, 22, (7, 7, [0]))),
        ("release twice", more, acknowledge(peer, 23, (2, 2, [2]), (4, 4, [2]))),
        ("the last delivery of one", name, fetch(peer, 24)),
        ("and of the other", name, fetch(peer, 25)),
        ("release for the last time", more, acknowledge(peer, 26, (2, 2, [2]), (4, 4, [2]))),
        ("archived", name, fetch(peer, 27)),
    ]
    for what, api, fields in steps:
        peer.say(what, api, 2, fields)
    absent = {"topicId": peer.topic_id, "partitions": [{"partitionIndex": 9}]}
    peer.say("an unknown partition", name, 2, fetch(peer, 28, topics=[absent]))
    forgotten = [{"topicId": peer.topic_id, "partitions": [9]}]
    peer.say("forget it", name, 2, fetch(peer, 29, forgottenTopicsData=forgotten))
    offsets(peer, "while some are in flight")
    states(peer)
    peer.say("close", more, 2, acknowledge(peer, -1, (8, 8, [1])))
    peer.say("closed", more, 2, acknowledge(peer, 30, (9, 9, [1])))
    delivered(peer, "what was released")
    peer.say("close by a fetch", name, 2, fetch(peer, -1, (9, 9, [1])))
    offsets(peer, "at the end")


def delivered(peer: Peer, what: str, epoch: int = 0, **more: Any) -> int:
    """Fetch until records are there, which are compared; return the next epoch of the session."""
    found: list[list[tuple[int, int, int]]] = []

    def acquired() -> bool:
        response: Any = peer.exchange("ShareFetch", 2, fetch(peer, epoch + len(found), **more))
        found.append(
            [
                (each.first_offset, each.last_offset, each.delivery_count)
                for topic in response.responses
                for partition in topic.partitions
                for each in partition.acquired_records
            ]
        )
        return bool(found[-1])

    until(acquired)
    peer.responses.append((f"ShareFetch: {what}", str(found[-1])))
    return epoch + len(found)


def offsets(peer: Peer, when: str) -> None:
    name = "DescribeShareGroupOffsets"
    topic = {"topicName": TOPIC, "partitions": [0, 1]}
    unknown = {"topicName": "absent", "partitions": [0]}
    for what, topics in (("all", None), ("one", [topic]), ("unknown", [unknown])):
        requested = {"groups": [{"groupId": GROUP, "topics": topics}]}
        peer.say(f"{what} {when}", name, 1, requested)
    peer.say(f"absent {when}", name, 1, {"groups": [{"groupId": "absent", "topics": None}]})


def states(peer: Peer) -> None:
    def of(partition: Fields, topic_id: str = "", group: str = GROUP) -> Fields:
        topic = {"topicId": topic_id or peer.topic_id, "partitions": [partition]}
        return {"groupId": group, "topics": [topic]}

    write = {"partition": 0, "stateEpoch": 0, "leaderEpoch": 0, "startOffset": -1,
             "deliveryCompleteCount": -1, "stateBatches": []}  # fmt: skip
    summary, state = "ReadShareGroupStateSummary", "ShareGroupState"
    for what, name, version, fields in (
        ("summary", summary, 1, of({"partition": 0, "leaderEpoch": 0})),
        ("summary of none", summary, 1, of({"partition": 0, "leaderEpoch": 0}, group="absent")),
        ("read of none", f"Read{state}", 0, of({"partition": 0, "leaderEpoch": 0}, group="none")),
        ("read, negative", f"Read{state}", 0, of({"partition": 0, "leaderEpoch": -1})),
        ("read", f"Read{state}", 0, of({"partition": 0, "leaderEpoch": 0})),
        ("write to none", f"Write{state}", 1, of(write, group="none")),
        ("write, fenced", f"Write{state}", 1, of(write)),
        ("initialize, fenced", f"Initialize{state}", 0,
         of({"partition": 0, "stateEpoch": 0, "startOffset": 0})),
        ("initialize an unknown topic", f"Initialize{state}", 0,
         of({"partition": 0, "stateEpoch": 9, "startOffset": 0}, ABSENT)),
        ("initialize", f"Initialize{state}", 0,
         of({"partition": 1, "stateEpoch": 9, "startOffset": 4}, group="mine")),
        ("read what is new", f"Read{state}", 0,
         of({"partition": 1, "leaderEpoch": 3}, group="mine")),
        ("read as an older leader", f"Read{state}", 0,
         of({"partition": 1, "leaderEpoch": 2}, group="mine")),
        ("delete", f"Delete{state}", 0, of({"partition": 1}, group="mine")),
        ("delete again", f"Delete{state}", 0, of({"partition": 1}, group="mine")),
        ("read what is deleted", f"Read{state}", 0,
         of({"partition": 1, "leaderEpoch": 3}, group="mine")),
    ):  # fmt: skip
        peer.say(what, name, version, fields)
    changed = {"partition": 0, "stateEpoch": 1, "leaderEpoch": 0, "startOffset": 2,
               "deliveryCompleteCount": 3}  # fmt: skip
    set_up = {"partition": 0, "stateEpoch": 1, "startOffset": 0}
    peer.say("initialize another", f"Initialize{state}", 0, of(set_up, group="batches"))
    for first, last, delivery, count in (
        (0, 9, 0, 1), (2, 5, 2, 1), (4, 7, 4, 2), (4, 4, 0, 1), (10, 12, 0, 2), (13, 14, 0, 2),
    ):  # fmt: skip
        written = {"firstOffset": first, "lastOffset": last, "deliveryState": delivery,
                   "deliveryCount": count}  # fmt: skip
        fields = of(changed | {"stateBatches": [written]}, group="batches")
        peer.say(f"write {first}", f"Write{state}", 1, fields)
        read = of({"partition": 0, "leaderEpoch": 0}, group="batches")
        peer.say(f"read after {first}", f"Read{state}", 0, read)


def lags(peer: Peer) -> None:
    """Accept two of three records, and release the other: each of them, at once and one by one."""
    produce(peer, batch(*[b"v"] * 3), 1)
    accept, release = 1, 2
    for released in range(3):
        types = [release if offset == released else accept for offset in range(3)]
        for what, acknowledged in (
            ("at once", [(0, 2, types)]),
            ("one by one", [(offset, offset, [types[offset]]) for offset in range(3)]),
        ):
            lag(peer, f"{GROUP} {released} {what}", acknowledged)


def lag(peer: Peer, group: str, acknowledged: list[tuple[int, int, list[int]]]) -> None:
    """Acknowledge the three records of partition 1, and fetch what is released."""

    def partition(*these: tuple[int, int, list[int]]) -> Fields:
        acknowledges = {"partitionIndex": 1, "acknowledgementBatches": batches(these)}
        topic = {"topicId": peer.topic_id, "partitions": [acknowledges]}
        return {"groupId": group, "topics": [topic]}

    named = {"groupId": group, "topics": [{"topicName": TOPIC, "partitions": [1]}]}
    earliest = config("share.auto.offset.reset", "earliest", group)
    peer.exchange("IncrementalAlterConfigs", 1, earliest)
    settled_member(peer, "m", group)
    epoch = delivered(peer, f"three records of {group}", **partition())
    for one in acknowledged:
        fields = acknowledge(peer, epoch, **partition(one))
        peer.say(f"{one} of {group}", "ShareAcknowledge", 2, fields)
        peer.say(f"after {one} of {group}", "DescribeShareGroupOffsets", 1, {"groups": [named]})
        epoch += 1
    delivered(peer, f"what is released of {group}", epoch, **partition())
    peer.say(f"fetched again of {group}", "DescribeShareGroupOffsets", 1, {"groups": [named]})


def changes_of_offsets(peer: Peer) -> None:
    alter, delete = "AlterShareGroupOffsets", "DeleteShareGroupOffsets"
    topics = [
        {"topicName": TOPIC, "partitions": [{"partitionIndex": 0, "startOffset": 4},
                                            {"partitionIndex": 9, "startOffset": 0}]},
        {"topicName": "absent", "partitions": [{"partitionIndex": 0, "startOffset": 4}]},
    ]  # fmt: skip
    names = [{"topicName": TOPIC}, {"topicName": "absent"}]
    for group in ("absent", OTHER, GROUP):
        peer.say(f"of {group}", delete, 0, {"groupId": group, "topics": names})
        peer.say(f"of {group}", alter, 0, {"groupId": group, "topics": topics})
    peer.say("of a new one", "ShareGroupDescribe", 1, {"groupIds": ["absent"]})
    peer.say("what is new", "ReadShareGroupStateSummary", 1, {
        "groupId": "absent",
        "topics": [{"topicId": peer.topic_id, "partitions": [{"partition": 0, "leaderEpoch": 0}]}],
    })  # fmt: skip
    requested = [{"groupId": each, "topics": None} for each in ("absent", OTHER)]
    for each in requested:
        peer.say(f"of {each['groupId']}", "DescribeShareGroupOffsets", 1, {"groups": [each]})
    peer.say("join it", "ShareGroupHeartbeat", 1, beat("m", group="absent"))
    peer.say("leave it", "ShareGroupHeartbeat", 1, beat("m", -1, group="absent"))
    peer.say("delete it", "DeleteGroups", 2, {"groupsNames": ["absent"]})
    peer.say("leave", "ShareGroupHeartbeat", 1, beat("m", -1))
    peer.say("leave again", "ShareGroupHeartbeat", 1, beat("m", -1))
    peer.say("alter", alter, 0, {"groupId": GROUP, "topics": topics})
    described = {"groupIds": [GROUP], "includeAuthorizedOperations": False}
    peer.say("empty", "ShareGroupDescribe", 1, described)
    offsets(peer, "altered")
    for what in ("delete", "delete again"):
        peer.say(what, delete, 0, {"groupId": GROUP, "topics": names})
    offsets(peer, "deleted")
    peer.say("delete the group", "DeleteGroups", 2, {"groupsNames": [GROUP]})
    peer.say("it is no more", "ShareGroupDescribe", 1, described)


def compare(story: Callable[[int], list[tuple[str, str]]], kafka: Broker) -> int:
    """Play a story at Kafka and at our broker; fail if a response differs. Return their number."""
    theirs = story(kafka.port)
    with ServerThread(ServerConfig(settings=SETTINGS, release=RELEASE)) as server:
        ours = story(server.server.endpoints[0].port)
    assert [what for what, _ in theirs] == [what for what, _ in ours]
    different = [
        f"{what}\n  Kafka {their}\n  ours  {our}"
        for (what, their), (_, our) in zip(theirs, ours, strict=True)
        if their != our
    ]
    assert not different, "\n".join(different)
    return len(theirs)


def story(port: int) -> list[tuple[str, str]]:
    with Wire(port) as wire:
        peer = Peer(wire)
        create_topic(peer, TOPIC, GROUP)
        named = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        metadata = wire.exchange(named, 12, MetadataResponse)
        peer.topic_id = uuid(metadata.topics[0].topic_id)
        coordinators(peer)
        configs(peer)
        groups(peer)
        sessions(peer)
        deliveries(peer)
        lags(peer)
        changes_of_offsets(peer)
        return peer.responses


def test_responses_of_share_groups_equal_kafkas(own_kafka: Broker) -> None:
    assert compare(story, own_kafka) > 100
