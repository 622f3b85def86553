"""Our producer against a real broker; librdkafka reads back what is there."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable
from random import Random

import confluent_kafka
import pytest

from kafkawire import blocking
from kafkawire.client.config import Setting
from kafkawire.client.failures import BrokerError, ClientClosed, ClientError, RequestFailed
from kafkawire.client.network.oauthbearer import OAuthBearerToken, TokenProvider
from kafkawire.client.producer.murmur2 import partition_of_key
from kafkawire.client.requests import Reason
from kafkawire.net.producer import Producer
from kafkawire.protocol.error_code import ErrorCode
from tests.real.broker import MECHANISMS, PASSWORD, USER, Broker

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
Topic = Callable[..., str]
HEADERS = (("trace", b"1"), ("trace", None), ("größe", b"\x00"))


def read_back(kafka: Broker, topic: str, count: int) -> list[confluent_kafka.Message]:
    """Read so many records with librdkafka, checksums looked at, and see that there are no more.

    With acks=0 the broker may still be writing, so the end counts only once all have come.
    """
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "enable.partition.eof": True,
        }
    )
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
    found: list[confluent_kafka.Message] = []
    ends: set[int | None] = set()
    try:
        while len(found) < count or len(ends) < len(partitions):
            message = consumer.poll(100.0)
            assert message is not None, f"{len(found)} of {count} records came"
            if message.error() is None:
                found.append(message)
                ends.discard(message.partition())
            else:
                error = message.error()
                assert error is not None
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                ends.add(message.partition())
    finally:
        consumer.close()
    assert len(found) == count
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_codec_with_each_acks(kafka: Broker, topic: Topic, codec: str, acks: str) -> None:
    name = topic(partitions=2, retention_ms="-1")  # its records are of 1970
    draws = Random(f"{codec}{acks}")
    sent = [
        (draws.choice((None, b"", draws.randbytes(9))), draws.randbytes(draws.randrange(2000)))
        for _ in range(300)
    ]

    async def produce() -> list[tuple[int, int]]:
        config: dict[str, Setting] = {
            "bootstrap.servers": kafka.bootstrap,
            "acks": acks,
            "compression.type": codec,
            "linger.ms": 2,
        }
        async with Producer(config) as producer:
            futures = [
                await producer.send(
                    name, value, key=key, partition=at % 2, timestamp=at, headers=HEADERS
                )
                for at, (key, value) in enumerate(sent)
            ]
            await producer.flush()
            assert all(future.done() for future in futures)
            return [(future.result().partition, future.result().offset) for future in futures]

    places = asyncio.run(produce())
    found = read_back(kafka, name, len(sent))
    by_partition = defaultdict(list)
    for message in sorted(found, key=lambda each: (each.partition(), each.offset())):
        by_partition[message.partition()].append(message)
    for at, (key, value) in enumerate(sent):
        message = by_partition[at % 2][at // 2]
        assert (message.key(), message.value()) == (key, value)
        assert message.timestamp()[1] == at
        assert tuple(message.headers() or ()) == HEADERS
        if acks != "0":
            assert places[at] == (message.partition(), message.offset())


def test_librdkafka_puts_keys_where_we_do(kafka: Broker, topic: Topic) -> None:
    """murmur2, held against another implementation of Java's partitioner."""
    name = topic(partitions=7)
    draws = Random(7)
    keys = [draws.randbytes(length) for length in range(1, 60) for _ in range(8)]
    theirs: dict[bytes, int] = {}
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2", "linger.ms": 50}
    )

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        key, partition = message.key(), message.partition()
        assert error is None
        assert key is not None
        assert partition is not None
        theirs[key] = partition

    for key in keys:
        producer.produce(name, b"", key=key, on_delivery=delivered)
    assert producer.flush(100) == 0
    assert theirs == {key: partition_of_key(key, 7) for key in keys}

    async def ours() -> dict[bytes, int]:
        async with Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
            futures = [await producer.send(name, b"", key=key) for key in keys]
            return {
                key: (await future).partition for key, future in zip(keys, futures, strict=True)
            }

    assert asyncio.run(ours()) == theirs


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_authentication(kafka: Broker, topic: Topic, mechanism: str) -> None:
    name = topic()
    config: dict[str, Setting] = {
        "bootstrap.servers": kafka.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }

    async def deliver(password: str) -> int:
        async with Producer({**config, "sasl.password": password}) as producer:
            return (await producer.deliver(name, b"v")).offset

    assert asyncio.run(deliver(PASSWORD)) == 0
    with pytest.raises(RequestFailed) as caught:
        asyncio.run(deliver("wrong"))
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert mechanism in caught.value.detail or "invalid" in caught.value.detail.lower()
    assert "wrong" not in str(caught.value)


def unsecured_jwt(user: str, issued_at: float, expires_at: float) -> OAuthBearerToken:
    """Make a token without a signature, which Kafka accepts by default.

    Kafka rounds times to milliseconds, and refuses a token that is issued in the next one.
    """
    claims = {"sub": user, "iat": issued_at - 1.0, "exp": expires_at}
    parts = [
        urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode()
        for each in ({"alg": "none"}, claims)
    ]
    return OAuthBearerToken(f"{'.'.join(parts)}.", expires_at)


LIFETIME_S = 8.0
LONG_S = 300.0


