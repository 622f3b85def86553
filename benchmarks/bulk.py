"""Records the traffic of a busy topic: `python -m benchmarks.bulk OUT`.

Librdkafka produces and consumes through kafkawire's broker with the versions of Kafka 2.4,
which tshark 4.0 knows; the broker records the traffic. The values are the same each time, the
timing is not.

    6 producers: JSON of 100 to 700 bytes, with none, lz4, zstd, gzip, 30,000 records in 3 topics
    2 consumers, each of a group of its own, read all of it
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple

import confluent_kafka

SECONDS: Final = 60.0
PORT: Final = 19777
TOPICS: Final = {"orders": 6, "clicks": 6, "audit": 3}


class Load(NamedTuple):
    """The load of a producer: records with values of about that many bytes."""

    topic: str
    codec: str
    records: int
    size: int


LOADS: Final = (
    Load("orders", "none", 6000, 220),
    Load("orders", "lz4", 4000, 220),
    Load("clicks", "none", 12_000, 110),
    Load("clicks", "zstd", 4000, 110),
    Load("audit", "none", 2500, 680),
    Load("audit", "gzip", 1500, 680),
)
GROUPS: Final = {"search": ["orders", "clicks"], "archive": ["audit", "orders"]}


def value(rng: random.Random, number: int, size: int) -> bytes:
    """Make a value as applications do: JSON with some text."""
    fields = {
        "id": number,
        "user": f"user-{rng.randrange(10_000)}",
        "at": 1_700_000_000_000 + number,
        "amount": rng.randrange(1_000_000) / 100,
        "tags": rng.sample(["new", "returning", "mobile", "web", "batch"], 2),
    }
    text = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz     ", k=max(1, size - 100)))
    return json.dumps({**fields, "note": text}).encode()


def produce(bootstrap: str, load: Load) -> None:
    """Send a load, and wait for all delivery reports."""
    rng = random.Random(load.topic + load.codec)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": f"{load.topic}-{load.codec}",
            "compression.type": load.codec,
            "linger.ms": 5,
            "batch.size": 32_768,
        }
    )
    for number in range(load.records):
        producer.produce(
            load.topic,
            value(rng, number, load.size),
            key=f"user-{number % 997}".encode(),
            headers=[("trace", b"%016x" % number)] if load.topic == "orders" else None,
        )
        producer.poll(0)
    if producer.flush(SECONDS):
        raise AssertionError(f"{load}: not every request has its response")


def consume(bootstrap: str, group: str) -> None:
    """Read all records of a group's topics."""
    wanted = sum(load.records for load in LOADS if load.topic in GROUPS[group])
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": f"{group}-1",
            "group.id": group,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 65_536,
        }
    )
    consumer.subscribe(GROUPS[group])
    end = monotonic() + SECONDS
    received = 0
    while received < wanted:
        if monotonic() > end:
            raise AssertionError(f"{group}: {received} of {wanted} records")
        received += sum(1 for message in consumer.consume(500, 0.2) if message.error() is None)
    consumer.close()


def record(out: Path) -> Path:
    """Write the recording."""
    topics = [word for name, count in TOPICS.items() for word in ("--topic", f"{name}:{count}")]
    command = [sys.executable, "-m", "kafkawire_cli.main", "serve", "--release", "2.4", "--quiet"]
    command += ["--port", str(PORT), *topics, "--record", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            bootstrap = broker.stdout.readline().split()[2]
            threads = [Thread(target=produce, args=(bootstrap, load)) for load in LOADS]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for group in GROUPS:
                consume(bootstrap, group)
        finally:
            broker.terminate()
    return out


def main() -> None:
    """Write a recording to the given file."""
    parser = argparse.ArgumentParser(prog="benchmarks.bulk", description=__doc__)
    parser.add_argument("out", type=Path)
    record(parser.parse_args().out)


if __name__ == "__main__":
    main()
