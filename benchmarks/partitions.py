"""Measures a cluster of 10 brokers in one process with many partitions.

python -m benchmarks.partitions 1000 10000

Topics of 100 partitions with three replicas, on disks and links in memory. A line
per step has wall-clock time, CPU time of the process, and its memory. Failover is from the end of
a broker to the moment when running brokers lead all partitions; it includes the session timeout of
20 seconds.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig

BROKERS: Final = 10
TOPIC: Final = 100
"""Partitions of a topic."""
REPLICAS: Final = 3
IDLE: Final = 5.0
SECONDS: Final = 600.0
SETTINGS: Final = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "20000",
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "20000",
    "default.replication.factor": str(REPLICAS),
    "replica.fetch.wait.max.ms": "5000",
    "replica.lag.time.max.ms": "60000",
}
"""One core serves ten brokers: a timeout of one is not to end while another is served."""


class Steps:
    """Prints a line per step."""

    def __init__(self) -> None:
        self._wall, self._cpu = perf_counter(), process_time()

    def done(self, what: str) -> None:
        """Print what a step took."""
        wall, cpu = perf_counter(), process_time()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory = pages * resource.getpagesize() / 1e6
        print(
            f"{what:<32} {wall - self._wall:8.2f} s {cpu - self._cpu:8.2f} s CPU {memory:8.0f} MB",
            flush=True,
        )
        self._wall, self._cpu = perf_counter(), process_time()


def led(cluster: ClusterThread, partitions: int) -> None:
    """Wait until brokers that run lead all partitions."""
    for number in range(partitions):
        cluster.leader(f"t{number // TOPIC}", number % TOPIC)


def measure(partitions: int) -> None:
    """Create partitions, and end a broker."""
    print(f"{partitions} partitions, {REPLICAS} replicas, {BROKERS} brokers")
    steps = Steps()
    with ClusterThread(ServerConfig(BROKERS, settings=SETTINGS)) as cluster:
        steps.done("start of the brokers")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        topics = [NewTopic(f"t{at}", TOPIC, REPLICAS) for at in range(partitions // TOPIC)]
        futures = admin.create_topics(topics, operation_timeout=SECONDS, request_timeout=SECONDS)
        for each in futures.values():
            each.result(SECONDS)
        led(cluster, partitions)
        steps.done("partitions created")
        sleep(IDLE)
        steps.done(f"{IDLE:.0f} s without records")
        cluster.kill(max(cluster.nodes))
        led(cluster, partitions)
        steps.done("failover of a broker")
    steps.done("end")


if __name__ == "__main__":
    for given in sys.argv[1:] or ["10000"]:
        measure(int(given))
