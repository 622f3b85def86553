"""Incidents of consumers of aiokafka."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka

from tests.real.broker import Broker

from .recording import filled, recorded


def commit_rate_aiokafka(broker: Broker) -> None:
    """Commit each record by itself."""
    topic = filled(broker, "receipts", 150)

    async def consume() -> None:
        async with aiokafka.AIOKafkaConsumer(
            topic, **_asyncio_config(broker, "receipting"), enable_auto_commit=False
        ) as reader:
            for _ in range(150):
                await reader.getone()
                await reader.commit()

    with recorded("commit-rate-aiokafka", broker):
        asyncio.run(consume())


def poll_timeouts_aiokafka(broker: Broker) -> None:
    """Take longer for a record than max.poll.interval.ms."""
    topic = filled(broker, "videos", 100)

    async def consume() -> None:
        async with aiokafka.AIOKafkaConsumer(
            topic,
            **_asyncio_config(broker, "transcoder"),
            max_poll_interval_ms=3000,
            max_poll_records=1,
        ) as reader:
            for _ in range(2):
                await reader.getone()
                await asyncio.sleep(6)
                await reader.getone()

    with recorded("poll-timeouts-aiokafka", broker):
        asyncio.run(consume())


def rebalance_storm_aiokafka(broker: Broker) -> None:
    """Restart a member of two every few seconds."""
    topic = filled(broker, "taps", 10)

    async def consume() -> None:
        settings = _asyncio_config(broker, "steady-tap")
        async with aiokafka.AIOKafkaConsumer(topic, **settings):
            for _ in range(10):
                restless = _asyncio_config(broker, "restless-tap")
                async with aiokafka.AIOKafkaConsumer(topic, **restless):
                    await asyncio.sleep(7)

    with recorded("rebalance-storm-aiokafka", broker):
        asyncio.run(consume())


def _asyncio_config(broker: Broker, client_id: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap,
        "client_id": client_id,
        "group_id": "billing-asyncio",
        "auto_offset_reset": "earliest",
    }
