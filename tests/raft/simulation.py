"""Simulates a quorum: replicas over a network that delays, drops, duplicates, in virtual time.

All that happens follows from a `Scenario`: the same one gives the same trace, byte for byte.
Every step is checked against the invariants (`checks`); `Violation` names the first that fails.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

from kafkawire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kafkawire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kafkawire.primitives import Message
from kafkawire.raft import (
    VERSIONS,
    Append,
    Committed,
    Effect,
    Endpoint,
    Event,
    Fault,
    KafkaRaftClient,
    LoadSnapshot,
    MemoryLog,
    Node,
    OffsetAndEpoch,
    PersistQuorumState,
    RaftConfig,
    ReplicaKey,
    Reply,
    RequestFailed,
    RequestReceived,
    Resign,
    ResponseReceived,
    Send,
    SnapshotTaken,
    State,
    Voter,
    VoterSet,
    bootstrap_snapshot,
)

from .checks import Checks, CrashableLog
from .scenarios import Happening, Scenario

LEAST_DELAY: Final = 0.001
MOST_DELAY: Final = 0.03
HEAL_SECONDS: Final = 30.0
"""How long a healed quorum may take to elect a leader that commits a record on all nodes."""


@dataclass
class Replica:
    """A node: what it has on disk, and the machine while it runs."""

    id: int
    config: RaftConfig
    log: CrashableLog
    quorum_state: str | None = None
    client: KafkaRaftClient | None = None
    incarnation: int = 0
    clock: float = 0.0
    wake: float | None = None
    torn_after: int | None = None
    down: float = 1.0
    forgetful: bool = False


class Simulation:
    """One run of a scenario."""

    log_type: Callable[[], CrashableLog] = MemoryLog

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rng = random.Random(scenario.seed)
        self.now = 0.0
        self.checks = Checks()
        self.digest = hashlib.sha256()
        self.steps = 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._cut: dict[tuple[int, int], float] = {}
        self._noise_until = 0.0
        self._replies: dict[int, tuple[int, int, int, int]] = {}
        ids = range(1, scenario.nodes + 1)
        voters = VoterSet(tuple(Voter(_key(id), (_endpoint(id),)) for id in ids[: scenario.voters]))
        self.replicas = {id: self._replica(id, voters) for id in ids}
        if scenario.dynamic:
            for replica in self.replicas.values():
                if replica.id <= scenario.voters:
                    replica.log.store_snapshot(OffsetAndEpoch(0, 0), bootstrap_snapshot(voters))

    def _replica(self, id: int, voters: VoterSet) -> Replica:
        config = RaftConfig(
            node_id=id,
            directory_id=_key(id).directory_id,
            cluster_id="simulated",
            voters=VoterSet(()) if self.scenario.dynamic else voters,
            bootstrap=tuple(_endpoint(each) for each in range(1, self.scenario.nodes + 1)),
            endpoints=(_endpoint(id),),
            max_bytes=(100, 400)[self.scenario.seed % 2],
        )
        return Replica(id, config, self.log_type())

    # -- running

    def run(self) -> str:
        """Run it all; return the digest of the trace. Raises Violation."""
        for id in self.replicas:
            self._start(id)
        for each in self.scenario.happenings:
            self._at(each.at, lambda each=each: self._happen(each))  # type: ignore[misc]
        self._run_until(self.scenario.duration)
        self._heal()
        return self.digest.hexdigest()

    def _run_until(self, end: float, done: Callable[[], bool] = lambda: False) -> None:
        while self._queue and self._queue[0][0] <= end and not done():
            self.now, _, action = heappop(self._queue)
            action()
        self.now = max(self.now, min(end, self.now if done() else end))

    def _heal(self) -> None:
        """End all faults; a leader must commit a record on all nodes within a bound."""
        self._cut.clear()
        self._noise_until = 0.0
        for replica in self.replicas.values():
            replica.torn_after = None
            replica.forgetful = False
            if replica.client is None:
                self._start(replica.id)
        end = self.now + HEAL_SECONDS
        while self.now < end:
            self._append(b"last")
            target = self.checks.last_appended
            self._run_until(self.now + 1.0, lambda end=target: self._all_committed(end))  # type: ignore[misc]
            if self._all_committed(target):
                return
        self.checks.fail(self.now, "no leader commits a record on all nodes after all is healed")

    def _all_committed(self, target: int) -> bool:
        leaders = [each for each in self._running() if each.state is State.LEADER]
        if len(leaders) != 1 or leaders[0].is_observer or target < 0:
            return False
        return all(each.high_watermark > target for each in self._running())

    def _running(self) -> list[KafkaRaftClient]:
        return [each.client for each in self.replicas.values() if each.client is not None]

    def _at(self, when: float, action: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._queue, (when, self._count, action))

    def _trace(self, text: str) -> None:
        self.steps += 1
        self.digest.update(f"{self.now:.6f} {text}\n".encode())

    # -- nodes

    def _start(self, id: int) -> None:
        replica = self.replicas[id]
        replica.incarnation += 1
        replica.wake = None
        rng = random.Random(self.rng.random())
        client = replica.client = KafkaRaftClient(replica.config, replica.log, rng.random)
        effects = client.start(replica.quorum_state, self.now + replica.clock)
        self.checks.started(self.now, replica.id, replica.incarnation, client)
        self._carry_out(replica, effects)

    def _stop(self, id: int, kept: int) -> None:
        replica = self.replicas[id]
        if replica.client is None:
            return
        lost = replica.log.crash(kept)
        replica.client = None
        self._trace(f"{id} crashes, {lost} batches lost")

    def _handle(self, id: int, incarnation: int, event: Event) -> None:
        replica = self.replicas[id]
        if replica.client is not None and replica.incarnation == incarnation:
            effects = replica.client.handle(event, self.now + replica.clock)
            self._carry_out(replica, effects)

    def _wake(self, id: int, incarnation: int) -> None:
        replica = self.replicas[id]
        if replica.client is None or replica.incarnation != incarnation:
            return
        replica.wake = None
        self._carry_out(replica, replica.client.advance(self.now + replica.clock))

    def _carry_out(self, replica: Replica, effects: list[Effect]) -> None:
        client = replica.client
        assert client is not None
        if replica.forgetful and any(isinstance(each, PersistQuorumState) for each in effects):
            replica.forgetful = False
            messages = (at for at, each in enumerate(effects) if isinstance(each, Send | Reply))
            replica.torn_after, replica.down = next(messages, len(effects)) + 1, 0.005
        if replica.torn_after is not None:
            effects = effects[: replica.torn_after]
        for effect in effects:
            self._carry_out_one(replica, effect)
        if replica.torn_after is not None:
            replica.torn_after = None
            self._crash(replica.id, replica.down, 0)
            return
        self.checks.step(self.now, replica.id, replica.incarnation, client)
        deadline = client.next_deadline()
        if deadline is None:
            return
        when = max(deadline - replica.clock, self.now + 0.0001)
        if replica.wake is None or when < replica.wake or replica.wake <= self.now:
            replica.wake = when
            self._at(when, lambda i=replica.incarnation: self._wake(replica.id, i))  # type: ignore[misc]

    def _carry_out_one(self, replica: Replica, effect: Effect) -> None:
        match effect:
            case Send(correlation_id, node, request):
                self._send(replica, correlation_id, node, request)
            case Reply(reply_to, response):
                self._reply(replica, reply_to, response)
            case PersistQuorumState(text):
                replica.quorum_state = text
                self._trace(f"{replica.id} persists {text}")
            case Committed(offset):
                self._trace(f"{replica.id} commits {offset}")
                self.checks.committed(self.now, replica.id, replica.log, offset)
            case LoadSnapshot(id):
                self._trace(f"{replica.id} loads {id}")
                self.checks.loaded(self.now, replica.id, replica.log, id)
            case Fault(reason):
                self.checks.fail(self.now, f"node {replica.id}: {reason}")
            case _:
                self._trace(f"{replica.id} {effect}")

    # -- the network

    def _is_cut(self, source: int, target: int) -> bool:
        return self._cut.get((source, target), 0.0) > self.now

    def _is_isolated(self, id: int) -> bool:
        return all(self._is_cut(id, other) for other in self.replicas if other != id)

    def _delays(self) -> list[float]:
        """When copies of a message arrive: none if it is lost."""
        noisy = self._noise_until > self.now
        if noisy and self.rng.random() < 0.2:
            return []
        most = 0.5 if noisy and self.rng.random() < 0.2 else MOST_DELAY
        copies = 2 if self.rng.random() < (0.2 if noisy else 0.02) else 1
        return [self.rng.uniform(LEAST_DELAY, most) for _ in range(copies)]

    def _send(self, replica: Replica, correlation_id: int, node: Node, request: Message) -> None:
        target = node.port
        name = type(request).__name__
        self._trace(f"{replica.id} -> {target} {name} {correlation_id}")
        version = VERSIONS[name][1]
        body = request.encode(version)
        source = (replica.id, replica.incarnation, correlation_id)
        if self.replicas[target].client is None:  # connection refused
            self._at(self.now + LEAST_DELAY, lambda: self._refuse(*source))
            return
        for delay in self._delays():
            copy = _decoded(request, body, version)
            self._at(
                self.now + delay,
                lambda copy=copy: self._arrive(source, target, copy, version),  # type: ignore[misc]
            )

    def _refuse(self, id: int, incarnation: int, correlation_id: int) -> None:
        self._handle(id, incarnation, RequestFailed(correlation_id))

    def _arrive(
        self, source: tuple[int, int, int], target: int, request: Message, version: int
    ) -> None:
        replica = self.replicas[target]
        if self._is_cut(source[0], target) or replica.client is None:
            return
        self._count += 1
        reply_to = self._count
        self._replies[reply_to] = (*source, version)
        if isinstance(request, ApiVersionsRequest):
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            self._reply(replica, reply_to, ApiVersionsResponse(supported_features=[feature]))
            return
        event = RequestReceived(reply_to, request, version)
        self._handle(target, replica.incarnation, event)

    def _reply(self, replica: Replica, reply_to: int, response: Message) -> None:
        source = self._replies.pop(reply_to, None)
        if source is None:  # the operator's requests
            self._trace(f"{replica.id} responds {response.error_code}")  # type: ignore[attr-defined]
            return
        id, incarnation, correlation_id, version = source
        body = response.encode(version)
        for delay in self._delays():
            copy = _decoded(response, body, version)

            def arrive(copy: Message = copy) -> None:
                if not self._is_cut(replica.id, id):
                    self._handle(id, incarnation, ResponseReceived(correlation_id, copy))

            self._at(self.now + delay, arrive)

    # -- what happens to it

    def _happen(self, each: Happening) -> None:
        self._trace(f"{each}")
        HAPPENINGS[each.kind](self, each)

    def _append(self, value: bytes) -> None:
        for replica in self.replicas.values():
            client = replica.client
            if client is not None and client.state is State.LEADER:
                self.checks.appending(self.now, replica.id, client)
                event = Append(self.steps, client.epoch, (value, f"{self.steps}".encode()))
                self._handle(replica.id, replica.incarnation, event)
                self.checks.last_appended = max(
                    self.checks.last_appended, replica.log.end.offset - 1
                )

    def _crash(self, id: int, seconds: float, kept: int) -> None:
        self._stop(id, kept)
        incarnation = self.replicas[id].incarnation

        def restart() -> None:
            replica = self.replicas[id]
            if replica.client is None and replica.incarnation == incarnation:
                self._start(id)

        self._at(self.now + seconds, restart)

    def _tear(self, each: Happening) -> None:
        replica = self.replicas[each.node]
        replica.torn_after, replica.down = each.other, 1.0

    def _forget(self, each: Happening) -> None:
        """Crash a node after the first message of a step that persists, and restart it at once."""
        self.replicas[each.node].forgetful = True

    def _isolate(self, each: Happening) -> None:
        for other in self.replicas:
            if other != each.node:
                for link in ((each.node, other), (other, each.node)):
                    self._cut[link] = max(self._cut.get(link, 0.0), self.now + each.seconds)
        replica = self.replicas[each.node]
        client = replica.client
        if client is None or each.seconds < 4.0:
            return
        before = client.epoch

        def check() -> None:
            if self._is_isolated(each.node) and replica.client is client:
                self.checks.was_isolated(self.now, replica.id, client, before)

        self._at(self.now + each.seconds - 0.001, check)

    def _cut_link(self, each: Happening) -> None:
        self._cut[each.node, each.other] = self.now + each.seconds

    def _noise(self, each: Happening) -> None:
        self._noise_until = self.now + each.seconds

    def _jump(self, each: Happening) -> None:
        replica = self.replicas[each.node]
        replica.clock += each.seconds
        if replica.client is not None:
            self._wake(each.node, replica.incarnation)

    def _stampede(self, each: Happening) -> None:
        """Let all nodes time out at the same time."""
        for id in self.replicas:
            self._jump(each._replace(node=id, seconds=3.0))

    def _snapshot(self, each: Happening) -> None:
        replica = self.replicas[each.node]
        client = replica.client
        if client is None or not client.high_watermark:
            return
        batch = next(
            (x for x in reversed(replica.log.batches) if x.last_offset < client.high_watermark),
            None,
        )
        if batch is None or replica.log.start_offset > batch.last_offset:
            return
        id = OffsetAndEpoch(batch.last_offset + 1, batch.epoch)
        data = client.snapshot(id, [self.checks.values(id.offset) or [b"-"]], self.now)
        self._handle(each.node, replica.incarnation, SnapshotTaken(id, data))

    def _resign(self, each: Happening) -> None:
        replica = self.replicas[each.node]
        if replica.client is not None:
            self._handle(each.node, replica.incarnation, Resign(replica.client.epoch))

    def _to_leaders(self, request: Message) -> None:
        for replica in self.replicas.values():
            if replica.client is not None and replica.client.state is State.LEADER:
                self._count += 1
                event = RequestReceived(self._count, request, 0)
                self._handle(replica.id, replica.incarnation, event)

    def _add_voter(self, each: Happening) -> None:
        key, listener = _key(each.node), _endpoint(each.node)
        self._to_leaders(
            AddRaftVoterRequest(
                cluster_id="simulated",
                timeout_ms=2000,
                voter_id=key.id,
                voter_directory_id=key.directory_id,
                listeners=[Listener(name=listener.name, host=listener.host, port=listener.port)],
            )
        )

    def _remove_voter(self, each: Happening) -> None:
        key = _key(each.node)
        self._to_leaders(
            RemoveRaftVoterRequest(
                cluster_id="simulated", voter_id=key.id, voter_directory_id=key.directory_id
            )
        )


def _crashes(simulation: Simulation, each: Happening) -> None:
    simulation._crash(each.node, each.seconds, each.other)


HAPPENINGS: Final[dict[str, Callable[[Simulation, Happening], None]]] = {
    "append": lambda simulation, each: simulation._append(b"%d" % each.other),
    "crash": _crashes,
    "tear": Simulation._tear,
    "isolate": Simulation._isolate,
    "cut": Simulation._cut_link,
    "noise": Simulation._noise,
    "jump": Simulation._jump,
    "stampede": Simulation._stampede,
    "amnesia": Simulation._forget,
    "snapshot": Simulation._snapshot,
    "resign": Simulation._resign,
    "add": Simulation._add_voter,
    "remove": Simulation._remove_voter,
}


def _decoded(message: Message, body: bytes, version: int) -> Message:
    """Decode a copy of a message, as the other side does."""
    kind: Any = type(message)
    copy: Message = kind.decode(body, version)
    return copy


def _key(id: int) -> ReplicaKey:
    return ReplicaKey(id, bytes([id] * 16))


def _endpoint(id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"node{id}", id)
