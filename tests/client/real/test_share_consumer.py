"""Our share consumers at a real Kafka: every record delivered, and acknowledged once."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not marked public

from kafkawire.client.config import Setting
from kafkawire.client.consumer import GroupFailed
from kafkawire.client.share_consumer import AcknowledgeType, ShareRecord
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.share_consumer import ShareConsumer
from kafkawire.protocol.error_code import ErrorCode
from tests.cli import reports as cli
from tests.command_server import python
from tests.pages import blocks
from tests.real.broker import Broker
from tests.real.wire import Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
A = AcknowledgeType
Topic = Callable[..., str]
NAMES = count()
TIMEOUT_S: Final = 200.0
GROUP: Final = 32
"""The resource type of group configurations."""


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Play a scenario on a loop of its own, within bounds."""
    asyncio.run(asyncio.wait_for(scenario, TIMEOUT_S))


def new_group(kafka: Broker, **config: str) -> str:
    """Return the name of a new share group that begins at the first records."""
    name = f"share-{next(NAMES)}"
    configure(kafka, name, **config)
    return name


def configure(kafka: Broker, name: str, **config: str) -> None:
    """Let a share group begin at the first records. config: more of its configuration."""
    settings = {"share.auto.offset.reset": "earliest"} | {
        key.replace("_", "."): value for key, value in config.items()
    }
    configs = [AlterableConfig(name=key, value=value) for key, value in settings.items()]
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=configs)
    with Wire(kafka.port) as wire:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = wire.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert [each.error_code for each in response.responses] == [ErrorCode.NONE]


def consumer(kafka: Broker, group: str, **config: Setting) -> ShareConsumer:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return ShareConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, **settings})


async def produce(kafka: Broker, topic: str, values: list[bytes]) -> None:
    async with Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
        for value in values:
            await producer.send(topic, value, partition=0)


def numbered(end: int) -> list[bytes]:
    return [b"%d" % number for number in range(end)]


async def read(each: ShareConsumer, number: int) -> list[ShareRecord]:
    """Read so many records, with as many polls as that takes."""
    records: list[ShareRecord] = []
    while len(records) < number:
        records += await each.poll()
    return records


def offsets(records: list[ShareRecord]) -> list[int]:
    return [each.offset for each in records]


async def in_effect(each: ShareConsumer) -> None:
    """Commit, and see that all acknowledgements are in effect."""
    assert set((await each.commit()).values()) <= {None}


async def nothing_is_left(kafka: Broker, group: str, topic: str) -> None:
    """See that the group has acknowledged all: the next record that it gets is a new one."""
    await produce(kafka, topic, [b"new"])
    async with consumer(kafka, group) as each:
        each.subscribe([topic])
        assert [record.value for record in await read(each, 1)] == [b"new"]
        await in_effect(each)


def test_two_members_share_the_records_of_a_partition(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka)
    strict: dict[str, Setting] = {"max_poll_records": 10, "share_acquire_mode": "record_limit"}

    async def scenario() -> None:
        await produce(kafka, name, numbered(200))
        records: list[ShareRecord] = []
        counts = [0, 0]

        async def consume(number: int, each: ShareConsumer) -> None:
            each.subscribe([name])
            while len(records) < 200:
                some = await each.poll(1.0)
                assert len(some) <= 10
                records.extend(some)
                counts[number] += len(some)
            await in_effect(each)

        async with consumer(kafka, group, **strict) as one, consumer(kafka, group, **strict) as two:
            await asyncio.gather(consume(0, one), consume(1, two))
            assert one.acquisition_lock_timeout_s() == 30.0
        assert sorted(offsets(records)) == list(range(200))
        assert {each.delivery_count for each in records} == {1}
        assert all(counts)
        await nothing_is_left(kafka, group, name)

    run(scenario())


def test_what_is_not_accepted_is_delivered_again_or_rejected(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka)
    outcomes: list[tuple[int, int, int]] = []

    async def scenario() -> None:
        await produce(kafka, name, numbered(6))
        async with consumer(kafka, group, share_acknowledgement_mode="explicit") as each:
            each.set_acknowledgement_callback(
                lambda _, ranges, error: outcomes.extend(ranges if error is None else [])
            )
            each.subscribe([name])
            records = await read(each, 6)
            with pytest.raises(LocalProtocolError, match="6 delivered records"):
                await each.poll(0)
            for record in records:
                each.acknowledge(record, A.REJECT)
            for record in records[:2]:
                each.acknowledge(record)
            for record in records[2:4]:
                each.acknowledge(record, A.RELEASE)
            await in_effect(each)
            again = await read(each, 2)
            assert offsets(again) == [2, 3]
            assert {record.delivery_count for record in again} == {2}
            for record in again:
                each.acknowledge(record)
            assert await each.poll(1.0) == []  # sends them
        assert outcomes == [(0, 1, A.ACCEPT), (2, 3, A.RELEASE), (4, 5, A.REJECT), (2, 3, A.ACCEPT)]
        await nothing_is_left(kafka, group, name)

    run(scenario())


def test_a_lock_that_expires_gives_the_record_to_another(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka, share_record_lock_duration_ms="1000")

    async def scenario() -> None:
        await produce(kafka, name, [b"slow"])
        async with consumer(kafka, group) as slow, consumer(kafka, group) as other:
            slow.subscribe([name])
            (held,) = await read(slow, 1)
            other.subscribe([name])
            (again,) = await read(other, 1)
            assert (held.delivery_count, again.delivery_count) == (1, 2)
            (error,) = (await slow.commit()).values()
            assert error is not None
            assert error.code == ErrorCode.INVALID_RECORD_STATE

    run(scenario())


