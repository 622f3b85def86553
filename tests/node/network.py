"""Nodes as processes over links and disks in memory, in virtual time.

Everything follows from the seed: two runs have the same trace, byte for byte. Messages cross
a link as bytes of their version; a process that ends loses its machine, and keeps its disk.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, Protocol

from kafkawire.messages import REGISTRY
from kafkawire.node import (
    Effect,
    Node,
    NodeConfig,
    ProcessRole,
    RequestReceived,
    Respond,
    ResponseReceived,
    SendRequest,
    Stopped,
)
from kafkawire.node.parts import Parts
from kafkawire.primitives import Message
from kafkawire.raft import Endpoint, ReplicaKey, Voter, VoterSet
from kafkawire.replication import ReplicationConfig
from kafkawire.storage import MemoryDisk, SharedBytes, StorageError

EPOCH_MS: Final = 1_700_000_000_000
CLUSTER: Final = "simulated-cluster"
CONTROLLER_PORT: Final = 9093
BROKER_PORT: Final = 9092
DELAY: Final = (0.0005, 0.005)
SLOW: Final = (0.0005, 1.2)
REQUEST_TIMEOUT: Final = 2.0
CLIENT: Final = -1
"""The other end of the links of clients."""
FOREVER: Final = float("inf")
Callback = Callable[[Message | None], None]


class Machine(Protocol):
    """A node, with or without clients."""

    @property
    def parts(self) -> Parts: ...

    def start(self, now: float) -> list[Any]: ...

    def handle(self, event: Any, now: float) -> list[Any]: ...

    def advance(self, now: float) -> list[Any]: ...

    def next_deadline(self) -> float | None: ...


@dataclass
class Process:
    """A node's disks, and its machine while it runs. skew: of its clock, in seconds.

    disk: that of the metadata log. other: that of a second log directory.
    """

    config: NodeConfig
    disk: MemoryDisk = field(default_factory=MemoryDisk)
    other: MemoryDisk | None = None
    node: Machine | None = None
    incarnation: int = 0
    skew: float = 0.0
    wake: float | None = None
    paused_until: float = 0.0
    failure: str | None = None

    @property
    def disks(self) -> dict[str, MemoryDisk]:
        """The disks by the names of their log directories."""
        return {"data": self.disk} | ({} if self.other is None else {"other": self.other})


class Awaited(NamedTuple):
    """A request that was delivered: who responds to whom, in which version."""

    responder: int
    requester: int
    version: int
    callback: Callback


def voters(ids: range) -> VoterSet:
    """Return the voters of a static quorum."""
    return VoterSet(
        tuple(
            Voter(ReplicaKey(id), (Endpoint("CONTROLLER", f"node{id}", CONTROLLER_PORT),))
            for id in ids
        )
    )


def config_of(id: int, quorum: VoterSet, roles: frozenset[ProcessRole], **more: Any) -> NodeConfig:
    """Return the configuration of a node: short timeouts, so that little time shows much."""
    given: dict[str, Any] = {
        "replication": ReplicationConfig(
            replica_lag_time_max=3.0, replica_fetch_wait_max=0.3, replica_fetch_backoff=0.2
        ),
        "session_timeout": 3.0,
        "heartbeat_interval": 0.5,
        "request_timeout": 5.0,
        "log_intervals": {
            "flush_offset_checkpoint_interval_ms": 2_000,
            "high_watermark_checkpoint_interval_ms": 1_000,
        },
    }
    return NodeConfig(
        id,
        CLUSTER,
        roles,
        listeners=(
            Endpoint("PLAINTEXT", f"node{id}", BROKER_PORT),
            Endpoint("CONTROLLER", f"node{id}", CONTROLLER_PORT),
        ),
        voters=quorum,
        epoch_ms=EPOCH_MS,
        **{**given, **more},
    )


class Network:
    """Processes and what is under way between them.

    two: brokers have two log directories. shared: what the disks have alike.
    """

    def __init__(
        self,
        seed: int,
        configs: list[NodeConfig],
        *,
        two: bool = False,
        shared: SharedBytes | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.trace: list[str] = []
        self.processes = {
            each.node_id: Process(
                each,
                MemoryDisk(shared=shared),
                MemoryDisk(shared=shared) if two and each.is_broker else None,
            )
            for each in configs
        }
        self._listeners = {
            (each.host, each.port): (config.node_id, each.name)
            for config in configs
            for each in config.listeners
        }
        self.blocked: dict[tuple[int, int], float] = {}
        self.slow: dict[int, float] = {}
        """Node -> until when its links are slow."""
        self.duplicates = 0.0
        self.observers: list[Callable[[Process, Effect], None]] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._tokens = 0
        self._replies: dict[int, Awaited] = {}

    # -- time

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at a time."""
        self._count += 1
        heappush(self._queue, (when, self._count, action))

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass, until something is true; return whether it is."""
        while self._queue and self._queue[0][0] <= until:
            if done():
                return True
            self.now, _, action = heappop(self._queue)
            action()
        self.now = max(self.now, until)
        return done()

    def log(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:.6f} {text}")

    # -- processes

    def start(self, id: int) -> None:
        """Start a process on its disk; one that cannot start is tried again."""
        process = self.processes[id]
        if process.node is not None:
            return
        process.incarnation += 1
        process.wake, process.paused_until = None, 0.0
        rng = random.Random(self.rng.random())
        try:
            node = self.machine(process, rng)
        except (StorageError, OSError) as error:
            self.log(f"{id} cannot start: {error}")
            self.at(self.now + 1.0, lambda: self.start(id))
            return
        process.node = node
        self.log(f"{id} starts")
        self._carry_out(process, node.start(self.clock(process)))

    def machine(self, process: Process, rng: random.Random) -> Machine:
        """Make the node of a process from its disks."""
        return Node(
            process.config,
            process.disks,
            rng,
            lambda: rng.getrandbits(128).to_bytes(16, "big"),
            self.clock(process),
        )

    def ended(self, process: Process) -> None:
        """Take note that the node of a process does not run any more."""

    def kill(self, id: int, losses: Callable[[int], int] | None = None) -> None:
        """End a process. losses: what the disk loses, as the machine stopped, too."""
        process = self.processes[id]
        if process.node is not None:
            process.node = None
            self.log(f"{id} is killed{'' if losses is None else ', its machine stops'}")
            self.ended(process)
        if losses is not None:
            for disk in process.disks.values():
                disk.crash(losses)

    def clock(self, process: Process) -> float:
        return self.now + process.skew

    def running(self) -> Iterator[Machine]:
        """Iterate over the nodes that run."""
        return (each.node for each in self.processes.values() if each.node is not None)

    def handle(self, process: Process, event: Any) -> None:
        """Let a node handle an event, once it is not paused."""
        if self._later(process, lambda: self.handle(process, event)) or process.node is None:
            return
        self._carry_out(process, process.node.handle(event, self.clock(process)))

    def _wake(self, process: Process, when: float) -> None:
        """Let a node advance, unless its deadline has changed since."""
        if process.node is None or process.wake != when:
            return
        if not self._later(process, lambda: self._wake(process, when)):
            process.wake = None
            self._carry_out(process, process.node.advance(self.clock(process)))

    def _later(self, process: Process, action: Callable[[], None]) -> bool:
        """Put off what happens to a process that is paused; return whether it is."""
        if process.paused_until <= self.now:
            return False
        incarnation = process.incarnation

        def resume() -> None:
            if process.incarnation == incarnation:
                action()

        self.at(process.paused_until, resume)
        return True

    def on_effect(self, process: Process, effect: Any) -> None:
        """Carry out what a node wants from the network."""
        if isinstance(effect, SendRequest):
            self._send(process, effect)
        elif isinstance(effect, Respond):
            self._respond(effect)

    def _carry_out(self, process: Process, effects: list[Any]) -> None:
        for effect in effects:
            self.on_effect(process, effect)
            for observe in self.observers:
                observe(process, effect)
            if isinstance(effect, Stopped):
                process.node, process.failure = None, effect.failure
                self.log(f"{process.config.node_id} stopped: {effect.failure}")
                self.ended(process)
        if process.node is None:
            return
        deadline = process.node.next_deadline()
        if deadline is not None:
            when = max(deadline - process.skew, self.now + 0.0001)
            if process.wake is None or when < process.wake:
                process.wake = when
                self.at(when, lambda: self._wake(process, when))

    # -- links

    def is_blocked(self, source: int, target: int) -> bool:
        return self.blocked.get((source, target), -1.0) > self.now

    def delay(self, source: int, target: int) -> float:
        """Draw how long a message is under way."""
        slow = max(self.slow.get(source, 0.0), self.slow.get(target, 0.0)) > self.now
        return self.rng.uniform(*(SLOW if slow else DELAY))

    def _send(self, process: Process, effect: SendRequest) -> None:
        source, incarnation = process.config.node_id, process.incarnation

        def responded(body: Message | None) -> None:
            if process.node is not None and process.incarnation == incarnation:
                self.handle(process, ResponseReceived(effect.token, body))

        at = effect.destination
        target, listener = self._listeners[at.host, at.port]
        self.request(source, target, listener, effect.version, effect.body, responded)

    def request(
        self,
        source: int,
        target: int,
        listener: str,
        version: int,
        body: Message,
        callback: Callback,
        timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        """Send a request; the callback gets the response, or None at the timeout."""
        name = type(body).__name__
        data = body.encode(version)
        pending = [callback]

        def once(response: Message | None) -> None:
            if pending:
                pending.pop()(response)

        def arrive() -> None:
            process = self.processes[target]
            if self.is_blocked(source, target):
                return
            if process.node is None:
                refused = self.now + self.delay(target, source)
                self.at(refused, lambda: once(None))
                return
            self._tokens += 1
            self._replies[self._tokens] = Awaited(target, source, version, once)
            self.log(f"{source} -> {target} {name}")
            request = REGISTRY.load(name).decode(data, version)
            self.handle(process, RequestReceived(self._tokens, listener, version, request))

        copies = 2 if self.rng.random() < self.duplicates else 1
        for _ in range(copies):
            self.at(self.now + self.delay(source, target), arrive)
        self.at(self.now + timeout, lambda: once(None))

    def _respond(self, effect: Respond) -> None:
        found = self._replies.pop(effect.token, None)
        if found is None:
            return
        body = effect.body
        if body is not None:
            data = body.encode(found.version)
            body = REGISTRY.load(type(body).__name__).decode(data, found.version)

        def arrive() -> None:
            if not self.is_blocked(found.responder, found.requester):
                found.callback(body)

        self.at(self.now + self.delay(found.responder, found.requester), arrive)
