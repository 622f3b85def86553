"""Columns of records to send are read as Arrow has them, also from parts of a batch."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest

from kafkawire.client.producer.arrow import send_columns

KEYS = [b"a", None, b"ccc", b"", b"dd"]
VALUES = ["x", "yy", None, "z", "\N{EURO SIGN}"]


@pytest.mark.parametrize("start", range(len(KEYS)))
def test_slices_have_their_rows(start: int) -> None:
    batch = pa.record_batch({"key": pa.array(KEYS, pa.binary()), "value": pa.array(VALUES)})
    for rows in range(len(KEYS) - start + 1):
        columns = send_columns(batch.slice(start, rows), 0)
        assert columns.keys == KEYS[start : start + rows]
        expected = VALUES[start : start + rows]
        assert [each and each.decode() for each in columns.values] == expected


def test_a_slice_does_not_copy_the_rest() -> None:
    """Whoever sends a large batch in slices copies each row once."""
    size, rows = 1 << 16, 128
    batch = pa.record_batch({"value": pa.array([bytes(size)] * rows, pa.binary())})
    tracemalloc.start()
    try:
        send_columns(batch.slice(rows // 2, 1), 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * size
