"""Records of wrong types: refused at the Send, and nobody else's trouble."""

from __future__ import annotations

from enum import IntEnum
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from zlib_ng import zlib_ng

from kafkawire.client.cluster import ClusterView, Partition, Topic
from kafkawire.client.config import read_config
from kafkawire.client.producer import (
    PRODUCER_KEYS,
    Delivered,
    Failed,
    Flush,
    Flushed,
    Send,
    producer_settings,
)
from kafkawire.client.producer.murmur2 import partition_of_key
from kafkawire.client.producer.record_accumulator import RecordAccumulator
from kafkawire.errors import EncodeError, InvalidValue, OutOfRange

from .test_producer import Stage

GOOD: dict[str, Any] = {
    "topic": "t",
    "partition": None,
    "key": None,
    "value": b"v",
    "timestamp": 1_700_000_000_000,
    "headers": (),
}
WRONG: list[tuple[dict[str, Any], type[EncodeError], str]] = [
    ({"value": "text"}, InvalidValue, "value"),
    ({"value": 5}, InvalidValue, "value"),
    ({"value": [1, 2]}, InvalidValue, "value"),
    ({"key": "text"}, InvalidValue, "key"),
    ({"timestamp": 1.5}, InvalidValue, "timestamp"),
    ({"timestamp": True}, InvalidValue, "timestamp"),
    ({"timestamp": None}, InvalidValue, "timestamp"),
    ({"timestamp": -1}, OutOfRange, "timestamp"),
    ({"timestamp": 1 << 63}, OutOfRange, "timestamp"),
    ({"partition": "0"}, InvalidValue, "partition"),
    ({"partition": 0.0}, InvalidValue, "partition"),
    ({"partition": -1}, OutOfRange, "partition"),
    ({"partition": 1 << 31}, OutOfRange, "partition"),
    ({"topic": b"t"}, InvalidValue, "topic"),
    ({"topic": None}, InvalidValue, "topic"),
    ({"topic": ""}, InvalidValue, "topic"),
    ({"topic": "\ud800"}, InvalidValue, "topic"),
    ({"topic": "t" * 250}, OutOfRange, "topic"),
    ({"headers": None}, InvalidValue, "headers"),
    ({"headers": {"h": b"x"}}, InvalidValue, "headers"),
    ({"headers": "ab"}, InvalidValue, "headers"),
    ({"headers": (("h",),)}, InvalidValue, "headers[0]"),
    ({"headers": (("h", b""), "ab")}, InvalidValue, "headers[1]"),
    ({"headers": ((b"h", b"x"),)}, InvalidValue, "headers[0] name"),
    ({"headers": ((None, b"x"),)}, InvalidValue, "headers[0] name"),
    ({"headers": (("\ud800", b"x"),)}, InvalidValue, "headers[0] name"),
    ({"headers": (("h", "x"),)}, InvalidValue, "headers[0] value"),
]


class Seven(IntEnum):
    """An integer that is not of the type int itself."""

    SEVEN = 7


def record(token: int, **values: Any) -> Send:
    return Send(token=token, **GOOD | values)


def stored(stage: Stage) -> list[tuple[bytes | None, bytes | None, object]]:
    """Read what the broker has."""
    records = stage.simulation.brokers.batches("t", 0).records()
    return [(record.key, record.value, record.headers) for record in records]


@pytest.mark.parametrize(("values", "error", "where"), WRONG, ids=[repr(row[0]) for row in WRONG])
@pytest.mark.parametrize("known", [True, False], ids=["known topic", "new topic"])
def test_a_wrong_record_is_refused_at_the_send_and_others_are_delivered(
    values: dict[str, Any], error: type[EncodeError], where: str, known: bool
) -> None:
    stage = Stage({"linger.ms": 10})
    if known:
        stage.warm()
    stage.simulation.send_event("p", record(100))
    with pytest.raises(error) as raised:
        stage.simulation.send_event("p", record(101, **values))
    assert raised.value.path == where
    stage.simulation.send_event("p", record(102))
    stage.settled()
    delivered = [each.tokens for each in stage.results() if isinstance(each, Delivered)]
    assert [token for tokens in delivered for token in tokens] == [100, 102]
    assert not [each for each in stage.results() if isinstance(each, Failed)]


