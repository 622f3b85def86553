"""Tasks of Streams groups: the assignor, the steps of members to it, the partitions of topics."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.broker.groups.consumer_groups.checks import Refusal
from kafkawire.broker.groups.streams_groups.assignor import Subtopologies, TaskMember, sticky
from kafkawire.broker.groups.streams_groups.configured import (
    InvalidTopology,
    StatusCode,
    configured,
)
from kafkawire.broker.groups.streams_groups.group import StreamsGroup
from kafkawire.broker.groups.streams_groups.members import StreamsHeartbeat
from kafkawire.broker.groups.streams_groups.metadata import StreamsGroupConfig
from kafkawire.broker.groups.streams_groups.records import decode, encode
from kafkawire.broker.groups.streams_groups.tasks import NOTHING, Task, Tasks
from kafkawire.broker.groups.streams_groups.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from kafkawire.broker.groups.topics import Topic
from kafkawire.protocol.log_records import decode_log_record
from kafkawire.protocol.log_types import InternalLog


class NamedTopics:
    """The topics of a cluster: name -> number of partitions."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.version = self.created = 0

    def find(self, name: str) -> Topic | None:
        count = self.partitions.get(name)
        return None if count is None else Topic(name.encode().ljust(16), count)

    def names(self) -> list[str]:
        return list(self.partitions)

    def racks(self, _name: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
        return ()

    def name(self, topic_id: bytes) -> str | None:
        return topic_id.rstrip().decode()


# -- the assignor


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[TaskMember], Subtopologies, int]:
    counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    stateful = draw(st.sets(st.integers(0, 2)))
    subtopologies = Subtopologies(
        {str(at): count for at, count in enumerate(counts)}, frozenset(map(str, stateful))
    )
    processes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    free = subtopologies.all()
    members = []
    for at, process in enumerate(processes):
        active = draw(st.sets(st.sampled_from(free))) if free else set()
        free = [task for task in free if task not in active]
        standby = draw(st.sets(st.sampled_from(subtopologies.all()))) - active
        assigned = Tasks(frozenset(active), frozenset(standby))
        members.append(TaskMember(f"m{at}", f"p{process}", assigned, {}))
    return members, subtopologies, draw(st.integers(0, 2))


@given(clusters())
def test_each_task_is_active_once_and_copied_to_other_processes(
    cluster: tuple[list[TaskMember], Subtopologies, int],
) -> None:
    members, subtopologies, replicas = cluster
    assignment = sticky(members, subtopologies, replicas)
    active = Counter(task for tasks in assignment.values() for task in tasks.active)
    assert active == Counter(subtopologies.all())
    processes = {each.process_id for each in members}
    copies = Counter(task for tasks in assignment.values() for task in tasks.standby)
    for task in subtopologies.all():
        is_stateful = task[0] in subtopologies.stateful
        assert copies[task] == (min(replicas, len(processes) - 1) if is_stateful else 0)
    for process in processes:
        of = [assignment[each.member_id] for each in members if each.process_id == process]
        held = Counter(task for tasks in of for task in tasks.active | tasks.standby)
        assert all(count == 1 for count in held.values())


@given(clusters())
def test_an_assignment_is_stable(cluster: tuple[list[TaskMember], Subtopologies, int]) -> None:
    """At once where each process has one member; else after a round that evens out members.

    A process is loaded by its members' average: the only one of a process may get more than all
    others, whose share of what is left is then smaller.
    """
    members, subtopologies, _ = cluster

    def next_round(assignment: dict[str, Tasks]) -> dict[str, Tasks]:
        keeping = [each._replace(assigned=assignment[each.member_id]) for each in members]
        return sticky(keeping, subtopologies, 0)

    once = sticky(members, subtopologies, 0)
    twice = next_round(once)
    assert next_round(twice) == twice
    if len({each.process_id for each in members}) == len(members):
        assert twice == once


