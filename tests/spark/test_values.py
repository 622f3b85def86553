"""Decoded values in Spark: rows as in one process, and each schema is looked up once."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kafkawire
from kafkawire.capture.tables import read
from kafkawire.capture.tables.decoded_values import with_values
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.net.schema_registry import RegistryAddress, RegistryHttp
from kafkawire.net.server_recording import Recording
from kafkawire.records import BatchBuilder
from kafkawire.spark import read as read_in_spark
from kafkawire.spark import with_decoded_values
from kafkawire.spark.errors import MissingColumns
from kafkawire.values import RegistrySchemas, ValueDecoder, ValueFormat
from kafkawire.values.record_values import RecordValues
from tests.values.registry import running

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
VALUES = (
    b"\0\0\0\0\x01\x54",
    b"\0\0\0\0\x02\x54",  # not registered
    b"\0\0\0\0\x01",  # ends early
    b'{"a": 1.5}',
    None,
)


@pytest.fixture
def captures(tmp_path: Path) -> list[str]:
    """Two captures with the values of two topics."""
    paths = []
    for number in range(2):
        topics = []
        for topic in ("orders", "others"):
            batch = BatchBuilder()
            for value in VALUES * 5:
                batch.append(b"key", value, timestamp=1, headers=(("h", b"v"),))
            partition = PartitionProduceData(index=0, records=batch.build())
            topics.append(TopicProduceData(name=topic, partition_data=[partition]))
        path = tmp_path / f"{number}.pcap"
        recording = Recording(path)
        connection = recording.open(("10.0.0.1", 50000 + number), ("10.0.0.2", 9092))
        request = ProduceRequest(acks=1, topic_data=topics)
        recording.received(connection, kafkawire.encode_frame(request, 9, 7))
        recording.close()
        paths.append(str(path))
    return paths


def test_rows_are_those_of_one_process(spark: SparkSession, captures: list[str]) -> None:
    with running() as registry:
        registry.register("orders-value", {"schema": json.dumps(ORDER)})

        def values() -> ValueDecoder:
            address = RegistryAddress(registry.url)
            sources = [RegistrySchemas(RegistryHttp(address), lambda: 0.0)]
            return ValueDecoder(ValueFormat.AUTO, sources)

        keys = ValueDecoder(ValueFormat.STRING)
        batches = [
            with_values(batch, RecordValues(values(), keys))
            for capture in captures
            for batch in read(capture, "records")
        ]
        registry.requests.clear()
        records = read_in_spark(spark, captures, "records")
        frame = with_decoded_values(records, values(), keys)
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        assert sorted(registry.requests) == ["/schemas/ids/1", "/schemas/ids/2"]
    expected = pa.Table.from_batches(batches).to_pylist()
    names = ("topic", "offset", "key_decoded", "value_decoded")
    found = sorted(json.dumps([row[name] for name in names]) for row in rows)
    assert found == sorted(json.dumps([row[name] for name in names]) for row in expected)
    decoded = [row["value_decoded"] for row in rows]
    assert sum(one is None for one in decoded) == 20
    assert sum(bool(one and one["value"] == '{"id":42}') for one in decoded) == 20
    errors = {one["error"] for one in decoded if one and one["error"]}
    assert errors == {"schema 2: not found", "the value ends early"}


def test_a_frame_without_the_columns(spark: SparkSession, captures: list[str]) -> None:
    records = read_in_spark(spark, captures, "records", columns=["topic", "value"])
    with pytest.raises(MissingColumns, match="headers"):
        with_decoded_values(records, ValueDecoder(ValueFormat.JSON))
