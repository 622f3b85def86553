"""Measures a controller with 10,000 partitions over 10 brokers.

python -m tests.controller.scale
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from time import process_time

from kafkawire.controller import MetadataLoader, snapshot
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse

from .harness import Harness

BROKERS = 10
PARTITIONS = 10_000


def filled(partitions: int, brokers: int = BROKERS) -> Harness:
    """Make a cluster with topics of 100 partitions and 3 replicas."""
    harness = Harness()
    harness.start(*range(1, brokers + 1))
    topics = [
        CreatableTopic(name=f"t{number}", num_partitions=100, replication_factor=3)
        for number in range(partitions // 100)
    ]
    for some in (topics[::2], topics[1::2]):  # one request may write 10,000 records
        response = harness.exchange(CreateTopicsRequest(topics=some), CreateTopicsResponse, 7)
        assert all(each.error_code == 0 for each in response.topics)
    return harness


def timed(what: str, run: Callable[[], object]) -> None:
    start = process_time()
    run()
    print(f"{what:<40} {1000 * (process_time() - start):8.1f} ms")


def main() -> int:
    """Print CPU times and memory."""
    found: list[Harness] = []
    timed("create the partitions", lambda: found.append(filled(PARTITIONS)))
    [harness] = found
    image = harness.controller.image
    records = [each.message for each in harness.log]
    timed("image from the log", lambda: MetadataLoader().apply(records, 0))
    timed("snapshot", lambda: list(snapshot(image)))
    timed("copy of the image (a new leader)", image.copy)
    for broker_id in range(2, BROKERS + 1):
        harness.heartbeat(broker_id)
    before = len(harness.log)
    harness.now += 8.0
    for broker_id in range(2, BROKERS + 1):
        harness.heartbeat(broker_id)
    timed("fence a broker: elect its leaders", lambda: harness.advance(2.0))
    print(f"{'records of that':<40} {len(harness.log) - before:8}")
    tracemalloc.start()
    copied = MetadataLoader()
    copied.apply(records, 0)
    print(f"{'memory of an image':<40} {tracemalloc.get_traced_memory()[0] / 1e6:8.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
