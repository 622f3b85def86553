"""A world without sockets: client machines and a broker machine on a wire that misbehaves.

Law: time is a number, chance comes from one seed, so a run can be replayed to the byte (`digest`);
what is sent one way over a connection arrives in order or, after a reset, not at all.

    client machine ─ Write ─▶ [delayed, split] ─▶ Received ─▶ cluster machine
                   ◀─ BytesReceived ─ [delayed, split, reset] ◀─ Reply ─
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from kafkawire.broker import (
    AwaitDrain,
    BrokerStarted,
    BrokerStopped,
    Cluster,
    Connected,
    Disconnected,
    Drained,
    Endpoint,
    LeaderMoved,
    Received,
    Reply,
)
from kafkawire.broker import Close as BrokerClose
from kafkawire.client.requests import (
    BytesReceived,
    Close,
    Connect,
    ConnectionLost,
    ConnectionMade,
    Write,
)
from kafkawire.client.routing import Client
from kafkawire.records import RecordBatches

BROKER_PORT = 9092


@dataclass
class Weather:
    """How the wire misbehaves.

    delay_s: the longest a chunk is on its way. split: the chance that a chunk is cut. reset: the
    chance that a chunk meets the end of its connection.
    """

    delay_s: float = 0.02
    split: float = 0.2
    reset: float = 0.0


@dataclass
class Pipe:
    """One connection: number is the world's; client and local name the client's end."""

    number: int
    client: str
    local: int
    node: int
    open: bool = True
    arrives: dict[str, float] = field(default_factory=lambda: {"up": 0.0, "down": 0.0})


class World:
    """Runs everything, one event after the other."""

    def __init__(
        self,
        seed: int,
        *,
        brokers: int = 3,
        weather: Weather | None = None,
        settings: dict[str, str] | None = None,
        release: str | None = None,
        passwords: dict[str, str] | None = None,
    ) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.weather = weather or Weather()
        self.news: dict[str, list[object]] = {}
        self.on_news: dict[str, Callable[[object], None]] = {}
        self._digest = hashlib.sha256()
        self._clients: dict[str, Client] = {}
        self._pipes: dict[int, Pipe] = {}
        self._local: dict[tuple[str, int], Pipe] = {}
        self._numbers = count(1)
        self._order = count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._nodes = {f"broker{node}": node for node in range(1, brokers + 1)}
        names = {} if release is None else {"release": release}
        self.cluster = Cluster(
            [Endpoint(node, f"broker{node}", BROKER_PORT) for node in range(1, brokers + 1)],
            new_uuid=lambda: self.random.randbytes(16),
            draw=self.random.random,
            epoch_ms=1_700_000_000_000,
            settings=settings,
            passwords=passwords,
            **names,
        )

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return [(f"broker{node}", BROKER_PORT) for node in self.cluster.brokers]

    @property
    def digest(self) -> str:
        """What every byte and every moment of the run add up to."""
        return self._digest.hexdigest()

    # What a test does.

    def add(self, name: str, client: Client) -> None:
        """Let a client live here."""
        self._clients[name] = client
        self.news[name] = []
        self._told(name, client.advance(self.now))

    def tell(self, name: str, event: object) -> None:
        """Give a client an event of its user."""
        self._told(name, self._clients[name].handle(event, self.now))

    def tell_network(self, name: str, event: object) -> None:
        self._told(name, self._clients[name].tell_network(event, self.now))

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something later."""
        heapq.heappush(self._agenda, (max(when, self.now), next(self._order), action))

    def stop(self, node: int) -> None:
        if node in self.cluster.topics.alive:
            self._answered(self.cluster.handle(BrokerStopped(node), self.now))

    def start(self, node: int) -> None:
        if node not in self.cluster.topics.alive:
            self._answered(self.cluster.handle(BrokerStarted(node), self.now))

    def move(self, topic: str, partition: int, node: int) -> None:
        """Let another broker lead, if it is up and the partition exists."""
        known = self.cluster.topics.partition(topic, partition) is not None
        if known and node in self.cluster.topics.alive:
            self._answered(self.cluster.handle(LeaderMoved(topic, partition, node), self.now))

    def run(self, until: Callable[[], bool], limit_s: float = 600.0) -> None:
        """Let time pass until something is so; AssertionError where it never is."""
        end = self.now + limit_s
        steps = 0
        while not until():
            steps += 1
            assert steps < 2_000_000, "the world turns and turns"
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

    # How it turns.

    def _step(self, end: float) -> bool:
        """Do the next thing there is to do until then; False where there is none."""
        due = [(client.next_deadline(), name) for name, client in self._clients.items()]
        moments = [(at, name) for at, name in due if at is not None]
        broker = self.cluster.next_deadline()
        soonest = min([at for at, _ in moments] + ([] if broker is None else [broker]), default=end)
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
            self._answered(self.cluster.advance(self.now))
            return True
        for at, name in moments:
            if at <= self.now:
                self._told(name, self._clients[name].advance(self.now))
        return True

    def _told(self, name: str, effects: Iterable[object]) -> None:
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

    def _answered(self, effects: Sequence[object]) -> None:
        for effect in effects:
            match effect:
                case Reply(connection=number, data=data):
                    self._send(self._pipes[number], "down", data)
                case BrokerClose(connection=number):
                    pipe = self._pipes[number]
                    self.at(pipe.arrives["down"], partial(self._reset, pipe))
                case AwaitDrain(connection=number):
                    self.at(self.now, partial(self._drained, number))

    def _drained(self, number: int) -> None:
        if self._pipes[number].open:
            self._answered(self.cluster.handle(Drained(number), self.now))

    def _connect(self, name: str, effect: Connect) -> None:
        # an answer that was changed on the way may name hosts that there are not
        node = self._nodes.get(effect.host, 0)
        pipe = Pipe(next(self._numbers), name, effect.connection, node)
        self._pipes[pipe.number] = self._local[name, effect.connection] = pipe

        def reached() -> None:
            if not pipe.open:
                return
            if node not in self.cluster.topics.alive:
                pipe.open = False
                self._told(
                    name,
                    self._clients[name].handle(
                        ConnectionLost(effect.connection, "refused"), self.now
                    ),
                )
                return
            self._answered(self.cluster.handle(Connected(pipe.number, node), self.now))
            if pipe.open:
                self._told(
                    name,
                    self._clients[name].handle(ConnectionMade(effect.connection), self.now),
                )

        self.at(self.now + self._delay(), reached)

    def _send(self, pipe: Pipe, way: str, data: bytes) -> None:
        """Put bytes on the wire, maybe in parts; maybe the wire breaks under them."""
        if not pipe.open:
            return
        parts = [data]
        while self.random.random() < self.weather.split and len(parts[-1]) > 1:
            last = parts.pop()
            cut = self.random.randrange(1, len(last))
            parts += [last[:cut], last[cut:]]
        for part in parts:
            when = max(pipe.arrives[way], self.now + self._delay())
            pipe.arrives[way] = when
            if self.random.random() < self.weather.reset:
                self.at(when, lambda: self._reset(pipe))
                return
            self.at(when, partial(self._arrive, pipe, way, part))

    def _arrive(self, pipe: Pipe, way: str, data: bytes) -> None:
        if not pipe.open:
            return
        self._digest.update(f"{self.now!r} {pipe.number} {way} ".encode() + data)
        if way == "up":
            self._answered(self.cluster.handle(Received(pipe.number, data), self.now))
        else:
            self._told(
                pipe.client,
                self._clients[pipe.client].handle(BytesReceived(pipe.local, data), self.now),
            )

    def _reset(self, pipe: Pipe) -> None:
        """End a connection for both."""
        if not pipe.open:
            return
        pipe.open = False
        self._digest.update(f"{self.now!r} {pipe.number} reset".encode())
        self._answered(self.cluster.handle(Disconnected(pipe.number), self.now))
        self._told(
            pipe.client,
            self._clients[pipe.client].handle(ConnectionLost(pipe.local, "reset"), self.now),
        )

    def _hang_up(self, pipe: Pipe) -> None:
        """The client closes: what it wrote before still arrives."""
        if pipe.open:
            self.at(pipe.arrives["up"], lambda: self._gone(pipe))

    def _gone(self, pipe: Pipe) -> None:
        if pipe.open:
            pipe.open = False
            self._answered(self.cluster.handle(Disconnected(pipe.number), self.now))

    def _delay(self) -> float:
        return self.random.random() * self.weather.delay_s
