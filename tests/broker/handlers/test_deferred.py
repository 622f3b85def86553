"""Responses of coordinators wait until the records that they rest on are committed."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.sync_group_response import SyncGroupResponse
from tests.broker.consumer import (
    AT_ONCE,
    GROUP,
    Consumer,
    commit,
    commit_error,
    commit_request,
    committed,
    coordinator,
    stable,
)
from tests.broker.harness import Client, Harness

E = ErrorCode
FETCHED = OffsetFetchRequest(
    group_id=GROUP, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
)


class LaggingLog:
    """Lets the high watermark of a node's `CoordinatorLog` move when a test says so."""

    def __init__(self, harness: Harness, node_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.harness = harness
        self.node_id = node_id
        self.groups = harness.groups(node_id)
        log = self.groups._log
        self._watermark = log.committed
        self._committed = self.groups.committed
        monkeypatch.setattr(self.groups, "committed", self._advance)
        self.lags = False
        self.high_watermark = 0
        monkeypatch.setattr(log, "committed", self.committed)
        self.index = self.groups.partition_of(GROUP)

    def committed(self, index: int) -> int:
        return self.high_watermark if self.lags else self._watermark(index)

    def _advance(self, index: int, offset: int, now: float) -> None:
        """Follow the high watermark of the replica, unless this one lags."""
        if not self.lags:
            self._committed(index, offset, now)

    def stop(self) -> None:
        """Commit nothing from now on."""
        self.high_watermark, self.lags = self._watermark(self.index), True

    def commit(self, records: int) -> None:
        """Commit the next records."""
        self.high_watermark += records
        self._committed(self.index, self.high_watermark, self.harness.now)
        self.harness.client(self.node_id).disconnect()  # a node sends responses with an event


@pytest.fixture
def harness() -> Harness:
    harness = Harness(topics={"t": 1}, settings=AT_ONCE, brokers=2)
    coordinator(harness.client())
    return harness


@pytest.fixture
def logs(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> dict[int, LaggingLog]:
    return {node_id: LaggingLog(harness, node_id, monkeypatch) for node_id in (1, 2)}


@pytest.fixture
def log(harness: Harness, logs: dict[int, LaggingLog]) -> LaggingLog:
    """The log of the coordinator."""
    return logs[coordinator(harness.client())]


def client_of(harness: Harness) -> Client:
    """Connect to the coordinator."""
    return harness.client(coordinator(harness.client()))


def commits(client: Client, offset: int) -> None:
    client.send(commit_request("t", offset), 8)


def error(client: Client) -> ErrorCode:
    return commit_error(client.receive(OffsetCommitResponse))


def test_a_commit_is_acknowledged_when_it_is_committed(harness: Harness, log: LaggingLog) -> None:
    one, two = client_of(harness), client_of(harness)
    log.stop()
    commits(one, 1)
    commits(two, 2)
    assert one.is_waiting()
    assert two.is_waiting()
    log.commit(1)
    assert error(one) == E.NONE
    assert two.is_waiting()
    log.commit(1)
    assert error(two) == E.NONE
    assert len(log.groups.deferred) == 0


def test_nobody_reads_what_is_not_committed(harness: Harness, log: LaggingLog) -> None:
    one, two = client_of(harness), client_of(harness)
    assert commit(one, "t", 1) == E.NONE
    log.stop()
    commits(one, 2)
    two.send(FETCHED, 6)
    assert two.is_waiting()
    log.commit(1)
    response = two.receive(OffsetFetchResponse)
    assert response.topics[0].partitions[0].committed_offset == 2
    assert committed(two) == 2, "nothing is pending any more"


def test_assignments_are_sent_when_they_are_committed(harness: Harness, log: LaggingLog) -> None:
    node = coordinator(harness.client())
    one, two = Consumer(harness, node_id=node), Consumer(harness, node_id=node)
    one.joins()
    two.joins()
    one.is_in()
    one.joins()
    one.is_in()
    two.is_in()
    log.stop()
    leader, other = (one, two) if one.leads else (two, one)
    other.syncs()
    leader.syncs(**{each.member_id: b"mine" for each in (one, two)})
    assert leader.client.is_waiting()
    assert other.client.is_waiting()
    beats = client_of(harness)
    heartbeat = HeartbeatRequest(
        group_id=GROUP, generation_id=one.generation_id, member_id=one.member_id
    )
    beats.send(heartbeat, 4)
    assert beats.is_waiting(), "it says that the group is stable, which is not committed"
    log.commit(1)
    assert leader.assigned() == other.assigned() == b"mine"
    assert beats.receive(HeartbeatResponse).error_code == E.NONE


def test_a_coordinator_that_is_unloaded_acknowledges_nothing(
    harness: Harness, log: LaggingLog, logs: dict[int, LaggingLog]
) -> None:
    one = Consumer(harness, node_id=coordinator(harness.client()))
    stable(one)
    other = 3 - one.client.node_id
    log.stop()
    one.client.send(commit_request("t", 7, one.generation_id, one.member_id), 8)
    assert one.client.is_waiting()
    logs[other].high_watermark, logs[other].lags = log.high_watermark, True
    harness.move_leader("__consumer_offsets", log.index, other)
    assert error(one.client) == E.NOT_COORDINATOR
    assert len(log.groups.deferred) == 0
    reader = harness.client(other)
    reader.send(FETCHED, 6)
    assert reader.is_waiting(), "the new coordinator does not know either what is committed"
    logs[other].commit(1)
    assert reader.receive(OffsetFetchResponse).topics[0].partitions[0].committed_offset == 7


def test_a_response_waits_only_so_long(harness: Harness, log: LaggingLog) -> None:
    one = client_of(harness)
    log.stop()
    commits(one, 1)
    harness.advance(4.9)
    assert one.is_waiting()
    harness.advance(0.2)
    assert error(one) == E.COORDINATOR_NOT_AVAILABLE
    commits(one, 2)
    log.commit(2)
    assert error(one) == E.NONE
    assert committed(one) == 2


def test_a_client_that_disconnects_is_not_waited_for(harness: Harness, log: LaggingLog) -> None:
    one = client_of(harness)
    log.stop()
    commits(one, 1)
    one.disconnect()
    log.commit(1)
    assert len(log.groups.deferred) == 0
    pending = harness.broker(one.node_id).channel.pending.values()
    assert one.number not in {each.connection for each in pending}


def test_a_failed_sync_is_not_deferred_beyond_its_coordinator(
    harness: Harness, log: LaggingLog
) -> None:
    one = Consumer(harness, node_id=coordinator(harness.client()))
    one.joins()
    one.is_in()
    log.stop()
    one.syncs(**{one.member_id: b"mine"})
    assert one.client.is_waiting()
    harness.move_leader("__consumer_offsets", log.index, 3 - one.client.node_id)
    assert one.client.receive(SyncGroupResponse).error_code == E.NOT_COORDINATOR
