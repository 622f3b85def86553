"""Decoded values in Spark: rows as in one process; the driver looks up each schema once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import kafkawire
from kafkawire.capture.tables import read
from kafkawire.capture.tables.decoded_values import with_values
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.net.brokers.recording import Recording
from kafkawire.net.schema_registry import RegistryAddress, RegistryHttp
from kafkawire.records import BatchBuilder
from kafkawire.spark import job, with_decoded_values
from kafkawire.spark import read as read_in_spark
from kafkawire.spark.errors import BadOption, MissingColumns
from kafkawire.spark.options import parse
from kafkawire.spark.splitting import inputs
from kafkawire.spark.watch import Watcher
from kafkawire.spark.watch import check_request as watch_request
from kafkawire.values import (
    RegistrySchemas,
    Schema,
    SchemaKey,
    Subject,
    ValueDecoder,
    ValueFormat,
)
from kafkawire.values.record_values import RecordValues
from tests.cli.reports import run
from tests.values.registry import SchemaRegistry, running

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


@dataclass
class OnTheDriver:
    """A source that cannot be sent to workers: it may hold credentials."""

    source: RegistrySchemas
    is_local: ClassVar[bool] = False

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:
        return self.source.by_key(key, subject)

    def by_subject(self, subject: Subject) -> Schema | None:
        return self.source.by_subject(subject)

    def __reduce__(self) -> NoReturn:
        raise AssertionError


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with running() as started:
        started.register("orders-value", {"schema": json.dumps(ORDER)})
        yield started


@pytest.fixture
def decoders(registry: SchemaRegistry) -> RecordValues:
    source = OnTheDriver(RegistrySchemas(RegistryHttp(RegistryAddress(registry.url)), lambda: 0.0))
    return RecordValues(ValueDecoder(ValueFormat.AUTO, [source]), ValueDecoder(ValueFormat.STRING))


NAMES = ("topic", "offset", "key_decoded", "value_decoded")


def in_one_process(captures: list[str], decoders: RecordValues) -> list[str]:
    batches = [
        with_values(batch, decoders) for capture in captures for batch in read(capture, "records")
    ]
    return texts(pa.Table.from_batches(batches).to_pylist())


def texts(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps([row[name] for name in NAMES]) for row in rows)


def of_frame(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def test_rows_are_those_of_one_process(
    spark: SparkSession, captures: list[str], registry: SchemaRegistry, decoders: RecordValues
) -> None:
    expected = in_one_process(captures, decoders)
    registry.requests.clear()
    records = read_in_spark(spark, captures, "records")
    fresh = (one and ValueDecoder(one.format, one._sources) for one in decoders)
    rows = of_frame(with_decoded_values(records, *fresh))
    assert sorted(registry.requests) == ["/schemas/ids/1", "/schemas/ids/2"]
    assert texts(rows) == expected
    decoded = [row["value_decoded"] for row in rows]
    assert sum(one is None for one in decoded) == 20
    assert sum(bool(one and one["value"] == '{"id":42}') for one in decoded) == 20
    errors = {one["error"] for one in decoded if one and one["error"]}
    assert errors == {"schema 2: not found", "the value ends early"}


def test_tables_of_the_job(
    spark: SparkSession,
    captures: list[str],
    registry: SchemaRegistry,
    decoders: RecordValues,
    tmp_path: Path,
) -> None:
    """Also without rows, the table has the columns; other tables are as they were."""
    out = str(tmp_path / "out")
    registry.requests.clear()
    made = job.run(spark, captures, out, ["records", "messages"], parse({}), values=decoders)
    assert sorted(registry.requests) == ["/schemas/ids/1", "/schemas/ids/2"]
    assert texts(of_frame(spark.read.parquet(f"{out}/records"))) == in_one_process(
        captures, decoders
    )
    assert made["options"]["values"] == "auto"
    assert spark.read.parquet(f"{out}/messages").count() == len(captures)
    options = parse({"topics": "neither"})
    out = str(tmp_path / "empty")
    job.run(spark, captures, out, ["records"], options, values=decoders)
    empty = spark.read.parquet(f"{out}/records")
    assert {"key_decoded", "value_decoded"} < {*empty.columns}
    assert empty.count() == 0


def test_tables_of_a_watch(
    spark: SparkSession, captures: list[str], decoders: RecordValues, tmp_path: Path
) -> None:
    with Watcher(spark, tmp_path / "out", ["records"], parse({}), values=decoders) as watcher:
        for capture in captures:  # a batch each
            watcher.take(inputs([capture]))
    written = pq.ParquetDataset(tmp_path / "out" / "records").read().to_pylist()
    assert texts(written) == in_one_process(captures, decoders)


@pytest.mark.parametrize(
    ("tables", "given", "option"),
    [
        (["messages"], {}, "table"),
        (["records"], {"redact": "true"}, "redact"),
        (["records"], {"includeRecords": "false"}, "includeRecords"),
    ],
)
def test_requests_without_records(
    tables: list[str], given: dict[str, str], option: str, tmp_path: Path
) -> None:
    values = RecordValues(ValueDecoder(ValueFormat.JSON))
    out = str(tmp_path / "out")
    for check in (job.check_request, watch_request):
        with pytest.raises(BadOption) as raised:
            check(str(tmp_path), out, tables, parse(given), values)
        assert raised.value.option == option


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--table", "records", "--registry-url", "http://localhost:1"], "required by"),
        (["--table", "records", "--values", "jsonn"], "unknown format"),
        (["--values", "json"], "option table"),
        (["--check", "--values", "json"], "not allowed with --check"),
    ],
)
def test_usage_errors(options: list[str], reason: str, tmp_path: Path) -> None:
    given = [] if "--check" in options else ["captures"]
    done = run("spark", *given, "--output", str(tmp_path / "out"), *options)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())


def test_a_frame_without_the_columns(spark: SparkSession, captures: list[str]) -> None:
    records = read_in_spark(spark, captures, "records", columns=["topic", "value"])
    with pytest.raises(MissingColumns, match="headers"):
        with_decoded_values(records, ValueDecoder(ValueFormat.JSON))
