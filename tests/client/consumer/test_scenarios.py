"""Scenarios of consumers and brokers in a simulation without sockets."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from random import Random

import pytest

from kafkawire.broker import Report
from kafkawire.client.config import Setting
from kafkawire.client.consumer import (
    CommitKind,
    LogTruncated,
    OffsetAndMetadata,
    Reset,
    ResetPolicy,
    TopicPartition,
    events,
)
from kafkawire.client.consumer.group.member_states import MemberState
from kafkawire.client.producer import Flush, Flushed, Send
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.offset_commit_request import OffsetCommitRequest
from tests.client.administering import create_partitions
from tests.client.clients import producer_client
from tests.client.simulation import NetworkConditions, Simulation

from .users import User, covered

ORDERS = [TopicPartition("orders", n) for n in range(4)]
FIRST = ORDERS[0]
CALM = NetworkConditions(delay_s=0.002, split=0.0)
CONFIG: dict[str, Setting] = {
    "group.id": "readers",
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 1_000,
    "max.poll.interval.ms": 20_000,
    "auto.commit.interval.ms": 1_000,
    "max.poll.records": 10,
}


def simulation(
    brokers: int = 2, release: str | None = None, configs: Mapping[str, str] = {}
) -> Simulation:
    """A simulation with a topic of four partitions, whose leaders are spread."""
    made = Simulation(1, brokers=brokers, conditions=CALM, release=release)
    nodes = made.brokers.ids
    replicas = [[nodes[n % brokers], nodes[(n + 1) % brokers]][:brokers] for n in range(4)]
    made.create("orders", replicas, configs)
    return made


def write(simulation: Simulation, number: int, partition: int = 0, name: str = "p") -> None:
    """Write so many records, through a producer."""
    if name not in simulation.news:
        simulation.add(name, producer_client(Random(9), simulation.bootstrap))
    for n in range(number):
        simulation.send_event(name, Send(object(), "orders", partition, None, b"%d" % n, n))
    done = Flushed(simulation.now)
    simulation.send_event(name, Flush(simulation.now))
    simulation.run(lambda: done in simulation.news[name])


def config(**more: Setting) -> dict[str, Setting]:
    return CONFIG | {name.replace("_", "."): value for name, value in more.items()}


def stable(*users: User) -> bool:
    return all(user.machine.membership.state is MemberState.STABLE for user in users)


def test_two_members_share_and_the_second_leaves_again() -> None:
    it = simulation()
    one = User(it, "one", config())
    one.subscribe("orders")
    it.run(lambda: covered([one], ORDERS))
    two = User(it, "two", config())
    two.subscribe("orders")
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    assert len(one.assignment) == len(two.assignment) == 2
    two.close()
    it.run(lambda: two.closed and covered([one], ORDERS))
    changes = [change for change, _ in one.changes]
    assert changes == [
        events.Change.ASSIGNED,
        events.Change.REVOKED,
        events.Change.ASSIGNED,
        events.Change.REVOKED,
        events.Change.ASSIGNED,
    ]


def test_a_cooperative_rebalance_revokes_only_moving_partitions() -> None:
    it = simulation()
    cooperative = config(partition_assignment_strategy="cooperative-sticky")
    one, two = User(it, "one", cooperative), User(it, "two", cooperative)
    one.subscribe("orders")
    it.run(lambda: covered([one], ORDERS))
    two.subscribe("orders")
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    it.pass_time(5.0)
    moved = two.assignment
    assert len(moved) == 2
    changes_of_one = [(change, frozenset(which)) for change, which in one.changes]
    nothing: frozenset[TopicPartition] = frozenset()
    assert changes_of_one == [
        (events.Change.ASSIGNED, frozenset(ORDERS)),
        (events.Change.REVOKED, moved),
        (events.Change.ASSIGNED, nothing),
        (events.Change.ASSIGNED, nothing),
    ]
    # the second member first got nothing, and then what the first had given up
    assert [len(which) for _, which in two.changes] == [0, 2]


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    it = simulation()
    one = User(it, "one", config())
    two = User(it, "two", config(group_instance_id="two"))
    one.subscribe("orders")
    two.subscribe("orders")
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    generation, had = one.machine.membership.identity.generation_id, two.assignment
    two.close()
    it.run(lambda: two.closed)
    again = User(it, "again", config(group_instance_id="two"))
    again.subscribe("orders")
    it.run(lambda: stable(again) and again.assignment == had)
    it.pass_time(5.0)
    assert one.machine.membership.identity.generation_id == generation


def test_a_user_who_stops_polling_loses_all_partitions_and_rejoins() -> None:
    it = simulation()
    one, two = User(it, "one", config()), User(it, "two", config())
    one.subscribe("orders")
    two.subscribe("orders")
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    had = one.assignment
    one.stop()
    it.pass_time(15.0)
    assert one.assignment == had  # heartbeats go on
    it.run(lambda: covered([two], ORDERS))
    assert one.assignment == frozenset()
    one.polling = True
    one.poll()
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    assert (events.Change.LOST, tuple(sorted(had))) in one.changes


def test_a_crashed_member_is_removed_after_its_session_timeout() -> None:
    it = simulation()
    one, two = User(it, "one", config()), User(it, "two", config())
    one.subscribe("orders")
    two.subscribe("orders")
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    began = it.now
    two.crash()
    it.run(lambda: covered([one], ORDERS))
    assert it.now - began >= 5.0


def test_new_partitions_start_a_rebalance() -> None:
    it = simulation()
    one = User(it, "one", config(metadata_max_age_ms=1_000))
    one.subscribe("orders")
    it.run(lambda: covered([one], ORDERS))
    more = create_partitions("orders", 6, [[1, 2], [2, 1]])
    assert not it.administer(more, CreatePartitionsResponse).results[0].error_code
    it.run(lambda: len(one.assignment) == 6)


def test_a_new_subscription_revokes_the_old_partitions() -> None:
    it = simulation()
    it.create("payments", [[1]])
    one = User(it, "one", config(partition_assignment_strategy="cooperative-sticky"))
    one.subscribe("orders")
    it.run(lambda: covered([one], ORDERS))
    one.send(events.Subscribe(("payments",), has_listener=True))
    it.run(lambda: one.assignment == {TopicPartition("payments", 0)})
    assert (events.Change.REVOKED, tuple(ORDERS)) in one.changes


def test_records_are_fetched_ahead_of_polls() -> None:
    it = simulation()
    write(it, 25)
    one = User(it, "one", config())
    one.assign(FIRST)
    it.run(lambda: len(one.read) == 10)
    one.stop()
    it.pass_time(5.0)
    write(it, 5)
    it.pass_time(5.0)
    assert len(one.read) == 10
    one.polling = True
    began = it.now
    for _ in range(2):  # what was fetched is there at once
        one.send(events.Poll())
    assert len(one.read) >= 20
    assert it.now == began
    it.run(lambda: len(one.read) == 30)
    assert one.offsets(FIRST) == list(range(30))


@pytest.mark.parametrize("release", ["2.2", "3.0", "4.3"])
def test_fetches_have_topic_names_or_ids_and_only_changes(release: str) -> None:
    it = simulation(release=release)
    seen: list[tuple[int, FetchRequest]] = []

    def on_report(report: Report) -> None:
        if report.request.api_key == ApiKey.FETCH:
            body = report.request.body
            assert isinstance(body, FetchRequest)
            seen.append((report.request.version, body))

    it.on_report = on_report
    one = User(it, "one", config())
    one.assign(*ORDERS)
    it.pass_time(3.0)
    for partition in range(4):
        write(it, 3, partition)
    it.run(lambda: len(one.read) == 12)
    assert seen
    for version, body in seen:
        by_id = version >= 13
        assert by_id == (release == "4.3")
        for topic in body.topics:
            assert (topic.topic == "") == by_id
    # once a session is open, a request that changes nothing says nothing
    assert any(body.session_epoch > 0 and not body.topics for _, body in seen)


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_log_truncation_is_detected(policy: str) -> None:
    it = simulation(configs={"unclean.leader.election.enable": "true"})
    first, other = 1, 2
    write(it, 5)
    it.stop(other)
    it.run(lambda: it.brokers.in_sync("orders", 0) == [first])
    write(it, 3)  # the other one never has these
    one = User(it, "one", config(auto_offset_reset=policy, metadata_max_age_ms=500))
    one.assign(FIRST)
    one.send(events.Seek(FIRST, 0))
    it.run(lambda: len(one.read) == 8)
    it.stop(first)
    it.pass_time(2.0)  # until its session has expired
    it.start(other)
    it.run(lambda: it.brokers.leads(other, "orders", 0))
    it.start(first)
    write(it, 6)
    if policy == "none":
        it.run(lambda: bool(one.errors))
        assert isinstance(one.errors[0], LogTruncated)
        assert len(one.read) == 8
        one.send(events.SeekTo((FIRST,), ResetPolicy(Reset.EARLIEST)))
        it.run(lambda: len(one.read) == 8 + 11)
    else:
        it.run(lambda: len(one.read) == 14)
        assert one.offsets(FIRST) == [*range(8), *range(5, 11)]


def test_a_position_out_of_range_is_reset() -> None:
    it = simulation()
    write(it, 8)
    one = User(it, "one", config())
    one.assign(FIRST)
    one.send(events.Seek(FIRST, 100))
    it.run(lambda: len(one.read) == 8)


def test_the_next_member_starts_at_committed_offsets() -> None:
    it = simulation()
    write(it, 8)
    one = User(it, "one", config(enable_auto_commit=False))
    one.assign(FIRST)
    it.run(lambda: len(one.read) == 8)
    one.send(events.Commit("mine", None, CommitKind.SYNC, 10.0))
    it.run(lambda: "mine" in one.results)
    assert one.results["mine"] == events.Done("mine", None)
    one.close()
    write(it, 1)
    two = User(it, "two", config())
    two.subscribe("orders")
    it.run(lambda: len(two.read) == 1)
    assert two.offsets(FIRST) == [8]


def test_close_waits_for_the_last_commit() -> None:
    it = simulation()
    write(it, 8)
    one = User(it, "one", config(max_poll_records=4), think_s=0.0)
    one.subscribe("orders")
    it.run(lambda: len(one.read) == 8)
    one.send(events.Commit("early", {FIRST: OffsetAndMetadata(1)}, CommitKind.ASYNC, 10.0))
    one.close()
    it.run(lambda: one.closed)
    two = User(it, "two", config())
    two.send(events.GetCommitted("query", (FIRST,), 10.0))
    it.run(lambda: "query" in two.results)
    committed = two.results["query"]
    assert isinstance(committed, events.CommittedFound)
    assert committed.offsets[FIRST] == OffsetAndMetadata(8, 0)


def test_auto_commit_commits_consumed_offsets_every_interval() -> None:
    """At first at once, then with an interval in between, and never what was not returned."""
    it = simulation()
    one = User(it, "one", config(auto_commit_interval_ms=1_000, max_poll_records=2), think_s=0.0)
    seen: list[tuple[float, int]] = []

    def on_report(report: Report) -> None:
        if report.request.api_key == ApiKey.OFFSET_COMMIT:
            body = report.request.body
            assert isinstance(body, OffsetCommitRequest)
            [topic] = body.topics
            seen.extend((it.now, each.committed_offset) for each in topic.partitions)

    it.on_report = on_report
    one.subscribe("orders")
    it.run(lambda: covered([one], ORDERS) and stable(one))
    for _ in range(4):
        write(it, 2)
        it.pass_time(1.5)
    assert [offset for _, offset in seen if offset] == [2, 4, 6, 8]
    times = [at for at, offset in seen if offset]
    assert all(later - at >= 0.99 for at, later in pairwise(times))
