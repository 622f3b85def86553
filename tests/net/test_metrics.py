"""What clients measure, by Kafka's names."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

import pytest

from kafkawire.blocking import Admin as BlockingAdmin
from kafkawire.blocking import Consumer as BlockingConsumer
from kafkawire.blocking import Producer as BlockingProducer
from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition
from kafkawire.client.failures import BrokerError, ClientClosed
from kafkawire.client.metrics import MetricName
from kafkawire.net.admin import Admin
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from kafkawire.net.share_consumer import ShareConsumer
from kafkawire.protocol.error_code import ErrorCode

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 1})]
WHERE = TopicPartition("t", 0)


class Measured:
    """Metrics of a client by group, name and tags but the client's id."""

    def __init__(self, values: Mapping[MetricName, float], client_id: str = "me") -> None:
        assert all(each.tags[0] == ("client-id", client_id) for each in values)
        self._values = {(name.group, name.name, name.tags[1:]): at for name, at in values.items()}

    def __call__(self, group: str, name: str, *tags: tuple[str, str]) -> float:
        return self._values[f"{group}-metrics", name, tags]


def here(broker: ServerThread, **more: Setting) -> dict[str, Setting]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": broker.bootstrap, "client.id": "me", **given}


def test_a_producer(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        config = here(kafka_broker, linger_ms=60_000, buffer_memory=1_000_000)
        async with Producer(config) as producer:
            for _ in range(3):
                await producer.send("t", bytes(100))
            waiting = Measured(producer.metrics())
            assert waiting("producer", "buffer-total-bytes") == 1_000_000
            assert 300 < 1_000_000 - waiting("producer", "buffer-available-bytes") < 1_000
            assert waiting("producer", "record-send-total") == 0
            assert math.isnan(waiting("producer", "batch-size-avg"))
            kafka_broker.fault("Produce", error=ErrorCode.NOT_LEADER_OR_FOLLOWER, nth=1)
            await producer.flush()
            values = Measured(producer.metrics())
            assert values("producer", "buffer-available-bytes") == 1_000_000
            assert values("producer", "record-send-total") == 6  # one batch, twice
            assert values("producer", "record-retry-total") == 3
            assert values("producer", "record-error-total") == 0
            assert 0 < values("producer", "record-send-rate") <= 6 / 30
            assert values("producer", "records-per-request-avg") == 3
            assert 300 < values("producer", "batch-size-max") < 1_000
            assert values("producer", "record-queue-time-max") > 0
            assert values("producer", "request-latency-max") > 0
            assert values("producer", "connection-count") >= 1
            node = ("node-id", "node-1")
            assert values("producer-node", "request-latency-max", node) > 0
            kafka_broker.fault("Produce", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            failing = await producer.send("t", b"x")
            flush = asyncio.ensure_future(producer.flush())
            await asyncio.sleep(0)
            assert Measured(producer.metrics())("producer", "requests-in-flight") >= 1
            await flush
            with pytest.raises(BrokerError):
                await failing
            async with asyncio.timeout(60):  # a request for metadata may be on its way
                while Measured(producer.metrics())("producer", "requests-in-flight"):
                    await asyncio.sleep(0.01)
            assert Measured(producer.metrics())("producer", "record-error-total") == 1
        with pytest.raises(ClientClosed):
            producer.metrics()

    asyncio.run(scenario())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer(kafka_broker: ServerThread, protocol: str) -> None:
    async def scenario() -> None:
        async with Producer(here(kafka_broker)) as producer:
            for number in range(5):
                await producer.send("t", b"%d" % number)
        config = here(
            kafka_broker,
            group_id="g",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        if protocol == "classic":
            config["heartbeat.interval.ms"] = 20
        async with Consumer(config) as consumer:
            before = Measured(consumer.metrics())
            assert before("consumer-coordinator", "last-heartbeat-seconds-ago") == -1
            assert before("consumer-coordinator", "assigned-partitions") == 0
            assert math.isnan(before("consumer-fetch-manager", "records-lag-max"))
            consumer.subscribe(["t"])
            assert len(await consumer.poll(max_records=2)) == 2
            assert (await anext(consumer)).value == b"2"
            consumer.pause(WHERE)  # what is buffered goes back: it is not consumed
            values = Measured(consumer.metrics())
            fetches, coordinator = "consumer-fetch-manager", "consumer-coordinator"
            assert values(fetches, "records-consumed-total") == 3
            assert values(fetches, "records-consumed-rate") > 0
            assert values(fetches, "records-lag", ("topic", "t"), ("partition", "0")) == 2
            assert values(fetches, "records-lag-max") == 2
            assert values(fetches, "fetch-total") >= 1
            assert values(fetches, "fetch-latency-avg") > 0
            assert values(fetches, "fetch-size-max") > 0
            assert values(coordinator, "rebalance-total") == 1
            assert values(coordinator, "assigned-partitions") == 1
            assert math.isnan(values(coordinator, "commit-latency-avg"))
            await consumer.commit()
            async with asyncio.timeout(60):
                while Measured(consumer.metrics())(coordinator, "heartbeat-total") == 0:
                    await asyncio.sleep(0.01)
            values = Measured(consumer.metrics())
            assert values(coordinator, "commit-latency-avg") > 0
            assert values(coordinator, "commit-total") == 1
            assert values(coordinator, "heartbeat-response-time-max") > 0
            assert values(coordinator, "last-heartbeat-seconds-ago") >= 0
            assert values(coordinator, "join-total") == (1 if protocol == "classic" else 0)
            assert values("consumer", "time-between-poll-max") > 0

    asyncio.run(scenario())


def test_share_consumers_and_admin(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with Admin(here(kafka_broker)) as admin:
            await admin.alter_group_config("s", {"share.auto.offset.reset": "earliest"})
            values = Measured(admin.metrics())
            assert values("admin-client", "request-total") >= 1
            assert values("admin-client", "request-latency-max") > 0
        with pytest.raises(ClientClosed):
            admin.metrics()
        async with Producer(here(kafka_broker)) as producer:
            await producer.deliver("t", b"x")
        async with ShareConsumer(here(kafka_broker, group_id="s")) as consumer:
            consumer.subscribe(["t"])
            await consumer.poll()
            values = Measured(consumer.metrics())
            assert values("consumer-share-fetch-manager", "records-consumed-total") == 1
            assert values("consumer-share-fetch-manager", "fetch-latency-max") > 0
            assert values("consumer-share-coordinator", "heartbeat-total") >= 1
            assert values("consumer-share-coordinator", "rebalance-total") == 1

    asyncio.run(scenario())


def test_without_asyncio(kafka_broker: ServerThread) -> None:
    with BlockingProducer(here(kafka_broker, metrics_num_samples=3)) as producer:
        producer.deliver("t", b"x")
        values = Measured(producer.metrics())
        assert values("producer", "record-send-total") == 1
        assert 0 < values("producer", "record-send-rate") <= 1 / 60  # two full windows at least
    with BlockingConsumer(here(kafka_broker, auto_offset_reset="earliest")) as consumer:
        consumer.assign([WHERE])
        consumer.poll()
        assert Measured(consumer.metrics())("consumer-fetch-manager", "records-lag-max") == 0
    with BlockingAdmin(here(kafka_broker)) as admin:
        admin.describe_cluster()
        assert Measured(admin.metrics())("admin-client", "request-total") >= 1
