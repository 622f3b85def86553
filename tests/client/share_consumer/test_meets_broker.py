"""Share consumers and our brokers in virtual time, over connections that break and users that die.

Every record is delivered at least once; an acceptance is confirmed once.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kafkawire.client.client import Client
from kafkawire.client.config import Setting, network_settings, read_config
from kafkawire.client.consumer.events import Close, Closed, Poll, Raise
from kafkawire.client.network.network import CloseNetwork, Network
from kafkawire.client.producer import Flush, Flushed, Send
from kafkawire.client.share_consumer import (
    SHARE_CONSUMER_KEYS,
    AcknowledgeType,
    ShareConsumer,
    ShareRecord,
    events,
    share_consumer_config,
)
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.client.clients import producer_client
from tests.client.simulation import NetworkConditions, Simulation

GROUP = 32
RECORDS = 240
PARTITIONS = 3
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
}
A = AcknowledgeType


class Member:
    """A user of a share consumer. accepted: offsets whose acceptance was confirmed."""

    def __init__(self, it: Simulation, name: str, seed: int) -> None:
        self.it = it
        self.name = name
        self.random = Random(seed)
        self.read: list[ShareRecord] = []
        self.accepted: list[tuple[str, int, int]] = []
        self.unconfirmed: list[tuple[str, int, int]] = []
        self.dead = False
        config: dict[str, Setting] = {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in it.bootstrap),
            "group.id": "g",
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": 7,
            "request.timeout.ms": 5000,
        }
        values = read_config(SHARE_CONSUMER_KEYS, config)
        network = Network(
            network_settings(values, ("kafkawire", "tests")),
            it.bootstrap,
            rng=self.random.random,
            nonce=lambda: "nonce",
        )
        member_id = f"{'A' * 19}{seed % 1000:03d}"[:22]
        self.machine = ShareConsumer(
            share_consumer_config(values), network.view, member_id, rng=self.random.random
        )
        it.on_news[name] = self._on_effect
        it.add(name, Client(network, {"share_consumer": self.machine}))
        self._send(events.Subscribe(("orders",)))
        self._send(Poll())

    def kill(self) -> None:
        self.dead = True
        self.it.to_network(self.name, CloseNetwork())

    def close(self) -> None:
        if not self.dead:
            self.dead = True
            self._send(Close(30.0))

    def _send(self, event: object) -> None:
        self.it.send_event(self.name, event)

    def _poll(self) -> None:
        if not self.dead:
            self._send(Poll())

    def _process(self, records: list[ShareRecord]) -> None:
        if self.dead:
            return
        for record in records:
            kind = A.ACCEPT if self.random.random() < 0.8 else A.RELEASE
            if self.random.random() < 0.1:
                kind = A.RENEW
            where = record[:2]
            self._send(events.Acknowledge(where, record.offset, kind))  # type: ignore[arg-type]
        if self.random.random() < 0.3:
            self._send(events.Commit(object(), 20.0))
        self.it.at(self.it.now + self.random.random() * 0.2, self._poll)

    def _on_effect(self, effect: object) -> None:
        match effect:
            case events.Deliver(records=records):
                self.read += records
                later = self.it.now + self.random.random() * 0.1
                self.it.at(later, lambda: self._process(records))
            case Raise():
                self.it.at(self.it.now + 0.1, self._poll)
            case events.Acknowledged(partition=where, ranges=ranges, error=error):
                listed = [
                    (*where, offset)
                    for first, last, kind in ranges
                    if kind == A.ACCEPT
                    for offset in range(first, last + 1)
                ]
                (self.accepted if error is None else self.unconfirmed).extend(listed)
            case Closed():
                self.it.at(self.it.now, lambda: self.it.to_network(self.name, CloseNetwork()))


def simulation(seed: int) -> Simulation:
    """Return three brokers with a topic, and a group that begins at the first records."""
    conditions = NetworkConditions(delay_s=0.01)
    it = Simulation(seed, brokers=3, conditions=conditions, settings=SETTINGS)
    nodes = it.brokers.ids
    it.create("orders", [[nodes[n], nodes[(n + 1) % 3]] for n in range(PARTITIONS)])
    settings = {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": "3000",
        "share.delivery.count.limit": "10",
    }
    configs = [AlterableConfig(name=key, value=value) for key, value in settings.items()]
    resource = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = it.administer(request, IncrementalAlterConfigsResponse)
    assert not response.responses[0].error_code, response
    return it


def write(it: Simulation) -> None:
    it.add("p", producer_client(Random(9), it.bootstrap))
    for n in range(RECORDS):
        it.send_event("p", Send(object(), "orders", n % PARTITIONS, None, b"%d" % n, n))
    done = Flushed(1)
    it.send_event("p", Flush(1))
    it.run(lambda: done in it.news["p"])


@pytest.mark.parametrize("seed", range(6))
def test_every_record_is_delivered_and_accepted_once(seed: int) -> None:
    it = simulation(seed)
    write(it)
    members = [Member(it, f"m{n}", seed * 10 + n) for n in range(3)]
    everything = {
        ("orders", index, offset)
        for index in range(PARTITIONS)
        for offset in range(RECORDS // PARTITIONS)
    }

    it.conditions.reset = 0.03
    it.at(it.now + 1.5, members[1].kill)
    it.at(it.now + 2.0, lambda: it.move("orders", 0, it.brokers.ids[1]))
    it.at(it.now + 6.0, it.calm)
    it.run(lambda: outcomes(members) >= everything)
    for member in members:
        member.close()
    it.pass_time(40.0)
    counts = Counter(each for member in members for each in member.accepted)
    assert set(counts.values()) == {1}, counts
    delivered = {each[:3] for member in members for each in member.read}
    assert delivered == everything
    assert sum(bool(member.read) for member in members) > 1


def outcomes(members: list[Member]) -> set[tuple[str, int, int]]:
    """Return the records with an acceptance that is confirmed, or was sent."""
    return {each for member in members for each in (*member.accepted, *member.unconfirmed)}
