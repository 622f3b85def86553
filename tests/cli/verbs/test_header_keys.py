"""A header key that is not UTF-8, wherever a record is shown: U+FFFD, and its bytes beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafkawire.client.consumer import ConsumerRecord
from kafkawire.records import ReplacedText, TimestampType
from kafkawire_cli.render.consumed_records import writer
from tests.cli.reports import run
from tests.conftest import FIXTURES

CAPTURE = FIXTURES / "field" / "06-header-key.pcap"
FOLDER = FIXTURES / "field" / "06-header-key" / "orders-0"
SHOWN = "Stra\ufffde"
AS_JSON = [[SHOWN, {"text": "x"}, {"hex": "53747261df65"}]]
AS_ROW = [{"key": SHOWN, "value": b"x", "key_bytes": b"Stra\xdfe"}]


def json_lines(*arguments: object) -> list[Any]:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("options", [(), ("--strict",), ("--jobs", "2")])
def test_decode(options: tuple[str, ...]) -> None:
    request, _ = json_lines("decode", CAPTURE, "--records", "--format", "jsonl", *options)
    (field,) = request["records"]
    assert (request["status"], field["records"], "error" in field) == ("ok", 4, False)
    assert [each.get("headers") for each in field["content"]] == [None, AS_JSON, None, None]


def test_decode_as_a_tree() -> None:
    text = run("decode", CAPTURE, "--records", "--format", "tree").stdout
    assert SHOWN in text
    assert "53747261df65" in text


@pytest.mark.parametrize("options", [(), ("--redact",)])
def test_the_table_of_records(tmp_path: Path, options: tuple[str, ...]) -> None:
    out = tmp_path / "records.parquet"
    assert run("decode", CAPTURE, "--table", "records", "-o", out, *options).exit_code == 0
    headers = pq.read_table(out).column("headers").to_pylist()
    shown = [[{**each, "value": b"x"} for each in row] for row in headers]
    assert shown == [[], AS_ROW, [], []]
    _, line, _, _ = json_lines("decode", CAPTURE, "--table", "records", *options)
    assert (line["headers"][0]["key"], line["headers"][0]["key_bytes"]) == (SHOWN, "U3RyYd9l")


def test_problems_and_sql() -> None:
    assert json_lines("decode", CAPTURE, "--table", "problems") == []
    query = "select h.key, hex(h.key_bytes) as raw from (select unnest(headers) as h from records)"
    assert json_lines("sql", query, CAPTURE, "--format", "jsonl") == [
        {"key": SHOWN, "raw": "53747261DF65"}
    ]


def test_log(tmp_path: Path) -> None:
    rows = json_lines("log", FOLDER)
    assert [row["headers"] for row in rows] == [[], AS_JSON, [], [], []]
    assert f"{SHOWN}(0x53747261df65)=x" in run("log", FOLDER, "--format", "table").stdout
    out = tmp_path / "log.parquet"
    assert run("log", FOLDER, "--format", "parquet", "--out", out).exit_code == 0
    assert pq.read_table(out).column("headers").to_pylist() == [[], AS_ROW, [], [], []]


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("table", f"{SHOWN}(0x53747261df65)=x".encode()),
        ("%h", b"Stra\xdfe=x"),
        (
            "json",
            b'{"key": "Stra\\ufffde", "value": {"text": "x"}, "keyBytes": {"hex": "53747261df65"}}',
        ),
    ],
)
def test_consume(form: str, wanted: bytes) -> None:
    headers = ((ReplacedText(b"Stra\xdfe"), b"x"),)
    record = ConsumerRecord("t", 0, 0, 0, None, b"v", headers, TimestampType.CREATE_TIME, 0)
    assert wanted in writer(form, ["t"])(record)
