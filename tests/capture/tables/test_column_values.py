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
from kafkawire.capture.tables.arrow.arrays import (
    chosen_texts,
    from_column,
    repeated_texts,
    texts,
)
from kafkawire.capture.tables.columns import LAST_TIME
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


@given(st.lists(st.none() | st.text(max_size=20), min_size=1), st.data())
def test_chosen(some: list[str | None], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(some) - 1)))
    made = from_column(pa.string(), both("chosen", some, array("i", chosen).tobytes()))
    made.validate(full=True)
    assert made.to_pylist() == [some[index] for index in chosen]


@given(st.binary(max_size=40))
def test_bits(flags: bytes) -> None:
    made = pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(both("bits", flags))])
    assert made.to_pylist() == [flag != 0 for flag in flags]


@given(st.sampled_from([(1, "b"), (2, "h"), (4, "i"), (8, "q")]), st.data())
def test_copies(width: tuple[int, str], data: st.DataObject) -> None:
    size, form = width
    most = (1 << (8 * size - 1)) - 1
    some = data.draw(st.lists(st.tuples(st.integers(-most, most), st.integers(0, 9))))
    counts = array("q", [count for _, count in some]).tobytes()
    made = both("copies", array(form, [number for number, _ in some]).tobytes(), size, counts)
    assert list(array(form, bytes(made))) == [n for n, count in some for _ in range(count)]


INT64: Final = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 1 << 50)


@given(st.lists(st.tuples(INT64, st.booleans())), st.booleans(), st.booleans())
def test_times(some: list[tuple[int, bool]], is_ms: bool, has_nulls: bool) -> None:
    numbers = array("q", [number for number, _ in some]).tobytes()
    flags = bytes(flag for _, flag in some) if has_nulls else b""
    made, valid = both("times", numbers, flags, is_ms)
    want = [number * 1000 if is_ms else number // 1000 for number, _ in some]
    for at, (time, flag) in enumerate(zip(want, [flag for _, flag in some], strict=True)):
        assert valid[at] == (0 <= time <= LAST_TIME and (flag or not has_nulls))
        assert array("q", bytes(made))[at] == (time if valid[at] else 0)
    assert LAST_TIME == TWIN.LAST_TIME


@given(st.lists(st.tuples(INT64, INT64, st.lists(INT64, max_size=4))))
def test_sequences(batches: list[tuple[int, int, list[int]]]) -> None:
    first, base, counts, offsets = (
        array("q", values).tobytes()
        for values in (
            [first for first, _, _ in batches],
            [base for _, base, _ in batches],
            [len(offsets) for _, _, offsets in batches],
            [offset for _, _, offsets in batches for offset in offsets],
        )
    )
    made = both("sequences", first, base, counts, offsets + bytes(8))
    assert list(array("i", bytes(made))) == [
        -1 if first < 0 else (first + offset - base) & 0x7FFFFFFF
        for first, base, offsets in batches
        for offset in offsets
    ]


def int64s(*numbers: int) -> bytes:
    return array("q", numbers).tobytes()


@pytest.mark.parametrize("module", [values, TWIN], ids=["as built", "python"])
def test_numbers_that_are_refused(module: ModuleType) -> None:
    for index in (-1, 1):
        with pytest.raises(ValueError, match="index in row 0 out of range"):
            module.chosen(["x"], array("i", [index]).tobytes())
    for data, width in ((b"ab", 1), (b"abc", 3)):
        with pytest.raises(ValueError, match="a count for each value"):
            module.copies(data, width, int64s(1))
    for count in (-1, 1 << 31):
        with pytest.raises(OverflowError, match="repeat count"):
            module.copies(b"a", 1, int64s(count))
    with pytest.raises(ValueError, match="a flag for each value"):
        module.times(int64s(1), b"\1\1", False)
    short = ((int64s(2), int64s(1)), (int64s(-1), int64s(1)), (int64s(1 << 62), int64s(1)))
    for counts, offsets in (*short, (int64s(1, 1), int64s(1, 1))):
        with pytest.raises(ValueError, match="buffers too small"):
            module.sequences(int64s(1), int64s(1), counts, offsets)


def test_invalid_utf8() -> None:
    counts = int64s(2, 1)
    assert texts([NO_UTF8, None]).to_pylist() == ["not \\udcff text", None]
    shown = ["not \\udcff text", "not \\udcff text", None]
    assert repeated_texts([NO_UTF8, None], counts).to_pylist() == shown
    assert chosen_texts([None, NO_UTF8], bytes(4) + b"\1\0\0\0").to_pylist() == [None, shown[0]]
