"""`python -m benchmarks.metrics`: what a producer's metrics cost, in instructions (valgrind).

A record that joins a batch is not measured; a request is, once when it is sent, and once when its
response has come. Each case runs with two numbers of repetitions, whose difference counts.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from kafkawire.client.config import Setting, client_metrics, read_config
from kafkawire.client.metrics.tables import PRODUCER
from kafkawire.client.network.metadata import Metadata
from kafkawire.client.producer import PRODUCER_KEYS, Producer, Send, producer_settings
from kafkawire.client.requests import ResponseReceived, SendRequest
from kafkawire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkawire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

FEW: Final = 200
MANY: Final = 1_200
RECORDS: Final = 100
"""Records of a request, of 100 bytes."""
VALUE: Final = bytes(100)


def view() -> Metadata:
    """Return a cluster with one topic."""
    metadata = Metadata()
    broker = MetadataResponseBroker(node_id=1, host="h", port=1)
    partition = MetadataResponsePartition(partition_index=0, leader_id=1)
    topic = MetadataResponseTopic(name="t", partitions=[partition])
    metadata.update(MetadataResponse(brokers=[broker], topics=[topic]), 8, None)
    return metadata


def requests(number: int, *, measured: bool) -> None:
    """Send requests with records, and respond to each."""
    config: dict[str, Setting] = {
        "bootstrap.servers": "h:1",
        "enable.idempotence": "false",
        "batch.size": 1 << 20,
    }
    values = read_config(PRODUCER_KEYS, config)
    metrics = client_metrics(values, "producer", PRODUCER) if measured else None
    machine = Producer(producer_settings(values), view(), rng=lambda: 0.5, metrics=metrics)
    for at in range(number):
        now = float(at)
        effects = []
        for token in range(RECORDS):
            effects += machine.handle(Send(token, "t", 0, None, VALUE, 0, ()), now)
        effects += machine.advance(now + 0.5)
        (request,) = [each for each in effects if isinstance(each, SendRequest)]
        row = PartitionProduceResponse(index=0, base_offset=at * RECORDS)
        body = ProduceResponse(
            responses=[TopicProduceResponse(name="t", partition_responses=[row])]
        )
        response = ResponseReceived(request, 8, body, 1, 0.01)
        if metrics is not None:
            metrics.on_response(response, now)
        machine.handle(response, now + 0.6)
        machine.advance(now + 0.6)
        machine.next_deadline()


CASES: Final[dict[str, Callable[[int], None]]] = {
    "without metrics": lambda number: requests(number, measured=False),
    "with metrics": lambda number: requests(number, measured=True),
}


def instructions(case: str, number: int) -> int:
    """Count the instructions of a process that runs a case."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    ours = [sys.executable, "-m", "benchmarks.metrics", case, str(number)]
    done = subprocess.run([*command, *ours], capture_output=True, text=True, check=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    assert collected is not None, done.stderr
    return int(collected[1])


def main() -> None:
    """Print the instructions of a request with its records, for each case."""
    for case in CASES:
        few, many = instructions(case, FEW), instructions(case, MANY)
        print(f"{case}: {(many - few) // (MANY - FEW):,} for a request of {RECORDS} records")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        CASES[sys.argv[1]](int(sys.argv[2]))
    else:
        main()
