"""The values of a topic as typed columns: of `kafkawire sql`, and of captures in Python."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import kafkawire
from kafkawire.capture.tables import TABLES
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.net.brokers.recording import Recording
from kafkawire.records import BatchBuilder
from kafkawire.sql.topic_values import TopicTable
from kafkawire.sql.value_types import MAX_FIELDS, ValueTypes
from kafkawire.values import ValueDecoder, ValueFormat
from tests.cli.reports import run
from tests.new_process import in_new_process

SUM = 'SELECT sum(value.amount) AS total, count(error) AS errors FROM "the.orders"'


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Three values of the topic the.orders, one of which is not JSON, and one of another."""
    topics = []
    for name, values in (
        ("the.orders", (b'{"amount": 2}', b'{"amount": 2.5, "to": {}}', b"{", None)),
        ("other", (b'{"amount": 100}',)),
    ):
        batch = BatchBuilder()
        for value in values:
            batch.append(b"k", value, timestamp=1)
        partition = PartitionProduceData(index=0, records=batch.build())
        topics.append(TopicProduceData(name=name, partition_data=[partition]))
    path = tmp_path / "orders.pcap"
    recording = Recording(path)
    number = recording.open(("10.0.0.1", 50000), ("10.0.0.2", 9092))
    request = ProduceRequest(acks=1, topic_data=topics)
    recording.received(number, kafkawire.encode_frame(request, 9, 7))
    recording.close()
    return path


def test_sql(capture: Path) -> None:
    options = ("--topic", "the.orders", "--values", "json", "-f", "jsonl")
    done = run("sql", SUM, capture, *options)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"total": 4.5, "errors": 1}
    joined = 'SELECT count(*) AS n FROM "the.orders" JOIN messages USING (packet)'
    assert json.loads(run("sql", joined, capture, *options).stdout) == {"n": 4}


def test_what_is_not_decoded_is_said(capture: Path) -> None:
    options = ("--topic", "the.orders", "--values", "json", "-f", "jsonl")
    done = run("sql", 'SELECT DISTINCT file, connection FROM "the.orders"', capture, *options)
    assert json.loads(done.stdout) == {"file": str(capture), "connection": 0}
    assert "1 of 4 values" in done.stderr
    assert done.exit_code == 0
    done = run("sql", "SELECT 1", capture, *options, "--strict")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"1": 1})
    for odd, note in (("no-such-topic", "no records"), ("the.orders", "JSON text")):
        form = ("--topic", odd, "--values", "auto")
        assert note in run("sql", "SELECT 1", capture, *form).stderr
    other = run("sql", "SELECT 1", capture, "--topic", "other", "--values", "json")
    assert other.stderr == ""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--topic", "t"), "required by --topic"),
        (("--values", "json"), "required by --values"),
        (("--values", "json", "--topic", "t", "--redact"), "not allowed with --redact"),
    ],
)
def test_usage_errors(options: tuple[str, ...], reason: str, capture: Path) -> None:
    done = run("sql", "SELECT 1", capture, *options)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())


def test_a_capture_in_python(capture: Path) -> None:
    decoder = ValueDecoder(ValueFormat.JSON)
    with kafkawire.open_capture(capture) as opened:
        rows = opened.values("the.orders", decoder).to_arrow().to_pylist()
        assert [row["value"] and row["value"]["amount"] for row in rows] == [2, 2.5, None, None]
        assert [row["error"] is None for row in rows] == [True, True, False, True]
        assert [row["offset"] for row in rows] == [0, 1, 2, 3]
        assert list(opened.sql(SUM)) == [{"total": 4.5, "errors": 1}]
        opened.values("other", decoder)
        assert list(opened.sql("SELECT value.amount FROM other")) == [{"amount": 100}]
        assert len(opened.values("missing", decoder)) == 0
    hidden = kafkawire.open_capture(capture, redact=True)
    with hidden, pytest.raises(ValueError, match="redacted"):
        hidden.values("other", decoder)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 2], pa.int64()),
        ([Decimal("1.5")], pa.decimal128(2, 1)),
        ([UUID(int=1)], pa.string()),
        ([{"a": [b"x"]}], pa.struct([("a", pa.list_(pa.binary()))])),
        ([{"a": 1}, {"a": "x"}], pa.string()),
        ([{"a": {}, "b": 1}], pa.struct([("a", pa.null()), ("b", pa.int64())])),
        ([{1: 2}], pa.string()),
        ([2**70], pa.string()),
        ([{str(at): at} for at in range(MAX_FIELDS + 1)], pa.string()),
        ([], pa.null()),
    ],
)
def test_types(values: list[Any], kind: pa.DataType) -> None:
    together, one_by_one = ValueTypes(), ValueTypes()
    together.add(values)
    for value in values:
        one_by_one.add([value])
    for types in (together, one_by_one):
        column = types.array(values)
        assert column.type == types.type == kind
        assert len(column) == len(values)


@pytest.mark.parametrize("later", [{"a": "x"}, {str(at): at for at in range(MAX_FIELDS)}])
def test_values_that_turn_out_to_be_text(later: dict[str, Any]) -> None:
    types = ValueTypes()
    types.add([{"a": 1}])
    types.add([later])
    types.add([{"b": 1}])
    assert types.array([{"a": 1}]).to_pylist() == ['{"a": 1}']


def test_fields_of_different_objects_are_counted() -> None:
    """A chain of objects with the same names may have as many fields as different names."""
    types = ValueTypes()
    for at in range(1 + MAX_FIELDS // 8):
        types.add([{f"x{at}": {"a": {"a": {"a": [{"a": {"a": {"a": {"a": 1}}}}]}}}}])
    assert types.is_text


def batches(values: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """Make batches of the table records, of one record each."""
    schema = TABLES["records"].schema
    for offset, value in enumerate(values):
        row = {"topic": "t", "offset": offset, "value": value, "headers": [], "control": False}
        yield pa.RecordBatch.from_pylist([row], schema)


def test_a_type_that_does_not_hold_all_values(tmp_path: Path) -> None:
    """An integer that float64 does not hold exactly is found when the table is written."""
    large = 2**62 + 1
    rows = batches([b"1.5", str(large).encode()])
    table = TopicTable(rows, "t", ValueDecoder(ValueFormat.JSON), tmp_path)
    assert table.reader().read_all()["value"].to_pylist() == ["1.5", str(large)]


def peak(folder: str, count: int) -> int:
    """Return the memory that the table of so many values of 32 KiB takes, made and read."""
    value = json.dumps({"text": "x" * (1 << 15)}).encode()
    tracemalloc.start()
    table = TopicTable(
        batches(value for _ in range(count)), "t", ValueDecoder(ValueFormat.JSON), Path(folder)
    )
    rows = sum(len(batch) for batch in table.reader())
    assert rows == count
    of_arrow: int = pa.default_memory_pool().max_memory()
    return tracemalloc.get_traced_memory()[1] + of_arrow


def test_memory_does_not_grow_with_the_topic(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "few", "many")]
    for folder in folders:
        folder.mkdir()
    calls = [*zip(map(str, folders), (40, 40, 400), strict=True)]
    _, few, many = in_new_process(peak, calls)
    assert many < few + (4 << 20), "the values are 13 MB"
