"""The server-side task assignor `sticky`, as Kafka's StickyTaskAssignor.

Invariant: each task is active at one member; a process has no copy of a task twice. Members keep
what they can within their share of the tasks; processes get tasks by their number of members. Of
equals the first is that of Kafka, which Java's hash tables and heaps decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ..java_collections import PriorityQueue, hash_order
from .tasks import Task, Tasks

STICKY: Final = "sticky"


class TaskMember(NamedTuple):
    """A member. assigned: the tasks that it has. offsets: of the changelogs of its tasks."""

    member_id: str
    process_id: str
    assigned: Tasks
    offsets: Mapping[Task, int]


class Subtopologies(NamedTuple):
    """What is assigned: subtopology id -> number of tasks. stateful: those with state."""

    tasks: Mapping[str, int]
    stateful: frozenset[str]

    def all(self, *, stateful: bool = False) -> list[Task]:
        """Return the tasks of all subtopologies, or of those with state."""
        ids = [each for each in self.tasks if not stateful or each in self.stateful]
        return [(each, index) for each in ids for index in range(self.tasks[each])]


class _Process:
    """A process with its members: how many tasks each has."""

    def __init__(self, member_ids: Iterable[str]) -> None:
        self.counts = dict.fromkeys(hash_order(member_ids), 0)
        self.tasks: set[Task] = set()
        self._total = 0
        self._by_load: PriorityQueue[str] | None = None

    @property
    def load(self) -> float:
        """Tasks for each member."""
        return self._total / len(self.counts)

    def add(self, member_id: str, task: Task) -> int:
        """Take note of a task of a member; return how many that has."""
        self._by_load = None
        return self._add(member_id, task)

    def _add(self, member_id: str, task: Task) -> int:
        self.tasks.add(task)
        self._total += 1
        self.counts[member_id] += 1
        return self.counts[member_id]

    def add_to_least_loaded(self, task: Task) -> tuple[str, int]:
        """Give a task to the member with the fewest; return it, and how many it has."""
        if self._by_load is None:
            self._by_load = PriorityQueue()
            for member_id, count in self.counts.items():
                self._by_load.add(count, member_id)
        member_id = self._by_load.poll()
        count = self._add(member_id, task)
        self._by_load.add(count, member_id)
        return member_id, count


class _Quota:
    """How many tasks a member may keep: what is left, divided among those that may get more."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.limit = 0
        self._divide()

    def _divide(self) -> None:
        self.limit = -(-self._tasks // self._members) if self._members else 0

    def taken(self, count: int) -> None:
        """Take note that a member has so many tasks."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self._divide()


class _Assignment:
    def __init__(
        self, members: Sequence[TaskMember], subtopologies: Subtopologies, standby_replicas: int
    ) -> None:
        self.active: defaultdict[str, set[Task]] = defaultdict(set)
        self.standby: defaultdict[str, set[Task]] = defaultdict(set)
        self._replicas = standby_replicas
        of_process: defaultdict[str, list[str]] = defaultdict(list)
        for member in members:
            of_process[member.process_id].append(member.member_id)
        processes = (each.process_id for each in members)
        self._processes = [
            _Process(of_process[each])
            for each in hash_order(processes, len(members), computed=True)
        ]
        self._process_of = {
            member_id: process for process in self._processes for member_id in process.counts
        }
        self._last_active: dict[Task, str] = {}
        copies: defaultdict[Task, list[tuple[bool, int, str]]] = defaultdict(list)
        for member in members:
            self._last_active.update(dict.fromkeys(member.assigned.active, member.member_id))
            for task in member.assigned.standby:
                copies[task].append((False, -member.offsets.get(task, 0), member.member_id))
            for task, offset in member.offsets.items():
                if task not in member.assigned.standby:
                    copies[task].append((True, -offset, member.member_id))
        self._copies = {
            task: [each[2] for each in sorted(of, key=lambda each: each[:2])]
            for task, of in copies.items()
        }
        everything = subtopologies.all()
        stateful = subtopologies.all(stateful=True)
        self._active_quota = _Quota(len(everything), len(members))
        self._quota = _Quota(len(everything) + len(stateful) * standby_replicas, len(members))

    # -- active tasks

    def assign_active(self, tasks: Iterable[Task]) -> None:
        """Give tasks to those that had them, or have their state, else to the least loaded."""
        rest = []
        for task in sorted(tasks, key=lambda each: (each[1], each[0])):
            if not self._keep_active(task, self._last_active.get(task)):
                rest.append(task)
        new = []
        for task in rest:
            if not self._keep_active(task, self._least_loaded(self._copies.get(task, ()))):
                new.append(task)
        by_load = self._by_load()
        for task in sorted(new):
            process = by_load.poll()
            member_id, count = process.add_to_least_loaded(task)
            self._took_active(member_id, task, count)
            by_load.add(process.load, process)

    def _keep_active(self, task: Task, member_id: str | None) -> bool:
        if member_id is None:
            return False
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._active_quota.limit:
            return False
        self._took_active(member_id, task, process.add(member_id, task))
        return True

    def _took_active(self, member_id: str, task: Task, count: int) -> None:
        self.active[member_id].add(task)
        self._active_quota.taken(count)
        self._quota.taken(count)

    def _by_load(self) -> PriorityQueue[_Process]:
        by_load = PriorityQueue[_Process]()
        for process in self._processes:
            by_load.add(process.load, process)
        return by_load

    def _least_loaded(self, member_ids: Iterable[str], without: Task | None = None) -> str | None:
        """Return a member whose process and who itself have fewer tasks than those before it.

        without: a task that its process must not have.
        """
        best: tuple[float, int] | None = None
        chosen = None
        for member_id in member_ids:
            process = self._process_of[member_id]
            if without is not None and without in process.tasks:
                continue
            load = process.load, process.counts[member_id]
            if best is None or (load[0] < best[0] and load[1] < best[1]):
                best, chosen = load, member_id
        return chosen

    # -- standby tasks

    def assign_standby(self, tasks: Iterable[Task]) -> None:
        """Give copies of tasks to those that have their state, else to the least loaded."""
        rest = []
        for task in sorted(tasks, key=lambda each: (each[1], each[0]), reverse=True):
            for done in range(self._replicas):
                if not self._keep_standby(task):
                    rest.append((task, self._replicas - done))
                    break
        by_load = self._by_load()
        for task, count in sorted(rest, reverse=True):
            for _ in range(count):
                if not self._give_standby(task, by_load):
                    break  # there are not enough processes

    def _keep_standby(self, task: Task) -> bool:
        last = self._last_active.get(task)
        if last is not None and task not in self._process_of[last].tasks and self._may_keep(last):
            self._took_standby(last, task, self._process_of[last].add(last, task))
            return True
        member_id = self._least_loaded(self._copies.get(task, ()), task)
        if member_id is None or not self._may_keep(member_id):
            return False
        self._took_standby(member_id, task, self._process_of[member_id].add(member_id, task))
        return True

    def _may_keep(self, member_id: str) -> bool:
        return self._process_of[member_id].counts[member_id] < self._quota.limit

    def _took_standby(self, member_id: str, task: Task, count: int) -> None:
        self.standby[member_id].add(task)
        self._quota.taken(count)

    def _give_standby(self, task: Task, by_load: PriorityQueue[_Process]) -> bool:
        """Give a copy to the least loaded process that does not have the task."""
        polled = []
        placed = False
        while by_load and not placed:
            process = by_load.poll()
            if task not in process.tasks:
                member_id, count = process.add_to_least_loaded(task)
                self._took_standby(member_id, task, count)
                placed = True
            polled.append(process)
        for process in reversed(polled):
            by_load.add(process.load, process)
        return placed


def sticky(
    members: Sequence[TaskMember], subtopologies: Subtopologies, standby_replicas: int
) -> dict[str, Tasks]:
    """Assign the tasks of a topology: member id -> its tasks, none of them a warm-up task.

    standby_replicas: the number of copies of each task with state.
    """
    if not members:
        return {}
    by_id = {each.member_id: each for each in members}
    in_order = [by_id[each] for each in hash_order(by_id)]
    assignment = _Assignment(in_order, subtopologies, standby_replicas)
    assignment.assign_active(subtopologies.all())
    if standby_replicas:
        assignment.assign_standby(subtopologies.all(stateful=True))
    return {
        each.member_id: Tasks(
            frozenset(assignment.active[each.member_id]),
            frozenset(assignment.standby[each.member_id]),
        )
        for each in members
    }