def test_a_renewed_record_is_returned_again(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka)

    async def scenario() -> None:
        await produce(kafka, name, numbered(3))
        async with consumer(kafka, group, share_acknowledgement_mode="explicit") as each:
            each.subscribe([name])
            first, second, third = await read(each, 3)
            each.acknowledge(first)
            each.acknowledge(second, A.RENEW)
            each.acknowledge(third, A.RENEW)
            await in_effect(each)
            assert await read(each, 2) == [second, third]
            each.acknowledge(second, A.RENEW)
            each.acknowledge(third)
            assert await read(each, 1) == [second]
            each.acknowledge(second)
            await in_effect(each)
        await nothing_is_left(kafka, group, name)

    run(scenario())


def test_records_of_a_member_that_is_killed_go_to_another(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka)

    async def scenario() -> None:
        await produce(kafka, name, numbered(20))
        killed = consumer(kafka, group)
        await killed.start()
        killed.subscribe([name])
        records = await read(killed, 20)
        assert killed._driver is not None
        await killed._driver.close()
        async with consumer(kafka, group) as other:
            other.subscribe([name])
            again = await read(other, 20)
            assert offsets(again) == offsets(records)
            assert {each.delivery_count for each in again} == {2}
            await in_effect(other)
        await nothing_is_left(kafka, group, name)

    run(scenario())


def test_aborted_and_control_records_are_acknowledged_and_not_delivered(
    kafka: Broker, topic: Topic
) -> None:
    name, group = topic(1), new_group(kafka, share_isolation_level="read_committed")

    async def scenario() -> None:
        settings: dict[str, Setting] = {"bootstrap.servers": kafka.bootstrap}
        async with Producer({**settings, "transactional.id": name}) as producer:
            for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
                await producer.begin()
                await producer.deliver(name, value, partition=0)
                await (producer.commit() if commits else producer.abort())
        async with consumer(kafka, group) as each:
            each.subscribe([name])
            assert [record.value for record in await read(each, 2)] == [b"a", b"c"]
            await in_effect(each)
            assert await each.poll(1.0) == []
        await nothing_is_left(kafka, group, name)

    run(scenario())


def test_closing_releases_what_was_returned_and_not_committed(kafka: Broker, topic: Topic) -> None:
    name, group = topic(2), new_group(kafka)

    async def scenario() -> None:
        await produce(kafka, name, numbered(4))
        async with consumer(kafka, group) as first:
            first.subscribe([name])
            async for record in first:
                if record.offset == 1:
                    await in_effect(first)
                if record.offset == 2:
                    break
        async with consumer(kafka, group) as second:
            second.subscribe([name])
            assert offsets(await read(second, 2)) == [2, 3]
            await second.unsubscribe()
            with pytest.raises(LocalProtocolError, match="subscribe"):
                await second.poll()
            second.subscribe([name])
            again = await read(second, 2)
            assert [(each.offset, each.delivery_count) for each in again] == [(2, 3), (3, 3)]

    run(scenario())


def test_the_example_of_the_page_runs(kafka: Broker) -> None:
    (block,) = blocks("docs/client.md", "py")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(TIMEOUT_S)
    assert "localhost:9092" in block.text
    text = block.text.replace("localhost:9092", kafka.bootstrap)
    subprocess.run([python(), "-W", "error", "-c", text], check=True, timeout=TIMEOUT_S)


def test_a_group_with_java_s_share_consumer(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka, share_record_lock_duration_ms="60000")

    async def scenario() -> None:
        await produce(kafka, name, numbered(60))
        async with consumer(
            kafka, group, max_poll_records=20, share_acquire_mode="record_limit"
        ) as each:
            each.subscribe([name])
            ours = {record.value for record in await read(each, 20)}
            printed = await asyncio.to_thread(
                kafka.installation.run,
                "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
                *("--bootstrap-server", kafka.bootstrap, "--topic", name, "--group", group),
                *("--max-messages", "40"),
            )
            theirs = {line.encode() for line in printed.splitlines() if line.isdigit()}
            assert (len(ours), len(theirs)) == (20, 40)
            assert ours | theirs == set(numbered(60))
            await in_effect(each)
        await nothing_is_left(kafka, group, name)

    run(scenario())


def test_the_command_line_accepts_what_it_has_written(kafka: Broker, topic: Topic) -> None:
    name, group = topic(1), new_group(kafka)
    asyncio.run(produce(kafka, name, numbered(3)))
    done = cli.run("consume", name, "--share", group, "-b", kafka.bootstrap, "-n", 3, "-f", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["offset"], each["deliveryCount"]) for each in shown] == [(0, 1), (1, 1), (2, 1)]
    run(nothing_is_left(kafka, group, name))


def test_a_group_of_another_type_is_an_error(kafka: Broker, topic: Topic) -> None:
    name = topic(1)

    async def scenario() -> None:
        settings: dict[str, Setting] = {"bootstrap.servers": kafka.bootstrap, "group.id": name}
        async with Consumer(settings) as classic, ShareConsumer(settings) as each:
            classic.subscribe([name])
            while not classic.assignment():
                await classic.poll(0.1)
            each.subscribe([name])
            with pytest.raises(GroupFailed, match="is not a share group"):
                await each.poll()

    run(scenario())
