"""Runs client machines and a broker machine without sockets, on an unreliable network.

Law: time is a number, randomness comes from one seed, so a run can be replayed to the byte
(`digest`); bytes of one direction of a connection arrive in order or, after a reset, not at all; a
checker checks that every request gets one response or is parked.

    client machine ─ Write ─▶ [delayed, split] ─▶ Received ─▶ cluster machine
                   ◀─ BytesReceived ─ [delayed, split, reset] ◀─ Reply ─
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import Any

from kafkawire.broker import (
    AwaitDrain,
    BrokerStarted,
    BrokerStopped,
    Cluster,
    Connected,
    Disconnected,
    Drained,
    Endpoint,
    Fault,
    LeaderMoved,
    Persist,
    Persisted,
    Received,
    Reply,
    Trim,
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
from kafkawire.records import RecordBatches

from .checker import TrafficChecker
from .conditions import NetworkConditions, Pipe

__all__ = ["Pipe", "NetworkConditions", "Simulation"]
BROKER_PORT = 9092
EPOCH_MS = 1_700_000_000_000


class Simulation:
    """Runs everything, one event after the other.

    kept: what the cluster wants to be kept. load_s: how long a new coordinator reads.
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
        self.kept: list[Persisted] = []
        self._digest = hashlib.sha256()
        self._clients: dict[str, Client[Any, Any]] = {}
        self._due: dict[str, float | None] = {}
        self._pipes: dict[int, Pipe] = {}
        self._local: dict[tuple[str, int], Pipe] = {}
        self._numbers = count(1)
        self._order = count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._nodes = {f"broker{node}": node for node in range(1, brokers + 1)}
        self._crashes = False
        self._build = partial(
            Cluster,
            [Endpoint(node, host, BROKER_PORT) for host, node in self._nodes.items()],
            new_uuid=lambda: self.random.randbytes(16),
            draw=self.random.random,
            epoch_ms=EPOCH_MS,
            settings=settings,
            release=release or LATEST,
            passwords=passwords,
            load_seconds=load_s,
        )
        self.cluster = self._build()
        self.checker = TrafficChecker(self.cluster.faults)

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return [(f"broker{node}", BROKER_PORT) for node in self.cluster.brokers]

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

    def create(self, topic: str, spread: Sequence[Sequence[int]]) -> None:
        """Make a topic with those replicas, a list a partition."""
        self.cluster.controller.create_topic(topic, spread, {}, self.now)
        self._on_cluster_effects(self.cluster.advance(self.now))

    def stop(self, node: int) -> None:
        if node in self.cluster.topics.alive:
            self._on_cluster_effects(self.cluster.handle(BrokerStopped(node), self.now))

    def start(self, node: int) -> None:
        if node not in self.cluster.topics.alive:
            self._on_cluster_effects(self.cluster.handle(BrokerStarted(node), self.now))

    def move(self, topic: str, partition: int, node: int) -> None:
        """Let another broker lead, if it is up and the partition exists."""
        known = self.cluster.topics.partition(topic, partition) is not None
        if known and node in self.cluster.topics.alive:
            self._on_cluster_effects(
                self.cluster.handle(LeaderMoved(topic, partition, node), self.now)
            )

    def trouble(self, *faults: Fault) -> None:
        """Let requests meet faults from now on."""
        self.cluster.faults += faults

    def calm(self) -> None:
        """Let nothing go wrong from now on, and all brokers be up."""
        self.checker.past_faults += self.cluster.faults
        self.cluster.faults.clear()
        self.conditions.reset = 0.0
        for node in self._nodes.values():
            self.start(node)

    def crash(self) -> None:
        """Let the whole cluster die amid the next things it does, and be built from what it kept.

        What stands behind that in its effects never happens, so what stands before had better do.
        """
        self._crashes = True

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
        found = self.cluster.topics.partition(topic, partition)
        if found is None:
            return []
        return [
            (record.offset, record.key, record.value)
            for stored in found.log
            for record in RecordBatches(stored.data).records()
        ]

    def nothing_is_left(self) -> bool:
        """Whether the cluster has forgotten all clients, now that they are gone."""
        cluster = self.cluster
        waiting = sum(len(each.fetch_purgatory) for each in cluster.replicas.values())
        return not (cluster.connections or cluster.channel.pending or waiting)

    # How it turns.

    def _step(self, end: float) -> bool:
        """Do the next thing there is to do until then; False where there is none."""
        broker = self.cluster.next_deadline()
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
            self._on_cluster_effects(self.cluster.advance(self.now))
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

    def _on_cluster_effects(self, effects: Sequence[object]) -> None:
        crashes = self._crashes and len(effects) > 0
        for effect in effects[: self.random.randrange(len(effects)) if crashes else None]:
            self.checker.on_effect(effect)
            match effect:
                case Reply(connection=number, data=data):
                    self._send(self._pipes[number], "down", data)
                case BrokerClose(connection=number):
                    pipe = self._pipes[number]
                    self.at(pipe.arrives["down"], partial(self._reset, pipe))
                case AwaitDrain(connection=number):
                    self.at(self.now, partial(self._drained, number))
                case Persist() | Trim():
                    self.kept.append(effect)
        if crashes:
            self._rebuild()

    def _rebuild(self) -> None:
        self._crashes = False
        self._digest.update(f"{self.now!r} crash".encode())
        faults = self.cluster.faults
        self.cluster = self._build()
        self.cluster.faults = faults
        for pipe in self._pipes.values():
            if pipe.open and pipe.reached:  # what was sent before still arrives
                self.checker.on_closed(pipe.number)
                self.at(pipe.arrives["down"], partial(self._reset, pipe))
        self._on_cluster_effects(self.cluster.restore(list(self.kept), self.now))

    def _drained(self, number: int) -> None:
        if self._pipes[number].open:
            self._on_cluster_effects(self.cluster.handle(Drained(number), self.now))
            self.checker.check_in_flight(self.cluster, number)

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
        if pipe.node not in self.cluster.topics.alive:
            pipe.open = False
            self._on_client_effects(
                pipe.client, client.handle(ConnectionLost(pipe.local, "refused"), self.now)
            )
            return
        pipe.reached = True
        self._on_cluster_effects(self.cluster.handle(Connected(pipe.number, pipe.node), self.now))
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
            self._on_cluster_effects(self.cluster.handle(Received(pipe.number, data), self.now))
            self.checker.check_in_flight(self.cluster, pipe.number)
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
            self._on_cluster_effects(self.cluster.handle(Disconnected(pipe.number), self.now))

    def _delay(self) -> float:
        return self.random.random() * self.conditions.delay_s
