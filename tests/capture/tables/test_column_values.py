"""Columns that C lays out are those that its Python twin does, to the byte; and Arrow reads them as
the values they were made of.
"""

from __future__ import annotations

from array import array
from struct import pack
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture.tables.arrow import values
from kafkawire.capture.tables.arrow.arrays import from_column, repeated_texts, texts
from kafkawire.records import BatchBuilder, RecordBatches
from tests.twins import twin

TWIN: Final = twin(values)
TEXTS: Final = st.lists(st.none() | st.text(max_size=20))
BYTES: Final = st.lists(st.none() | st.binary(max_size=40))
NO_UTF8: Final = "not \udcff text"


def both(name: str, *given: Any) -> Any:
    """Call both versions, which must agree."""
    made = getattr(values, name)(*given)
    assert made == getattr(TWIN, name)(*given)
    return made


@given(TEXTS)
def test_texts(some: list[str | None]) -> None:
    assert from_column(pa.string(), both("texts", some)).to_pylist() == some


@given(st.lists(st.tuples(st.none() | st.text(max_size=20), st.integers(0, 40))))
def test_repeated(some: list[tuple[str | None, int]]) -> None:
    counts = array("q", [count for _, count in some]).tobytes()
    made = from_column(pa.string(), both("repeated", [text for text, _ in some], counts))
    made.validate(full=True)
    assert made.to_pylist() == [text for text, count in some for _ in range(count)]


@given(BYTES)
def test_viewed(some: list[bytes | None]) -> None:
    batch = BatchBuilder()
    for value in some:
        batch.append(None, value)
    columns = RecordBatches(batch.build() if some else b"").columns()
    column = columns.value
    if column.nulls == columns.rows:
        return  # such a column has no memory
    valid = column.valid if column.nulls else bytearray()
    made = both("viewed", column.words, valid, columns.rows, columns.buffers)
    assert from_column(pa.binary(), made).to_pylist() == some


@pytest.mark.parametrize("module", [values, TWIN], ids=["as built", "python"])
@pytest.mark.parametrize(
    "view",
    [
        pack("<i4xii", 13, 0, 8),  # ends behind the buffer
        pack("<i4xii", 13, 0, -1),
        pack("<i4xii", 13, 1, 0),  # no such buffer
        pack("<i4xii", 13, -1, 0),
        pack("<i12x", -1),
    ],
)
def test_a_view_out_of_range(module: ModuleType, view: bytes) -> None:
    with pytest.raises(ValueError, match="view in row 0 out of range"):
        module.viewed(bytearray(view), bytearray(), 1, [bytes(20)])


@pytest.mark.parametrize("module", [values, TWIN], ids=["as built", "python"])
def test_buffers_that_are_too_small(module: ModuleType) -> None:
    with pytest.raises(ValueError, match="buffers too small for 2 rows"):
        module.viewed(bytearray(16), bytearray(), 2, [b""])
    with pytest.raises(ValueError, match="buffers too small for 9 rows"):
        module.viewed(bytearray(9 * 16), bytearray(1), 9, [b""])


@pytest.mark.parametrize("module", [values, TWIN], ids=["as built", "python"])
def test_columns_above_2_gib_are_rejected(module: ModuleType) -> None:
    with pytest.raises(OverflowError):
        module.repeated(["x" * (1 << 20)], array("q", [1 << 11]).tobytes())
    with pytest.raises(OverflowError):
        module.repeated(["x"], array("q", [-1]).tobytes())


def test_invalid_utf8() -> None:
    counts = pa.array([2, 1]).to_numpy()
    assert texts([NO_UTF8, None]).to_pylist() == ["not \\udcff text", None]
    shown = ["not \\udcff text", "not \\udcff text", None]
    assert repeated_texts([NO_UTF8, None], counts).to_pylist() == shown
