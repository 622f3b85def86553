"""`kafkawire groups`: the groups of recordings, in JSON and as text."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture.multifile import Traffic
from kafkawire.protocol.json_form import uuid_text
from kafkawire.reports.groups import group as group_life
from kafkawire.reports.groups.histories import Groups
from kafkawire.reports.groups.silences import Silences
from kafkawire.reports.reading import Reading
from kafkawire.reports.watermarks import Watermarks
from kafkawire_cli.input.captures.progress import Progress
from tests.capture import truth
from tests.capture.written import Scenario
from tests.cli import outside
from tests.cli.reports import report, run, text
from tests.conftest import FIXTURES
from tests.recordings import recording

CAPTURES = FIXTURES / "captures"
PATHS = [path for path in truth.captures() if "sweep" not in path.name]
every = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.split(".truth")[0])


def groups(path: Path) -> dict[str, Any]:
    return {one["group_id"]: one for one in report("groups", path)["groups"]}


# -- recordings, against franz-go's reading of them


def messages(path: Path) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Pair the bodies of requests with those of responses, in order; {} for one not read."""
    request: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    made = []
    for row, body in zip(outside.rows(path), outside.bodies(path), strict=True):
        key = row["stream"], row["api_key"], row["correlation_id"]
        if row["dir"] == "req":
            request[key].append(body.get("body") or {})
        else:
            made.append((row, request[key].pop(0), body.get("body") or {}))
    return made


@every
def test_members_are_those_that_brokers_took_in(path: Path) -> None:
    wanted: dict[str, set[str]] = defaultdict(set)
    for row, request, message in messages(path):
        joins = row["api_name"] in ("JoinGroup", "ConsumerGroupHeartbeat")
        if joins and message["ErrorCode"] == 0 and request.get("MemberEpoch", 0) >= 0:
            wanted[request["Group"]].add(message["MemberID"] or request["MemberID"])
    made = groups(truth.capture_of(path))
    found = {
        group_id: {one["member_id"] for one in life["members"]}
        for group_id, life in made.items()
        if life["members"]
    }
    assert found == wanted


@every
def test_the_software_of_members_is_that_of_their_clients(path: Path) -> None:
    capture = truth.capture_of(path)
    clients: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for one in report("clients", capture)["clients"]:
        clients[one["client_id"], one["address"]].add(software(one))
    for group in groups(capture).values():
        for member in group["members"]:
            known = clients[member["client_id"], member["address"]]
            assert software(member) in {*known, (None, None)}  # named on another connection


def software(one: dict[str, Any]) -> tuple[str, str]:
    return one["software_name"], one["software_version"]


def test_the_software_of_closed_connections_is_forgotten() -> None:
    captures = Reading(Traffic([CAPTURES / "ck-group-range.pcap"]), Progress(0))
    watermarks = Watermarks(captures)
    silences = Silences()
    found = Groups(captures, watermarks, silences)
    captures.read(watermarks, silences, found)
    (group,) = found.all
    assert all(one.software is not None for one in group.members.values())
    assert not found._software


Place = tuple[str, int]
"""A topic and a partition."""


def reported_ends(row: Any, request: Any, message: Any, names: Any) -> dict[Place, int]:
    """Find the end offsets that a response reports."""
    if row["api_name"] == "Fetch":
        return {
            (topic, one["Partition"]): one["HighWatermark"]
            for topic, one in partitions(message, names)
            if one["ErrorCode"] == 0
        }
    if row["api_name"] != "ListOffsets" or request.get("IsolationLevel", 0) != 0:
        return {}
    latest = {
        (topic, one["Partition"])
        for topic, one in partitions(request, names)
        if one["Timestamp"] == -1
    }
    return {
        (topic, answer["Partition"]): end
        for topic, answer in partitions(message, names)
        if (topic, answer["Partition"]) in latest
        and answer["ErrorCode"] == 0
        and (end := max([answer["Offset"], *(answer["OldStyleOffsets"] or [])])) >= 0
    }


def committed_offsets(request: Any, names: Any) -> dict[Place, int]:
    """Find the offsets in a commit."""
    return {
        (topic, each["Partition"]): each["Offset"] for topic, each in partitions(request, names)
    }


