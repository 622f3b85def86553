"""Rows that C adds are those the Python code would add, whatever the bytes; and nothing else."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from struct import pack_into
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import DecodeError
from kafkawire.records import BatchBuilder, Columns, RecordBatches, column_decoding, rows
from kafkawire.records.batch import HEADER_BYTES
from kafkawire.records.columns import Views
from tests import golden
from tests.fuzzing import examples
from tests.twins import twin

from .drawn import Batch, batches
from .test_hostile import with_records

ADD: Final[Any] = rows.add_rows
NATIVE: Final = str(rows.__file__).endswith(tuple(EXTENSION_SUFFIXES))
EXAMPLES = settings(max_examples=examples(100), deadline=None)


TWIN: Final = twin(rows)


def views(column: Views, count: int) -> tuple[Any, ...]:
    """Say all that is in a column of views: what stands in a row that is null is zeros."""
    valid = int.from_bytes(column.valid[: count // 8 + 1], "little") & ((1 << count) - 1)
    return bytes(column.words[: 16 * count]), valid, column.nulls


def content(columns: Columns) -> tuple[Any, ...]:
    """Say all that is in columns, to the byte."""
    count, headers = columns.rows, columns.headers
    return (
        count,
        headers,
        bytes(columns.offset.numbers[: 8 * count]),
        bytes(columns.timestamp.numbers[: 8 * count]),
        bytes(columns.batch.numbers[: 4 * count]),
        bytes(columns.header_ends.numbers[: 4 * (count + 1)]),
        views(columns.key, count),
        views(columns.value, count),
        views(columns.header_key, headers),
        views(columns.header_value, headers),
        columns.invalid_header_keys,
    )


def outcome(data: bytes) -> Any:
    """Read columns; a refusal is a value here."""
    try:
        return content(RecordBatches(data, check_crcs=False).columns())
    except DecodeError as error:
        return type(error), str(error)


TAIL: Final = b"\xda\x01\x00\x00\x00\x01\xcc\x01" + b"v" * 102 + b"\x00"
"""A record so long that all before it is far from the end, where C reads eight bytes at once."""


def all_kinds() -> bytes:
    """Write records with keys, headers, nulls and long varints, and a long last one."""
    builder = BatchBuilder(base_timestamp=0)
    for number in range(3):
        headers = (("header", b"x" * number), ("empty", None))
        builder.append(b"key", b"value" * number, 1000 << 20 * number, headers, offset=number << 14)
        builder.append(b"k" * 20, None, -(1 << 20 * number), offset=number + 1 << 14)
        builder.append(None, b"a value that is longer than its view", 7, offset=number << 28)
    return builder.build()[HEADER_BYTES:] + TAIL


def agree(data: bytes) -> None:
    """Hold what is there against the twin."""
    found = outcome(data)
    with patch.object(column_decoding, "add_rows", TWIN.add_rows):
        assert outcome(data) == found


@pytest.mark.fuzz
@EXAMPLES
@given(st.lists(batches(), max_size=3))
def test_drawn_records(drawn: list[Batch]) -> None:
    agree(b"".join(batch.encode() for batch in drawn))


@pytest.mark.fuzz
@EXAMPLES
@given(st.binary(max_size=200), st.integers(0, 20), st.booleans())
def test_random_records(body: bytes, count: int, tail: bool) -> None:
    agree(with_records(body + TAIL * tail, count))


@pytest.mark.fuzz
@EXAMPLES
@given(st.data(), batches(magic=2), st.booleans())
def test_damaged_records(data: st.DataObject, drawn: Batch, tail: bool) -> None:
    body = bytearray(drawn._replace(compression=drawn.compression.NONE).encode()[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place] = data.draw(st.integers(0, 255))
    agree(with_records(bytes(body) + TAIL * tail, len(drawn.records) + tail))


def test_every_byte_changed() -> None:
    body = all_kinds()
    agree(with_records(body, 10))
    for place in range(len(body) - len(TAIL)):
        for change in (1, 2, 4, 8, 16, 32, 64, 128, 127, 255):
            changed = bytearray(body)
            changed[place] ^= change
            agree(with_records(bytes(changed), 10))


FIVE: Final = b"\xff\xff\xff\xff"
NINE: Final = b"\xff" * 9


@pytest.mark.parametrize(
    "deltas",
    [
        b"\x00" + FIVE + b"\x0f",
        b"\x00" + FIVE + b"\x10",
        b"\x00" + FIVE + b"\x1f",
        b"\x00" + FIVE + b"\x8f\x00",
        b"\x00\x80\x00",
        b"\x80\x80\x80\x80\x00\x02",
        NINE + b"\x01\x00",
        NINE + b"\x02\x00",
        NINE + b"\x81\x00\x00",
        b"\xfe" + NINE[1:] + b"\x01\x00",
        b"\xfe" + NINE[1:] + b"\x00\x00",
    ],
)
@pytest.mark.parametrize("base", [0, 1, -1, 2**61 - 1, 2**61, -(2**61), 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("tail", [b"", TAIL])
def test_numbers_at_their_limits(deltas: bytes, base: int, tail: bytes) -> None:
    body = b"\x00" + deltas + b"\x01\x02v\x00"
    data = bytearray(with_records(bytes([2 * len(body)]) + body + tail, 1 + bool(tail)))
    pack_into(">q", data, 27, base)
    agree(bytes(data))


@pytest.mark.parametrize("row", list(golden.rows("record_batches")), ids=lambda row: row["kind"])
def test_vectors(row: dict[str, Any]) -> None:
    agree(bytes.fromhex(row["hex"]))


@pytest.mark.parametrize("size", [0, 1, 12, 13, 63, 64, 8191, 8192, 2**20])
@pytest.mark.parametrize("key", [None, b"", b"twelve bytes", b"k" * 70])
@pytest.mark.parametrize("headers", [(), (("plain", b"v" * 20), ("", None))])
def test_lengths(
    size: int, key: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    builder = BatchBuilder(base_timestamp=0)
    for number in range(12):
        builder.append(key, b"v" * size, 3**number, headers if number > 5 else ())
        builder.append(None if number == 9 else key, None, -(5**number), headers)
    agree(builder.build())


def memory(**changed: bytearray) -> tuple[bytearray, ...]:
    """Make memory of two rows and no headers."""
    names = ["offset", "timestamp", "ends", "key", "key_valid", "value", "value_valid"]
    sizes = dict(zip(names, (16, 16, 0, 0, 0, 32, 1), strict=True))
    made = {name: bytearray(b"\xff") * size for name, size in sizes.items()} | changed
    return *(made[name] for name in names), *(bytearray() for _ in range(4))


PLAIN: Final = b"".join(
    [
        b"\x28\x00\x02" + bytes([number << 1]) + b"\x01\x1c" + b"fourteen bytes" + b"\x00"
        for number in (0, 1)
    ]
)
NUMBERS: Final[tuple[Any, ...]] = (0, len(PLAIN), 0, 2, 100, 1000, 0, 0, 0)


def test_plain_rows_are_added_in_c() -> None:
    reached = ADD(PLAIN, *NUMBERS, memory())
    assert reached == ((2, len(PLAIN), 2, 0, 0, 0) if NATIVE else (0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("numbers", "changed"),
    [
        (NUMBERS, {"offset": bytearray(15)}),
        (NUMBERS, {"timestamp": bytearray()}),
        (NUMBERS, {"value": bytearray(31)}),
        (NUMBERS, {"value_valid": bytearray()}),
        (NUMBERS, {"ends": bytearray(11)}),
        ((0, len(PLAIN) + 1, *NUMBERS[2:]), {}),
        ((-1, *NUMBERS[1:]), {}),
        ((0, len(PLAIN), -1, *NUMBERS[3:]), {}),
        ((0, len(PLAIN), 0, 3, *NUMBERS[4:]), {}),
    ],
)
def test_what_does_not_fit_is_not_touched(numbers: Any, changed: dict[str, bytearray]) -> None:
    buffers = memory(**changed)
    before = [bytes(buffer) for buffer in buffers]
    try:
        reached = ADD(PLAIN, *numbers, buffers)
    except ValueError:
        assert NATIVE
    else:
        assert reached[0] == numbers[2]
    assert [bytes(buffer) for buffer in buffers] == before
