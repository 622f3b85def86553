"""A cluster in virtual time: replica managers, a scripted controller, clients, a bad network.

Everything follows from the plan: two runs have the same trace, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final

from kafkawire.messages.alter_partition_request import AlterPartitionRequest
from kafkawire.messages.alter_partition_response import AlterPartitionResponse
from kafkawire.messages.delete_records_request import DeleteRecordsRequest
from kafkawire.messages.delete_records_response import DeleteRecordsResponse
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.list_offsets_request import ListOffsetsRequest
from kafkawire.messages.list_offsets_response import ListOffsetsResponse
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.metadata import MetadataLoader, TopicIdPartition
from kafkawire.primitives import Message
from kafkawire.replication import (
    CONTROLLER,
    Append,
    AppendCompleted,
    AppendResult,
    CheckpointHighWatermarks,
    Effect,
    Event,
    IsrChanged,
    MemoryLog,
    MetadataPublished,
    Registered,
    ReplicaChanged,
    ReplicaLog,
    ReplicaManager,
    ReplicaState,
    ReplicationConfig,
    RequestReceived,
    Respond,
    ResponseReceived,
    SendRequest,
)

from .checker import Checker, CrashableLog, Violation, values
from .controller import Controller
from .plan import FAULTY, Fault, Plan

REQUEST_TIMEOUT: Final = 2.5
HEALED: Final = FAULTY + 9.0
QUIET: Final = HEALED + 5.0
"""No client produces from then on; until `END` everything catches up."""
END: Final = QUIET + 6.0
MOST_EVENTS: Final = 60_000
TOPIC: Final = "t"
TOPIC_ID: Final = b"topic-of-16-byte"
MIN_ISR: Final = 2
RESPONSES: Final[dict[type, Any]] = {
    FetchRequest: FetchResponse,
    ProduceRequest: ProduceResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    DeleteRecordsRequest: DeleteRecordsResponse,
    AlterPartitionRequest: AlterPartitionResponse,
}
REQUESTS: Final[dict[str, Any]] = {kind.__name__: kind for kind in RESPONSES}
Callback = Callable[[Message | None], None]


@dataclass
class Node:
    """A broker: its machine while it is up, and its disk."""

    id: int
    logs: dict[TopicIdPartition, CrashableLog] = field(default_factory=dict)
    checkpoint: dict[TopicIdPartition, int] = field(default_factory=dict)
    manager: ReplicaManager | None = None
    incarnation: int = 0
    epoch: int = -1
    was_clean: bool = True
    applied: int = 0
    loader: MetadataLoader = field(default_factory=MetadataLoader)
    skew: float = 0.0
    paused_until: float = 0.0
    timer: float | None = None
    replies: dict[int, tuple[Callback, Any, int]] = field(default_factory=dict)
    appended: dict[int, Callable[[AppendResult], None]] = field(default_factory=dict)


class SimulatedCluster:
    """The simulation of a plan. manager_type: the machine, or a mutant of it."""

    log_type: Callable[[], CrashableLog] = MemoryLog

    def __init__(self, plan: Plan, manager_type: type[ReplicaManager] = ReplicaManager) -> None:
        self.plan, self.setup = plan, plan.setup
        self.manager_type = manager_type
        self.rng = random.Random(plan.seed)
        self.now = 0.0
        self.trace: list[str] = []
        self.controller = Controller(self.setup.elr, MIN_ISR)
        self.checker = Checker(MIN_ISR)
        self.nodes = [Node(each) for each in range(self.setup.brokers)]
        self.config = ReplicationConfig(
            replica_lag_time_max=3.0,
            replica_fetch_wait_max=0.8,
            replica_fetch_backoff=0.3,
            replica_fetch_max_bytes=400,
            high_watermark_checkpoint_interval=1.5,
            eligible_leader_replicas=self.setup.elr,
            rack_aware=self.setup.rack_aware,
        )
        self.keys = [TopicIdPartition(TOPIC_ID, each) for each in range(self.setup.partitions)]
        self.blocked: dict[tuple[int, int], float] = {}
        self.slow: dict[tuple[int, int], float] = {}
        self.unclean: set[int] = set()
        """Brokers that lost bytes, and of which the controller does not know yet."""
        self._tokens = 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    # -- time

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Schedule something."""
        self._count += 1
        heappush(self._queue, (when, self._count, what))

    def every(self, interval: float, what: Callable[[], None]) -> None:
        """Schedule something again and again."""

        def again() -> None:
            what()
            self.at(self.now + interval * self.rng.uniform(0.7, 1.3), again)

        self.at(self.now + interval * self.rng.random(), again)

    def run(self) -> None:
        """Run to the end; raises Violation."""
        spread = self.nodes if len(self.nodes) < 4 else self.nodes[:3]
        replicas = tuple(node.id for node in spread)
        for at, key in enumerate(self.keys):
            turned = replicas[at % 3 :] + replicas[: at % 3]
            self.controller.create(key, TOPIC, turned)
        for node in self.nodes:
            self.start(node)
            self.every(1.0, lambda node=node: self.heartbeat(node))  # type: ignore[misc]
            self.every(1.7, lambda node=node: self.flush(node))  # type: ignore[misc]
        self.every(0.5, self.check_in_sync)
        self.every(0.4, lambda: self.controller.tick(self.now))
        self.every(0.05, self.publish)
        for fault in self.plan.faults:
            self.at(fault.at, lambda fault=fault: self.inject(fault))  # type: ignore[misc]
        self.at(HEALED, self.heal)
        while self._queue and self._queue[0][0] <= END:
            when, count, what = heappop(self._queue)
            if count > MOST_EVENTS:
                raise Violation(f"{count} events: something spins")
            self.now = max(self.now, when)
            what()

    def log(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:.6f} {text}")

    # -- the network

    def deliver(self, source: int, target: int, what: Callable[[], None]) -> None:
        """Deliver something later, perhaps twice, perhaps never."""
        rng, setup = self.rng, self.setup
        copies = 1 + (rng.randrange(1000) < setup.duplicates)
        healed = self.now >= HEALED
        for _ in range(copies):
            lost = rng.randrange(1000) < setup.loss and not healed
            until = self.blocked.get((source, target), -1.0)
            delay = rng.uniform(0.001, 0.02)
            slow = (
                rng.randrange(1000) < setup.slow or self.slow.get((source, target), -1) > self.now
            )
            if slow and not healed:
                delay += rng.uniform(0.05, 2.0)
            if not lost and until <= self.now:
                self.at(self.now + delay, what)

    def request(
        self, source: int, target: int, version: int, body: Message, callback: Callback
    ) -> None:
        """Send a request; the callback gets the response once, or None at the timeout."""
        data, kind = body.encode(version), type(body)
        done: list[bool] = []

        def respond(response: Message | None) -> None:
            if not done:
                done.append(True)
                callback(response)

        def arrive() -> None:
            def back(response: Message | None) -> None:
                if response is not None:
                    raw = response.encode(version)
                    decoded = RESPONSES[kind].decode(raw, version)
                    self.deliver(target, source, lambda: respond(decoded))

            self.serve(target, version, REQUESTS[kind.__name__].decode(data, version), back)

        self.deliver(source, target, arrive)
        self.at(self.now + REQUEST_TIMEOUT, lambda: respond(None))

    def serve(self, target: int, version: int, body: Message, back: Callback) -> None:
        """Hand a request to the controller or a broker."""
        if target == CONTROLLER:
            assert isinstance(body, AlterPartitionRequest)
            response = self.controller.alter(body)
            self.log(f"alter {body.broker_id} {response}")
            back(response)
            return
        node = self.nodes[target]
        if node.manager is not None:
            self._tokens += 1
            node.replies[self._tokens] = back, type(body), version
            self.handle(node, RequestReceived(self._tokens, version, body))

    # -- brokers

    def start(self, node: Node) -> None:
        """Start a broker: it registers, and then reads the metadata log from its beginning."""
        node.incarnation += 1
        node.timer = None
        node.epoch, node.applied, node.loader = -1, 0, MetadataLoader()
        node.replies.clear()
        node.appended.clear()
        node.manager = self.manager_type(
            node.id, self.config, lambda key: self.open_log(node, key), self.clock(node)
        )

    def open_log(self, node: Node, key: TopicIdPartition) -> ReplicaLog:
        if key not in node.logs:
            node.logs[key] = self.log_type()
        return node.logs[key]

    def clock(self, node: Node) -> float:
        return self.now + node.skew

    def handle(self, node: Node, event: Event) -> None:
        """Let a broker handle an event, when it is not paused."""
        self.call(node, lambda manager, now: manager.handle(event, now))

    def call(self, node: Node, work: Callable[[ReplicaManager, float], list[Effect]]) -> None:
        """Let a broker work, when it is not paused."""
        incarnation = node.incarnation

        def later() -> None:
            if node.incarnation == incarnation:
                self.call(node, work)

        if self.now < node.paused_until:
            self.at(node.paused_until, later)
        elif node.manager is not None:
            self.carry_out(node, work(node.manager, self.clock(node)))

    def advance(self, node: Node, incarnation: int) -> None:
        if node.incarnation != incarnation or node.manager is None:
            return
        if self.now < node.paused_until:
            self.at(node.paused_until, lambda: self.advance(node, incarnation))
            return
        node.timer = None
        deadline = node.manager.next_deadline()  # a sum of floats may be a little less than it
        now = self.clock(node)
        self.carry_out(node, node.manager.advance(deadline if now < deadline < now + 1e-6 else now))

    def carry_out(self, node: Node, effects: list[Effect]) -> None:
        """Carry out the effects of a broker, check its leaders, and set its timer."""
        for effect in effects:
            self.carry_out_one(node, effect)
        assert node.manager is not None
        for key, partition in node.manager.partitions.items():
            if partition.is_leader:
                log = node.logs[key]
                end, epoch = log.log_end_offset, partition.leader_epoch
                self.checker.watermark(key, epoch, log.high_watermark, end)
        due = max(node.manager.next_deadline() - node.skew, self.now)
        if node.timer is None or due < node.timer:
            node.timer = due
            incarnation = node.incarnation
            self.at(due, lambda: self.advance(node, incarnation))

    def carry_out_one(self, node: Node, effect: Effect) -> None:  # noqa: C901 - a case an effect
        incarnation = node.incarnation
        match effect:
            case SendRequest(token, destination, version, body):

                def responded(response: Message | None) -> None:
                    if node.incarnation == incarnation:
                        self.handle(node, ResponseReceived(token, response))

                self.request(node.id, destination, version, body, responded)
            case Respond(token, body):
                node.replies.pop(token)[0](body)
            case AppendCompleted():
                node.appended.pop(effect.token)(effect.result)
            case CheckpointHighWatermarks(offsets):
                node.checkpoint.update(offsets)
            case ReplicaChanged(key, state, epoch):
                self.log(f"replica {node.id} {key.partition} {state.value} {epoch}")
                if state is ReplicaState.LEADER:
                    self.checker.led(key, epoch, node.id)
                    if self.leader(key) is node:  # or a later leader's records are not its own
                        who = f"leader {node.id} of epoch {epoch}"
                        self.checker.complete(key, node.logs[key], who)
            case IsrChanged(key, state, isr):
                self.log(f"isr {node.id} {key.partition} {state.value} {sorted(isr)}")

    def heartbeat(self, node: Node) -> None:
        """Register, or send a heartbeat, if the controller can be reached."""
        if node.manager is None or self.now < node.paused_until:
            return
        incarnation, epoch, applied = node.incarnation, node.epoch, node.applied

        def register() -> None:
            if node.incarnation != incarnation or node.epoch >= 0:
                return
            rack = f"rack{node.id % 2}"
            was_clean = node.was_clean and node.id not in self.unclean
            node.epoch = self.controller.register(node.id, rack, was_clean, self.now)
            node.was_clean = True
            self.unclean.discard(node.id)
            self.log(f"registered {node.id} {node.epoch} clean {was_clean}")
            self.handle(node, Registered(node.epoch))

        if epoch < 0:
            self.deliver(node.id, CONTROLLER, register)
        else:
            self.deliver(
                node.id,
                CONTROLLER,
                lambda: self.controller.heartbeat(node.id, epoch, applied, self.now),
            )

    def publish(self) -> None:
        """Let brokers read on in the metadata log, each at its pace."""
        for node in self.nodes:
            behind = node.applied < len(self.controller.log)
            blocked = self.blocked.get((CONTROLLER, node.id), -1.0) > self.now
            if not behind or node.epoch < 0 or blocked or self.rng.random() < 0.4:
                continue
            if node.manager is not None and self.now >= node.paused_until:
                starts = node.applied == 0  # a broker first catches up to its registration
                least = self.controller.registered_at[node.id] if starts else node.applied + 1
                until = self.rng.randint(least, len(self.controller.log))
                entries = self.controller.log[node.applied : until]
                node.applied = until
                together = starts or self.rng.random() < 0.5
                for records in [sum(entries, ())] if together else entries:
                    delta = node.loader.apply(records, node.loader.offset + 1)
                    self.handle(node, MetadataPublished(node.loader.image, delta))

    def flush(self, node: Node) -> None:
        """Flush a broker's logs, as its operating system does at some time."""
        for log in node.logs.values():
            log.flush()

    # -- faults

    def inject(self, fault: Fault) -> None:  # noqa: C901 - a case a kind
        """Let a fault happen."""
        self.log(f"fault {fault.kind} {fault.broker} {fault.other} {fault.seconds}")
        node, until = self.nodes[fault.broker], self.now + fault.seconds
        both = [(fault.broker, fault.other), (fault.other, fault.broker)]
        key = self.keys[int(fault.seconds * 10) % len(self.keys)]
        match fault.kind:
            case "crash":
                self.crash(node, fault.seconds, lossy=False)
            case "crash losing unflushed bytes":
                if self.may_lose(node):
                    self.crash(node, fault.seconds, lossy=True)
            case "isolate":
                for other in range(-1, len(self.nodes)):
                    self.blocked[fault.broker, other] = until
                    self.blocked[other, fault.broker] = until
            case "block one way":
                self.blocked[both[int(fault.seconds * 100) % 2]] = until
            case "slow link":
                self.slow[both[int(fault.seconds * 100) % 2]] = until
            case "pause":
                node.paused_until = until
            case "clock jump":
                node.skew += fault.seconds
            case "elect":
                self.controller.elect(key, fault.broker)
            case "reassign":
                replicas = self.controller.partitions[key].registration.replicas
                if fault.broker not in replicas:
                    self.controller.reassign(key, (*replicas[1:], fault.broker))

    def may_lose(self, node: Node) -> bool:
        """Whether someone else has what was acknowledged: Kafka promises no more.

        A second one only when the controller knows of the first: until then the others may be
        fenced, and leave an ISR that it takes for sound.
        """
        if self.unclean:
            return False
        for state in self.controller.partitions.values():
            safe = set(state.registration.isr) | state.elr
            if node.id in safe and not safe - {node.id} - self.unclean:
                return False
        return True

    def crash(self, node: Node, seconds: float, lossy: bool) -> None:
        """Stop a broker, and start it again later."""
        if node.manager is None:
            return
        node.manager = None
        node.incarnation += 1
        node.paused_until = 0.0
        for key, log in node.logs.items():
            end = log.log_end_offset
            kept = self.rng.randint(log.flushed_offset, end) if lossy else end
            before = values(log, log.flushed_offset, end)
            log.crash(kept, node.checkpoint.get(key, 0))
            for offset, value in before.items():
                if offset >= log.log_end_offset:
                    self.checker.lost[node.id, key, offset] = value
        if lossy:
            node.was_clean = False
            self.unclean.add(node.id)
            if not self.setup.elr:  # or the others could leave the ISR before it does
                self.controller.lost(node.id)
        self.at(self.now + seconds, lambda: self.start(node) if node.manager is None else None)

    def heal(self) -> None:
        """End all faults."""
        self.blocked.clear()
        self.slow.clear()
        self.log("healed")
        for node in self.nodes:
            node.paused_until = 0.0
            if node.manager is None:
                self.start(node)

    # -- what must hold

    def leader(self, key: TopicIdPartition) -> Node | None:
        """Return the broker that leads in the epoch of the controller, if it knows of it."""
        registration = self.controller.partitions[key].registration
        if registration.leader < 0:
            return None
        node = self.nodes[registration.leader]
        partition = None if node.manager is None else node.manager.partitions.get(key)
        if partition is None or not partition.is_leader:
            return None
        return node if partition.leader_epoch == registration.leader_epoch else None

    def check_in_sync(self) -> None:
        """Check that all in-sync replicas have what is below the high watermark."""
        for key in self.keys:
            leader = self.leader(key)
            if leader is None:
                continue
            for each in self.controller.partitions[key].registration.isr:
                if each not in self.unclean and key in self.nodes[each].logs:
                    log = self.nodes[each].logs[key]
                    self.checker.agree(key, leader.logs[key], log, f"broker {each} in the ISR")

    def check_end(self) -> None:
        """Check that everything caught up after the faults."""
        for key in self.keys:
            state = self.controller.partitions[key]
            now = state.registration
            leader = self.leader(key)
            if leader is None or sorted(now.isr) != sorted(now.replicas):
                raise Violation(f"no progress: partition {now}, led by {leader and leader.id}")
            log = leader.logs[key]
            if log.high_watermark != log.log_end_offset:
                raise Violation(f"no progress: {log.high_watermark} of {log.log_end_offset}")
            self.checker.complete(key, log, f"leader {leader.id} at the end")
            for each in now.replicas:
                other = self.nodes[each].logs[key]
                if (other.log_end_offset, other.high_watermark) != (
                    log.log_end_offset,
                    log.high_watermark,
                ):
                    raise Violation(f"no progress: broker {each} is behind")
                self.checker.agree(key, log, other, f"broker {each}")

    def append(
        self,
        node: Node,
        entry: tuple[TopicIdPartition, bytes],
        done: Callable[[AppendResult], None],
    ) -> None:
        """Let a broker append a batch of its own, as a coordinator does."""
        self._tokens += 1
        token = self._tokens
        node.appended[token] = done
        how = Append(-1, 2.0, internal=True)

        def append(manager: ReplicaManager, now: float) -> list[Effect]:
            result = manager.appends.append(token, *entry, how, now)
            effects = manager.finish(now)
            return effects if result is None else [AppendCompleted(token, result), *effects]

        self.call(node, append)