def test_a_member_with_the_newest_state_gets_the_task() -> None:
    task = "0", 0
    members = [
        TaskMember("a", "p", NOTHING, {task: 5}),
        TaskMember("b", "q", NOTHING, {task: 9}),
        TaskMember("c", "r", NOTHING, {}),
    ]
    assignment = sticky(members, Subtopologies({"0": 1}, frozenset("0")), 0)
    assert assignment["b"].active == {task}


# -- the steps of members


def topology(tasks: int) -> tuple[Topology, NamedTopics]:
    changelog = InternalTopic("changelog")
    only = Subtopology("0", ("source",), state_changelog_topics=(changelog,))
    return Topology(0, (only,)), NamedTopics(source=tasks, changelog=tasks)


class Driven:
    """A group whose members report what they have, some of them late."""

    def __init__(self, tasks: int, replicas: int) -> None:
        self.group = StreamsGroup("g", StreamsGroupConfig(standby_replicas=replicas))
        self.topology, self.topics = topology(tasks)
        self.held: dict[str, Tasks] = {}
        self.epochs: dict[str, int] = {}
        self.log: list[tuple[bytes, bytes | None]] = []

    def send(self, member_id: str, process_id: str, epoch: int) -> None:
        joins = epoch == 0
        request = StreamsHeartbeat(
            "g",
            member_id,
            epoch,
            rebalance_timeout_ms=60_000,
            topology=self.topology if joins else None,
            owned=NOTHING if joins else self.held[member_id],
            process_id=process_id,
        )
        result = self.group.handle(request, self.topics, 0.0, 0)
        self.log += [one for change in self.group.changes for one in encode("g", change)]
        self.group.changes.clear()
        assert not isinstance(result, Refusal), result
        if epoch < 0:
            del self.held[member_id], self.epochs[member_id]
            return
        self.epochs[member_id] = result.member_epoch
        self.held[member_id] = self.held.get(member_id, NOTHING)
        if result.assigned is not None:
            self.held[member_id] = result.assigned

    def check(self, processes: dict[str, str]) -> None:
        active = [task for tasks in self.held.values() for task in tasks.active]
        assert len(active) == len(set(active)), "a task is active at two members"
        for process in set(processes.values()):
            of = [self.held[each] for each in self.held if processes[each] == process]
            held = Counter[Task]()
            for tasks in of:
                held.update(tasks.active | tasks.standby | tasks.warmup)
            assert all(count == 1 for count in held.values()), "a process has a task twice"

    def restored(self) -> StreamsGroup:
        group = StreamsGroup("g")
        for key, value in self.log:
            read = decode_log_record(InternalLog.OFFSETS, key, value)
            assert read.key is not None
            assert read.key.message is not None
            change = decode(read.key.message, None if read.value is None else read.value.message)
            assert change is not None
            group.apply(change[1])
        return group


STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["beat", "leave", "lose"])),
    max_size=30,
)


@given(STEPS, st.integers(0, 2), st.booleans())
def test_no_task_runs_twice_and_members_reach_their_targets(
    steps: list[tuple[str, str]], replicas: int, shared: bool
) -> None:
    processes = {"a": "p", "b": "p" if shared else "q", "c": "r"}
    driven = Driven(3, replicas)

    def beat(member_id: str) -> None:
        driven.send(member_id, processes[member_id], driven.epochs.get(member_id, 0))
        driven.check(processes)

    for member_id, step in steps:
        if step == "beat":
            beat(member_id)
        elif member_id in driven.epochs:
            if step == "leave":
                driven.send(member_id, processes[member_id], -1)
            else:  # a response was lost, and the member joins again
                driven.held[member_id] = NOTHING
                driven.epochs[member_id] = 0
    members = list(driven.epochs)
    for _ in range(12):
        for member_id in members:
            beat(member_id)
    assert all(driven.held[each] == driven.group.targets[each] for each in members)
    restored, group = driven.restored(), driven.group
    assert (restored.epoch, restored.assignment_epoch) == (group.epoch, group.assignment_epoch)
    assert restored.members == group.members
    assert restored.current == group.current
    assert restored.targets == group.targets
    assert restored.topology == group.topology
    assert restored.size == group.size
    assert restored.state == group.state
    assert {task: restored.active_process(task) for task in (("0", 0), ("0", 1), ("0", 2))} == {
        task: group.active_process(task) for task in (("0", 0), ("0", 1), ("0", 2))
    }


