"""Classic groups over the wire: joins, rebalances, sessions, static members, offsets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.groups.coordinators import java_hash, partition_for
from kafkawire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafkawire.messages.leave_group_response import LeaveGroupResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.protocol import encode_versioned

from .scene import Client, Scene

E = ErrorCode
GROUP = "g"
SESSION, REBALANCE = 10.0, 60.0
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
Protocols = Sequence[tuple[str, bytes]]
RANGE: Protocols = [("range", b"r")]


class Person:
    """A client that may be a member of the group."""

    def __init__(self, scene: Scene, instance: str | None = None, node_id: int = 1) -> None:
        self.scene = scene
        self.client: Client = scene.client(node_id)
        self.instance = instance
        self.rebalance = REBALANCE
        self.member_id = ""
        self.generation_id = -1
        self.leads = False
        self.early_response: JoinGroupResponse | None = None

    def joins(self, protocols: Protocols = RANGE, version: int = 9, kind: str = "consumer") -> None:
        """Send JoinGroup, twice if a member id is required; the response may be delayed."""
        self._join(protocols, version, kind)
        if not self.client.is_waiting() and version >= 4 and not self.member_id:
            response = self.client.receive(JoinGroupResponse)
            if response.error_code == E.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                self._join(protocols, version, kind)
                return
            self._hears(response)

    def _join(self, protocols: Protocols, version: int, kind: str) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(SESSION * 1000),
            rebalance_timeout_ms=int(self.rebalance * 1000) if version >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=kind,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        )
        self.client.send(request, version)

    def is_in(self) -> JoinGroupResponse:
        """Take the response to JoinGroup, which says that the rebalance is over."""
        response = (
            self.client.receive(JoinGroupResponse)
            if self.early_response is None
            else self.early_response
        )
        self.early_response = None
        assert response.error_code == E.NONE, response
        self._hears(response)
        self.early_response = None
        return response

    def _hears(self, response: JoinGroupResponse) -> None:
        self.early_response = response
        self.member_id, self.generation_id = response.member_id, response.generation_id
        self.leads = response.leader == response.member_id

    def syncs(self, **assignments: bytes) -> None:
        """Send SyncGroup; the leader sends the assignments by member id."""
        self.client.send(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequestAssignment(member_id=name, assignment=data)
                    for name, data in assignments.items()
                ],
            ),
            5,
        )

    def assigned(self) -> bytes:
        """Take the response to SyncGroup."""
        response = self.client.receive(SyncGroupResponse)
        assert response.error_code == E.NONE, response
        return response.assignment

    def beats(self) -> ErrorCode:
        """Send a heartbeat."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return ErrorCode(self.client.exchange(request, 4, HeartbeatResponse).error_code)

    def disconnect(self) -> ErrorCode:
        """Send LeaveGroup."""
        one = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=GROUP, members=[one])
        response = self.client.exchange(request, 5, LeaveGroupResponse)
        return ErrorCode(response.error_code or response.members[0].error_code)

    def commits(self, offset: int, topic: str = "t", version: int = 8) -> ErrorCode:
        """Commit an offset of partition 0."""
        return commit(self.client, topic, offset, self.generation_id, self.member_id, version)


def commit(
    client: Client,
    topic: str,
    offset: int,
    generation_id: int = -1,
    member_id: str = "",
    version: int = 8,
) -> ErrorCode:
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=offset, committed_metadata="m"
                    )
                ],
            )
        ],
    )
    response = client.exchange(request, version, OffsetCommitResponse)
    return ErrorCode(response.topics[0].partitions[0].error_code)


def committed(client: Client, topic: str = "t") -> int:
    request = OffsetFetchRequest(
        group_id=GROUP, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    )
    response = client.exchange(request, 6, OffsetFetchResponse)
    assert response.error_code == E.NONE, response
    return response.topics[0].partitions[0].committed_offset


def described(client: Client) -> DescribedGroup:
    response = client.exchange(DescribeGroupsRequest(groups=[GROUP]), 5, DescribeGroupsResponse)
    return response.groups[0]


