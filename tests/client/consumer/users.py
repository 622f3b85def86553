"""Simulated users of consumer machines: they subscribe, poll, read and leave.

A user does one thing at a time, at its scheduled time, and records everything it receives.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from kafkawire.client.client import Client
from kafkawire.client.config import Setting, network_settings
from kafkawire.client.consumer import (
    Consumer,
    ConsumerRecord,
    TopicPartition,
    consumer_config,
    events,
    read_consumer_config,
)
from kafkawire.client.network.network import CloseNetwork, Network
from tests.client.simulation import Simulation

SOFTWARE = ("kafkawire", "tests")
WALL_MS = 1_700_000_000_000


def consumer_client(
    random: Random, bootstrap: list[tuple[str, int]], config: dict[str, Setting]
) -> tuple[Client[events.UserEvent, events.UserEffect], Consumer]:
    """Return a client with one consumer."""
    servers = ",".join(f"{host}:{port}" for host, port in bootstrap)
    values = read_consumer_config({"bootstrap.servers": servers, **config})
    network = Network(
        network_settings(values, SOFTWARE),
        bootstrap,
        rng=random.random,
        nonce=lambda: f"{random.getrandbits(128):032x}",
    )
    machine = Consumer(
        consumer_config(values), network.view, rng=random.random, clock_ms=lambda: WALL_MS
    )
    return Client(network, {"consumer": machine}), machine


class User:
    """The user of one consumer in the simulation.

    read: all records, in order. changes: the calls of its listener. think_s: the maximum time
    between two polls.
    """

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        config: dict[str, Setting],
        *,
        think_s: float = 0.05,
        seed: int = 0,
    ) -> None:
        self.simulation = simulation
        self.name = name
        self.random = Random(seed)
        self.think_s = think_s
        self.read: list[ConsumerRecord] = []
        self.changes: list[tuple[events.Change, tuple[TopicPartition, ...]]] = []
        self.errors: list[Exception] = []
        self.results: dict[object, object] = {}
        self.polling = True
        self.closed = False
        self._waiting = False
        client, self.machine = consumer_client(Random(seed + 1), simulation.bootstrap, config)
        simulation.on_news[name] = self._on_effect
        simulation.add(name, client)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self.machine.assignment

    def subscribe(self, *topics: str) -> None:
        self.simulation.send_event(self.name, events.Subscribe(topics, has_listener=True))
        self.poll()

    def assign(self, *partitions: TopicPartition) -> None:
        self.simulation.send_event(self.name, events.Assign(partitions))
        self.poll()

    def send(self, event: object) -> None:
        self.simulation.send_event(self.name, event)

    def poll(self) -> None:
        """Poll, unless a poll is pending."""
        if self.polling and not self._waiting and not self.closed and not self.machine.closed:
            self._waiting = True
            self.simulation.send_event(self.name, events.Poll())

    def stop(self) -> None:
        """Stop polling."""
        self.polling = False
        self._waiting = False
        if not self.closed:
            self.simulation.send_event(self.name, events.StopPolling())

    def close(self) -> None:
        if not self.closed:
            self.polling = False
            self.simulation.send_event(self.name, events.Close(30.0))

    def crash(self) -> None:
        """Disconnect without leaving the group."""
        self.closed = True
        self.simulation.to_network(self.name, CloseNetwork())

    def offsets(self, partition: TopicPartition) -> list[int]:
        return [each.offset for each in self.read if each[:2] == partition]

    def _on_effect(self, effect: object) -> None:
        match effect:
            case events.Deliver(records=records):
                self.read += records
                self._poll_later()
            case events.Raise(error=error):
                self.errors.append(error)
                self._poll_later()
            case events.CallListener():
                self.changes.append((effect.change, effect.partitions))
                self.simulation.at(self._next_time(), lambda: self._listener_done(effect.serial))
            case events.Closed():
                self.closed = True
                self.simulation.at(
                    self.simulation.now,
                    lambda: self.simulation.to_network(self.name, CloseNetwork()),
                )
            case events.Done() | events.CommittedFound() | events.OffsetsFound():
                self.results[effect.key] = effect
            case events.PositionFound():
                self.results[effect.key] = effect.offset

    def _poll_later(self) -> None:
        self._waiting = False
        self.simulation.at(self._next_time(), self.poll)

    def _listener_done(self, serial: int) -> None:
        if not self.closed:
            self.simulation.send_event(self.name, events.ListenerDone(serial))

    def _next_time(self) -> float:
        return self.simulation.now + self.random.random() * self.think_s


def covered(users: Iterable[User], partitions: Iterable[TopicPartition]) -> bool:
    """Whether each of these partitions is assigned to exactly one user."""
    assigned = [each for user in users if not user.closed for each in user.assignment]
    return sorted(assigned) == sorted(partitions)
