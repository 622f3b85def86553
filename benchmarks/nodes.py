"""Compares nodes with logs on disk with brokers in memory and Apache Kafka, librdkafka the client.

As `brokers`: warm, interleaved, acks=all. One node has one replica of each partition, three
nodes, processes of their own, three; `min.insync.replicas` is 2. franz-go's kfake, in memory, is
among them where Go is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.net.server.node_processes import nodes

from .brokers import Up, mock, ours, real, taken_in_turns
from .measure import Figure, figure

SOURCE: Final = Path(__file__).with_name("kfake")
SHARE: Final = 4
"""Of the records of `brokers`, one in so many."""


@contextmanager
def on_disk(count: int) -> Iterator[str]:
    """Run nodes with data directories."""
    with tempfile.TemporaryDirectory() as folder, nodes(Path(folder), count) as (bootstrap, _):
        yield bootstrap


@contextmanager
def kfake() -> Iterator[str]:
    """Build and run franz-go's kfake."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "kfake"
        subprocess.run(["go", "build", "-C", SOURCE, "-o", program, "."], check=True)
        pipe = subprocess.PIPE
        with subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                yield process.stdout.readline().strip()
            finally:
                process.stdin.close()


BROKERS: Final[dict[str, Up]] = {
    "kafkawire, one node": lambda: on_disk(1),
    "kafkawire, three replicas": lambda: on_disk(3),
    "kafkawire in memory": ours,
    "librdkafka mock": mock,
    "Apache Kafka": real,
}
if shutil.which("go") is not None:
    BROKERS["franz-go kfake"] = kfake


def run(rounds: int) -> list[Figure]:
    """Measure; microseconds a record."""
    taken = taken_in_turns(BROKERS, rounds, SHARE)
    return [
        figure("nodes", case, name, "µs", taken[case][name]) for case in taken for name in BROKERS
    ]
