"""A simulated quorum: controllers over one log, brokers and an administrator, in virtual time.

A run is a function of its seed and of the numbers of its steps: every step draws from a
generator of its own, so that a run with fewer steps does the same in those that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kafkawire.configs.features import NEWEST
from kafkawire.controller import (
    Append,
    BecameLeader,
    Committed,
    ControllerConfig,
    Effect,
    Event,
    MetadataImage,
    QuorumController,
    RequestReceived,
    Resigned,
    Respond,
    SnapshotLoaded,
    snapshot,
)
from kafkawire.controller.state import bootstrap_features, supported_features
from kafkawire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafkawire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kafkawire.messages.broker_registration_response import BrokerRegistrationResponse
from kafkawire.metadata.versions import ELR
from kafkawire.primitives import Message

CLUSTER: Final = "sim"
CONTROLLERS: Final = 3
BROKERS: Final = (1, 2, 3, 4, 5)
SESSION: Final = 9.0
SLICE: Final = 12
"""More than the work of all requests but those for many partitions."""
LEVELS: Final = (30, 30, 30, 21, 11)
"""Levels of metadata.version: with ELR, with directories only, with epochs for a smaller ISR."""


class Violation(AssertionError):
    """An invariant that does not hold. rule: its name."""

    def __init__(self, rule: str, what: str = "", trace: Sequence[str] = ()) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
        self.trace = trace


@dataclass
class SimulatedBroker:
    """A broker: its process, and what it knows."""

    broker_id: int
    incarnation: int = 0
    up: bool = False
    epoch: int = -1
    last_epoch: int = -1
    registering: bool = False
    read: int = -1
    stopping: bool = False

    @property
    def incarnation_id(self) -> bytes:
        return bytes([self.broker_id]) * 8 + self.incarnation.to_bytes(8, "big")

    def registration(self) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id=CLUSTER,
            incarnation_id=self.incarnation_id,
            listeners=[Listener(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in supported_features(NEWEST).items()
            ],
            rack="ab"[self.broker_id % 2],
            log_dirs=[bytes(15) + bytes([200 + self.broker_id])],
            previous_broker_epoch=self.last_epoch,
        )

    def heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self.read,
            want_shut_down=self.stopping,
        )


@dataclass
class Sent:
    """A request in flight: who sent it, to which controller, and what was true then."""

    body: Any
    controller: int
    epoch: int
    sender: SimulatedBroker | None = None
    before: dict[str, Any] = field(default_factory=dict)


class SimulatedCluster:
    """The quorum and its clients."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        rng = Random(seed)
        level = rng.choice(LEVELS)
        elr = int(level >= ELR and rng.random() < 0.8)
        self.elr = bool(elr)
        self.level = level
        bootstrap = {
            **bootstrap_features(NEWEST),
            "metadata.version": level,
            "eligible.leader.replicas.version": elr,
        }
        self.ids = 0
        self.config = ControllerConfig(
            CLUSTER,
            session_timeout=SESSION,
            rebalance_interval=20.0,
            max_elections=3,
            bootstrap=bootstrap,
            static={"min.insync.replicas": "2"},
            slice=SLICE,
        )
        self.controllers = [
            QuorumController(self.config, Random(seed * 10 + node), self.new_uuid)
            for node in range(CONTROLLERS)
        ]
        self.log: list[Message | None] = []  # None: a control record
        self.committed = 0
        self.fed = [0] * CONTROLLERS
        self.epoch = 0
        self.leader: int | None = None
        self.led: dict[int, int] = {}  # controller -> the epoch in which it believes to lead
        self.brokers = {each: SimulatedBroker(each) for each in BROKERS}
        self.requests = 0
        self.sent: dict[int, Sent] = {}
        self.responses: list[tuple[Sent, Any]] = []
        self.trace: list[str] = []
        self.forced: set[tuple[bytes, int]] = set()  # partitions of unclean ElectLeaders
        self.batches: list[int] = []  # where the appended batches that are not committed end

    def new_uuid(self) -> bytes:
        self.ids += 1
        return self.ids.to_bytes(16, "little")

    # -- log and quorum

    def feed(self, node: int, end: int) -> None:
        """Give a controller the committed records up to `end`."""
        start = self.fed[node]
        while start < end:
            if self.log[start] is None:
                start += 1
                continue
            stop = start
            while stop < end and self.log[stop] is not None:
                stop += 1
            records = [each for each in self.log[start:stop] if each is not None]
            self.fed[node] = stop
            self.send(node, Committed(start, records))
            start = stop
        self.fed[node] = max(self.fed[node], end)

    def commit(self, end: int) -> None:
        """Commit the batches that end there or before, as followers get no half of one."""
        self.batches = [each for each in self.batches if each > self.committed]
        for each in self.batches:
            if each <= end:
                self.committed = each
        if self.leader is not None:
            self.feed(self.leader, self.committed)

    def elect(self, node: int, keep: int) -> None:
        """Make a controller the leader. keep: how many uncommitted batches survive."""
        left = [end for end in self.batches if end > self.committed]
        del self.log[([self.committed, *left])[min(keep, len(left))] :]
        self.batches = []
        self.epoch += 1
        self.leader = None
        if node in self.led:
            self.send(node, Resigned(self.led.pop(node)))
        self.committed = len(self.log)
        self.feed(node, self.committed)
        self.log.append(None)
        self.committed += 1
        self.leader = node
        self.led[node] = self.epoch
        self.fed[node] = self.committed
        self.trace.append(f"elect {node} epoch {self.epoch} at {len(self.log)}")
        self.send(node, BecameLeader(self.epoch, len(self.log)))

    def learn(self, node: int) -> None:
        """Let a former leader know that it is."""
        if node != self.leader and node in self.led:
            self.send(node, Resigned(self.led.pop(node)))
        if node != self.leader:
            self.feed(node, self.committed)

    def replace(self, node: int) -> None:
        """Start a standby anew from a snapshot of another."""
        if self.leader is None or node == self.leader:
            return
        image = self.controllers[self.leader].image
        self.led.pop(node, None)
        self.controllers[node] = QuorumController(self.config, Random(node), self.new_uuid)
        records = [each.message for each in snapshot(image)]
        self.fed[node] = image.offset + 1
        self.send(node, SnapshotLoaded(image.offset, records))
        self.sent = {key: each for key, each in self.sent.items() if each.controller != node}

    # -- machine

    def send(self, node: int, event: Event) -> None:
        self.carry_out(node, self.controllers[node].handle(event, self.now))

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for node in list(self.led):
            due = self.controllers[node].next_deadline()
            turns = 0
            while due is not None and due <= self.now:
                self.carry_out(node, self.controllers[node].advance(self.now))
                due = self.controllers[node].next_deadline()
                turns += 1
                if turns > 200:
                    raise Violation("deadlines pass")

    def go_on(self) -> None:
        """Let the leader go on with a slice of a large request, if it decides on one."""
        node = self.leader
        due = None if node is None else self.controllers[node].next_deadline()
        if node is not None and due is not None and due <= self.now:
            self.carry_out(node, self.controllers[node].advance(self.now))

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self._append(node, effect)
            elif isinstance(effect, Respond):
                sent = self.sent.pop(effect.request_id, None)
                if sent is not None:
                    self._respond(sent, effect.response)

    def _append(self, node: int, effect: Append) -> None:
        if node != self.leader or effect.epoch != self.epoch:
            return  # of a former leader: no other voter takes it
        if effect.base_offset != len(self.log):
            raise Violation("appends are consecutive", f"{effect.base_offset}, {len(self.log)}")
        self.log += [each.message for each in effect.records]
        self.batches.append(len(self.log))
        for each in effect.records:
            self.trace.append(f"append {each.message!r} v{each.version}")

    def request(self, body: Message, version: int, sender: SimulatedBroker | None) -> None:
        """Send a request to the leader, or to who believes to be it."""
        node = self.leader
        if node is None:
            return
        self.requests += 1
        sent = Sent(body, node, self.epoch, sender)
        self.sent[self.requests] = sent
        self.send(node, RequestReceived(self.requests, body, version))

    def request_to(self, node: int, body: Message, version: int) -> None:
        self.requests += 1
        self.sent[self.requests] = Sent(body, node, self.led.get(node, -1))
        self.send(node, RequestReceived(self.requests, body, version))

    def _respond(self, sent: Sent, response: Any) -> None:
        self.trace.append(f"respond {response!r}")
        self.responses.append((sent, response))
        broker = sent.sender
        if isinstance(response, BrokerRegistrationResponse) and broker is not None:
            current = sent.body.incarnation_id == broker.incarnation_id
            if current:
                broker.registering = False
            if current and response.error_code == 0:
                broker.epoch = broker.last_epoch = response.broker_epoch

    @property
    def newest(self) -> MetadataImage | None:
        return None if self.leader is None else self.controllers[self.leader].newest
