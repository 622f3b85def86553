"""Spark reads Parquet files of messages by the schemas of `codegen --target arrow`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import DataType, StructType
from typer.testing import CliRunner

from kafkawire.capture import tables
from kafkawire.capture.tables import bodies
from kafkawire_cli.main import app
from kafkawire_codegen import schemas_dir
from tests import vectors
from tests.codegen.test_arrow import imported, rows
from tests.conftest import FIXTURES

NAMES = ("ApiVersionsResponse", "DescribeClientQuotasResponse", "FetchResponse", "MetadataResponse")
"""With tagged fields, float64, nested arrays, unknown tagged fields, bytes and uuids."""


def test_spark_reads_messages_by_their_schema(spark: SparkSession, tmp_path: Path) -> None:
    made = imported(schemas_dir(), tmp_path, "spark_arrow_of_tests")
    for name in NAMES:
        path = str(tmp_path / f"{name}.parquet")
        wanted = rows(made, name)
        parquet.write_table(pa.Table.from_pylist(wanted, schema=made.schema(name)), path)
        schema = StructType.fromJson(json.loads(made.spark_schema(name)))
        assert bare(spark.read.parquet(path).schema) == bare(schema)
        frame = spark.read.schema(schema).parquet(path)
        assert frame.schema == schema
        assert vectors.same([plain(row) for row in frame.collect()], wanted), name


def test_spark_reads_bodies_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Of `decode --bodies`: the type in Spark is that of the schema."""
    made = imported(schemas_dir(), tmp_path, "spark_bodies_of_tests")
    capture = FIXTURES / "captures" / "kcat-kf.pcap"
    given = ["--table", "messages", "--bodies", "FetchResponse", "-o", str(tmp_path / "b.parquet")]
    assert CliRunner().invoke(app, ["decode", str(capture), *given]).exit_code == 0
    frame = spark.read.parquet(str(tmp_path / "b.parquet"))
    wanted = StructType.fromJson(json.loads(made.spark_schema("FetchResponse")))
    assert bare(frame.schema["body"].dataType) == bare(wanted)
    found = [plain(row) for row in frame.select("body.*").collect()]
    (batch,) = bodies.typed(tables.read(str(capture), "messages"), "FetchResponse")
    assert found == batch.column("body").to_pylist()


def bare(schema: DataType) -> Any:
    """The schema without metadata."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(one) for key, one in value.items() if key != "metadata"}
        return [without(one) for one in value] if isinstance(value, list) else value

    return without(json.loads(schema.json()))


def plain(value: Any) -> Any:
    if isinstance(value, Row):
        return {key: plain(one) for key, one in value.asDict().items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return bytes(value) if isinstance(value, bytearray) else value
