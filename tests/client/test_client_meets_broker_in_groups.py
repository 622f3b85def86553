"""Groups of consumers and the broker on a wire that delays, splits, drops, in a cluster that moves,
stops and crashes: everything is read, in order, by one member at a time, groups settle, and no
committed offset goes backwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.broker.groups.classic_groups.states import GroupState
from kafkawire.broker.groups.coordinator import Coordinator
from kafkawire.broker.groups.coordinators import partition_for
from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerError, TopicPartition, events
from kafkawire.client.consumer.group.member_states import MemberState
from kafkawire.client.network.network import CloseNetwork
from kafkawire.client.producer import Flush, Flushed, Send
from kafkawire.messages.offset_commit_key import OffsetCommitKey
from kafkawire.messages.offset_commit_value import OffsetCommitValue
from kafkawire.protocol.error_code import ErrorCode
from tests.client.brokers import OFFSETS_PARTITIONS
from tests.client.clients import producer_client
from tests.client.consumer.users import User, covered
from tests.client.seeds import SEEDS, chunk
from tests.client.simulation import NetworkConditions, Simulation
from tests.fuzzing import replayable

CHUNKS = 20
OFFSETS = "__consumer_offsets"
GROUP = "readers"
OFFSETS_PARTITION = partition_for(GROUP, OFFSETS_PARTITIONS)
TOPICS = {"orders": 3, "parcels": 2}
PARTITIONS = [TopicPartition(topic, n) for topic, count in TOPICS.items() for n in range(count)]
STRATEGIES: tuple[Setting, ...] = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "range,cooperative-sticky",
)
GROUP_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
FETCH_ERRORS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)
SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
)
TROUBLE_S = 18.0
"""For so long things go wrong; then it is calm, and all must come to its end."""
SETTLED_S = 120.0


class Scenario:
    """One run: members come and go while records are written and things go wrong; then calm.

    settings: of the brokers. apis: of the group's requests. stable: the state of a settled member.
    crashing: how a member ends that does not leave.
    """

    settings: Mapping[str, str] = {}
    apis: tuple[str, ...] = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch")
    stable: Enum = MemberState.STABLE
    crashing = User.crash

    def __init__(self, seed: int, release: str | None = None) -> None:
        draws = self.draws = Random(seed)
        conditions = NetworkConditions(
            delay_s=draws.choice((0.001, 0.02, 0.2)),
            split=draws.choice((0.0, 0.3)),
            reset=draws.choice((0.0, 0.002, 0.01)),
        )
        brokers = draws.choice((1, 3))
        load_s = draws.choice((0.0, 0.0, 0.05, 2.0))
        self.simulation = Simulation(
            seed,
            brokers=brokers,
            conditions=conditions,
            settings=dict(self.settings),
            release=release,
            load_s=load_s,
        )
        self.strategy = draws.choice(STRATEGIES)
        self.users: dict[str, User] = {}
        self.written = 0
        for topic, count in TOPICS.items():
            nodes = self.simulation.brokers.ids
            spread = [
                [nodes[n % len(nodes)], nodes[(n + 1) % len(nodes)]][:brokers] for n in range(count)
            ]
            self.simulation.create(topic, spread)
        self.simulation.add("p", producer_client(Random(seed + 1), self.simulation.bootstrap))
        for _ in range(draws.choice((20, 80))):
            self.simulation.at(draws.random() * TROUBLE_S, self._write)
        for number in range(draws.randrange(1, 4)):
            self._plan_user(f"c{number}", seed * 10 + number)
        self._plan_trouble()

    def _write(self) -> None:
        key = b"k%d" % self.draws.randrange(12)
        topic = self.draws.choice(tuple(TOPICS))
        record = Send(self.written, topic, None, key, b"%d" % self.written, self.written)
        self.written += 1
        self.simulation.send_event("p", record)

    def _group_config(self) -> dict[str, Setting]:
        """Return the settings of the group's protocol."""
        return {
            "partition.assignment.strategy": self.strategy,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
        }

    def _plan_user(self, name: str, seed: int) -> None:
        draws = self.draws
        config: dict[str, Setting] = {
            **self._group_config(),
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "max.poll.interval.ms": 20_000,
            "auto.commit.interval.ms": draws.choice((500, 5_000)),
            "max.poll.records": draws.choice((1, 500)),
            "request.timeout.ms": 5_000,
            "default.api.timeout.ms": 5_000,
        }
        if draws.random() < 0.3:
            config["group.instance.id"] = name
        come, think = draws.random() * 8, draws.choice((0.01, 0.5))

        def join() -> None:
            self.users[name] = User(self.simulation, name, config, think_s=think, seed=seed)
            self.users[name].subscribe(*TOPICS)

        self.simulation.at(come, join)
        leave = draws.random()
        if name != "c0" and leave < 0.5:
            when = come + draws.random() * 12
            end = User.close if leave < 0.35 else type(self).crashing
            self.simulation.at(when, lambda: end(self.users[name]))

    def _plan_trouble(self) -> None:
        draws, simulation = self.draws, self.simulation
        if draws.random() < 0.5:
            for _ in range(draws.randrange(1, 3)):
                node, when = (
                    draws.choice(simulation.brokers.ids),
                    draws.random() * TROUBLE_S,
                )
                simulation.at(when, partial(simulation.stop, node))
                simulation.at(when + draws.random() * 5, partial(simulation.start, node))
        if draws.random() < 0.5:
            for _ in range(draws.randrange(1, 6)):
                which = draws.choice([*PARTITIONS, (OFFSETS, OFFSETS_PARTITION)])
                where = (*which, draws.choice(simulation.brokers.ids))
                simulation.at(draws.random() * TROUBLE_S, partial(simulation.move, *where))
        if draws.random() < 0.6:
            for api in self.apis:
                error = draws.choice(GROUP_ERRORS)
                simulation.trouble(
                    Fault(api, probability=0.1, action=Action.ERROR, error=error),
                    Fault(api, probability=0.03, action=Action.DROP),
                    Fault(api, probability=0.05, action=Action.DELAY, delay=0.5),
                )
            error = draws.choice(FETCH_ERRORS)
            session = draws.choice(SESSION_ERRORS)
            simulation.trouble(
                Fault("Fetch", probability=0.03, action=Action.ERROR, error=error),
                Fault("Fetch", probability=0.03, action=Action.ERROR, error=session),
                Fault("ListOffsets", probability=0.1, action=Action.ERROR, error=error),
                Fault(None, probability=0.005, action=Action.TRUNCATE),
                Fault(None, probability=0.005, action=Action.CORRUPT, at=6),
                Fault(None, probability=0.02, action=Action.DISCONNECT, carried_out=True),
            )
        if draws.random() < 0.3:
            for _ in range(draws.randrange(1, 3)):
                simulation.at(draws.random() * TROUBLE_S, simulation.crash)
        simulation.at(TROUBLE_S + 2.0, simulation.calm)

    # What must be so.

    @property
    def here(self) -> list[User]:
        return [user for user in self.users.values() if not user.closed]

    def play(self) -> None:
        simulation = self.simulation
        simulation.pass_time(TROUBLE_S + 9.0)  # until every session that was to expire has
        simulation.send_event("p", Flush("end"))
        simulation.run(lambda: Flushed("end") in simulation.news["p"])  # nothing more is written
        simulation.run(self._settled, SETTLED_S)
        simulation.run(self._all_read, SETTLED_S)
        for user in self.here:
            user.close()
            simulation.run(partial(getattr, user, "closed"))
        simulation.to_network("p", CloseNetwork())
        simulation.pass_time(1.0)

    def _settled(self) -> bool:
        stable = all(u.machine.membership.state is self.stable for u in self.here)
        return stable and covered(self.here, PARTITIONS) and self._settled_at_the_broker()

    def _settled_at_the_broker(self) -> bool:
        leader = self.simulation.brokers.leader(OFFSETS, OFFSETS_PARTITION)
        if leader is None:
            return False
        coordinator = leader[0].broker.broker.groups.of(OFFSETS_PARTITION)
        if isinstance(coordinator, ErrorCode):
            return False
        here = sorted(user.machine.membership.identity.member_id for user in self.here)
        return self._stable_members(coordinator) == here

    def _stable_members(self, coordinator: Coordinator) -> list[str] | None:
        """Return the ids of the group's members in order; None while it is not stable."""
        group = coordinator.groups.get(GROUP)
        if group is None or group.state is not GroupState.STABLE:
            return None
        return sorted(each.member_id for each in group.members)

    def _all_read(self) -> bool:
        """Whether somebody read each record, and whoever has the partition now is at its end."""
        at_end = {
            partition: user.machine.positions.position(partition)
            for user in self.here
            for partition in user.assignment
        }
        return all(
            (at := at_end.get(each)) is not None
            and at.offset == (end := self.simulation.brokers.end_offset(*each))
            and self._offsets_read(each).issuperset(range(end))
            for each in PARTITIONS
        )

    def _offsets_read(self, partition: TopicPartition) -> set[int]:
        return {offset for user in self.users.values() for offset in user.offsets(partition)}

    def _in_log(self, partition: TopicPartition) -> set[int]:
        return {offset for offset, _, _ in self.simulation.log(*partition)}

    def account(self) -> None:
        for user in self.users.values():
            for error in user.errors:
                assert isinstance(error, ConsumerError), error
        self._values_are_right()
        self._order_is_right()
        self._keys_are_in_order()
        self._commits_are_right()
        assert self.simulation.nothing_is_left()

    def _values_are_right(self) -> None:
        stored = {
            (*partition, offset): value
            for partition in PARTITIONS
            for offset, _, value in self.simulation.log(*partition)
        }
        for user in self.users.values():
            for record in user.read:
                assert stored[record.topic, record.partition, record.offset] == record.value

    def _order_is_right(self) -> None:
        """Of a partition, a member reads one record after the other, until it begins anew."""
        for user in self.users.values():
            taken = sum(change is events.Change.ASSIGNED for change, _ in user.changes)
            for partition in PARTITIONS:
                read = user.offsets(partition)
                jumps = sum(after != before + 1 for before, after in pairwise(read))
                assert jumps <= taken, (user.name, partition, read)

    def _keys_are_in_order(self) -> None:
        """A key's records are in one partition, as they were written."""
        found: dict[tuple[str, bytes | None], list[tuple[int, int]]] = defaultdict(list)
        for topic, partition in PARTITIONS:
            for _, key, value in self.simulation.log(topic, partition):
                found[topic, key].append((partition, int(value or b"")))
        for records in found.values():
            assert len({partition for partition, _ in records}) == 1
            assert records == sorted(set(records)), records

    def _commits_are_right(self) -> None:
        """Commits only move on, to the end of each log: the last to leave has read everything."""
        commits = self._commits()
        for partition, offsets in commits.items():
            assert offsets == sorted(offsets), (partition, offsets)
        for partition in PARTITIONS:
            end = max(self._in_log(partition), default=-1) + 1
            last = commits[partition][-1] if commits[partition] else 0
            assert last == end, (partition, last, end)

    def _commits(self) -> dict[TopicPartition, list[int]]:
        found: dict[TopicPartition, list[int]] = defaultdict(list)
        for _, key, value in self.simulation.log(OFFSETS, OFFSETS_PARTITION):
            if key is None or value is None or key[:2] > b"\0\1":
                continue
            which = OffsetCommitKey.decode(key[2:], 0)
            what = OffsetCommitValue.decode(value[2:], int.from_bytes(value[:2], "big"))
            found[TopicPartition(which.topic, which.partition)].append(what.offset)
        return found


@pytest.mark.fuzz
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(CHUNKS))
def test_a_group_reads_everything_in_order(part: int) -> None:
    for seed in chunk(part, CHUNKS):
        with replayable(seed):
            scenario = Scenario(seed)
            scenario.play()
            scenario.account()


@pytest.mark.parametrize("release", ["2.8", "3.9"])
def test_older_brokers_too(release: str) -> None:
    for seed in SEEDS[: max(len(SEEDS) // 20, 3)]:
        with replayable(seed):
            scenario = Scenario(seed, release)
            scenario.play()
            scenario.account()


def test_a_seed_replays_to_the_byte() -> None:
    def digest(seed: int) -> str:
        scenario = Scenario(seed)
        scenario.play()
        return scenario.simulation.digest

    for seed in range(7, 17):
        assert digest(seed) == digest(seed)
