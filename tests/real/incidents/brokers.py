"""Incidents of three brokers: one is killed, restarted, slow, or advertises a wrong address."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.real.broker import Broker, free_ports

from .cluster import Cluster, clock_offset_of_processes, stuttering, wait_until
from .connecting import pause, resume
from .proxy import proxied
from .recording import consumer, producer, recorded

PERIOD_SECONDS: Final = 0.1


def sending(sender: Producer, topic: str, seconds: float, *, partition: int = 0) -> None:
    """Send a record every tenth of a second."""
    deadline = time.monotonic() + seconds
    send_until(sender, topic, lambda: time.monotonic() >= deadline, partition=partition)


def send_until(
    sender: Producer, topic: str, ends: Callable[[], bool], *, partition: int = 0
) -> None:
    """Send a record every tenth of a second until a condition holds."""
    while not ends():
        sender.produce(topic, b"one more", partition=partition)
        sender.poll(PERIOD_SECONDS)


def controlled_shutdowns(cluster: Cluster) -> None:
    """Restart a broker while a producer sends to it."""
    topic = cluster.create_topic("parcels", [[3, 2, 1]])
    with (
        cluster.without(3),
        recorded("controlled-shutdowns", *cluster.nodes, controllers=True),
    ):
        sender = producer(cluster.first, "courier")
        sending(sender, topic, 1)
        cluster.node(3).stop()
        sending(sender, topic, 2)
        sender.flush(30)


def leader_elections(cluster: Cluster) -> None:
    """Elect the preferred leader, which was restarted before, while a producer sends."""
    topic = cluster.create_topic("letters", [[3, 2]])
    with cluster.without(3):
        cluster.node(3).stop()
    with recorded("leader-elections", *cluster.nodes):
        sender = producer(cluster.first, "postman")
        sending(sender, topic, 1)
        partitions = [TopicPartition(topic, 0)]
        admin = cluster.admin()
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result()
        sending(sender, topic, 2)
        sender.flush(30)


def too_few_in_sync_replicas(cluster: Cluster) -> None:
    """Kill a follower without which too few replicas are in sync."""
    topic = cluster.create_topic("deeds", [[1, 3]], **{"min.insync.replicas": "2"})
    with cluster.without(3), recorded("too-few-in-sync-replicas", *cluster.nodes):
        sender = producer(cluster.first, "notary", message_timeout_ms=9000)
        sending(sender, topic, 1)
        cluster.node(3).kill()
        sending(sender, topic, 4)
        sender.flush(15)


def under_replicated(cluster: Cluster) -> None:
    """Kill a follower, and start it after more than half a minute."""
    topic = cluster.create_topic("minutes", [[1, 2, 3]])
    with cluster.without(3), recorded("under-replicated", *cluster.nodes):
        sender = producer(cluster.first, "clerk", topic_metadata_refresh_interval_ms=2000)
        sending(sender, topic, 1)
        cluster.node(3).kill()
        for _ in range(40):
            sender.produce(topic, b"one more")
            sender.flush(10)
            time.sleep(1)


def coordinator_unavailable(cluster: Cluster) -> None:
    """Kill the only broker with the offsets of a group, which starts."""
    topic = cluster.create_topic("wages", [[1]])
    with cluster.without(3):
        cluster.node(3).kill()
        with recorded("coordinator-unavailable", *cluster.nodes):
            reader = consumer(cluster.first, "payroll", group_id="wages")
            reader.subscribe([topic])
            reader.poll(15)
            del reader


def stale_metadata(cluster: Cluster) -> None:
    """Let a broker advertise the address of another one, as behind a load balancer."""
    topic = cluster.create_topic("flights", [[2]])
    with cluster.without(2):
        cluster.node(2).stop()
        cluster.configure(2, advertised_port=cluster.node(3).port)
        cluster.node(2).start()
        cluster.wait_for_replicas()
        with recorded("stale-metadata", *cluster.nodes):
            sender = producer(cluster.first, "booking", message_timeout_ms=8000)
            sender.produce(topic, b"window seat")
            sender.flush(12)
        cluster.node(2).stop()
        cluster.configure(2)


def slow_broker(cluster: Cluster) -> None:
    """Let one of three brokers be slow."""
    topic = cluster.create_topic("scores", [[1], [2], [3]])
    with recorded("slow-broker", *cluster.nodes):
        sender = producer(cluster.first, "referee", linger_ms=0)
        with stuttering(cluster.node(3), paused=0.2):
            _round_robin(sender, topic, partitions=3, rounds=120)


def slow_partition(cluster: Cluster) -> None:
    """Let the follower of one of five partitions be slow."""
    replicas = [[1, 3], [1, 2], [1, 2], [1, 2], [1, 2]]
    topic = cluster.create_topic("meters", replicas, **{"min.insync.replicas": "2"})
    with recorded("slow-partition", *cluster.nodes):
        sender = producer(cluster.first, "gauge", linger_ms=0)
        with stuttering(cluster.node(3)):
            _round_robin(sender, topic, partitions=5, rounds=70)


def _round_robin(sender: Producer, topic: str, *, partitions: int, rounds: int) -> None:
    for number in range(rounds * partitions):
        sender.produce(topic, b"one more", partition=number % partitions)
        sender.flush()


def head_of_line_blocking(cluster: Cluster) -> None:
    """Send many requests at once, while the follower is slow."""
    topic = cluster.create_topic("ticks", [[1, 3]], **{"min.insync.replicas": "2"})
    with recorded("head-of-line-blocking", *cluster.nodes):
        sender = producer(cluster.first, "exchange", linger_ms=5)
        with stuttering(cluster.node(3), paused=0.6, running=0.2):
            for _ in range(400):
                sender.produce(topic, b"tick")
                sender.poll(0.015)
            sender.flush(30)


def request_timeouts(cluster: Cluster) -> None:
    """Pause a follower for longer than a producer lets the leader wait for it."""
    topic = cluster.create_topic("bets", [[1, 3]])
    with recorded("request-timeouts", *cluster.nodes):
        sender = producer(cluster.first, "bookmaker", request_timeout_ms=500)
        for _ in range(3):
            sender.produce(topic, b"win")
            sender.flush()
            pause(cluster.node(3))
            sender.produce(topic, b"place")
            sender.flush(1.5)
            resume(cluster.node(3))
            sender.flush()
    cluster.wait_for_replicas()


def connection_resets(cluster: Cluster) -> None:
    """Kill a broker that had stood still while clients sent to it."""
    topic = cluster.create_topic("tickets", [[3, 2]])
    with cluster.without(3), recorded("connection-resets", *cluster.nodes):
        senders = [producer(cluster.first, "gate") for _ in range(5)]
        for sender in senders:
            sender.produce(topic, b"adult")
            sender.flush()
        pause(cluster.node(3))
        for sender in senders:
            sender.produce(topic, b"child")
            sender.poll(0)
        time.sleep(1)
        cluster.node(3).kill()
        for sender in senders:
            sender.flush(30)


def log_truncation(cluster: Cluster) -> None:
    """Elect a leader that lacks records which a consumer has read (unclean election)."""
    _unclean(cluster, "log-truncation", "orders-placed", _reader(cluster))


def sequence_errors(cluster: Cluster) -> None:
    """Elect a leader that lacks records of an idempotent producer (unclean election)."""
    _unclean(cluster, "sequence-errors", "orders-paid", None)


def _reader(cluster: Cluster) -> Consumer:
    return consumer(cluster.first, "warehouse", group_id="stock", reconnect_backoff_ms=1000)


def _unclean(cluster: Cluster, name: str, topic: str, reader: Consumer | None) -> None:
    config = {"unclean.leader.election.enable": "true"}
    cluster.create_topic(topic, [[3, 2]], **config)
    with cluster.without(2), cluster.without(3), recorded(name, *cluster.nodes):
        settings: dict[str, Any] = {"reconnect_backoff_ms": 1000}
        if reader is None:
            settings["enable_idempotence"] = True
        else:
            reader.assign([TopicPartition(topic, 0, 0)])
        sender = producer(cluster.first, "shop", **settings)
        _produce_and_read(sender, reader, topic, 20)
        cluster.node(2).kill()
        wait_until(lambda: cluster.isr(topic) == [3])
        _produce_and_read(sender, reader, topic, 20)
        cluster.node(3).kill()
        cluster.node(2).start()
        wait_until(lambda: cluster.isr(topic) == [2])
        try:
            _produce_and_read(sender, reader, topic, 5)
        except KafkaException as error:  # fatal: the producer cannot go on
            print(error)
        sender.flush(10)


def _produce_and_read(sender: Producer, reader: Consumer | None, topic: str, records: int) -> None:
    for number in range(records):
        sender.produce(topic, f"order {number}".encode())
        sender.flush(10)
    for _ in range(records if reader is not None else 0):
        assert reader is not None
        reader.poll(5)


def other_rack(cluster: Cluster) -> None:
    """Let a consumer read from leaders in other racks, although a replica is in its own."""
    topic = cluster.create_topic("films", [[2, 1]])
    filler = producer(cluster.first, "filler")
    for _ in range(22):
        filler.produce(topic, bytes(500_000))
    filler.flush()
    with recorded("other-rack", *cluster.nodes):
        reader = consumer(cluster.first, "projector", client_rack="rack-1")
        reader.assign([TopicPartition(topic, 0, 0)])
        for _ in range(22):
            assert reader.poll(30) is not None
        reader.close()


def broker_clocks(cluster: Cluster) -> None:
    """Restart a broker with a clock that is half a minute behind."""
    config = {"message.timestamp.type": "LogAppendTime"}
    topic = cluster.create_topic("stopwatches", [[1], [2], [3]], **config)
    with cluster.without(3), clock_offset_of_processes(-30):
        cluster.node(3).stop()
        cluster.node(3).start()
    cluster.wait_for_replicas()
    with recorded("broker-clocks", *cluster.nodes):
        _round_robin(producer(cluster.first, "umpire"), topic, partitions=3, rounds=20)
    cluster.node(3).stop()
    cluster.node(3).start()


def stale_brokers(cluster: Cluster) -> None:
    """Cut a broker off from the controller, while clients still reach it."""
    topic = cluster.create_topic("timetables", [[3, 2]])
    (port,) = free_ports(1)
    with cluster.without(3), proxied(port, cluster.first.controller_port) as proxy:
        cluster.node(3).stop()
        cluster.configure(3, controller_port=port)
        cluster.node(3).start()
        cluster.wait_for_replicas()
        admin = cluster.admin()
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result()
        with recorded("stale-brokers", *cluster.nodes):
            _look(cluster, topic, 1)
            proxy.silent.set()
            _look(cluster, topic, 6)
        cluster.node(3).kill()
        cluster.configure(3)


def _look(cluster: Cluster, topic: str, times: int) -> None:
    """Let a new client of each broker look at a topic, every four seconds."""
    for _ in range(times):
        for node in cluster.nodes:
            admin = AdminClient({"bootstrap.servers": node.bootstrap, "client.id": "observer"})
            admin.list_topics(topic, timeout=10)
        time.sleep(4)


def refused_registrations(cluster: Cluster) -> None:
    """Start a broker with the id of another one, whose place it takes where that is slow."""
    with tempfile.TemporaryDirectory() as folder:
        port, other_port = free_ports(2)
        first = cluster.first
        second = Broker(first.installation, Path(folder), port, 0, first.controller_port)
        twins = Cluster((*cluster.nodes[:2], second), (*cluster.broker_ports[:2], other_port))
        twins.configure(3)
        second.format_storage()
        command = second.installation.command("kafka.Kafka", f"{folder}/server.properties")
        with (
            recorded("refused-registrations", *cluster.nodes, controllers=True),
            subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder) as process,
        ):
            time.sleep(12)
            process.kill()
