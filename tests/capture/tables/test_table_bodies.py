"""`messages` with the bodies of one message as columns: types and values of the target arrow."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

import kafkawire
from kafkawire.capture import tables
from kafkawire.capture.tables import bodies
from kafkawire.capture.tables.arrow.schemas import arrow_type
from kafkawire.messages import REGISTRY
from kafkawire_cli.main import app
from tests import vectors
from tests.codegen.test_arrow import rows, schemas  # noqa: F401 - a fixture
from tests.conftest import FIXTURES

CAPTURE: Final = FIXTURES / "captures" / "kcat-kf.pcap"


def test_types_are_those_of_the_target(schemas: ModuleType) -> None:  # noqa: F811
    for name in vectors.NAMES:
        wanted = pa.struct(list(schemas.schema(name)))
        made = arrow_type(bodies.body_type(REGISTRY.load(name)))
        assert str(made) == str(wanted)  # without metadata


@pytest.mark.parametrize("name", sorted(vectors.by_message("messages")))
def test_values_are_those_of_the_target(schemas: ModuleType, name: str) -> None:  # noqa: F811
    cls = REGISTRY.load(name)
    for row, wanted in zip(vectors.by_message("messages")[name], rows(schemas, name), strict=True):
        text = json.dumps(kafkawire.to_json(vectors.instance(row), row["version"]))
        made = bodies.body(cls, row["version"], json.loads(text))
        assert vectors.same(made, wanted), vectors.where(row)


@pytest.mark.parametrize("name", ["FetchRequest", "FetchResponse", "MetadataResponse"])
def test_rows_are_those_of_the_message(schemas: ModuleType, name: str) -> None:  # noqa: F811
    info = REGISTRY.get(name)
    wanted = [
        (each.row.correlation_id, schemas.row(name, each.row.message, each.row.body_version))
        for each in kafkawire.capture.decode_capture(str(CAPTURE))
        if (each.row.api_key, each.row.direction) == (info.api_key, info.type)
    ]
    found = [
        (row["correlation_id"], row["body"])
        for batch in bodies.typed(tables.read(str(CAPTURE), "messages"), name)
        for row in batch.to_pylist()
    ]
    assert wanted
    assert found == wanted


def test_other_columns_are_those_of_the_table() -> None:
    (whole,) = tables.read(str(CAPTURE), "messages", where="api == Fetch and direction == request")
    (made,) = bodies.typed([whole], "FetchRequest")
    assert made.schema == bodies.schema("FetchRequest")
    assert made.drop_columns("body") == whole.drop_columns("body")


def test_a_body_that_was_not_decoded_is_null() -> None:
    batch = next(tables.read(str(CAPTURE), "messages", where="api == Fetch"))
    at = batch.schema.get_field_index("body")
    empty = batch.set_column(at, "body", pa.nulls(len(batch), pa.string()))
    (made,) = bodies.typed([empty], "FetchRequest")
    assert made.num_rows
    assert made.column("body").null_count == made.num_rows


def test_an_unknown_message_is_an_error() -> None:
    with pytest.raises(KeyError, match="NoSuchRequest"):
        bodies.schema("NoSuchRequest")


def test_text_that_is_not_utf_8_is_escaped() -> None:
    text = json.dumps({"groupId": "\udcff", "generationId": 1, "memberId": "m"})
    batch = next(tables.read(str(CAPTURE), "messages")).slice(0, 1)
    values = {"direction": "request", "api_key": 12, "body_version": 0, "body": text}
    for name, value in values.items():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, pa.array([value], batch.schema.field(at).type))
    (made,) = bodies.typed([batch], "HeartbeatRequest")
    assert made.column("body")[0]["group_id"].as_py() == "\\udcff"


# -- the command


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["decode", *map(str, arguments)])


def written(tmp_path: Path, capture: Path, message: str, *options: str) -> list[dict[str, Any]]:
    out = tmp_path / "bodies.parquet"
    result = run(capture, "--table", "messages", "--bodies", message, "-o", out, *options)
    assert result.exit_code == 0, result.output
    table = parquet.read_table(out)
    assert table.schema == bodies.schema(message)
    return [row["body"] for row in table.to_pylist()]


def test_the_command_writes_parquet(tmp_path: Path) -> None:
    found = written(tmp_path, CAPTURE, "FetchResponse")
    (batch,) = bodies.typed(tables.read(str(CAPTURE), "messages"), "FetchResponse")
    assert found == batch.column("body").to_pylist()


def test_redacted_records_stay_hidden(tmp_path: Path) -> None:
    redacted = written(tmp_path, CAPTURE, "FetchResponse", "--redact")
    records = [p["records"] for b in redacted for t in b["responses"] for p in t["partitions"]]
    assert records
    assert all(value is None or value.startswith(b"(redacted, ") for value in records)


def test_a_message_is_named_as_elsewhere() -> None:
    for name in ("fetchrequest", "fetch_request", "FetchRequest"):
        result = run(CAPTURE, "--table", "messages", "--bodies", name)
        assert '"max_wait_ms":' in result.stdout


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--table", "messages", "--bodies", "Fetch"], "expected FetchRequest or FetchResponse"),
        (["--table", "messages", "--bodies", "FetchReques"], "did you mean FetchRequest?"),
        (["--table", "messages", "--bodies", "RequestHeader"], "unknown message 'RequestHeader'"),
        (
            ["--table", "exchanges", "--bodies", "FetchRequest"],
            "only allowed with --table messages",
        ),
        (["--bodies", "FetchRequest"], "only allowed with --table"),
    ],
)
def test_mistakes_of_usage(options: list[str], error: str) -> None:
    result = run(CAPTURE, *options)
    assert result.exit_code == 2
    assert error in " ".join(result.stderr.replace("│", " ").split())
