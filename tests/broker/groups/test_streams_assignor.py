"""The assignor of Streams groups gives each member the tasks that Kafka's own gives it.

Kafka's StickyTaskAssignor runs from its jars, many rounds in one JVM (AssignTasks.java). In it the
order of hash tables and heaps decides between equals, which is the same in each run and in ours.
It does not read client tags and racks, and assigns no warm-up tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from kafkawire.broker.groups.streams_groups.assignor import Subtopologies, TaskMember, sticky
from kafkawire.broker.groups.streams_groups.tasks import NOTHING, Task, Tasks, TaskSet
from tests.real.compiler import compiled
from tests.real.java import Installation

SOURCE: Final = Path(__file__).with_name("AssignTasks.java")
GROUPS: Final = 250
ROUNDS: Final = 8
Assignment = dict[str, Tasks]


class Round(NamedTuple):
    """What an assignor gets."""

    members: list[TaskMember]
    subtopologies: Subtopologies
    replicas: int

    def assign(self) -> Assignment:
        """Return our assignment."""
        return sticky(self.members, self.subtopologies, self.replicas)

    def lines(self) -> Iterator[str]:
        """Return the input of the program in Java."""
        for name, count in self.subtopologies.tasks.items():
            state = "stateful" if name in self.subtopologies.stateful else "stateless"
            yield f"subtopology {name} {count} {state}"
        for member in self.members:
            active, standby = text(member.assigned.active), text(member.assigned.standby)
            offsets = ",".join(f"{a}:{n}:{offset}" for (a, n), offset in member.offsets.items())
            words = member.member_id, member.process_id, active, standby, offsets or "-"
            yield f"member {' '.join(words)}"
        yield f"assign {self.replicas}"


def text(tasks: Iterable[Task]) -> str:
    return ",".join(f"{name}:{index}" for name, index in sorted(tasks)) or "-"


def task_set(text: str) -> TaskSet:
    pairs = (each.split(":") for each in text.split(",") if each != "-")
    return frozenset((name, int(index)) for name, index in pairs)


def rounds(random: Random) -> Iterator[tuple[Round, Assignment]]:
    """Rounds of a group, whose members join, leave, and keep what the round before gave them."""
    names = random.sample("0123456789", random.randrange(1, 5))
    subtopologies = Subtopologies(
        {name: random.randrange(1, 13) for name in sorted(names)},
        frozenset(name for name in names if random.random() < 0.6),
    )
    replicas = random.choice((0, 1, 1, 2))
    processes = [f"{random.getrandbits(128):032x}" for _ in range(random.randrange(1, 20))]
    members: list[TaskMember] = []
    for _ in range(ROUNDS):
        joining = random.randrange(0 if members else 1, 20 if random.random() < 0.2 else 4)
        leaving = random.randrange(len(members) // 2 + 1)
        members = random.sample(members, len(members) - leaving)
        for _ in range(joining):
            member_id = f"{random.getrandbits(128):032x}"
            members.append(TaskMember(member_id, random.choice(processes), NOTHING, {}))
        members = [each._replace(offsets=offsets(random, each, subtopologies)) for each in members]
        this = Round(members, subtopologies, replicas)
        assignment = this.assign()
        yield this, assignment
        members = [each._replace(assigned=reached(random, assignment, each)) for each in members]


def reached(random: Random, assignment: Assignment, member: TaskMember) -> Tasks:
    """Return what a member has when the next round comes, perhaps before it has all tasks."""
    target = assignment[member.member_id]
    if random.random() < 0.8:
        return target
    active = frozenset(each for each in target.active if random.random() < 0.5)
    return Tasks(active | (member.assigned.active & target.active), target.standby)


def offsets(random: Random, member: TaskMember, of: Subtopologies) -> Mapping[Task, int]:
    """Return the offsets that a member reports: of its tasks, and of others on its disk."""
    on_disk = [each for each in of.all(stateful=True) if random.random() < 0.1]
    held = sorted(member.assigned.active | member.assigned.standby)
    reported = [each for each in held if each[0] in of.stateful and random.random() < 0.7]
    return {task: random.randrange(4) for task in {*reported, *on_disk}}


def assignments(output: str) -> Iterator[Assignment]:
    """Read the output of the program in Java."""
    assignment: Assignment = {}
    for line in output.splitlines():
        if line == "done":
            yield assignment
            assignment = {}
        else:
            member_id, active, standby = line.split(" ")
            assignment[member_id] = Tasks(task_set(active), task_set(standby))


def test_each_member_has_the_tasks_that_kafkas_assignor_gives_it(
    installation: Installation,
) -> None:
    random = Random(1)
    pairs = [pair for _ in range(GROUPS) for pair in rounds(random)]
    lines = [line for this, _ in pairs for line in this.lines()]
    output = compiled(installation, SOURCE).run(SOURCE.stem, stdin="\n".join(lines) + "\n")
    theirs = list(assignments(output))
    assert len(theirs) == len(pairs) == GROUPS * ROUNDS
    for (this, ours), kafkas in zip(pairs, theirs, strict=True):
        assert ours == kafkas, "\n".join(this.lines())


def test_of_processes_with_the_same_load_the_first_in_javas_hash_table_gets_the_task() -> None:
    """The ids of both processes have nearly the same hash, so that the last added is first."""
    ids = {
        "1c7435678b222435f049774510ebb321": "401ad5a64bfc7beb814c0204e55b4ca1",
        "fa039d609103a19c0d7ad634579786f8": "89318d187d4b6fd8db98b3831da3faf1",
    }
    members = [TaskMember(member_id, process, NOTHING, {}) for member_id, process in ids.items()]
    assignment = sticky(members, Subtopologies({"2": 1}, frozenset()), 0)
    assert assignment["fa039d609103a19c0d7ad634579786f8"].active == {("2", 0)}
