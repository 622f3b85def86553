"""Compares brokers for tests, with librdkafka as the client.

The brokers are kafkawire's, librdkafka's mock and Apache Kafka.

Each runs as its users run it: kafkawire's in a process of its own (`kafkawire serve`), the
mock inside the client's, Kafka in its JVM. Throughput is measured with warm brokers: kafkawire's
and Kafka run through all rounds, of which the first WARM_UP do not count; each round begins with
another broker. A figure is wall-clock time per record: to produce, by a client that is connected,
until the last one is delivered; to consume, from the assignment to the last one. Start-up is
measured apart: from the start of a process to the first response; of the pytest fixture it is what
pytest waits for
it, imports included: the first of a run, and the next.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Final

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.real.broker import running
from tests.real.java import install

from .clients.records import confluent_producer
from .measure import Figure, figure, rotated

SIZES: Final = {100: 20_000, 1000: 4_000}
"""Bytes of a value, and records of a topic: the mock keeps at most 5 MB of a partition."""
TOPICS: Final = {100: 10, 1000: 20}
"""Bytes of a value, and topics that a run writes and reads, so that it lasts some tenths of a
second.
"""
WARM_UP: Final = 4
"""Rounds before those that count: Java's compilers take about a million records."""
STARTS: Final = 3
TRIPS: Final = 1_000
SECONDS: Final = 30.0
WATCHED: Final = {
    "conftest.py": """
import time, pytest
@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    start = time.perf_counter(), time.process_time()
    result = yield
    if fixturedef.argname == "kafka_broker":
        for began, now in zip(start, (time.perf_counter(), time.process_time())):
            print("took", (now - began) * 1e3)
    return result
""",
    "test_two.py": """
def test_first(kafka_broker): pass
def test_next(kafka_broker): pass
""",
}
"""Tests that use the fixture, and what times it."""
FIXTURES: Final = ("first of a run", "first, CPU", "next", "next, CPU")
Up = Callable[[], AbstractContextManager[str]]


