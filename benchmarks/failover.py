"""Compares what transactional producers commit while a leader is killed, at three nodes each.

All nodes are processes of their own, brokers and controllers in one, with three replicas of each
partition, two of which have to be in sync, and the same time until a node that is gone is fenced.
PRODUCERS of librdkafka commit transactions of RECORDS records for all partitions, one after the
other. After a third of SECONDS, the leader of one partition is killed, and stays away. At the end,
a read_committed consumer reads all: what was committed and is not there is lost, what is there
twice is doubled, and what is there of an aborted transaction is visible: none of them may be.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.net.server.node_processes import HOST, SETTINGS, nodes
from tests.real.broker import Broker, free_ports
from tests.real.java import install

from .measure import Figure, figure, rotated

NODES: Final = 3
PARTITIONS: Final = 3
PRODUCERS: Final = 3
RECORDS: Final = 10
"""Of a transaction."""
SECONDS: Final = 30.0
TIMEOUT_S: Final = 60.0
TOPIC: Final = "failover"
VALUE_BYTES: Final = 100
SAME: Final = SETTINGS | {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.replication.factor": "3",
}


class Cluster(NamedTuple):
    """A cluster that runs. kill: ends a node at once, by its id."""

    bootstrap: str
    kill: Callable[[int], None]


Up = Callable[[], AbstractContextManager[Cluster]]


@contextmanager
def ours() -> Iterator[Cluster]:
    """Run nodes of kafkawire."""
    with (
        tempfile.TemporaryDirectory() as folder,
        nodes(Path(folder), NODES, SAME) as (bootstrap, processes),
    ):
        by_id = {each.node_id: each for each in processes}
        yield Cluster(bootstrap, lambda node_id: by_id[node_id].kill())


@contextmanager
def real() -> Iterator[Cluster]:
    """Run nodes of Apache Kafka."""
    installation, ports = install(), free_ports(2 * NODES)
    ids = range(1, NODES + 1)
    controllers = dict(zip(ids, ports[NODES:], strict=True))
    voters = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in controllers.items())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        brokers = {}
        for node_id, port in zip(ids, ports, strict=False):
            directory = Path(folder, str(node_id))
            directory.mkdir()
            broker = Broker(installation, directory, port, 0, controllers[node_id])
            listener = f"PLAINTEXT://{HOST}:{port}"
            broker.configure(
                {
                    **SAME,
                    "authorizer.class.name": "",
                    "process.roles": "broker,controller",
                    "node.id": str(node_id),
                    "listeners": f"{listener},CONTROLLER://{HOST}:{controllers[node_id]}",
                    "advertised.listeners": listener,
                    "inter.broker.listener.name": "PLAINTEXT",
                    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                    "controller.quorum.voters": voters,
                }
            )
            broker.format_storage()
            brokers[node_id] = broker
            stack.callback(broker.kill)
        with ThreadPoolExecutor(NODES) as pool:
            list(pool.map(Broker.start, brokers.values()))
        bootstrap = ",".join(each.bootstrap for each in brokers.values())
        yield Cluster(bootstrap, lambda node_id: brokers[node_id].kill())


CLUSTERS: Final[dict[str, Up]] = {"kafkawire": ours, "Apache Kafka": real}


class Commit(NamedTuple):
    """A transaction that was committed. time: seconds of the monotonic clock."""

    time: float
    values: tuple[bytes, ...]


class Member:
    """A producer with a transactional id."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self._number = number
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"member-{number}",
            "linger.ms": 0,
            "log_level": 0,
        }
        self._transactions = count()
        self._producer = self._begun()

    def _begun(self) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(self._config)
        producer.init_transactions(TIMEOUT_S)
        return producer

    def commits(self, end: float) -> list[Commit]:
        """Commit transactions until a time."""
        done: list[Commit] = []
        while time.monotonic() < end:
            transaction = next(self._transactions)
            values = tuple(
                f"{self._number}-{transaction}-{record}".encode().ljust(VALUE_BYTES)
                for record in range(RECORDS)
            )
            if self._commit(values):
                done.append(Commit(time.monotonic(), values))
        return done

    def _commit(self, values: Iterable[bytes]) -> bool:
        """Try a transaction, which is aborted if something goes wrong."""
        try:
            self._producer.begin_transaction()
            for number, value in enumerate(values):
                self._producer.produce(TOPIC, value, partition=number % PARTITIONS)
            _until_done(self._producer.commit_transaction)
        except confluent_kafka.KafkaException as error:
            reason = error.args[0]
            if reason.fatal():
                self._producer = self._begun()
            elif reason.txn_requires_abort():
                _until_done(self._producer.abort_transaction)
            else:
                raise
            return False
        return True


