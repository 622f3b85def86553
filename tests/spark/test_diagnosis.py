"""Findings in Spark: those of one process for each set of files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.files.packet_offsets import packets
from kafkawire.capture.multifile import Traffic
from kafkawire.reports.diagnosis.registry import RuleError
from kafkawire.reports.reading import Reading
from kafkawire.reports.tables import read_report_tables
from kafkawire.spark import findings, report_table
from kafkawire.spark.errors import BadOption
from kafkawire.spark.report_tables import Progress
from tests.conftest import FIXTURES

HEADER = 24
HOSTS = {"first": "commit-rate", "second": "expelled-members"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of two hosts, each rotated once."""
    made = tmp_path_factory.mktemp("hosts")
    for host, incident in HOSTS.items():
        data = gzip.decompress((FIXTURES / "incidents" / f"{incident}.pcap.gz").read_bytes())
        offsets, _ = packets(data, HEADER, 16, False, 1 << 18, len(data))
        half = int.from_bytes(offsets[len(offsets) // 16 * 8 :][:8], "little")
        (made / host).mkdir()
        (made / host / "b.pcap").write_bytes(data[:half])
        (made / host / "a.pcap").write_bytes(data[:HEADER] + data[half:])
    return made


def expected(files: Iterator[Path], table: str = "findings") -> list[dict[str, Any]]:
    captures = Reading(Traffic(list(files)), Progress())
    found = read_report_tables(captures, [table])
    return [row for _, batch in found for row in batch.to_pylist()]


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out the set, and times: Spark's have no zone, and there are nanoseconds beside them."""
    left_out = ("set", "first_time", "last_time", "time")
    return {name: value for name, value in row.items() if name not in left_out}


def test_each_directory_is_a_capture(spark: SparkSession, root: Path) -> None:
    """Files of a directory are read together, in the order of their packets."""
    frame = findings(spark, [str(root / host) for host in HOSTS])
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    assert frame.rdd.getNumPartitions() == len(HOSTS)
    for host, incident in HOSTS.items():
        of_host = [without_times(row) for row in rows if row["set"] == str(root / host)]
        assert of_host == [without_times(row) for row in expected((root / host).iterdir())]
        assert of_host[0]["rule"] == incident
    files = {Path(each["file"]).name for row in rows for each in row["packets"]}
    assert files == {"a.pcap", "b.pcap"}, "of one capture, in their order"


@pytest.mark.parametrize("table", ["lag", "load"])
def test_tables_over_time_are_those_of_each_capture(
    spark: SparkSession, root: Path, table: str
) -> None:
    """With the widths and the starts of the buckets, which each capture has for itself."""
    frame = report_table(spark, [str(root / host) for host in HOSTS], table)
    rows = [row.asDict() for row in frame.collect()]
    for host in HOSTS:
        of_host = [without_times(row) for row in rows if row["set"] == str(root / host)]
        assert of_host == [without_times(row) for row in expected((root / host).iterdir(), table)]
    assert len({(row["set"], row["time_ns"]) for row in rows}) > len(HOSTS), "several buckets"


def test_each_file_is_a_capture(spark: SparkSession, root: Path) -> None:
    rows = findings(spark, [str(root / "first")], sets="file").collect()
    assert {row["set"] for row in rows} <= {str(file) for file in (root / "first").iterdir()}
    assert {row["count"] for row in rows if row["rule"] == HOSTS["first"]} != {
        row["count"] for row in expected((root / "first").iterdir())
    }


def test_rules_are_changed(spark: SparkSession, root: Path) -> None:
    def rules(**changed: Any) -> set[str]:
        return {row["rule"] for row in findings(spark, str(root / "first"), **changed).collect()}

    name = HOSTS["first"]
    assert name in rules()
    assert name not in rules(disable=[name])
    assert name not in rules(thresholds={f"{name}.per_second": 1e9})
    assert name not in rules(where="api == Metadata")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"disable": ["no-such-rule"]}, RuleError),
        ({"thresholds": {"commit-rate.no": 1}}, RuleError),
        ({"topics": "t"}, BadOption),
        ({"redact": "true"}, BadOption),
        ({"table": "records"}, BadOption),
        ({"where": "api ="}, BadOption),
    ],
)
def test_wrong_options(
    spark: SparkSession, root: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        findings(spark, str(root / "first"), **options)


def test_wrong_tables_and_options_of_tables(spark: SparkSession, root: Path) -> None:
    with pytest.raises(BadOption, match="lag, load; did you mean 'load'"):
        report_table(spark, str(root / "first"), "loads")
    with pytest.raises(BadOption, match="need all rows"):
        report_table(spark, str(root / "first"), "lag", topics="t")
    with pytest.raises(FileNotFoundError):
        report_table(spark, str(root / "nothing.pcap"), "lag")
