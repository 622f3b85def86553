"""The verbs for live clusters, where what they listed is deleted before they read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

import kafkawire
from kafkawire.blocking import Admin
from kafkawire.broker.request import Request
from kafkawire.messages.api_key import ApiKey
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.cli.verbs.test_hostile_broker import Bodies, hostile_broker

pytestmark = pytest.mark.timeout(60)

NOT_FOUND: Final = int(kafkawire.ErrorCode.GROUP_ID_NOT_FOUND)
UNKNOWN_TOPIC: Final = int(kafkawire.ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
OTHER: Final = int(kafkawire.ErrorCode.GROUP_AUTHORIZATION_FAILED)
GONE, STAYS = "gone", "stays"


class Deleting(Bodies):
    """Responses of a broker on which a group, and a topic, are deleted once they were listed."""

    group_error = 0
    group_state = "Dead"
    offset_error = 0
    topic_error = UNKNOWN_TOPIC

    def ApiVersions(self, request: Any) -> dict[str, Any]:
        made = super().ApiVersions(request)
        for each in made["apiKeys"]:
            if each["apiKey"] == ApiKey.DESCRIBE_GROUPS and self.group_error:
                each["maxVersion"] = 6
        return made

    def Metadata(self, request: Any) -> dict[str, Any]:
        made = super().Metadata(request)
        one = {"partitionIndex": 0, "leaderId": 1, "replicaNodes": [1, 2], "isrNodes": [1]}
        wanted = [GONE, STAYS] if request.topics is None else [t.name for t in request.topics]
        made["topics"] = [
            {"name": name, "partitions": [one],
             "errorCode": self.topic_error if name == GONE and request.topics is not None else 0}
            for name in wanted
        ]  # fmt: skip
        return made

    def ListGroups(self, _: Any) -> dict[str, Any]:
        listed = {"protocolType": "consumer", "groupState": "Empty", "groupType": "classic"}
        return {"groups": [{"groupId": name, **listed} for name in (GONE, STAYS)]}

    def DescribeGroups(self, request: Any) -> dict[str, Any]:
        gone = {"groupId": GONE, "groupState": self.group_state, "errorCode": self.group_error}
        stays = {"groupId": STAYS, "groupState": "Empty", "protocolType": "consumer"}
        return {"groups": [gone if name == GONE else stays for name in request.groups]}

    def ConsumerGroupDescribe(self, request: Any) -> dict[str, Any]:
        return {"groups": [{"groupId": group, "errorCode": NOT_FOUND}
                           for group in request.group_ids]}  # fmt: skip

    def OffsetFetch(self, request: Any) -> dict[str, Any]:
        committed = [{"partitionIndex": 0, "committedOffset": 1}]
        topics = [{"name": name, "partitions": committed} for name in (GONE, STAYS)]
        return {"groups": [
            {"groupId": each.group_id, "topics": topics,
             "errorCode": self.offset_error if each.group_id == GONE else 0}
            for each in request.groups]}  # fmt: skip

    def OffsetCommit(self, request: Any) -> dict[str, Any]:
        return {"topics": [
            {"name": t.name, "partitions": [{"partitionIndex": p.partition_index}
                                            for p in t.partitions]}
            for t in request.topics]}  # fmt: skip

    def ListOffsets(self, request: Any) -> dict[str, Any]:
        made = super().ListOffsets(request)
        for topic in made["topics"]:
            for each in topic["partitions"]:
                each["errorCode"] = self.topic_error if topic["name"] == GONE else 0
        return made

    def DescribeConfigs(self, request: Any) -> dict[str, Any]:
        config = {"name": "min.insync.replicas", "value": "2"}
        return {"results": [
            {"resourceName": each.resource_name, "configs": [config],
             "errorCode": self.topic_error if each.resource_name == GONE else 0}
            for each in request.resources]}  # fmt: skip


class NotFound(Deleting):
    """DescribeGroups from version 6 on has an error in place of the state."""

    group_error, group_state = NOT_FOUND, ""


class NoOffsets(Deleting):
    """The group is deleted after it was described."""

    group_state, offset_error = "Empty", NOT_FOUND


class OtherType(Deleting):
    """Groups of another type. deleted_for: the API whose responses say that one is deleted."""

    group_type = ""
    deleted_for = ""

    def error(self, api: str, group: str) -> int:
        return NOT_FOUND if api == self.deleted_for and group == GONE else 0

    def ListGroups(self, _: Any) -> dict[str, Any]:
        listed = {"protocolType": self.group_type, "groupState": "Empty",
                  "groupType": self.group_type}  # fmt: skip
        return {"groups": [{"groupId": name, **listed} for name in (GONE, STAYS)]}

    def _described(self, api: str, request: Any) -> dict[str, Any]:
        return {"groups": [{"groupId": group, "groupState": "Empty",
                            "errorCode": self.error(api, group)}
                           for group in request.group_ids]}  # fmt: skip

    def DescribeGroups(self, request: Any) -> dict[str, Any]:
        return {"groups": [{"groupId": name, "groupState": "Dead"} for name in request.groups]}

    def ConsumerGroupDescribe(self, request: Any) -> dict[str, Any]:
        return self._described("ConsumerGroupDescribe", request)

    def ShareGroupDescribe(self, request: Any) -> dict[str, Any]:
        return self._described("ShareGroupDescribe", request)

    def StreamsGroupDescribe(self, request: Any) -> dict[str, Any]:
        return self._described("StreamsGroupDescribe", request)

    def DescribeShareGroupOffsets(self, request: Any) -> dict[str, Any]:
        api = "DescribeShareGroupOffsets"
        return {"groups": [{"groupId": each.group_id, "topics": [],
                            "errorCode": self.error(api, each.group_id)}
                           for each in request.groups]}  # fmt: skip

    def OffsetFetch(self, request: Any) -> dict[str, Any]:
        return {"groups": [{"groupId": each.group_id, "topics": [],
                            "errorCode": self.error("OffsetFetch", each.group_id)}
                           for each in request.groups]}  # fmt: skip


class Consumers(OtherType):
    group_type, deleted_for = "consumer", "ConsumerGroupDescribe"


class Shared(OtherType):
    group_type, deleted_for = "share", "ShareGroupDescribe"


class SharedOffsets(OtherType):
    group_type, deleted_for = "share", "DescribeShareGroupOffsets"


class Streams(OtherType):
    group_type, deleted_for = "streams", "StreamsGroupDescribe"


class StreamsOffsets(OtherType):
    group_type, deleted_for = "streams", "OffsetFetch"


class Refused(Deleting):
    group_error, group_state = OTHER, ""


@pytest.mark.parametrize(
    "bodies",
    [
        *(Deleting, NotFound, NoOffsets, Consumers, Shared, SharedOffsets),
        *(Streams, StreamsOffsets),
    ],
)
def test_a_group_that_is_deleted_meanwhile_is_left_out(bodies: type[Bodies]) -> None:
    with hostile_broker(bodies_of=bodies) as address:
        done = run("groups", "-b", address, "-f", "json")
        named = run("groups", "-b", address, "--group", GONE)
        both = run("groups", "-b", address, "--group", GONE, "--group", STAYS, "-f", "json")
    assert done.exit_code == 0
    (note,) = done.stderr.splitlines()
    assert repr(GONE) in note
    assert [each["group_id"] for each in json.loads(done.stdout)["groups"]] == [STAYS]
    assert (named.exit_code, named.stdout) == (1, "")
    assert named.stderr == f"kafkawire groups: no such group: {GONE!r}\n"
    assert (both.exit_code, both.stderr) == (1, named.stderr)
    assert [each["group_id"] for each in json.loads(both.stdout)["groups"]] == [STAYS]


def test_another_error_of_a_group_is_still_one() -> None:
    with hostile_broker(bodies_of=Refused) as address:
        done = run("groups", "-b", address)
    assert done.exit_code == 1
    assert "GROUP_AUTHORIZATION_FAILED" in done.stderr


def test_a_topic_that_is_deleted_meanwhile_has_no_end() -> None:
    with hostile_broker(bodies_of=Deleting) as address:
        done = run("groups", "-b", address, "--group", STAYS, "-f", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    (group,) = json.loads(done.stdout)["groups"]
    assert {each["topic"]: each["end"] for each in group["offsets"]} == {GONE: None, STAYS: 1}


def test_topics_are_listed_whatever_is_deleted_meanwhile() -> None:
    with hostile_broker(bodies_of=Deleting) as address:
        done = run("topics", "-b", address, "-f", "json")
        named = run("topics", "-b", address, "--topic", GONE)
    assert (done.exit_code, done.stderr) == (0, "")
    assert STAYS in [each["name"] for each in json.loads(done.stdout)["topics"]]
    assert named.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in named.stderr


@pytest.mark.parametrize(
    "to", [("--to-latest",), ("--to-datetime", "2020-01-01"), ("--shift-by", "1")]
)
def test_offsets_of_all_topics_are_reset_but_of_deleted_ones(to: tuple[str, ...]) -> None:
    with hostile_broker(bodies_of=Deleting) as address:
        words = ("groups", "-b", address, "--group", STAYS, "--reset-offsets", "--all-topics")
        done = run(*words, *to, "-f", "json")
        named = run(*words[:-1], "--topic", GONE, *to)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [each["topic"] for each in json.loads(done.stdout)["offsets"]] == [STAYS]
    assert named.exit_code == 1


def test_the_configurations_of_other_topics_are_read() -> None:
    with hostile_broker(bodies_of=Deleting) as address:
        done = run("cluster", "-b", address, "-f", "json")
    found = json.loads(done.stdout)
    assert [each["topic"] for each in found["below_min_isr"]] == [STAYS]
    assert [each["topic"] for each in found["under_replicated"]] == [STAYS]


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(topics={"orders": 1})) as server:
        yield server


@pytest.mark.parametrize("api", [ApiKey.DESCRIBE_GROUPS, ApiKey.OFFSET_FETCH])
def test_a_group_of_our_broker_is_deleted_between_the_requests(
    server: ServerThread, api: ApiKey
) -> None:
    """The broker deletes it as soon as the verb requests it."""
    here = ("-b", server.bootstrap)
    reset = ("--reset-offsets", "--to-earliest", "--topic", "orders", "--execute")
    for group in (GONE, STAYS):
        done = run("groups", *here, "--group", group, *reset)
        assert done.exit_code == 0, done.stderr
    groups = server.server.machine.front(1).broker.broker.groups

    def deletes(request: Request) -> bool:
        coordinator = groups.of(groups.partition_of(GONE))
        if request.api_key == api and not isinstance(coordinator, kafkawire.ErrorCode):
            coordinator.groups.pop(GONE, None)
        return False

    server.fault(deletes)
    done = run("groups", *here, "-f", "json")
    assert done.exit_code == 0
    listed = [each["group_id"] for each in json.loads(done.stdout)["groups"]]
    assert STAYS in listed
    assert set(listed) <= {GONE, STAYS}
    assert (GONE in listed) != (repr(GONE) in done.stderr)


@pytest.mark.parametrize("api", ["DescribeGroups", "OffsetFetch"])
def test_a_fault_that_says_that_a_group_does_not_exist(server: ServerThread, api: str) -> None:
    here = ("-b", server.bootstrap)
    reset = ("--reset-offsets", "--to-earliest", "--topic", "orders", "--execute")
    for group in ("\x1b[31mone", "two"):
        assert run("groups", *here, "--group", group, *reset).exit_code == 0
    server.fault(api, nth=1, error="GROUP_ID_NOT_FOUND")
    done = run("groups", *here, "-f", "json")
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["groups"]) == 1
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("api", ["ShareGroupDescribe", "DescribeShareGroupOffsets"])
def test_a_share_group_that_does_not_exist_any_more(server: ServerThread, api: str) -> None:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        for group in (GONE, STAYS):
            admin.alter_share_group_offsets(group, {("orders", 0): 0})
    here = ("-b", server.bootstrap)
    before = run("groups", *here, "-f", "json")
    assert len(json.loads(before.stdout)["groups"]) == 2
    server.fault(api, nth=1, error="GROUP_ID_NOT_FOUND")
    done = run("groups", *here, "-f", "json")
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["groups"]) == 1
    assert "deleted since it was listed" in done.stderr