@every
def test_lag_is_relative_to_earlier_high_watermarks(path: Path) -> None:
    names = outside.topic_names(path)
    ends: dict[Place, int] = {}
    lags: dict[str, dict[Place, tuple[int, int | None]]] = defaultdict(dict)
    commits: Counter[str] = Counter()
    for row, request, message in messages(path):
        ends |= reported_ends(row, request, message, names)
        if row["api_name"] in ("OffsetCommit", "TxnOffsetCommit"):
            refused = {
                (topic, one["Partition"])
                for topic, one in partitions(message, names)
                if one["ErrorCode"]
            }
            offsets = committed_offsets(request, names)
            taken = {key: offset for key, offset in offsets.items() if key not in refused}
            commits[request["Group"]] += bool(taken) or not offsets
            for key, offset in taken.items():
                lag = None if key not in ends else max(0, ends[key] - offset)
                lags[request["Group"]][key] = offset, lag
    for group_id, life in groups(truth.capture_of(path)).items():
        found = {
            (one["topic"], one["partition"]): (one["offset"], one["lag"]) for one in life["offsets"]
        }
        assert found == lags[group_id], group_id
        known = [lag for _, lag in found.values() if lag is not None]
        assert life["lag"] == (sum(known) if known else None)
        assert life["commits"] == commits[group_id]
        spans = [one for one in life["timeline"] if one["event"] == "committed"]
        assert sum(one["commits"] for one in spans) == commits[group_id]


