"""Every option has the same effect in the data source, the job and a single process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import TABLES
from kafkawire.capture.tables.redaction import redacted
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY
from kafkawire.spark import job
from kafkawire.spark.options import SETTERS, parse
from kafkawire.spark.write.output_directory import MANIFEST
from tests.capture.dialogue import Sent, hello, packets
from tests.capture.wire import pcap
from tests.conftest import FIXTURES

from .conftest import counted, of_frame, rows_of

Row = dict[str, Any]

REQUEST: Final = bytes.fromhex("0000001f0012000300000001000161000a6b61666b61776972650431")
SECOND: Final = 1_000_000_000
MIDDLE: Final = 1_795_234_221
"""Of kcat-kf.pcap, in seconds."""


class Case(NamedTuple):
    """An option, its table and capture; arguments for a single process; a filter of its rows."""

    options: dict[str, str]
    table: str
    capture: str = "kcat-kf.pcap"
    arguments: dict[str, Any] = {}  # noqa: RUF012
    left: Callable[[list[Row]], list[Row]] = list


def without(*names: str) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**row, **dict.fromkeys(names)} for row in rows]


def where(test: Callable[[Row], bool]) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if test(row)]


def waiting(**limits: int) -> dict[str, Any]:
    return {"reassembly": replace(DEFAULT_REASSEMBLY, **limits)}


def hidden(table: str) -> Callable[[list[Row]], list[Row]]:
    def left(rows: list[Row]) -> list[Row]:
        batch = pyarrow.RecordBatch.from_pylist(rows, TABLES[table].schema)
        found: list[Row] = redacted(table, batch).to_pylist()
        return found

    return left


def rows_of_api(api: str) -> Callable[[list[Row]], list[Row]]:
    return where(lambda row: row["api_name"] == api)


CASES: Final = {
    # the port of a client, whose requests are answers then
    "ports": Case({"ports": "47622,47636"}, "problems", arguments={"ports": [47622, 47636]}),
    "brokers": Case(
        {"brokers": "127.0.0.1:47622"}, "exchanges", arguments={"brokers": ["127.0.0.1:47622"]}
    ),
    "apis": Case({"apis": "find_coordinator"}, "exchanges", left=rows_of_api("FindCoordinator")),
    "apis, a request": Case({"apis": "FetchRequest"}, "messages", left=rows_of_api("Fetch")),
    "apis, by key": Case(
        {"apis": "0"}, "records", left=where(lambda row: row["direction"] == "produce")
    ),
    "topics": Case(
        {"topics": "kc"}, "exchanges", left=where(lambda row: "kc" in (row["topics"] or ()))
    ),
    "topics, none of them": Case({"topics": "k, nobody"}, "records", left=lambda _: []),
    "startTs": Case(
        {"startTs": str(MIDDLE)},
        "messages",
        left=where(lambda row: row["time_ns"] >= MIDDLE * SECOND),
    ),
    "endTs": Case(
        {"endTs": "2026-11-21T04:10:21Z"},
        "records",
        left=where(lambda row: row["time_ns"] < MIDDLE * SECOND),
    ),
    "includeBodies": Case({"includeBodies": "false"}, "messages", left=without("body", "raw")),
    "includeRecords": Case(
        {"includeRecords": "false"}, "records", left=without("key", "value", "headers")
    ),
    "includeRecords, redact": Case(
        {"includeRecords": "false", "redact": "true"},
        "records",
        left=without("key", "value", "headers"),
    ),
    "redact": Case({"redact": "true"}, "records", left=hidden("records")),
    "redact, bodies": Case({"redact": "TRUE"}, "messages", left=hidden("messages")),
    "maxFlowBytes": Case(
        {"maxFlowBytes": "1"}, "problems", "kcat-kf--loss.pcap", waiting(max_held_bytes=1)
    ),
    "idleTimeout": Case({"idleTimeout": "1s"}, "connections", "", waiting(silence_ns=SECOND)),
}


def silent_capture(folder: Path) -> str:
    """Write a connection that goes on elsewhere after two seconds."""
    path = folder / "silent.pcap"
    sent = [*hello(), Sent(0, 0, REQUEST), Sent(0, 1 << 22, REQUEST, after_ms=2000)]
    path.write_bytes(pcap(packets(sent), magic=0xA1B23C4D))
    return str(path)


def written(spark: SparkSession, file: str, table: str, options: dict[str, str], to: Path) -> Any:
    """The rows that the job writes."""
    job.run(spark, [file], str(to), [table], parse(options))
    names = TABLES[table].schema.names
    if not list((to / table).rglob("*.parquet")):
        return []
    found = pyarrow.dataset.dataset(to / table, TABLES[table].schema, partitioning=None)
    return found.to_table(names).to_pylist()


@pytest.mark.parametrize("name", CASES)
def test_an_option(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    file = str(FIXTURES / "captures" / case.capture) if case.capture else silent_capture(tmp_path)
    want = counted(case.left(rows_of([file], case.table, **case.arguments)))
    assert want != counted(rows_of([file], case.table))
    reader = spark.read.format("kafkapcap").options(**case.options).option("table", case.table)
    assert counted(of_frame(reader.load(file))) == want
    assert counted(written(spark, file, case.table, case.options, tmp_path / "out")) == want


def test_every_option_is_tested() -> None:
    """The others are tested elsewhere: rows of each split size, failing files, directories."""
    tried = {option for case in CASES.values() for option in case.options}
    others = {"table", "splitBytes", "chunkBytes", "partitions", "sets", "failOnError"}
    others |= {"keylog", "scratch", "tunnels", "where"}
    assert tried | others == set(SETTERS)


def test_split_bytes(spark: SparkSession, tmp_path: Path) -> None:
    """The data source ignores it; rows are the same."""
    file = str(FIXTURES / "captures" / "kcat-kf.pcap")
    want = counted(rows_of([file], "exchanges"))
    splits = []
    for size in ("1", "4k", "1m"):
        options = {"splitBytes": size}
        assert counted(written(spark, file, "exchanges", options, tmp_path)) == want
        splits.append(json.loads((tmp_path / MANIFEST).read_text())["splits"])
        reader = spark.read.format("kafkapcap").options(**options)
        assert counted(of_frame(reader.load(file))) == want
    assert splits[0] > splits[1] > splits[2] == 1