def coordinator(client: Client) -> int:
    request = FindCoordinatorRequest(coordinator_keys=[GROUP])
    return client.exchange(request, 4, FindCoordinatorResponse).coordinators[0].node_id


@pytest.fixture
def scene() -> Scene:
    scene = Scene(topics={"t": 1}, settings=AT_ONCE)
    coordinator(scene.client())
    return scene


def stable(*people: Person) -> None:
    """Let members join the group, one after the other, and assign."""
    for at, person in enumerate(people):
        person.joins()
        for earlier in people[:at]:
            earlier.joins()
        for each in people[: at + 1]:
            each.is_in()
    leader = next(person for person in people if person.leads)
    for person in people:
        if person is not leader:
            person.syncs()
    leader.syncs(**{person.member_id: person.member_id.encode() for person in people})
    for person in people:
        assert person.assigned() == person.member_id.encode()


def test_the_hash_is_javas() -> None:
    assert java_hash("") == 0
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("\N{GRINNING FACE}") == 1772899
    assert partition_for("polygenelubricants", 50) == 0


def test_a_first_member_is_given_an_id_then_leads(scene: Scene) -> None:
    one = Person(scene)
    one._join(RANGE, 9, "consumer")
    requested = one.client.receive(JoinGroupResponse)
    assert requested.error_code == E.MEMBER_ID_REQUIRED
    assert requested.member_id.startswith("tester-")
    one.member_id = requested.member_id
    one.joins()
    joined = one.is_in()
    assert (joined.generation_id, joined.leader) == (1, one.member_id)
    assert [(each.member_id, each.metadata) for each in joined.members] == [(one.member_id, b"r")]
    one.syncs(**{one.member_id: b"everything"})
    assert one.assigned() == b"everything"
    assert described(one.client).group_state == "Stable"


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_no_member_id_is_required(scene: Scene, version: int) -> None:
    one = Person(scene)
    one.joins(version=version)
    assert one.is_in().member_id


def test_the_first_rebalance_waits_for_more(scene: Scene) -> None:
    scene = Scene(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "3000"})
    coordinator(scene.client())
    one, two = Person(scene), Person(scene)
    one.joins()
    scene.advance(2.0)
    two.joins()
    scene.advance(2.0)  # the second came within the delay: it is extended
    assert one.client.is_waiting()
    assert two.client.is_waiting()
    scene.advance(2.5)
    assert one.is_in().generation_id == two.is_in().generation_id == 1
    assert one.leads
    assert not two.leads


def test_the_first_rebalance_waits_no_longer_than_a_rebalance_may() -> None:
    """However many come, each within the delay of the one before."""
    scene = Scene(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "3000"})
    coordinator(scene.client())
    first = Person(scene)
    first.joins()
    waited = 0.0
    while first.client.is_waiting():
        assert waited < REBALANCE
        Person(scene).joins(version=3)
        scene.advance(2.0)
        waited += 2.0
    assert waited == REBALANCE
    assert first.is_in().generation_id == 1


def test_a_second_member_makes_the_first_join_again(scene: Scene) -> None:
    one, two = Person(scene), Person(scene)
    stable(one)
    two.joins()
    assert two.client.is_waiting()
    assert one.beats() == E.REBALANCE_IN_PROGRESS
    one.joins()
    assert one.is_in().generation_id == two.is_in().generation_id == 2
    assert one.leads, "who led before and joins again leads on"


def test_a_member_with_heartbeats_is_not_removed_while_others_are_slow(scene: Scene) -> None:
    one, two = Person(scene), Person(scene)
    stable(one)
    two.joins()
    for _ in range(5):
        scene.advance(SESSION - 1)
        assert one.beats() == E.REBALANCE_IN_PROGRESS
    one.joins()
    assert one.is_in().generation_id == two.is_in().generation_id