@contextmanager
def serving(*settings: str) -> Iterator[tuple[int, str]]:
    """Run kafkawire's broker; return its process id and address. settings: KEY=VALUE."""
    command = [sys.executable, "-m", "kafkawire_cli.main", "serve", "--port", "0", "--quiet"]
    command += [word for each in settings for word in ("--set", each)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().split()[2]
        finally:
            process.terminate()


@contextmanager
def ours() -> Iterator[str]:
    """Run `kafkawire serve`."""
    with serving() as (_, bootstrap):
        yield bootstrap


@contextmanager
def mock() -> Iterator[str]:
    """Run librdkafka's mock in this process."""
    holder = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = holder.list_topics(timeout=SECONDS).brokers.values()
    yield f"{broker.host}:{broker.port}"
    holder.flush()


@contextmanager
def real() -> Iterator[str]:
    """Run Apache Kafka."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(install(), Path(folder)) as broker,
    ):
        yield broker.bootstrap


BROKERS: Final[dict[str, Up]] = {"kafkawire": ours, "librdkafka mock": mock, "Apache Kafka": real}


def run(rounds: int) -> list[Figure]:
    """Measure; microseconds a record or a trip, and milliseconds of start-up."""
    starts = _starts(min(rounds, STARTS))
    taken = taken_in_turns(BROKERS, rounds)
    fixture: dict[str, list[float]] = {}
    own: dict[str, list[float]] = {}
    for _ in range(rounds):
        for case, value in zip(FIXTURES, _fixture(), strict=True):
            fixture.setdefault(case, []).append(value)
        for case, value in _own_cpu():
            own.setdefault(case, []).append(value)
    return [
        *(
            figure("fixture kafka_broker", case, "kafkawire", "ms", fixture[case])
            for case in fixture
        ),
        *(figure("our broker's own CPU", case, "kafkawire", "µs", own[case]) for case in own),
        *(
            figure("brokers' start-up", "until the first response", name, "ms", starts[name])
            for name in BROKERS
        ),
        *(
            figure("brokers", case, name, "µs", taken[case][name])
            for case in taken
            for name in BROKERS
        ),
    ]


def _starts(rounds: int) -> dict[str, list[float]]:
    """Start each broker anew: milliseconds until a client has its first response."""
    taken: dict[str, list[float]] = {name: [] for name in BROKERS}
    for turn in range(rounds):
        for name in rotated(BROKERS, turn):
            start = perf_counter()
            with BROKERS[name]() as bootstrap:
                client = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
                client.list_topics(timeout=SECONDS)
                taken[name].append((perf_counter() - start) * 1e3)
    return taken


def taken_in_turns(
    brokers: Mapping[str, Up], rounds: int, share: int = 1
) -> dict[str, dict[str, list[float]]]:
    """Run the warm brokers in turn: case -> broker -> microseconds of each round.

    share: of the records, one in so many is sent.
    """
    taken: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        kept = {name: stack.enter_context(up()) for name, up in brokers.items() if up is not mock}
        for turn in range(WARM_UP + rounds):
            for name in rotated(brokers, turn):
                # The mock has nothing to warm up, and deletes no topics.
                with nullcontext(kept[name]) if name in kept else mock() as bootstrap:
                    figures = dict(_measured(bootstrap, turn, share, made=name in kept))
                if turn >= WARM_UP:
                    for case, value in figures.items():
                        taken.setdefault(case, {}).setdefault(name, []).append(value)
    return taken


def _fixture() -> list[float]:
    """Run two tests with `kafka_broker` in pytest: milliseconds of the fixture, as in FIXTURES."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in WATCHED.items():
            (Path(folder) / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-qs", "-p", "no:randomly", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return [float(seconds) for seconds in re.findall(r"took ([\d.]+)", done.stdout)]


def _own_cpu() -> Iterator[tuple[str, float]]:
    """Measure the CPU time of kafkawire's broker process: microseconds per record."""
    with serving() as (pid, bootstrap):
        for size, many in SIZES.items():
            topics = _topics(bootstrap, f"cpu-{size}", TOPICS[size])
            start = _cpu_seconds(pid)
            _produce(bootstrap, topics, bytes(size), many)
            sent = _cpu_seconds(pid)
            _consume(bootstrap, topics, many)
            records = many * len(topics)
            yield f"produce {size} B", (sent - start) / records * 1e6
            yield f"consume {size} B", (_cpu_seconds(pid) - sent) / records * 1e6


def _cpu_seconds(pid: int) -> float:
    """Read the CPU time of a process: proc(5), schedstat."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _measured(bootstrap: str, turn: int, share: int, *, made: bool) -> Iterator[tuple[str, float]]:
    """Time what clients do.

    made: topics are, and deleted; in the mock who writes to them makes them.
    """
    for size in SIZES:
        many = SIZES[size] // share
        name, count = f"bench-{turn}-{size}", TOPICS[size]
        topics = (
            _topics(bootstrap, name, count) if made else [f"{name}-{at}" for at in range(count)]
        )
        records = many * count
        yield f"produce {size} B", _produce(bootstrap, topics, bytes(size), many) / records * 1e6
        yield f"consume {size} B", _consume(bootstrap, topics, many) / records * 1e6
        if size == min(SIZES):
            yield "one record, delivered", _trip(bootstrap, topics[0])
        if made:
            admin = AdminClient({"bootstrap.servers": bootstrap})
            for each in admin.delete_topics(topics).values():
                each.result(SECONDS)


def _topics(bootstrap: str, name: str, count: int) -> list[str]:
    """Create topics of one partition, with a replica on each broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    replicas = len(admin.list_topics(timeout=SECONDS).brokers)
    topics = [f"{name}-{at}" for at in range(count)]
    for each in admin.create_topics([NewTopic(topic, 1, replicas) for topic in topics]).values():
        each.result(SECONDS)
    return topics


def _produce(bootstrap: str, topics: list[str], value: bytes, many: int) -> float:
    """Send that many records to each topic; return the seconds until the last is delivered.

    The producer has sent one record to each topic before.
    """
    producer = confluent_producer(bootstrap, **{"queue.buffering.max.kbytes": 1 << 20})
    for topic in topics:
        producer.produce(topic, b"first", partition=0)
    assert producer.flush(SECONDS) == 0
    start = perf_counter()
    for topic in topics:
        for _ in range(many):
            producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert producer.flush(2 * SECONDS) == 0
    return perf_counter() - start


def _consume(bootstrap: str, topics: list[str], many: int) -> float:
    """Read the topics from their beginnings; seconds from the assignment to the last record."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    left = (many + 1) * len(topics)
    start = perf_counter()
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0) for topic in topics])
    while left:
        got = consumer.consume(min(left, 500), timeout=SECONDS)
        assert got
        left -= len(got)
    taken = perf_counter() - start
    consumer.close()
    return taken


def _trip(bootstrap: str, topic: str) -> float:
    """Time single records, each until the broker has acknowledged it."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0}
    )
    producer.produce(topic, b"first")
    assert producer.flush(SECONDS) == 0
    start = perf_counter()
    for _ in range(TRIPS):
        producer.produce(topic, b"v")
        assert producer.flush(SECONDS) == 0
    return (perf_counter() - start) / TRIPS * 1e6
