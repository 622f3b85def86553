"""Brokers for tests, with librdkafka as their client: ours, librdkafka's own mock, a real Kafka.

Law: each runs where its users have it: ours in a process of its own (`kafkawire serve`), the mock
inside the client's, Kafka in its JVM. Start-up is until a client has its first answer; of the
pytest fixture it is what pytest waits for it, imports included: the first of a run, and the next.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.real.broker import running
from tests.real.java import install

from .clients import read_confluent, send_confluent
from .measure import Figure, figure

SIZES: Final = {100: 20_000, 1000: 4_000}
"""Bytes of a value, and records: the mock keeps 5 MB of a partition, no more."""
TRIPS: Final = 200
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
def serving() -> Iterator[tuple[int, str]]:
    """Run ours: its process id, and where it listens."""
    command = [sys.executable, "-m", "kafkawire_cli.main", "serve", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().split()[2]
        finally:
            process.terminate()


@contextmanager
def ours() -> Iterator[str]:
    with serving() as (_, bootstrap):
        yield bootstrap


@contextmanager
def mock() -> Iterator[str]:
    holder = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = holder.list_topics(timeout=SECONDS).brokers.values()
    yield f"{broker.host}:{broker.port}"
    holder.flush()


@contextmanager
def real() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(install(), Path(folder)) as broker,
    ):
        yield broker.bootstrap


BROKERS: Final[dict[str, Up]] = {"kafkawire": ours, "librdkafka mock": mock, "Apache Kafka": real}


def run(rounds: int) -> list[Figure]:
    """Measure; microseconds a record or a trip, and milliseconds of start-up."""
    taken: dict[tuple[str, str, str], list[float]] = {}
    fixture: dict[str, list[float]] = {}
    own: dict[str, list[float]] = {}
    for turn in range(rounds):
        for name, up in BROKERS.items():
            start = perf_counter()
            with up() as bootstrap:
                confluent_kafka.Producer({"bootstrap.servers": bootstrap}).list_topics(
                    timeout=SECONDS
                )
                started = (perf_counter() - start) * 1e3
                taken.setdefault(("until its first answer", "ms", name), []).append(started)
                for case, value in _measured(bootstrap, turn, made=up is not mock):
                    taken.setdefault((case, "µs", name), []).append(value)
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
            figure("brokers" if unit == "µs" else "brokers' start-up", case, name, unit, values)
            for (case, unit, name), values in taken.items()
        ),
    ]


def _fixture() -> list[float]:
    """Let pytest run two tests that use `kafka_broker`: milliseconds for it, as in FIXTURES."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in WATCHED.items():
            (Path(folder) / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-qs", "-p", "no:randomly", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return [float(found) for found in re.findall(r"took ([\d.]+)", done.stdout)]


def _own_cpu() -> Iterator[tuple[str, float]]:
    """Time what our broker's process itself takes, whoever else runs: microseconds a record."""
    with serving() as (pid, bootstrap):
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for size, many in SIZES.items():
            topic = f"cpu-{size}"
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SECONDS)
            start = _cpu_seconds(pid)
            send_confluent(bootstrap, topic, bytes(size), many)
            sent = _cpu_seconds(pid)
            read_confluent(bootstrap, topic, many)
            yield f"produce {size} B", (sent - start) / many * 1e6
            yield f"consume {size} B", (_cpu_seconds(pid) - sent) / many * 1e6


def _cpu_seconds(pid: int) -> float:
    """Read how long a process has run, as Linux counts it: proc(5), schedstat."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _measured(bootstrap: str, turn: int, *, made: bool) -> Iterator[tuple[str, float]]:
    """Time what clients do. made: topics are; the mock has them made by who writes to them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for size, many in SIZES.items():
        topic = f"bench-{turn}-{size}"
        if made:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SECONDS)
        start = perf_counter()
        send_confluent(bootstrap, topic, bytes(size), many)
        yield f"produce {size} B", (perf_counter() - start) / many * 1e6
        start = perf_counter()
        read_confluent(bootstrap, topic, many)
        yield f"consume {size} B", (perf_counter() - start) / many * 1e6
    yield "one record, delivered", _trip(bootstrap, topic)


def _trip(bootstrap: str, topic: str) -> float:
    """Time one record after the other, each until the broker has acknowledged it."""
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
