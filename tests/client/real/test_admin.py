"""Our admin client against a real broker; librdkafka's view is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kafkawire.client.failures import BrokerError, ClientClosed
from kafkawire.net.admin import EARLIEST, LATEST, Admin, CommittedOffset, HangingTransaction
from kafkawire.net.producer import Producer
from kafkawire.protocol.error_code import ErrorCode
from tests.net.server.transactional import TOPIC, Actor, prepared
from tests.real.broker import CLUSTER_ID, NODE_ID, Broker
from tests.real.wire import Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
Topic = Callable[..., str]
T = TypeVar("T")
PATIENCE_S = 200.0
FILTERS: tuple[tuple[dict[str, list[str]], bool], ...] = (
    ({"states": ["Empty"]}, False),
    ({"states": ["Stable"]}, True),
    ({"types": ["classic"]}, True),
    ({"types": ["consumer", "share"]}, False),
    ({"states": ["Stable"], "types": ["classic"]}, True),
)
"""Filters of list_groups, and whether a classic group with a member passes them."""


def run(kafka: Broker, work: Callable[[Admin], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with Admin({"bootstrap.servers": kafka.bootstrap}) as admin:
            return await work(admin)

    return asyncio.run(whole())


def fill(kafka: Broker, topic: str, count: int) -> None:
    async def whole() -> None:
        async with Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
            for at in range(count):
                await producer.send(topic, b"v", partition=0, timestamp=1000 + at)

    asyncio.run(whole())


def test_topics_from_their_making_to_their_end(kafka: Broker) -> None:
    name = "admin-topic"

    async def work(admin: Admin) -> None:
        await admin.create_topic(name, partitions=2, configs={"retention.ms": "90000"})
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS") as caught:
            await admin.create_topic(name)
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(BrokerError, match="INVALID_REPLICATION_FACTOR"):
            await admin.create_topic("other", replication_factor=9)
        await admin.create_topic("only-looked-at", validate_only=True)
        async with asyncio.timeout(PATIENCE_S):  # the broker learns it from the controller
            while name not in await admin.list_topics():
                pass
        await admin.create_partitions(name, 3)
        async with asyncio.timeout(PATIENCE_S):
            while len((await admin.describe_topics([name]))[name].partitions) != 3:
                pass
        listed = AdminClient({"bootstrap.servers": kafka.bootstrap})
        theirs = listed.list_topics(timeout=100)
        assert name in theirs.topics
        assert "only-looked-at" not in theirs.topics
        assert name in await admin.list_topics()
        found = (await admin.describe_topics([name]))[name]
        assert [each.partition for each in found.partitions] == [0, 1, 2]
        assert {each.leader for each in found.partitions} == {NODE_ID}
        assert found.topic_id != bytes(16)
        await admin.delete_topic(name)
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await admin.delete_topic(name)

    run(kafka, work)


def test_the_cluster(kafka: Broker) -> None:
    found = run(kafka, lambda admin: admin.describe_cluster())
    assert found.cluster_id == CLUSTER_ID
    assert [(each.broker_id, each.port) for each in found.brokers] == [(NODE_ID, kafka.port)]
    assert found.controller_id == NODE_ID


def test_configurations(kafka: Broker, topic: Topic) -> None:
    name = topic(retention_ms="90000")

    async def work(admin: Admin) -> None:
        before = await admin.describe_topic_config(name)
        own = {key: each.value for key, each in before.items() if not each.is_default}
        assert own == {"retention.ms": "90000"}
        await admin.alter_topic_config(name, {"retention.ms": None, "max.message.bytes": "777"})
        async with asyncio.timeout(PATIENCE_S):
            while own != {"max.message.bytes": "777"}:
                after = await admin.describe_topic_config(name)
                own = {key: each.value for key, each in after.items() if not each.is_default}
        with pytest.raises(BrokerError, match="INVALID_CONFIG"):
            await admin.alter_topic_config(name, {"max.message.bytes": "many"})
        broker = await admin.describe_broker_config(NODE_ID)
        assert broker["auto.create.topics.enable"].value == "false"

    run(kafka, work)


def test_offsets_and_deleting_records(kafka: Broker, topic: Topic) -> None:
    name = topic(partitions=2, retention_ms="-1")  # its records are of 1970
    fill(kafka, name, 10)

    async def work(admin: Admin) -> None:
        where = (name, 0)
        assert (await admin.list_offsets({where: EARLIEST}))[where].offset == 0
        found = await admin.list_offsets({where: LATEST, (name, 1): LATEST})
        assert {key: each.offset for key, each in found.items()} == {where: 10, (name, 1): 0}
        at = (await admin.list_offsets({where: 1004}))[where]
        assert (at.offset, at.timestamp) == (4, 1004)
        assert (await admin.list_offsets({where: 99_999}))[where].offset == -1
        assert await admin.delete_records(name, 0, 6) == 6
        assert (await admin.list_offsets({where: EARLIEST}))[where].offset == 6
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            await admin.delete_records(name, 0, 99)

    run(kafka, work)


def test_groups(kafka: Broker, topic: Topic) -> None:
    name = topic()
    fill(kafka, name, 5)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "admin-group",
            "client.id": "their-client",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([name])
    message = consumer.poll(100.0)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)

    async def inhabited(admin: Admin) -> None:
        assert "admin-group" in {each.group_id for each in await admin.list_groups()}
        for filters, expected in FILTERS:
            listed = {each.group_id for each in await admin.list_groups(**filters)}
            assert ("admin-group" in listed) == expected, filters
        group = await admin.describe_group("admin-group")
        assert (group.state, group.protocol_type, group.protocol) == ("Stable", "consumer", "range")
        assert [each.client_id for each in group.members] == ["their-client"]
        assert await admin.group_offsets("admin-group") == {(name, 0): CommittedOffset(1, 0, "")}
        with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
            await admin.delete_group("admin-group")
        with pytest.raises(BrokerError, match="GROUP_SUBSCRIBED_TO_TOPIC"):
            await admin.delete_group_offsets("admin-group", [(name, 0)])

    async def deserted(admin: Admin) -> None:
        await admin.delete_group_offsets("admin-group", [(name, 0)])
        assert await admin.group_offsets("admin-group") == {}
        await admin.delete_group("admin-group")
        assert "admin-group" not in {each.group_id for each in await admin.list_groups()}

    run(kafka, inhabited)
    consumer.close()
    run(kafka, deserted)


def test_a_client_that_is_closed_says_so(kafka: Broker) -> None:
    async def work() -> None:
        admin = Admin({"bootstrap.servers": kafka.bootstrap})
        with pytest.raises(ClientClosed):
            await admin.list_topics()
        await admin.start()
        waiting = asyncio.ensure_future(admin.list_topics())
        await asyncio.sleep(0)
        await admin.close()
        with pytest.raises(ClientClosed):
            await waiting

    asyncio.run(work())


def test_transactions_are_described_and_one_is_aborted_in_a_partition(kafka: Broker) -> None:
    """As a hanging one would be: Kafka itself leaves none behind."""
    with Wire(kafka.port) as wire:
        prepared(wire, "admin-transactions")
        actor = Actor(wire, "admin-transactions")
        actor.init()
        actor.add(1)
        actor.send(1)

    async def work(admin: Admin) -> None:
        listed = await admin.list_transactions(states=["Ongoing"], pattern="admin-t.*")
        assert (actor.name, actor.producer_id, "Ongoing") in listed
        described = await admin.describe_transaction(actor.name)
        assert (described.state, described.partitions) == ("Ongoing", ((TOPIC, 1),))
        assert await admin.find_hanging_transactions([TOPIC], before_ms=1 << 60) == []
        mine = [
            each
            for each in await admin.describe_producers(TOPIC, 1)
            if each.producer_id == actor.producer_id
        ]
        [producer] = mine
        assert producer.start_offset >= 0
        transaction = HangingTransaction(
            TOPIC,
            1,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.start_offset,
            producer.last_timestamp,
        )
        await admin.abort_hanging_transaction(transaction)
        after = {each.producer_id: each for each in await admin.describe_producers(TOPIC, 1)}
        assert after[actor.producer_id].start_offset == -1
        with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_NOT_FOUND: transactional id none"):
            await admin.describe_transaction("none")

    run(kafka, work)
