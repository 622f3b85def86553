"""Kafka Streams with `group.protocol=streams` at our broker: it is killed, and counts exactly."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkawire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafkawire.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from kafkawire.net.fixture import ClusterFixture
from tests.real.compiler import compiled
from tests.real.java import Installation
from tests.real.wire import Wire

from .node_processes import NodeProcess, nodes

SECONDS: Final = 60.0
SOURCE: Final = Path(__file__).with_name("WordCounts.java")
WORDS: Final = ("alpha", "beta", "gamma", "delta", "epsilon")
LINES: Final = 40
SETTINGS: Final = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.min.session.timeout.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
LONGER_THAN_FAILOVER_MS: Final = 120_000
"""The timeout of transactions where nodes are killed: the commit of one that has timed out ends the
application, also at a real Kafka.
"""
LONG_SESSIONS: Final = {**SETTINGS, "group.streams.session.timeout.ms": "45000"}
"""As by default: members must find the new coordinator within it."""
pytestmark = pytest.mark.timeout(600)


@contextmanager
def application(
    installation: Installation, bootstrap: str, state: Path, timeout_ms: int = 3000
) -> Iterator[subprocess.Popen[str]]:
    """Run the word count until the end of the block, where it is closed if it is still there.

    timeout_ms: of its transactions.
    """
    arguments = (bootstrap, str(state), str(timeout_ms))
    command = compiled(installation, SOURCE).command(SOURCE.stem, *arguments)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    shown: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=shown.extend, args=(process.stdout,))
    reader.start()
    try:
        yield process
        if process.poll() is None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(SECONDS)
            reader.join()
            assert process.returncode == 0, "".join(shown)
    finally:
        process.kill()
        process.wait()
        reader.join()
        print("".join(shown))


class Lines:
    """What is counted: lines of words, of which the topic gets the next ones."""

    def __init__(self, bootstrap: str) -> None:
        self.words: Counter[str] = Counter()
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def send(self) -> None:
        for at in range(LINES):
            line = [WORDS[at % 5], WORDS[at * at % 5], WORDS[at * 3 % 4]]
            self._producer.produce("lines", " ".join(line).encode(), partition=at % 2)
            self.words.update(line)
        assert self._producer.flush(SECONDS) == 0

    @property
    def counts(self) -> Counter[tuple[str, int]]:
        """Each word with each of its counts, once."""
        return Counter(
            (word, at) for word, count in self.words.items() for at in range(1, count + 1)
        )


class Counts:
    """The counts that the application has committed, as a consumer reads them."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.read: Counter[tuple[str, int]] = Counter()
        self._ended: set[int | None] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(["counts"])

    def until(self, count: int) -> None:
        """Read until there are so many."""
        self._poll_until(lambda: self.read.total() >= count)

    def to_the_end(self) -> None:
        """Read both partitions to their ends; of a consumer that has read nothing yet."""
        self._poll_until(lambda: len(self._ended) == 2)

    def _poll_until(self, done: Callable[[], bool]) -> None:
        over = threading.Event()
        alarm = threading.Timer(SECONDS, over.set)
        alarm.start()
        try:
            while not done():
                assert not over.is_set(), f"{self.read.total()} counts, then no more"
                self._poll()
        finally:
            alarm.cancel()

    def _poll(self) -> None:
        message = self._consumer.poll(0.2)
        if message is None:
            return
        if message.error() is not None:
            self._ended.add(message.partition())
            return
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        self.read[key.decode(), int(value)] += 1

    def close(self) -> None:
        self._consumer.close()


def counts_exactly(installation: Installation, bootstrap: str, folder: Path) -> None:
    """Let words be counted by an application that is killed between, and by its successor."""
    lines, counts = Lines(bootstrap), Counts(bootstrap, "first")
    lines.send()
    with application(installation, bootstrap, folder / "first") as process:
        counts.until(LINES)
        lines.send()
        counts.until(lines.words.total() - LINES)
        process.kill()
        process.wait()
    lines.send()
    with application(installation, bootstrap, folder / "second"):
        counts.until(lines.words.total())
    counts.close()
    everything = Counts(bootstrap, "second")
    everything.to_the_end()
    everything.close()
    assert everything.read == lines.counts


@pytest.mark.kafka(topics={"lines": 2, "counts": 2}, settings=SETTINGS)
def test_words_are_counted_exactly_once(
    kafka_broker: ClusterFixture, installation: Installation, tmp_path: Path
) -> None:
    counts_exactly(installation, kafka_broker.bootstrap, tmp_path)
    with Wire(int(kafka_broker.bootstrap.rpartition(":")[2])) as wire:
        request = StreamsGroupDescribeRequest(group_ids=["words"])
        [group] = wire.exchange(request, 1, StreamsGroupDescribeResponse).groups
    assert (group.error_code, group.group_state) == (0, "Empty")
    assert group.topology is not None
    internal = {
        topic.name: topic.partitions
        for each in group.topology.subtopologies or []
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    assert internal == {"words-words-repartition": 2, "words-counts-changelog": 2}


@contextmanager
def three_nodes(
    folder: Path, settings: Mapping[str, str] = SETTINGS
) -> Iterator[tuple[str, list[NodeProcess]]]:
    """Run nodes that have the topics of the word count, each on all of them."""
    settings = {**settings, "transaction.state.log.num.partitions": "3"}
    with nodes(folder, 3, settings) as (bootstrap, processes):
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        created = admin.create_topics([NewTopic(name, 2, 3) for name in ("lines", "counts")])
        for each in created.values():
            each.result(SECONDS)
        yield bootstrap, processes


def test_words_are_counted_exactly_once_on_nodes(
    installation: Installation, tmp_path: Path
) -> None:
    with three_nodes(tmp_path) as (bootstrap, _):
        counts_exactly(installation, bootstrap, tmp_path)


def test_words_are_counted_exactly_once_on_nodes_that_are_killed(
    installation: Installation, tmp_path: Path
) -> None:
    with three_nodes(tmp_path, LONG_SESSIONS) as (bootstrap, processes):
        lines, counts = Lines(bootstrap), Counts(bootstrap, "first")
        state = tmp_path / "state"
        with application(installation, bootstrap, state, LONGER_THAN_FAILOVER_MS):
            for node in processes:
                lines.send()
                counts.until(lines.words.total() - LINES)
                node.kill()
                lines.send()
                counts.until(lines.words.total())
                node.start()
                node.serves()
        counts.close()
        everything = Counts(bootstrap, "second")
        everything.to_the_end()
        everything.close()
    assert everything.read == lines.counts
