"""Every record in every recording, against kafka-python's reading of the same bytes."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture import decode_capture
from kafkawire.primitives import Structure
from kafkawire.records import Record, RecordBatches
from tests.capture.truth import lines
from tests.recordings import unchanged

PATHS = unchanged("*.records.jsonl.gz")


def fields(message: Structure) -> Iterator[bytes]:
    """Find what is in the records fields of a message, in wire order."""
    for row in message.__fields__:
        value = getattr(message, row.attribute)
        if row.type == "records" and value:
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], Structure):
            for one in value:
                yield from fields(one)


def shown(record: Record, control: bool) -> dict[str, Any]:
    """Show a record as the truth does."""
    row: dict[str, Any] = {
        "o": record.offset,
        "ts": None if record.timestamp < 0 else record.timestamp,
        "k": based(record.key),
        "v": based(record.value),
    }
    if record.headers:
        row["h"] = [[key, based(value)] for key, value in record.headers]
    if control:
        row["control"] = True
    return row


def based(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def digest(records: list[Record]) -> str:
    """Sum up records as the truth does for large captures."""
    rows = [f"{r.offset}|{based(r.key)}|{based(r.value)}" for r in records]
    return hashlib.sha1("\n".join(rows).encode()).hexdigest()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.split(".")[0])
def test_records_are_the_truth(path: Path) -> None:
    capture = path.with_name(path.name.replace(".records.jsonl.gz", ".pcap"))
    messages = [found.row.message for found in decode_capture(capture) if found.row.is_message]
    for number, group in groupby(lines(path), key=lambda row: row["row"]):
        message = messages[number]
        assert message is not None
        wanted = list(group)
        found = list(fields(message))
        assert [len(data) for data in found] == [row["bytes"] for row in wanted]
        for data, row in zip(found, wanted, strict=True):
            compare(RecordBatches(data), row)


def compare(field: RecordBatches, row: dict[str, Any]) -> None:
    """Compare one field with one row of truth."""
    codecs = Counter(str(int(batch.compression)) for batch in field)
    assert codecs == row["codecs"]
    records = list(field.records())
    assert len(records) == row["n"] == len(field.columns())
    if "records" in row:
        assert [shown(r, batch.control) for batch in field for r in batch] == row["records"]
    else:
        if row["first"] is not None:  # left out where it is too large
            assert shown(records[0], False) == row["first"]
        assert digest(records) == row["sha1"]
