"""Runs client machines and the nodes of a cluster without sockets, on an unreliable network.

Time is a number, randomness comes from one seed, so a run can be replayed to the byte
(`digest`); bytes of one direction of a connection arrive in order or, after a reset, not at all; a
checker checks that every request gets one response or is parked.

    client machine ─ Write ─▶ [delayed, split] ─▶ Received ─▶ nodes in memory
                   ◀─ BytesReceived ─ [delayed, split, reset] ◀─ Reply ─
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from typing import Any, TypeVar

from kafkawire.broker import (
    AwaitDrain,
    Connected,
    Disconnected,
    Drained,
    Endpoint,
    Fault,
    Received,
    Reply,
    Report,
)
from kafkawire.broker import Close as BrokerClose
from kafkawire.broker.releases import LATEST
from kafkawire.client.client import Client
from kafkawire.client.network.network import NetworkEvent
from kafkawire.client.network.transport import (
    BytesReceived,
    Close,
    Connect,
    ConnectionLost,
    ConnectionMade,
    Write,
)
from kafkawire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.elect_leaders_response import ElectLeadersResponse
from kafkawire.node import Stopped
from kafkawire.node.front.options import FrontOptions
from kafkawire.node.local_cluster import Killed, LocalCluster, NodeEffect, NodeStarted
from kafkawire.primitives import Message

from . import administering
from .brokers import Brokers, Effect, PowerLost
from .checker import TrafficChecker
from .conditions import NetworkConditions, Pipe

__all__ = ["Pipe", "NetworkConditions", "Simulation"]
M = TypeVar("M", bound=Message)
BROKER_PORT = 9092
ELECTED_AFTER_S = 0.05
"""How long a replica that is to lead may take to catch up, before it is tried again."""
ELECTIONS = 20


class Simulation:
    """Runs everything, one event after the other; all nodes run from the beginning.

    settings: of all brokers. load_s: how long a new coordinator reads. on_report: called with what
    the brokers report of requests of clients.
    """

    def __init__(
        self,
        seed: int,
        *,
        brokers: int = 3,
        conditions: NetworkConditions | None = None,
        settings: dict[str, str] | None = None,
        release: str | None = None,
        passwords: dict[str, str] | None = None,
        load_s: float = 0.0,
    ) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.conditions = conditions or NetworkConditions()
        self.news: dict[str, list[object]] = {}
        self.on_news: dict[str, Callable[[object], None]] = {}
        self.on_report: Callable[[Report], None] = lambda _: None
        self._digest = hashlib.sha256()
        self._clients: dict[str, Client[Any, Any]] = {}
        self._due: dict[str, float | None] = {}
        self._pipes: dict[int, Pipe] = {}
        self._local: dict[tuple[str, int], Pipe] = {}
        self._numbers = count(1)
        self._order = count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._nodes = {f"broker{node}": node for node in range(1, brokers + 1)}
        self.brokers = Brokers(
            [Endpoint(node, host, BROKER_PORT) for host, node in self._nodes.items()],
            self.random,
            self.now,
            settings=settings or {},
            release=release or LATEST,
            options=FrontOptions(passwords or {}, load_seconds=load_s),
        )
        self.checker = TrafficChecker(self.brokers.faults)
        self._settle()

    @property
    def cluster(self) -> LocalCluster:
        return self.brokers.cluster

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return [(host, BROKER_PORT) for host in self._nodes]

    @property
    def digest(self) -> str:
        """What every byte and every moment of the run add up to."""
        return self._digest.hexdigest()

    # What a test does.

    def add(self, name: str, client: Client[Any, Any]) -> None:
        """Let a client live here."""
        self._clients[name] = client
        self.news[name] = []
        self._on_client_effects(name, client.advance(self.now))

    def send_event(self, name: str, event: object) -> None:
        """Give a client an event of its user."""
        self._on_client_effects(name, self._clients[name].handle(event, self.now))

    def to_network(self, name: str, event: NetworkEvent) -> None:
        self._on_client_effects(name, self._clients[name].to_network(event, self.now))

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something later."""
        heapq.heappush(self._agenda, (max(when, self.now), next(self._order), action))

    def administer(self, body: Message, expected: type[M]) -> M:
        """Let the cluster handle a request of an administrator, and all that it leads to.

        Raises TimeoutError if no broker can respond now.
        """
        try:
            return self.brokers.administer(body, expected, self.now)
        finally:
            self._settle()

    def create(
        self, topic: str, spread: Sequence[Sequence[int]], configs: Mapping[str, str] = {}
    ) -> None:
        """Make a topic with those replicas, a list a partition."""
        request = administering.create_topic(topic, spread, configs)
        response = self.administer(request, CreateTopicsResponse)
        assert not response.topics[0].error_code, response

    def stop(self, node: int) -> None:
        """End a broker at once: others lead its partitions when its session has expired."""
        if node in self.cluster.running:
            self._on_cluster_effects(self.brokers.handle(Killed(node), self.now))

    def start(self, node: int) -> None:
        if node not in self.cluster.running:
            self._on_cluster_effects(self.brokers.handle(NodeStarted(node), self.now))

    def move(self, topic: str, partition: int, node: int) -> None:
        """Let another broker lead as soon as it can, if it is up and the partition exists."""
        found = self.brokers.partition(topic, partition)
        if found is None or not self.cluster.image().is_active(node):
            return
        replicas = [node, *(each for each in found.replicas if each != node)]
        request = administering.reassign(topic, partition, replicas[: len(found.replicas)])
        with suppress(TimeoutError):
            self.administer(request, AlterPartitionReassignmentsResponse)
        self._elect(topic, partition, node, ELECTIONS)

    def _elect(self, topic: str, partition: int, node: int, elections: int) -> None:
        """Let the preferred replica lead, once it has caught up."""
        with suppress(TimeoutError):
            self.administer(administering.elect(topic, partition), ElectLeadersResponse)
        found = self.brokers.partition(topic, partition)
        if elections > 1 and found is not None and found.leader != node:
            again = partial(self._elect, topic, partition, node, elections - 1)
            self.at(self.now + ELECTED_AFTER_S, again)

    def trouble(self, *faults: Fault) -> None:
        """Let requests meet faults from now on."""
        self.brokers.faults += faults

    def calm(self) -> None:
        """Let nothing go wrong from now on, and all brokers be up."""
        self.checker.past_faults += self.brokers.faults
        self.brokers.faults.clear()
        self.conditions.reset = 0.0
        for node in self._nodes.values():
            self.start(node)

    def crash(self) -> None:
        """Let the power fail amid the next things the nodes do; they start again at once.

        Their disks may lose what was not flushed, and clients what was not sent.
        """
        self.brokers.fail_power()

    def run(self, until: Callable[[], bool], limit_s: float = 600.0) -> None:
        """Let time pass until something is so; AssertionError where it never is."""
        end = self.now + limit_s
        steps = 0
        while not until():
            steps += 1
            assert steps < 2_000_000, "the simulation turns and turns"
            assert self._step(end), f"nothing more happens, and it is not so (at {self.now})"

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        while self._step(end):
            pass
        self.now = end

    def log(self, topic: str, partition: int) -> list[tuple[int, bytes | None, bytes | None]]:
        """Read offset, key and value of all records of a partition."""
        return [
            (record.offset, record.key, record.value)
            for record in self.brokers.batches(topic, partition).records()
        ]

    def nothing_is_left(self) -> bool:
        """Whether the brokers have forgotten all clients, now that they are gone."""
        return not any(self.brokers.known_clients())

    # How it turns.

    def _step(self, end: float) -> bool:
        """Do the next thing there is to do until then; False where there is none."""
        broker = self.brokers.next_deadline()
        moments = [at for at in self._due.values() if at is not None]
        soonest = min(moments, default=end)
        if broker is not None and broker < soonest:
            soonest = broker
        if self._agenda and self._agenda[0][0] <= max(soonest, self.now):
            if self._agenda[0][0] > end:
                return False
            when, _, action = heapq.heappop(self._agenda)
            self.now = max(self.now, when)
            action()
            return True
        if soonest >= end:
            return False
        self.now = max(self.now, soonest)
        if broker is not None and broker <= self.now:
            self._on_cluster_effects(self.brokers.advance(self.now))
            return True
        for name in [name for name, at in self._due.items() if at is not None and at <= self.now]:
            self._on_client_effects(name, self._clients[name].advance(self.now))
        return True

    def _on_client_effects(self, name: str, effects: Iterable[object]) -> None:
        for effect in effects:
            match effect:
                case Connect():
                    self._connect(name, effect)
                case Write(connection=local, data=data):
                    self._send(self._local[name, local], "up", data)
                case Close(connection=local):
                    self._hang_up(self._local[name, local])
                case _:
                    self.news[name].append(effect)
                    listener = self.on_news.get(name)
                    if listener is not None:
                        listener(effect)
        # a machine's deadline changes only when it handles an event
        self._due[name] = self._clients[name].next_deadline()

    def _settle(self) -> None:
        """Let the brokers do all that is due now."""
        self._on_cluster_effects(self.brokers.settle(self.now))

    def _on_cluster_effects(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.checker.on_effect(effect)
            match effect:
                case Reply(connection=number, data=data):
                    self._send(self._pipes[number], "down", data)
                case BrokerClose(connection=number):
                    pipe = self._pipes[number]
                    self.at(pipe.arrives["down"], partial(self._reset, pipe))
                case AwaitDrain(connection=number):
                    self.at(self.now, partial(self._drained, number))
                case Report():
                    self.on_report(effect)
                case PowerLost():
                    self._power_lost()
                case NodeEffect(node_id, Stopped(failure)):
                    assert failure is None, f"node {node_id}: {failure}"

    def _power_lost(self) -> None:
        self._digest.update(f"{self.now!r} power lost".encode())
        for pipe in self._pipes.values():
            if pipe.open and pipe.reached:  # what was sent before still arrives
                self.checker.on_power_lost(pipe.number)
                self.at(pipe.arrives["down"], partial(self._reset, pipe))

    def _drained(self, number: int) -> None:
        if self._pipes[number].open:
            self._on_cluster_effects(self.brokers.handle(Drained(number), self.now))
            self._check_in_flight(self._pipes[number])

    def _check_in_flight(self, pipe: Pipe) -> None:
        server = self.brokers.server(pipe.node)
        if server is not None:
            self.checker.check_in_flight(server, pipe.number)

    def _connect(self, name: str, effect: Connect) -> None:
        # an answer that was changed on the way may name hosts that there are not
        node = self._nodes.get(effect.host, 0)
        pipe = Pipe(next(self._numbers), name, effect.connection, node)
        self._pipes[pipe.number] = self._local[name, effect.connection] = pipe
        self.at(self.now + self._delay(), partial(self._reached, pipe))

    def _reached(self, pipe: Pipe) -> None:
        if not pipe.open:
            return
        client = self._clients[pipe.client]
        if pipe.node not in self.cluster.running:
            pipe.open = False
            self._on_client_effects(
                pipe.client, client.handle(ConnectionLost(pipe.local, "refused"), self.now)
            )
            return
        pipe.reached = True
        self._on_cluster_effects(self.brokers.handle(Connected(pipe.number, pipe.node), self.now))
        if pipe.open:
            self._on_client_effects(
                pipe.client, client.handle(ConnectionMade(pipe.local), self.now)
            )

    def _send(self, pipe: Pipe, way: str, data: bytes) -> None:
        """Put bytes on the wire, maybe in parts; maybe the wire breaks under them."""
        if not pipe.open:
            return
        for part in self.conditions.parts(data, self.random):
            when = max(pipe.arrives[way], self.now + self._delay())
            pipe.arrives[way] = when
            if self.random.random() < self.conditions.reset:
                self.at(when, partial(self._reset, pipe))
                return
            self.at(when, partial(self._arrive, pipe, way, part))

    def _arrive(self, pipe: Pipe, way: str, data: bytes) -> None:
        if not pipe.open:
            return
        self._digest.update(f"{self.now!r} {pipe.number} {way} ".encode() + data)
        if way == "up":
            self.checker.received(pipe.number, data)
            self._on_cluster_effects(self.brokers.handle(Received(pipe.number, data), self.now))
            self._check_in_flight(pipe)
        else:
            client = self._clients[pipe.client]
            self._on_client_effects(
                pipe.client, client.handle(BytesReceived(pipe.local, data), self.now)
            )

    def _reset(self, pipe: Pipe) -> None:
        """End a connection for both."""
        if not pipe.open:
            return
        self._digest.update(f"{self.now!r} {pipe.number} reset".encode())
        self._gone(pipe)
        client = self._clients[pipe.client]
        self._on_client_effects(
            pipe.client, client.handle(ConnectionLost(pipe.local, "reset"), self.now)
        )

    def _hang_up(self, pipe: Pipe) -> None:
        """The client closes: what it wrote before still arrives."""
        if pipe.open:
            self.at(pipe.arrives["up"], partial(self._gone, pipe))

    def _gone(self, pipe: Pipe) -> None:
        if pipe.open:
            pipe.open = False
            self.checker.on_closed(pipe.number)
            self._on_cluster_effects(self.brokers.handle(Disconnected(pipe.number), self.now))

    def _delay(self) -> float:
        return self.random.random() * self.conditions.delay_s
