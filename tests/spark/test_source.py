"""The data source: registration, options, columns."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import TABLES
from kafkawire.spark import read, register
from kafkawire.spark.errors import BadOption
from kafkawire.spark.options import parse
from tests.conftest import FIXTURES

from .conftest import counted, of_frame, rows_of

FILE = str(FIXTURES / "captures" / "ck-848.pcap")
LOSS = str(FIXTURES / "captures" / "kcat-kf--loss.pcap")


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_one_process(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("kafkapcap").option("table", table).load(FILE)
    assert counted(of_frame(frame)) == counted(rows_of([FILE], table))


def test_sets_are_read_separately(spark: SparkSession) -> None:
    register(spark)
    reader = spark.read.format("kafkapcap").option("sets", "file").option("table", "connections")
    frame = reader.load(str(FIXTURES / "captures" / "k*.pcap"))
    files = sorted(map(str, (FIXTURES / "captures").glob("k*.pcap")))
    want = [row for file in files for row in rows_of([file], "connections")]
    assert len(files) > 1
    assert frame.rdd.getNumPartitions() == len(files)
    assert counted(of_frame(frame)) == counted(want)


def test_only_the_requested_columns(spark: SparkSession) -> None:
    reader = spark.read.format("kafkapcap").option("table", "messages")
    frame = reader.schema("length long, api_name string").load(FILE)
    want = [
        {"length": row["length"], "api_name": row["api_name"]}
        for row in rows_of([FILE], "messages")
    ]
    assert counted(of_frame(frame)) == counted(want)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("packet int, latency_ns double, api_name string", None),
        (
            "packet int, api_name long",
            "'api_name int64': expected a type that the column can be cast to",
        ),
        ("topics string", "'topics string': expected a type that the column can be cast to"),
        ("api string", "'api': expected a column of exchanges: file, packet, "),
    ],
)
def test_types_of_the_schema(spark: SparkSession, schema: str, message: str | None) -> None:
    frame = spark.read.format("kafkapcap").schema(schema)
    if message is None:
        found = of_frame(frame.load(FILE))
        assert {type(row["latency_ns"]) for row in found} == {float, type(None)}
        assert [row["packet"] for row in found] == [
            row["packet"] for row in rows_of([FILE], "exchanges")
        ]
        return
    with pytest.raises(Exception, match="option schema") as caught:
        frame.load(FILE).collect()
    assert message in str(caught.value)


def test_from_sql(spark: SparkSession) -> None:
    spark.sql(
        f"CREATE TEMPORARY VIEW lost USING kafkapcap OPTIONS (path '{LOSS}', table 'problems')"
    )
    gaps = spark.sql("SELECT count(*) AS n FROM lost WHERE kind = 'gap'").collect()[0]["n"]
    assert gaps == sum(row["kind"] == "gap" for row in rows_of([LOSS], "problems")) > 0


def test_a_file_that_is_not_a_capture_fails_with_fail_on_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"this is no capture at all")
    reader = spark.read.format("kafkapcap").option("table", "problems")
    (row,) = of_frame(reader.load(str(bad)))
    assert (row["file"], row["kind"]) == (str(bad), "unreadable")
    with pytest.raises(Exception, match=r"Unreadable: .*bad\.pcap"):
        reader.option("failOnError", "true").load(str(bad)).collect()


@pytest.mark.timeout(120)
def test_a_file_name_that_is_not_utf8(spark: SparkSession, tmp_path: Path) -> None:
    """Also where Spark plans, in another Python process."""
    name = b"caf\xe9.pcap"
    for folder, data in (("good", Path(FILE).read_bytes()), ("bad", b"no capture at all")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / os.fsdecode(name)).write_bytes(data)
    reader = spark.read.format("kafkapcap")
    rows = of_frame(reader.load(str(tmp_path / "good")))
    assert {Path(row["file"]).name for row in rows} == {r"caf\udce9.pcap"}
    with pytest.raises(Exception, match=r"Unreadable: .*caf.udce9\.pcap: not a capture file"):
        reader.option("failOnError", "true").load(str(tmp_path / "bad")).collect()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "table",
            "exchange",
            "option table: invalid value 'exchange': expected a table: exchanges, ",
        ),
        (
            "splitBytes",
            "0",
            "option splitBytes: invalid value '0': expected an integer of at least 1",
        ),
        ("startTs", "yesterday", "expected a time such as 2026-"),
        ("redact", "yes", "expected true or false"),
        ("brokers", "localhost", "expected host:port"),
        ("ports", "9092,65536", "invalid value '65536': expected a port"),
        ("apis", "Fetsh", "'Fetsh': expected an API name or key, such as fetch"),
        ("sets", "host", "expected one of all, directory, file"),
        ("splitByte", "1m", "unknown option 'splitByte': expected splitBytes"),
        ("end_ts", "1", "unknown option 'end_ts': expected endTs"),
    ],
)
def test_invalid_options_are_refused_by_name(option: str, value: str, message: str) -> None:
    with pytest.raises(BadOption) as caught:
        parse({option: value})
    assert message in str(caught.value)


def test_an_unknown_option(spark: SparkSession) -> None:
    with pytest.raises(BadOption, match="unknown option 'region': expected one of table, ports, "):
        read(spark, FILE, region="eu-west-1")
    frame = spark.read.format("kafkapcap").option("region", "eu-west-1").load(FILE)
    with pytest.raises(Exception, match="unknown option 'region': expected one of table, ports, "):
        frame.collect()


def test_options_pickle() -> None:
    options = parse({"maxFlowBytes": "1m", "idleTimeout": "60s"})
    again = pickle.loads(pickle.dumps(options))
    assert again == options
    assert again.reassembly.max_held_bytes == 1 << 20
    assert again.reassembly.silence_ns == 60_000_000_000


def test_options_in_any_case() -> None:
    options = parse(
        {
            "SPLITBYTES": "2m",
            "startTs": "2026-11-21T17:00:00Z",
            "endTs": "1795280400",
            "ports": "1, 2",
        }
    )
    assert options.split_bytes == 2 << 20
    assert options.start_ns == options.end_ns == 1_795_280_400_000_000_000
    assert options.ports == (1, 2)


def test_the_option_columns(spark: SparkSession) -> None:
    """Spark passes no selection on, but this option, so that other columns are not made."""
    reader = spark.read.format("kafkapcap").option("columns", "api_name, packet")
    found = of_frame(reader.load(FILE))
    assert found == [
        {"api_name": row["api_name"], "packet": row["packet"]}
        for row in rows_of([FILE], "exchanges")
    ]
    message = r"option columns: invalid value 'nope': expected a column of exchanges"
    with pytest.raises(Exception, match=message):
        reader.option("columns", "nope").load(FILE)
    with pytest.raises(BadOption, match=message):
        read(spark, FILE, columns=["nope"])


def test_a_stream_says_what_to_use_instead(spark: SparkSession, tmp_path: Path) -> None:
    def start() -> None:
        frame = spark.readStream.format("kafkapcap").load(FILE)
        stream = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        stream.start().awaitTermination()

    with pytest.raises(Exception, match="kafkapcap does not read streams: use `kafkawire spark"):
        start()