def test_a_member_without_heartbeats_is_removed(scene: Scene) -> None:
    one, two = Person(scene), Person(scene)
    stable(one, two)
    scene.advance(SESSION - 1)
    assert two.beats() == E.NONE
    scene.advance(2)
    assert two.beats() == E.REBALANCE_IN_PROGRESS
    two.joins()
    assert len(two.is_in().members) == 1
    assert one.beats() == E.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_rejoin_in_time_is_removed(scene: Scene) -> None:
    one, two, three = Person(scene), Person(scene), Person(scene)
    stable(one, two)
    three.joins()
    two.joins()
    for _ in range(int(REBALANCE // 5)):
        scene.advance(5)
        if three.client.is_waiting():
            assert one.beats() == E.REBALANCE_IN_PROGRESS  # alive, and yet it does not join
    assert {two.is_in().generation_id, three.is_in().generation_id} == {three.generation_id}
    assert one.beats() == E.UNKNOWN_MEMBER_ID


def test_a_new_member_is_not_waited_for_longer_than_five_minutes(scene: Scene) -> None:
    """Its client may be gone: a member whose join is delayed sends no heartbeats."""
    one, two = Person(scene), Person(scene)
    one.rebalance = two.rebalance = 900.0
    stable(one)
    two.joins()
    for _ in range(33):
        scene.advance(SESSION - 1)
        assert one.beats() == E.REBALANCE_IN_PROGRESS
    assert two.client.is_waiting()
    scene.advance(SESSION - 1)
    assert two.client.receive(JoinGroupResponse).error_code == E.UNKNOWN_MEMBER_ID


def test_a_member_that_never_syncs_is_removed(scene: Scene) -> None:
    one, two = Person(scene), Person(scene)
    stable(one, two)
    for person in (one, two):
        person.joins()
    if one.early_response is None:
        one.is_in()
    two.is_in()
    two.syncs()
    for _ in range(int(REBALANCE // 5) + 1):
        scene.advance(5)
        one.beats()
    response = two.client.receive(SyncGroupResponse)
    assert response.error_code == E.REBALANCE_IN_PROGRESS
    assert one.beats() == E.UNKNOWN_MEMBER_ID


def test_a_pending_member_expires(scene: Scene) -> None:
    one, ghost = Person(scene), Person(scene)
    stable(one)
    ghost._join(RANGE, 9, "consumer")
    ghost.member_id = ghost.client.receive(JoinGroupResponse).member_id
    scene.advance(SESSION / 2)
    assert one.beats() == E.NONE
    scene.advance(SESSION / 2 + 1)
    ghost._join(RANGE, 9, "consumer")
    assert ghost.client.receive(JoinGroupResponse).error_code == E.UNKNOWN_MEMBER_ID


def test_leaving_rebalances_and_an_empty_group_is_empty(scene: Scene) -> None:
    one, two = Person(scene), Person(scene)
    stable(one, two)
    assert two.disconnect() == E.NONE
    assert one.beats() == E.REBALANCE_IN_PROGRESS
    one.joins()
    one.is_in()
    assert one.disconnect() == E.NONE
    assert described(one.client).group_state == "Empty"
    assert one.disconnect() == E.UNKNOWN_MEMBER_ID


def test_a_static_member_rejoins_without_a_rebalance(scene: Scene) -> None:
    one, two = Person(scene, "one"), Person(scene, "two")
    stable(one, two)
    generation = one.generation_id
    again = Person(scene, "one")
    again.joins()
    response = again.is_in()
    assert response.generation_id == generation
    assert response.member_id != one.member_id
    assert two.beats() == E.NONE
    again.syncs()
    assert again.assigned() == one.member_id.encode(), "what it had before"
    assert one.beats() == E.FENCED_INSTANCE_ID
    assert response.skip_assignment == again.leads


def test_a_static_member_that_is_replaced_while_it_joins_is_fenced(scene: Scene) -> None:
    one, two = Person(scene, "one"), Person(scene, "two")
    stable(one, two)
    one.joins([("range", b"new")])  # a rebalance, as it is the leader
    assert one.client.is_waiting()
    again = Person(scene, "one")
    again.joins()
    assert one.client.receive(JoinGroupResponse).error_code == E.FENCED_INSTANCE_ID
    two.joins()
    assert again.is_in().generation_id == two.is_in().generation_id == one.generation_id + 1


def test_a_static_member_that_comes_back_with_fewer_protocols_rebalances(scene: Scene) -> None:
    one = Person(scene, "one")
    one.joins([("range", b"r"), ("roundrobin", b"r")])
    assert one.is_in().protocol_name == "range"
    one.syncs(**{one.member_id: b"all"})
    assert one.assigned() == b"all"
    again = Person(scene, "one")
    again.joins([("roundrobin", b"r")])
    response = again.is_in()
    assert (response.generation_id, response.protocol_name) == (one.generation_id + 1, "roundrobin")


def test_a_static_member_that_is_replaced_before_it_synced_must_sync_too(scene: Scene) -> None:
    one, two = Person(scene, "one"), Person(scene, "two")
    stable(one)
    two.joins()
    one.joins()
    one.is_in()
    two.is_in()
    one.syncs()
    assert one.assigned() == b""
    again = Person(scene, "two")
    again.joins()
    assert again.is_in().generation_id == one.generation_id
    for _ in range(int(REBALANCE // SESSION) + 2):
        scene.advance(SESSION - 1)
        error = again.beats()
        one.beats()
    assert error == E.UNKNOWN_MEMBER_ID


def test_an_assignment_for_another_protocol_is_rejected(scene: Scene) -> None:
    one = Person(scene)
    one.joins()
    one.is_in()
    for kind, name in (("consumer", "sticky"), ("connect", "range")):
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=one.generation_id,
            member_id=one.member_id,
            protocol_type=kind,
            protocol_name=name,
        )
        response = one.client.exchange(request, 5, SyncGroupResponse)
        assert response.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    one.syncs()
    assert one.assigned() == b""


def test_a_static_leader_that_comes_back_need_not_assign(scene: Scene) -> None:
    one = Person(scene, "one")
    stable(one)
    new, old = Person(scene, "one"), Person(scene, "one")
    new.joins(version=9)
    response = new.is_in()
    assert (response.skip_assignment, response.leader) == (True, response.member_id)
    assert len(response.members) == 1
    old.joins(version=8)
    response = old.is_in()
    assert response.leader == new.member_id, "it does not know itself for the leader"
    assert response.members == []


def test_a_static_member_stays_while_it_is_away(scene: Scene) -> None:
    one, two = Person(scene, "one"), Person(scene)
    stable(one, two)
    one.client.disconnect()
    scene.advance(SESSION - 1)
    assert two.beats() == E.NONE
    scene.advance(2)  # its session is over
    assert two.beats() == E.REBALANCE_IN_PROGRESS


def test_protocols_must_have_one_in_common(scene: Scene) -> None:
    one = Person(scene)
    one.joins([("range", b"1"), ("sticky", b"2")])
    one.is_in()
    for protocols, kind in (([("other", b"")], "consumer"), (RANGE, "connect")):
        two = Person(scene)
        two._join(protocols, 9, kind)
        assert two.client.receive(JoinGroupResponse).error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_most_votes_win_among_what_all_have(scene: Scene) -> None:
    one, two = Person(scene), Person(scene)
    one.joins([("a", b"1"), ("b", b"2"), ("c", b"3")])
    one.is_in()
    two.joins([("b", b"4"), ("a", b"5")])
    one.joins([("c", b"6"), ("b", b"7"), ("a", b"8")])
    assert one.is_in().protocol_name == two.is_in().protocol_name == "b"


def test_a_session_timeout_out_of_range_is_rejected(scene: Scene) -> None:
    one = Person(scene)
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=1,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    response = one.client.exchange(request, 9, JoinGroupResponse)
    assert response.error_code == E.INVALID_SESSION_TIMEOUT


def test_a_group_has_no_more_members_than_it_may() -> None:
    scene = Scene(topics={"t": 1}, settings={**AT_ONCE, "group.max.size": "1"})
    coordinator(scene.client())
    one, two = Person(scene), Person(scene)
    stable(one)
    two._join(RANGE, 9, "consumer")
    assert two.client.receive(JoinGroupResponse).error_code == E.GROUP_MAX_SIZE_REACHED


def test_who_may_commit(scene: Scene) -> None:
    one = Person(scene)
    assert commit(one.client, "t", 1) == E.NONE, "a group that is only its offsets"
    assert commit(one.client, "t", 2, 7, "nobody") == E.UNKNOWN_MEMBER_ID
    stable(one)
    assert commit(one.client, "t", 3) == E.UNKNOWN_MEMBER_ID, "the group has members"
    assert commit(one.client, "t", 3, one.generation_id + 1, one.member_id) == E.ILLEGAL_GENERATION
    assert one.commits(4) == E.NONE
    assert one.commits(5, "absent") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert committed(one.client) == 4
    one.joins()
    one.is_in()
    assert one.commits(6) == E.REBALANCE_IN_PROGRESS
    assert committed(one.client) == 4


def test_committing_keeps_a_member_alive(scene: Scene) -> None:
    one = Person(scene)
    stable(one)
    for offset in range(5):
        scene.advance(SESSION - 1)
        assert one.commits(offset) == E.NONE


@pytest.mark.parametrize("how", ["moved", "stopped"])
def test_a_group_survives_its_coordinator(how: str) -> None:
    settings = {**AT_ONCE, "offsets.topic.num.partitions": "1"}
    scene = Scene(3, topics={"t": 1}, settings=settings)
    first = coordinator(scene.client())
    one, waiting = Person(scene, node_id=first), Person(scene, node_id=first)
    stable(one)
    assert one.commits(42) == E.NONE
    waiting.joins()
    assert waiting.client.is_waiting()
    if how == "moved":
        other = first % 3 + 1
        scene.move_leader("__consumer_offsets", 0, other)
        assert waiting.client.receive(JoinGroupResponse).error_code == E.NOT_COORDINATOR
        assert one.beats() == E.NOT_COORDINATOR
    else:
        scene.stop_broker(first)
        assert one.client.closed == "the broker stopped"
    other = next(node for node in (1, 2, 3) if node != first)
    other = coordinator(scene.client(other))
    assert other != first
    moved = Person(scene, node_id=other)
    moved.member_id, moved.generation_id = one.member_id, one.generation_id
    assert moved.beats() == E.NONE, "the member is known where the group is now"
    assert committed(moved.client) == 42
    group = described(moved.client)
    assert (group.group_state, len(group.members)) == ("Stable", 1)
    assert group.members[0].member_assignment == one.member_id.encode()
    scene.advance(SESSION + 1)
    assert described(moved.client).group_state == "Empty"


def test_offsets_and_groups_expire() -> None:
    settings = {**AT_ONCE, "offsets.retention.minutes": "30"}
    scene = Scene(topics={"t": 1}, settings=settings)
    coordinator(scene.client())
    one = Person(scene)
    wants_another = encode_versioned(ConsumerProtocolSubscription(topics=["u"]), 0)
    one.joins([("range", wants_another)])
    one.is_in()
    one.syncs()
    assert one.assigned() == b""
    assert one.commits(7) == E.NONE
    for _ in range(200):
        scene.advance(SESSION - 1)
        assert one.beats() == E.NONE
    # as long as a member wants the topic its offsets stay; this one wants another
    assert committed(one.client) == -1
    assert one.commits(8) == E.NONE
    assert one.disconnect() == E.NONE
    scene.advance(29 * 60)
    scene.client()
    client = scene.client()
    assert committed(client) == 8
    scene.advance(11 * 60)
    client = scene.client()
    assert committed(client) == -1
    assert described(client).group_state == "Dead"


def test_an_offset_may_say_when_it_expires() -> None:
    scene = Scene(topics={"t": 1}, settings=AT_ONCE)
    coordinator(scene.client())
    client = scene.client()
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        retention_time_ms=60_000,
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=3)],
            )
        ],
    )
    assert client.exchange(request, 4, OffsetCommitResponse).topics[0].partitions[0].error_code == 0
    assert committed(client) == 3
    scene.advance(599)
    assert committed(client) == 3, "it is looked for every ten minutes"
    scene.advance(2)
    assert committed(scene.client()) == -1
