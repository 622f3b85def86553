"""The records in every recording against what kafka-python reads in the same batches."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.jsonl.records_fields import Count, records_fields
from kafkawire.records import Record, RecordBatches
from tests.capture import truth


def records_of(path: Path) -> Path:
    """Find kafka-python's reading of the records in the same capture."""
    return path.with_name(path.name.split(".truth")[0] + ".records.jsonl.gz")


CAPTURES = [path for path in truth.captures() if records_of(path).exists()]


def as_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def as_told(record: Record, control: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "o": record.offset,
        "ts": None if record.timestamp == -1 else record.timestamp,
        "k": as_text(record.key),
        "v": as_text(record.value),
        "h": [[name, as_text(value)] for name, value in record.headers],
    }
    if control:
        made["control"] = True
    return made


def test_there_is_truth_for_nearly_all() -> None:
    assert len(CAPTURES) >= 8


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".truth")[0])
def test_records_are_those_that_another_implementation_reads(path: Path) -> None:
    rows = [f.row for f in decode_capture(truth.capture_of(path)) if f.row.is_message]
    ours = []
    for number, row in enumerate(rows):
        if row.message is not None and row.body_version is not None:
            for place in records_fields(row.message, row.body_version):
                if place.data:
                    ours.append((number, place))
    wanted = truth.lines(records_of(path))
    assert [(number, place.partition, len(place.data)) for number, place in ours] == [
        (row["row"], row["partition"], row["bytes"]) for row in wanted
    ]
    for (_, place), theirs in zip(ours, wanted, strict=True):
        batches = list(RecordBatches(place.data))
        codecs: dict[str, int] = {}
        for batch in batches:
            key = str(int(batch.compression))
            codecs[key] = codecs.get(key, 0) + 1
        assert codecs == theirs["codecs"]
        records = [(record, batch.control) for batch in batches for record in batch.records()]
        assert len(records) == theirs["n"]
        assert Count(place.data).records == theirs["n"]
        if "records" in theirs:
            mine = [as_told(record, control) for record, control in records]
            assert [{"h": [], **one} for one in theirs["records"]] == mine
        if "sha1" in theirs:
            lines = "\n".join(
                f"{record.offset}|{as_text(record.key)}|{as_text(record.value)}"
                for record, _ in records
            )
            assert hashlib.sha1(lines.encode()).hexdigest() == theirs["sha1"]


def test_columns_hold_the_same_records() -> None:
    for path in CAPTURES:
        for found in decode_capture(truth.capture_of(path)):
            row = found.row
            if row.message is None or row.body_version is None:
                continue
            for place in records_fields(row.message, row.body_version):
                records = list(RecordBatches(place.data).records())
                table = RecordBatches(place.data).columns().to_arrow()
                assert table.column("offset").to_pylist() == [r.offset for r in records]
                assert table.column("value").to_pylist() == [r.value for r in records]
