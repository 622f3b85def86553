"""Streams groups: the same requests to a real Apache Kafka and to our broker, the same responses.

Invariant: every field of every response is equal, but texts, ids and addresses.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.interop.implementations import until

from ...real.broker import Broker
from ...real.wire import Wire
from .test_beside_kafka import Fields, commit
from .test_shares_beside_kafka import Peer, compare, config, create_topic

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

TOPIC: Final = "beside-streams"
GROUP: Final = "beside-streams-group"
HEARTBEAT: Final = "StreamsGroupHeartbeat"
UPDATE: Final = "StreamsGroupTopologyDescriptionUpdate"
NO_TASKS: Final[Fields] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
ALL_TASKS: Final = [{"subtopologyId": each, "partitions": [0, 1]} for each in ("0", "1")]
NO_PARTITIONS: Final = [{"subtopologyId": "0", "partitions": []}]
NO_SUCH_TASK: Final = [{"subtopologyId": "0", "partitions": [9]}]


def topic_info(name: str, partitions: int = 0, **configs: str) -> Fields:
    return {
        "name": name,
        "partitions": partitions,
        "replicationFactor": 0,
        "topicConfigs": [{"key": key, "value": value} for key, value in configs.items()],
    }


def subtopology(number: str, **fields: Any) -> Fields:
    return {
        "subtopologyId": number,
        "sourceTopics": [],
        "sourceTopicRegex": [],
        "stateChangelogTopics": [],
        "repartitionSinkTopics": [],
        "repartitionSourceTopics": [],
        "copartitionGroups": [],
        **fields,
    }


def topology(source: str = TOPIC, epoch: int = 0) -> Fields:
    repartition = f"{GROUP}-repartition"
    return {
        "epoch": epoch,
        "subtopologies": [
            subtopology("0", sourceTopics=[source], repartitionSinkTopics=[repartition]),
            subtopology(
                "1",
                repartitionSourceTopics=[topic_info(repartition)],
                stateChangelogTopics=[topic_info(f"{GROUP}-changelog")],
            ),
        ],
    }


def beat(member: str, epoch: int = 0, group: str = GROUP, **more: Any) -> Fields:
    joins = {"rebalanceTimeoutMs": 60_000, "topology": topology(), **NO_TASKS}
    goes_on = {"rebalanceTimeoutMs": -1, "topology": None}
    unchanged = dict.fromkeys(NO_TASKS)
    return {
        "groupId": group,
        "memberId": member,
        "memberEpoch": epoch,
        "endpointInformationEpoch": 0,
        "instanceId": None,
        "rackId": None,
        "processId": f"process of {member}",
        "userEndpoint": None,
        "clientTags": None,
        "taskOffsets": None,
        "taskEndOffsets": None,
        "shutdownApplication": False,
        **(joins if epoch == 0 else {**goes_on, **unchanged}),
        **more,
    }


def refused(peer: Peer) -> None:
    for what, fields in (
        ("no such group", beat("m", 1)),
        ("leave no group", beat("m", -1)),
        ("no group id", beat("m", group="")),
        ("no member id", beat("")),
        ("no rack", beat("m", rackId="")),
        ("no instance", beat("m", instanceId="")),
        ("no topology", beat("m", topology=None)),
        ("no timeout", beat("m", rebalanceTimeoutMs=-1)),
        ("tasks", beat("m", activeTasks=ALL_TASKS)),
        *((f"{kind} without partitions", beat("m") | {kind: NO_PARTITIONS}) for kind in NO_TASKS),
        *((f"no {kind}", beat("m") | {kind: None}) for kind in NO_TASKS),
        ("epoch -2", beat("m", -2)),
        ("epoch -3", beat("m", -3)),
        ("a topology later", beat("m", 1, topology=topology())),
        ("some tasks", beat("m", 1, activeTasks=[])),
        ("an internal topic", beat("m", topology=topology("__consumer_offsets"))),
        ("not a topic", beat("m", topology=topology("a/b"))),
        (
            "a regular expression",
            beat(
                "m",
                topology={
                    "epoch": 0,
                    "subtopologies": [subtopology("0", sourceTopicRegex=["t.*"])],
                },
            ),
        ),
        (
            "partitions of a changelog",
            beat(
                "m",
                topology={
                    "epoch": 0,
                    "subtopologies": [
                        subtopology(
                            "0", sourceTopics=[TOPIC], stateChangelogTopics=[topic_info("c", 3)]
                        )
                    ],
                },
            ),
        ),
        (
            "no sources",
            beat("m", topology={"epoch": 0, "subtopologies": [subtopology("0")]}),
        ),
    ):
        for version in (0, 1):
            peer.say(what, HEARTBEAT, version, fields)


def settled_member(peer: Peer, member: str, epoch: int, **more: Any) -> int:
    """Send heartbeats until a member has all tasks; return its epoch."""
    epochs = [epoch]

    def assigned() -> bool:
        fields = beat(member, epochs[-1], **{**NO_TASKS, **more})
        response: Any = peer.exchange(HEARTBEAT, 1, fields)
        epochs.append(response.member_epoch)
        return bool(response.active_tasks)

    until(assigned)
    return epochs[-1]


def described(peer: Peer, what: str) -> None:
    groups = {"groupIds": [GROUP, "absent"], "includeAuthorizedOperations": True}
    for version in (0, 1):
        peer.say(f"describe {what}", "StreamsGroupDescribe", version, groups)
    graph = groups | {"includeTopologyDescription": True}
    peer.say(f"describe the graph of {what}", "StreamsGroupDescribe", 1, graph)


def described_by_members(peer: Peer, what: str, epoch: int = 0) -> None:
    """Send descriptions of the topology; neither has a plugin that stores them (KIP-1331)."""
    for member in ("m", "unknown", ""):
        for group in (GROUP, "absent", ""):
            update: Fields = {"groupId": group, "memberId": member, "topologyEpoch": epoch,
                      "topologyDescription": {"subtopologies": [], "globalStores": []}}  # fmt: skip
            peer.say(f"{member} of {group} sends a description {what}", UPDATE, 0, update)


def missing(peer: Peer) -> None:
    """Join with a source topic that does not exist, and leave."""
    group = f"{GROUP}-missing"
    fields = beat("m", group=group, topology=topology("beside-absent"))
    peer.say("no source topic", HEARTBEAT, 1, fields)
    for states in (["NotReady"], ["not_ready"]):
        listed = {"typesFilter": ["streams"], "statesFilter": states}
        peer.say(f"list {states}", "ListGroups", 5, listed)
    peer.say("leave", HEARTBEAT, 1, beat("m", -1, group=group))
    peer.say("delete it", "DeleteGroups", 2, {"groupsNames": [group]})


def created_group(peer: Peer) -> None:
    """Report offsets and an endpoint, and shut down, in the heartbeat that creates a group."""
    group = f"{GROUP}-new"
    task = {"subtopologyId": "0", "partition": 0}
    reported: Fields = {
        "group": group,
        "topology": {"epoch": 0, "subtopologies": [subtopology("0", sourceTopics=[TOPIC])]},
        "taskOffsets": [task | {"offset": 5}],
        "taskEndOffsets": [task | {"offset": 7}],
        "userEndpoint": {"host": "there", "port": 8080},
    }

    def described(what: str) -> None:
        groups = {"groupIds": [group], "includeAuthorizedOperations": False}
        peer.say(f"describe {what}", "StreamsGroupDescribe", 1, groups)

    first = beat("m", **reported, shutdownApplication=True)
    creates: Any = peer.say("create a group", HEARTBEAT, 1, first)
    described("what is created")
    goes_on = beat("m", creates.member_epoch, group=group)
    peer.say("what is kept of the first heartbeat", HEARTBEAT, 1, goes_on)
    peer.say("join it", HEARTBEAT, 1, beat("n", **reported))
    described("with a second member")
    goes_on = beat("m", creates.member_epoch, group=group, endpointInformationEpoch=1)
    peer.say("what is kept of the second", HEARTBEAT, 1, goes_on)
    for each in "mn":
        peer.say(f"{each} leaves", HEARTBEAT, 1, beat(each, -1, group=group))
    peer.say("join it when it is empty", HEARTBEAT, 1, first)
    described("with its third member")
    peer.say("leave", HEARTBEAT, 1, beat("m", -1, group=group))
    peer.say("delete it", "DeleteGroups", 2, {"groupsNames": [group]})


def member(peer: Peer) -> int:
    joined: Any = peer.say("join", HEARTBEAT, 1, beat("m"))
    epoch = settled_member(peer, "m", joined.member_epoch)
    owned: Fields = {"activeTasks": ALL_TASKS, "standbyTasks": [], "warmupTasks": []}
    for what, fields in (
        ("nothing new", beat("m", epoch)),
        ("its tasks", beat("m", epoch, **owned)),
        ("a previous epoch", beat("m", epoch - 1, **owned)),
        ("a previous epoch without tasks", beat("m", epoch - 1)),
        ("a greater epoch", beat("m", epoch + 7)),
        ("a smaller epoch", beat("m", 1)),
        ("an unknown member", beat("n", 1)),
        (
            "no such task",
            beat("m", epoch, **(owned | {"activeTasks": NO_SUCH_TASK})),
        ),
        ("another topology", beat("n", topology=topology(epoch=1))),
        ("offsets", beat("m", epoch, taskOffsets=[
            {"subtopologyId": "1", "partition": 0, "offset": 5}])),
        ("offsets twice", beat("m", epoch, taskOffsets=[
            {"subtopologyId": "1", "partition": 0, "offset": 5}] * 2)),
    ):  # fmt: skip
        peer.say(what, HEARTBEAT, 1, fields)
    return epoch


def others(peer: Peer, epoch: int) -> None:
    described(peer, "a member")
    described_by_members(peer, "of its topology")
    described_by_members(peer, "of another topology", epoch=7)
    for types in (["streams"], ["consumer"]):
        listed = {"typesFilter": types, "statesFilter": []}
        peer.say(f"list {types}", "ListGroups", 5, listed)
    groups = {"groupIds": [GROUP], "includeAuthorizedOperations": False}
    peer.say("as a consumer group", "ConsumerGroupDescribe", 1, groups)
    peer.say("as a share group", "ShareGroupDescribe", 1, groups)
    peer.say("as a classic group", "DescribeGroups", 6, {"groups": [GROUP]})
    consumer = {"groupId": GROUP, "memberId": "c", "memberEpoch": 0, "rebalanceTimeoutMs": 30000,
                "subscribedTopicNames": [TOPIC], "topicPartitions": [], "instanceId": None,
                "rackId": None, "subscribedTopicRegex": None, "serverAssignor": None}  # fmt: skip
    peer.say("join as a consumer", "ConsumerGroupHeartbeat", 1, consumer)
    for what, fields in (
        ("commit", commit(epoch, "m", TOPIC)),
        ("a greater epoch", commit(epoch + 1, "m", TOPIC)),
        ("of no member", commit(topic=TOPIC)),
    ):
        peer.say(what, "OffsetCommit", 9, {**fields, "groupId": GROUP})
    peer.say("delete with a member", "DeleteGroups", 2, {"groupsNames": [GROUP]})


def leaving(peer: Peer, epoch: int) -> None:
    peer.say("shut down", HEARTBEAT, 1, beat("m", epoch, shutdownApplication=True))
    peer.say("leave", HEARTBEAT, 1, beat("m", -1))
    peer.say("leave again", HEARTBEAT, 1, beat("m", -1))
    described(peer, "an empty group")
    static: Any = peer.say("a static member", HEARTBEAT, 1, beat("s", instanceId="one"))
    peer.say("it is fenced", HEARTBEAT, 1, beat("t", instanceId="one"))
    peer.say("it leaves", HEARTBEAT, 1, beat("s", -2, instanceId="one"))
    peer.say("its successor", HEARTBEAT, 1, beat("t", instanceId="one", processId="process of s"))
    assert static.member_epoch > 0
    peer.say("which leaves", HEARTBEAT, 1, beat("t", -1, instanceId="one"))
    peer.say("delete", "DeleteGroups", 2, {"groupsNames": [GROUP]})
    described(peer, "what is deleted")
    described_by_members(peer, "when it is deleted")


def story(port: int) -> list[tuple[str, str]]:
    with Wire(port) as wire:
        peer = Peer(wire)
        create_topic(peer, TOPIC, GROUP)
        for group in (GROUP, f"{GROUP}-missing", f"{GROUP}-new"):
            for key in ("initial.rebalance.delay.ms", "assignment.interval.ms"):
                change = config(f"streams.{key}", "0", group)
                peer.say(f"set {key}", "IncrementalAlterConfigs", 1, change)
        for key, value in (
            ("streams.num.standby.replicas", "3"),
            ("streams.heartbeat.interval.ms", "100"),
            ("streams.assignor.name", "nonsense"),
        ):
            change = config(key, value)
            peer.say(f"set {key} to {value}", "IncrementalAlterConfigs", 1, change)
        refused(peer)
        missing(peer)
        created_group(peer)
        epoch = member(peer)
        others(peer, epoch)
        leaving(peer, epoch)
        # Kafka names missing topics in the order of a hash map
        names = (f"{GROUP}-repartition", f"{GROUP}-changelog")
        return [
            (what, text.replace(", ".join(names), ", ".join(sorted(names))))
            for what, text in peer.responses
        ]


def test_responses_of_streams_groups_equal_kafkas(own_kafka: Broker) -> None:
    assert compare(story, own_kafka)
