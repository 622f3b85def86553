"""Compares transactional producers, each at our broker and at an Apache Kafka broker.

A transaction has RECORDS records of 100 bytes for one partition, and is committed before the next
begins, so that a figure is what a transaction takes from its begin to the response of EndTxn; the
producers are connected and have their ids. Both brokers and all clients are warm: WARM_UP rounds do
not count. Each round begins with another client and another broker.

At Kafka, producers of version 2 of transactions (KIP-890; Java's and kafkawire's) wait for the
broker: it tries again after `add.partitions.to.txn.retry.backoff.ms` (20) when the markers of the
transaction before are not written yet. librdkafka and aiokafka add partitions by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import count
from time import perf_counter
from typing import Final

import aiokafka
import confluent_kafka

from kafkawire.net.admin import Admin
from kafkawire.net.producer import Producer

from ..brokers import Up, ours, real
from ..measure import Figure, figure, rotated

RECORDS: Final = 10
TRANSACTIONS: Final = 100
"""Transactions of a client in a round."""
VALUE: Final = bytes(100)
TOPIC: Final = "transactions"
WARM_UP: Final = 1
SECONDS: Final = 60.0
IDS: Final = count()
Run = Callable[[str], float]


def run_ours(bootstrap: str) -> float:
    """Return the seconds that kafkawire takes."""

    async def run() -> float:
        async with Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": _new_id(), "linger.ms": 0}
        ) as producer:

            async def transaction() -> None:
                async with producer.transaction():
                    for _ in range(RECORDS):
                        await producer.send(TOPIC, VALUE)

            return await _seconds(transaction)

    return asyncio.run(run())


def run_aiokafka(bootstrap: str) -> float:
    """Return the seconds that aiokafka takes."""

    async def run() -> float:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=_new_id(), linger_ms=0
        )
        await producer.start()

        async def transaction() -> None:
            async with producer.transaction():
                for _ in range(RECORDS):
                    await producer.send(TOPIC, VALUE)

        try:
            return await _seconds(transaction)
        finally:
            await producer.stop()

    return asyncio.run(run())


def run_confluent(bootstrap: str) -> float:
    """Return the seconds that librdkafka takes."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": _new_id(), "linger.ms": 0}
    )
    producer.init_transactions(SECONDS)

    def transaction() -> None:
        producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce(TOPIC, VALUE)
        producer.commit_transaction(SECONDS)

    transaction()
    start = perf_counter()
    for _ in range(TRANSACTIONS):
        transaction()
    return perf_counter() - start


def _new_id() -> str:
    return f"producer-{next(IDS)}"


async def _seconds(transaction: Callable[[], Awaitable[None]]) -> float:
    """Time transactions after a first one."""
    await transaction()
    start = perf_counter()
    for _ in range(TRANSACTIONS):
        await transaction()
    return perf_counter() - start


CLIENTS: Final[dict[str, Run]] = {
    "kafkawire": run_ours,
    "aiokafka": run_aiokafka,
    "confluent-kafka": run_confluent,
}
BROKERS: Final[dict[str, Up]] = {"kafkawire": ours, "Apache Kafka": real}


async def _create(bootstrap: str) -> None:
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topic(TOPIC, partitions=1)


def run(rounds: int) -> list[Figure]:
    """Measure; milliseconds a transaction."""
    values: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        running = {name: stack.enter_context(up()) for name, up in BROKERS.items()}
        for bootstrap in running.values():
            asyncio.run(_create(bootstrap))
        for turn in range(WARM_UP + rounds):
            for broker in rotated(running, turn):
                for client in rotated(CLIENTS, turn):
                    seconds = CLIENTS[client](running[broker])
                    if turn >= WARM_UP:
                        taken = values.setdefault((broker, client), [])
                        taken.append(seconds / TRANSACTIONS * 1e3)
    return [
        figure("transactions", f"{RECORDS} records, at {broker}", client, "ms", taken)
        for broker in BROKERS
        for client in CLIENTS
        for taken in (values[broker, client],)
    ]