class Tokens:
    """A provider of tokens that expire soon. renewed: one was needed long after the first."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.renewed = threading.Event()

    def __call__(self) -> OAuthBearerToken:
        now = time.time()
        if self.first is None:
            self.first = now
        elif now > self.first + LIFETIME_S / 2:  # no longer for the first connections
            self.renewed.set()
        return unsecured_jwt(USER, now, now + LIFETIME_S)


def with_tokens(kafka: Broker, provider: TokenProvider) -> dict[str, Setting]:
    return {
        "bootstrap.servers": kafka.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauth.token.provider": provider,
    }


def test_a_session_is_renewed_with_a_new_token(kafka: Broker, topic: Topic) -> None:
    name, tokens = topic(), Tokens()

    async def deliver() -> int:
        async with Producer(with_tokens(kafka, tokens)) as producer:
            first = (await producer.deliver(name, b"v")).offset
            assert await asyncio.to_thread(tokens.renewed.wait, 100.0)
            return first + (await producer.deliver(name, b"w")).offset

    assert asyncio.run(deliver()) == 0 + 1


def test_a_blocking_producer_with_a_coroutine_function(kafka: Broker, topic: Topic) -> None:
    name = topic()

    async def provider() -> OAuthBearerToken:
        return unsecured_jwt(USER, time.time(), time.time() + LONG_S)

    with blocking.Producer(with_tokens(kafka, provider)) as producer:
        assert producer.deliver(name, b"v").offset == 0


def test_a_token_that_the_broker_rejects(kafka: Broker, topic: Topic) -> None:
    name = topic()
    expired = unsecured_jwt(USER, 1.0, 2.0).value

    async def deliver() -> None:
        async with Producer(with_tokens(kafka, lambda: OAuthBearerToken(expired))) as producer:
            await producer.deliver(name, b"v")

    with pytest.raises(RequestFailed, match=r"SASL_AUTHENTICATION_FAILED.*invalid_token") as caught:
        asyncio.run(deliver())
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert expired not in str(caught.value)


def test_batches_that_the_topic_finds_too_large_are_split(kafka: Broker, topic: Topic) -> None:
    name = topic(max_message_bytes="4000")

    async def produce() -> list[int | ClientError]:
        config: dict[str, Setting] = {
            "bootstrap.servers": kafka.bootstrap,
            "batch.size": 200_000,
            "linger.ms": 100,
        }
        async with Producer(config) as producer:
            sizes = [500] * 60 + [9_000] + [500] * 20
            futures = [await producer.send(name, bytes(size)) for size in sizes]
            results: list[int | ClientError] = []
            for future in futures:
                try:
                    results.append((await future).offset)
                except ClientError as error:
                    results.append(error)
            return results

    results = asyncio.run(produce())
    (huge,) = [each for each in results if isinstance(each, ClientError)]
    assert results.index(huge) == 60
    assert isinstance(huge, BrokerError)
    assert huge.code is ErrorCode.MESSAGE_TOO_LARGE
    assert [each for each in results if each is not huge] == list(range(80))
    read_back(kafka, name, 80)


def test_a_topic_that_is_not_there(kafka: Broker) -> None:
    async def send() -> None:
        config: dict[str, Setting] = {"bootstrap.servers": kafka.bootstrap, "max.block.ms": 8000}
        async with Producer(config) as producer:
            await producer.deliver("not-there", b"v")

    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        asyncio.run(send())


def test_close_loses_nothing_and_afterwards_nothing_is_taken(kafka: Broker, topic: Topic) -> None:
    name = topic()

    async def produce() -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 10_000})
        await producer.start()
        futures = [await producer.send(name, b"%d" % at) for at in range(500)]
        await producer.close()
        assert [future.result().offset for future in futures] == list(range(500))
        with pytest.raises(ClientClosed):
            await producer.send(name, b"late")
        await producer.close()
        with pytest.raises(ClientClosed):
            await producer.start()

    asyncio.run(produce())
    read_back(kafka, name, 500)


def test_a_send_that_is_cancelled_while_it_waits_is_never_sent(kafka: Broker, topic: Topic) -> None:
    name = topic()

    async def produce() -> None:
        config: dict[str, Setting] = {
            "bootstrap.servers": kafka.bootstrap,
            "buffer.memory": 20_000,
            "max.request.size": 15_000,
            "linger.ms": 0,
        }
        async with Producer(config) as producer:
            # the first waits for metadata; the others behind it, and for memory
            tasks = [
                asyncio.ensure_future(producer.send(name, b"%d" % at + bytes(10_000)))
                for at in range(6)
            ]
            await asyncio.sleep(0)
            tasks[2].cancel()
            tasks[4].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            cancelled = [isinstance(each, asyncio.CancelledError) for each in done]
            assert cancelled == [False, False, True, False, True, False]
            await producer.flush()

    asyncio.run(produce())
    found = read_back(kafka, name, 4)
    assert [(message.value() or b"")[:1] for message in found] == [b"0", b"1", b"3", b"5"]


def test_a_bootstrap_address_where_nobody_listens_is_passed_over(
    kafka: Broker, topic: Topic
) -> None:
    name = topic()

    async def produce() -> int:
        servers = f"127.0.0.1:1,{kafka.bootstrap},no-such-host.invalid:9092"
        async with Producer({"bootstrap.servers": servers}) as producer:
            return (await producer.deliver(name, b"v")).offset

    assert asyncio.run(produce()) == 0