def partitions(body: dict[str, Any], names: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """List the partitions of a body, by topic."""
    return [
        (topic["Topic"] or names.get(outside._id(topic["TopicID"]), ""), one)
        for topic in body.get("Topics") or []
        for one in topic["Partitions"]
    ]


def test_lag_is_there_to_be_compared() -> None:
    """Recordings in which consumers do not keep up, and in which topics go by id."""
    assert groups(recording("mixed-a.pcap"))["bulk-g"]["timeline"][4]["lag"] == 1715
    assert groups(CAPTURES / "ck-848.pcap")["g848"]["lag"] == 0


def test_a_rebalance_takes_from_the_first_join_to_the_last_assignment() -> None:
    path = CAPTURES / "ck-group-range.truth.jsonl.gz"
    at = outside.times(truth.capture_of(path))
    rows = outside.rows(path)
    joins = [at[row["frame"] - 1] for row in rows if (row["api_key"], row["dir"]) == (11, "req")]
    refused = [
        at[row["frame"] - 1]
        for row, _, message in messages(path)
        if row["api_key"] == 12 and message["ErrorCode"] == 27
    ]
    synced = [at[row["frame"] - 1] for row in rows if (row["api_key"], row["dir"]) == (14, "resp")]
    life = groups(truth.capture_of(path))["grp-range"]
    assert joins[0] < joins[1] < refused[0]  # of the second member, before the first one notices
    assert [one["duration_ns"] for one in life["rebalances"]] == [
        synced[0] - joins[0],
        synced[-1] - joins[1],
    ]
    assert [one["client_id"] for one in life["rebalances"]] == ["cons-A", "cons-B"]
    stopped = [one["stopped_ns"] for one in life["rebalances"]]
    assert stopped == [synced[0] - joins[0], synced[-1] - refused[0]]
    assert life["stopped_ns"] == sum(stopped)


# -- as a person reads it

STORY = """\
Group grp-range
  classic (range), generations 2 to 3
  2 rebalances, the longest 5.00 s; unavailable for 7.96 s (rebalancing)
  1 commit, lag 0 at the last commit of each partition

  member  software                                      address    joined    left           generations  commits
  cons-A  confluent-kafka-python 2.16.1-rdkafka-2.16.0  127.0.0.1  03:58:30  03:58:38 left          2-3        1
  cons-B  confluent-kafka-python 2.16.1-rdkafka-2.16.0  127.0.0.1  03:58:36  03:58:38 left            3

  time (UTC)    member  event
  2026-11-21
  03:58:27.152  cons-A  rebalance starts: a member joins
  03:58:30.153  cons-A  joins (generation 2, 1 member)
  03:58:30.154  cons-A  is assigned g-topic 0-3
  03:58:30.154          rebalance ends after 3.00 s (generation 2, 1 member); unavailable for 3.00 s
  03:58:30.297  cons-A  commits g-topic 0-3, lag 0
  03:58:31.115  cons-B  rebalance starts: a member joins
  03:58:31.164  cons-A  gets an error: OffsetCommit failed with REBALANCE_IN_PROGRESS
  03:58:36.116  cons-A  joins (generation 3, 2 members)
  03:58:36.116  cons-B  joins (generation 3)
  03:58:36.116  cons-A  is assigned g-topic 0-1
  03:58:36.116  cons-B  is assigned g-topic 2-3
  03:58:36.116          rebalance ends after 5.00 s (generation 3, 2 members); unavailable for 4.96 s
  03:58:38.185  cons-B  leaves
  03:58:38.186  cons-A  leaves
"""  # noqa: E501


def test_a_timeline_as_text() -> None:
    assert text("groups", CAPTURES / "ck-group-range.pcap") == STORY


def test_members_of_a_consumer_group_continue_during_a_rebalance() -> None:
    made = text("groups", CAPTURES / "ck-848.pcap")
    assert "  consumer, epochs 1 to 2\n" in made
    assert "rebalance ends after 1.99 s (epoch 2, 2 members); members continued meanwhile" in made
    assert "unavailable" not in made


# -- made up scenarios


def joined(
    scenario: Scenario, member: str, generation: int, members: list[str], **more: Any
) -> Scenario:
    """Let a member join a new generation, and be assigned nothing."""
    assignor = more.pop("assignor", "range")
    scenario.request("JoinGroup", 6, groupId="g", memberId=member, protocolType="consumer", **more)
    scenario.respond(
        "JoinGroup",
        6,
        generationId=generation,
        memberId=member,
        protocolName=assignor,
        leader=members[0],
        members=[{"memberId": one} for one in members] if member == members[0] else [],
    )
    scenario.request("SyncGroup", 3, groupId="g", memberId=member, generationId=generation)
    return scenario.respond("SyncGroup", 3)


def group_report(path: Path) -> Any:
    (life,) = report("groups", path)["groups"]
    return life


def test_a_cooperative_rebalance_stops_nobody(tmp_path: Path) -> None:
    scenario = joined(Scenario(), "m1", 1, ["m1"], assignor="cooperative-sticky")
    life = group_report(scenario.save(tmp_path / "a.pcap"))
    assert [one["stops_consumption"] for one in life["rebalances"]] == [False]
    assert life["stopped_ns"] == 0 < life["rebalances"][0]["duration_ns"]


def test_a_member_missing_in_the_next_generation_is_removed(tmp_path: Path) -> None:
    scenario = joined(Scenario(), "m1", 1, ["m1", "m2"])
    scenario = joined(scenario, "m1", 2, ["m1"])
    path = scenario.save(tmp_path / "a.pcap")
    assert "is removed: not in generation 2" in text("groups", path)
    assert "m2" not in {one["member_id"] for one in group_report(path)["members"]}


def test_a_member_removed_without_an_id_has_the_name_of_its_client(tmp_path: Path) -> None:
    scenario = Scenario().request("JoinGroup", 5, groupId="g", protocolType="consumer")
    scenario.respond("JoinGroup", 5, errorCode=25)
    path = scenario.save(tmp_path / "a.pcap")
    [event] = group_report(path)["timeline"]
    assert (event["event"], event["member_id"], event["client_id"]) == ("removed", None, "tester")
    assert "tester  is removed: JoinGroup failed with UNKNOWN_MEMBER_ID" in text("groups", path)


def test_an_unfinished_rebalance_is_reported(tmp_path: Path) -> None:
    scenario = joined(Scenario(), "m1", 1, ["m1"])
    scenario.request("Heartbeat", 3, groupId="g", memberId="m1", generationId=1)
    scenario.respond("Heartbeat", 3, errorCode=27)
    path = scenario.save(tmp_path / "a.pcap")
    assert group_report(path)["rebalances"][-1]["ended"] is None
    assert "the last is unfinished at the end of the capture" in text("groups", path)


def test_a_member_from_before_the_capture_is_known_by_its_heartbeat(tmp_path: Path) -> None:
    scenario = Scenario(opened=False)
    for _ in range(2):
        scenario.request("Heartbeat", 3, groupId="g", memberId="m7", generationId=41)
        scenario.respond("Heartbeat", 3)
    life = group_report(scenario.save(tmp_path / "a.pcap"))
    (member,) = life["members"]
    assert (member["member_id"], member["joined"]) == ("m7", None)
    assert (life["first_generation"], life["last_generation"]) == (41, 41)
    assert (life["timeline"], life["rebalances"]) == ([], [])


def test_an_error_response_does_not_make_a_member(tmp_path: Path) -> None:
    scenario = Scenario().request("Heartbeat", 3, groupId="g", memberId="m1", generationId=1)
    scenario.respond("Heartbeat", 3, errorCode=22)
    path = scenario.save(tmp_path / "a.pcap")
    life = group_report(path)
    assert life["members"] == []
    assert life["errors"] == {"ILLEGAL_GENERATION": 1}
    assert "tester  gets an error: Heartbeat failed with ILLEGAL_GENERATION" in text("groups", path)


def test_members_with_the_same_client_id_have_unique_labels(tmp_path: Path) -> None:
    scenario = joined(Scenario(), "one-11112222", 1, ["one-11112222"], groupInstanceId="static-1")
    scenario = joined(scenario, "two-33334444", 2, ["two-33334444"])
    made = text("groups", scenario.save(tmp_path / "a.pcap"))
    assert "tester (33334444)  is assigned" in made
    assert "tester (static-1)  is assigned" in made


def committed(scenario: Scenario) -> Scenario:
    """Fetch a topic by id, then commit it by name."""
    topic_id = "AAAAAAAAAAAAAAAAAAAAKg"
    there = {"partitionIndex": 0, "highWatermark": 100}
    scenario.request("Fetch", 13, topics=[{"topicId": topic_id, "partitions": [{"partition": 0}]}])
    scenario.respond("Fetch", 13, responses=[{"topicId": topic_id, "partitions": [there]}])
    for offset in (40, 70):
        one = {"partitionIndex": 0, "committedOffset": offset}
        topic = {"name": "orders", "partitions": [one]}
        scenario.request("OffsetCommit", 7, groupId="g", memberId="m", topics=[topic])
        one = {"partitionIndex": 0}
        scenario.respond("OffsetCommit", 7, topics=[{"name": "orders", "partitions": [one]}])
    scenario.request("Metadata", 12, topics=[{"name": "orders"}])
    return scenario.respond("Metadata", 12, topics=[{"name": "orders", "topicId": topic_id}])


def test_lag_uses_topic_names_that_appear_after_the_commit(tmp_path: Path) -> None:
    path = committed(Scenario()).save(tmp_path / "a.pcap")
    (entry,) = group_report(path)["timeline"]
    assert (entry["commits"], entry["lag"], entry["max_lag"]) == (2, 30, 60)
    assert "commits 2 times until" in text("groups", path)
    assert "orders 0, lag 30 (maximum 60)" in text("groups", path)
    # a stream cannot be read ahead
    result = run("groups", "-", stdin=path.read_bytes())
    assert "2 commits, lag unknown" in result.stdout


ORDERS, AGAIN = uuid_text(bytes(range(16))), uuid_text(bytes(range(1, 17)))


def fetched(scenario: Scenario, id: str, end: int) -> None:
    partition = {"partitionIndex": 0, "highWatermark": end, "errorCode": 3}
    listed = {"topicId": id, "partitions": [{"partition": 0}]}
    scenario.request("Fetch", 13, topics=[listed])
    ok = partition | {"errorCode": 0}
    scenario.respond("Fetch", 13, responses=[{"topicId": id, "partitions": [ok]}])
    scenario.request("Fetch", 13, topics=[listed])
    scenario.respond("Fetch", 13, responses=[{"topicId": id, "partitions": [partition]}])


def stated(scenario: Scenario, id: str) -> None:
    scenario.request("Metadata", 12, topics=[{"name": "orders"}])
    scenario.respond("Metadata", 12, topics=[{"name": "orders", "topicId": id}])


def offset_committed(scenario: Scenario, offset: int) -> None:
    topic = {"name": "orders", "partitions": [{"partitionIndex": 0, "committedOffset": offset}]}
    scenario.request("OffsetCommit", 8, groupId="g", memberId="a", topics=[topic])
    done = {"name": "orders", "partitions": [{"partitionIndex": 0}]}
    scenario.respond("OffsetCommit", 8, topics=[done])


@pytest.mark.parametrize("late", [False, True])
def test_a_topic_that_was_created_again_has_its_second_id(tmp_path: Path, late: bool) -> None:
    """Whether Metadata states the second id before the Fetch with it, or after the commit."""
    scenario = Scenario()
    stated(scenario, ORDERS)
    fetched(scenario, ORDERS, 1000)
    offset_committed(scenario, 900)
    if not late:
        stated(scenario, AGAIN)
    fetched(scenario, AGAIN, 10)
    offset_committed(scenario, 7)
    if late:
        stated(scenario, AGAIN)
    path = scenario.save(tmp_path / "again.pcap")
    assert groups(path)["g"]["lag"] == 3
    (topic,) = report("topics", path)["topics"]
    assert (topic["topic"], topic["topic_id"]) == ("orders", AGAIN)
    assert topic["topic_ids"] == [ORDERS, AGAIN]


def test_an_id_without_a_name_is_shown_as_the_id(tmp_path: Path) -> None:
    scenario = Scenario()
    stated(scenario, ORDERS)
    fetched(scenario, ORDERS, 1000)
    fetched(scenario, AGAIN, 10)
    found = report("topics", scenario.save(tmp_path / "unknown.pcap"))["topics"]
    assert {(one["topic"], one["topic_id"]) for one in found} == {("orders", ORDERS), (None, AGAIN)}


@pytest.mark.parametrize("version", [2, 5])
def test_a_member_that_joins_without_an_id_is_named_as_the_cause(
    version: int, tmp_path: Path
) -> None:
    """Another member notices the rebalance before the response has the id."""
    scenario = Scenario()
    instance = {} if version < 5 else {"groupInstanceId": "i"}
    scenario.request("JoinGroup", version, 0, groupId="g", memberId="a", protocolType="consumer")
    scenario.respond(
        "JoinGroup", version, 0, generationId=1, memberId="a", leader="a",
        members=[{"memberId": "a"}],
    )  # fmt: skip
    scenario.request("SyncGroup", 2, 0, groupId="g", memberId="a", generationId=1)
    scenario.respond("SyncGroup", 2, 0)
    scenario.request("JoinGroup", version, 1, groupId="g", protocolType="consumer", **instance)
    joining = scenario.last_request
    scenario.request("Heartbeat", 3, 0, groupId="g", memberId="a", generationId=1)
    scenario.respond("Heartbeat", 3, 0, errorCode=27)
    scenario.last_request = joining
    scenario.respond("JoinGroup", version, 1, generationId=2, memberId="b", leader="a")
    path = scenario.save(tmp_path / "join.pcap")
    group = groups(path)["g"]
    assert [one["member_id"] for one in group["rebalances"]] == ["a", "b"]
    started = [one for one in group["timeline"] if one["event"] == "rebalance_started"]
    assert [one["member_id"] for one in started] == ["a", "b"]


def test_a_member_that_sent_nothing_is_shown_by_its_instance_id(tmp_path: Path) -> None:
    scenario = Scenario()
    members = [{"memberId": "", "groupInstanceId": "i-1"}, {"memberId": "m-2"}]
    scenario.request("LeaveGroup", 3, groupId="g", members=members)
    scenario.respond("LeaveGroup", 3, members=members)
    path = scenario.save(tmp_path / "leave.pcap")
    assert [one["group_instance_id"] for one in groups(path)["g"]["timeline"]] == ["i-1", None]
    shown = [line.split()[1:] for line in text("groups", path).splitlines()]
    assert shown[-2:] == [["i-1", "leaves"], ["m-2", "leaves"]]


def test_of_a_long_life_the_middle_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_life, "MAX_ENTRIES", 3)
    scenario = Scenario()
    for generation in range(1, 8):
        joined(scenario, "m1", generation, ["m1"])
    life = group_report(scenario.save(tmp_path / "a.pcap"))
    assert len(life["timeline"]) == 6
    assert life["left_out"] == 4 * 7 - 6
    assert life["timeline"][-1]["generation"] == 7
    assert len(life["rebalances"]) == 7


def test_one_group_can_be_selected() -> None:
    path = recording("mixed-a.pcap")
    made = report("groups", path, options=("--group", "kcg", "--group", "aio-g"))["groups"]
    assert [one["group_id"] for one in made] == ["aio-g", "kcg"]


def test_a_group_that_does_not_exist_is_an_error() -> None:
    path = CAPTURES / "kjs-all.pcap"
    result = run("groups", path, "--group", "kjs-h")
    assert result.exit_code == 2
    assert "no such group: 'kjs-h'; did you mean kjs-g?" in result.stderr
    assert result.stdout == ""
    both = run("groups", path, "--group", "kjs-h", "--group", "kjs-g")
    assert both.exit_code == 2
    assert "Group kjs-g" in both.stdout