# -- the partitions of topics


def repartition(name: str, partitions: int = 0) -> InternalTopic:
    return InternalTopic(name, partitions)


def test_repartition_topics_have_the_partitions_of_what_writes_them() -> None:
    chain = tuple(
        Subtopology(
            str(at),
            ("source",) if at == 0 else (),
            (f"r{at}",),
            (repartition(f"r{at - 1}"),) if at else (),
        )
        for at in (3, 2, 1, 0)
    )
    last = Subtopology("4", repartition_source_topics=(repartition("r3"),))
    result = configured(Topology(0, (*chain, last)), NamedTopics(source=7))
    assert result.tasks == dict.fromkeys("01234", 7)
    assert {each.name: each.partitions for each in result.missing} == {
        f"r{at}": 7 for at in range(4)
    }
    assert result.problem is not None
    assert result.problem.code is StatusCode.MISSING_INTERNAL_TOPICS


def joined(*sources: str, fixed: int = 0, others: int = 0) -> Topology:
    """Return a topology that joins topics with a repartition topic of another subtopology."""
    writer = Subtopology("0", ("in",), ("r", "s"))
    topics = (repartition("r", fixed), *((repartition("s", others),) if others else ()))
    group = CopartitionGroup(tuple(range(len(sources))), tuple(range(len(topics))))
    joins = Subtopology("1", sources, (), topics, copartition_groups=(group,))
    return Topology(0, (writer, joins))


def test_a_joined_repartition_topic_has_the_partitions_of_the_other_source() -> None:
    result = configured(joined("left"), NamedTopics(**{"in": 3, "left": 8}))
    assert result.partitions == {"r": 8}
    assert result.tasks == {"0": 3, "1": 8}


@pytest.mark.parametrize(
    ("topology", "partitions"),
    [
        (joined("left", "right"), {"left": 8, "right": 9}),
        (joined("left", fixed=4), {"left": 8}),
        (joined(fixed=4, others=5), {}),
    ],
)
def test_topics_that_are_joined_have_the_same_partitions(
    topology: Topology, partitions: dict[str, int]
) -> None:
    result = configured(topology, NamedTopics(**{"in": 3, **partitions}))
    assert result.problem is not None
    assert result.problem.code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert not result.is_ready


def test_a_copartition_group_has_topics_of_its_subtopology() -> None:
    group = CopartitionGroup((1,), ())
    broken = Topology(0, (Subtopology("0", ("in",), copartition_groups=(group,)),))
    with pytest.raises(InvalidTopology, match="subtopology 0"):
        configured(broken, NamedTopics(**{"in": 1}))
    negative = Subtopology("0", ("in",), copartition_groups=(CopartitionGroup((-1,), ()),))
    with pytest.raises(InvalidTopology, match="subtopology 0"):
        configured(Topology(0, (negative,)), NamedTopics(**{"in": 1}))


class CountedTopics(NamedTopics):
    """Counts how often topics are looked up."""

    lookups = 0

    def find(self, name: str) -> Topic | None:
        self.lookups += 1
        return super().find(name)


def test_the_work_is_linear_in_a_chain_of_subtopologies() -> None:
    def work(count: int) -> int:
        chain = [
            Subtopology(
                f"{at:06d}",
                ("source",),
                (f"r{at}",),
                (repartition(f"r{at - 1}"),) if at else (),
            )
            for at in reversed(range(count))
        ]
        topics = CountedTopics(source=2)
        configured(Topology(0, tuple(chain)), topics)
        return topics.lookups

    assert work(400) < 12 * work(40)