def _until_done(call: Callable[[float], object]) -> None:
    """Call again as long as librdkafka says that it may succeed, TIMEOUT_S at most."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            call(TIMEOUT_S)
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > end:
                raise
        else:
            return


class Outcome(NamedTuple):
    """What a round has seen. pause: the longest time between two commits, in seconds."""

    records: int
    pause: float
    lost: int
    doubled: int
    visible: int


def outcome(start: float, end: float, commits: Sequence[Commit], read: Iterable[bytes]) -> Outcome:
    """Compare what was committed, counted from a start to an end, with what a consumer has read."""
    in_time = [each for each in commits if each.time <= end]
    times = [start, *sorted(each.time for each in in_time), end]
    committed = {value for each in commits for value in each.values}
    seen = Counter(read)
    return Outcome(
        sum(len(each.values) for each in in_time),
        max(after - before for before, after in pairwise(times)),
        len(committed - seen.keys()),
        sum(number - 1 for number in seen.values()),
        len(seen.keys() - committed),
    )


def measure(up: Up, seconds: float = SECONDS) -> Outcome:
    """Run a round in a new cluster."""
    with up() as cluster, ThreadPoolExecutor(PRODUCERS) as pool:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, NODES)])
        created[TOPIC].result()
        members = list(pool.map(lambda each: Member(cluster.bootstrap, each), range(PRODUCERS)))
        start = time.monotonic()
        end = start + seconds
        running = [pool.submit(each.commits, end) for each in members]
        time.sleep(seconds / 3)
        topic = admin.list_topics(TOPIC, timeout=TIMEOUT_S).topics[TOPIC]
        cluster.kill(topic.partitions[0].leader)
        commits = [commit for each in running for commit in each.result()]
        return outcome(start, end, commits, _read(cluster.bootstrap))


def _read(bootstrap: str) -> list[bytes]:
    """Return the values of the topic that a read_committed consumer sees."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "failover",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    beginning = confluent_kafka.OFFSET_BEGINNING
    consumer.assign(
        [confluent_kafka.TopicPartition(TOPIC, each, beginning) for each in range(PARTITIONS)]
    )
    values: list[bytes] = []
    ended: set[int | None] = set()
    limit = time.monotonic() + TIMEOUT_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < limit, "the end of the topic was not reached"
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.append(message.value() or b"")
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return values


def run(rounds: int) -> list[Figure]:
    """Measure; each round begins with another cluster. What is lost, doubled or visible fails."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in CLUSTERS}
    for turn in range(rounds):
        for name in rotated(CLUSTERS, turn):
            seen = measure(CLUSTERS[name])
            assert seen[2:] == (0, 0, 0), f"{name}: {seen}"
            outcomes[name].append(seen)
    committed, pauses = f"a leader is killed: committed in {SECONDS:.0f} s", "longest pause"
    return [
        figure(
            suite,
            "transactions of three producers",
            name,
            unit,
            [each[attribute] for each in taken],
        )
        for attribute, (suite, unit) in enumerate(((committed, "records"), (pauses, "s")))
        for name, taken in outcomes.items()
    ]