@pytest.mark.parametrize("known", [True, False], ids=["known topic", "new topic"])
def test_what_is_harmless_is_taken_and_copied(known: bool) -> None:
    stage = Stage({"linger.ms": 10})
    if known:
        stage.warm()
    key, value, inside = bytearray(b"key"), bytearray(b"0v1a2l3u4e"), bytearray(b"x")
    headers = [["h", inside], ("n", None)]
    view = memoryview(value)[1::2]
    record_7 = record(7, key=key, value=view, headers=headers, timestamp=Seven.SEVEN, partition=0)
    stage.simulation.send_event("p", record_7)
    key[:], value[:], inside[:] = b"???", b"??????????", b"?"
    headers.clear()
    stage.settled()
    assert stored(stage)[-1] == (b"key", b"value", (("h", b"x"), ("n", None)))


def test_an_exception_over_one_parked_record_is_that_records_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a check has overlooked: it must not return with every response."""

    def failing(key: bytes, partitions: int) -> int:
        if key == b"bad":
            raise TypeError("overlooked")
        return partition_of_key(key, partitions)

    monkeypatch.setattr("kafkawire.client.producer.record_accumulator.partition_of_key", failing)
    stage = Stage()
    for token, key in enumerate((b"good", b"bad", b"good")):
        stage.simulation.send_event("p", record(token, key=key))
    stage.settled()
    failed = [each for each in stage.results() if isinstance(each, Failed)]
    assert [each.tokens for each in failed] == [[1]]
    assert "TypeError: overlooked" in failed[0].failure.detail
    delivered = [each.tokens for each in stage.results() if isinstance(each, Delivered)]
    assert delivered == [[0, 2]]


def test_a_batch_that_cannot_be_built_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the package of a codec is missing."""
    compressor = zlib_ng.compressobj

    def failing(*options: Any) -> Any:
        stream = compressor(*options)

        def compress(data: bytes) -> bytes:
            if b"bad" in data:
                raise RuntimeError("no codec")
            return stream.compress(data)

        return SimpleNamespace(compress=compress, flush=stream.flush)

    monkeypatch.setattr(zlib_ng, "compressobj", failing)
    stage = Stage({"linger.ms": 0, "batch.size": 0, "compression.type": "gzip"})
    stage.warm()
    for token in (4, 5, 6, 7):
        stage.simulation.send_event("p", record(token, value=b"bad" if token == 5 else b"good"))
    stage.simulation.send_event("p", Flush("end"))
    stage.until(lambda: Flushed("end") in stage.said)
    results = [(type(each).__name__, each.tokens) for each in stage.results()]
    assert results == [
        ("Delivered", [4]),
        ("Failed", [5]),
        ("Delivered", [6]),
        ("Delivered", [7]),
    ]


def test_a_batch_that_could_not_take_its_first_record_is_not_left_behind() -> None:
    view = SimpleNamespace(topics={"t": Topic("t", partitions={0: Partition("t", 0, 1)})})
    settings = producer_settings(read_config(PRODUCER_KEYS, {"bootstrap.servers": "b:1"}))
    accumulator = RecordAccumulator(settings, cast(ClusterView, view), Random(1).random)
    with pytest.raises(InvalidValue):
        accumulator.take(record(1, headers=(("\ud800", b""),)), 0.0)
    assert (accumulator.busy, accumulator.used) == ({}, 0)
    assert accumulator.take(record(2), 0.0) == []
    [queue] = accumulator.busy.values()
    assert [batch.tokens for batch in queue.queued] == [[2]]
