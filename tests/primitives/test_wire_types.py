"""Reader and Writer: each wire type at its edges, and what they refuse."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire import Limits, errors
from kafkawire.errors import (
    InvalidLength,
    InvalidTag,
    InvalidValue,
    InvalidVarint,
    LimitExceeded,
    OutOfRange,
    TrailingBytes,
    Truncated,
    UnexpectedNull,
)
from kafkawire.primitives import Deviations, Reader, Writer
from kafkawire.protocol.locate.walk import Walk
from kafkawire.records.cursor import Cursor
from kafkawire.reference.pieces import UVARINT
from kafkawire.reference.tree import Source

INTEGERS = [
    ("int8", -(1 << 7), (1 << 7) - 1),
    ("int16", -(1 << 15), (1 << 15) - 1),
    ("uint16", 0, (1 << 16) - 1),
    ("int32", -(1 << 31), (1 << 31) - 1),
    ("uint32", 0, (1 << 32) - 1),
    ("int64", -(1 << 63), (1 << 63) - 1),
]


@pytest.mark.parametrize(("kind", "low", "high"), INTEGERS)
def test_integers_at_their_edges(kind: str, low: int, high: int) -> None:
    for value in (low, low + 1, -1 if low else 0, 0, 1, high - 1, high):
        writer = Writer()
        getattr(writer, f"write_{kind}")(value)
        assert getattr(Reader(writer.getvalue()), f"read_{kind}")() == value


@pytest.mark.parametrize(("kind", "low", "high"), INTEGERS)
def test_integers_beyond_their_edges_are_never_cut_to_fit(kind: str, low: int, high: int) -> None:
    for value in (low - 1, high + 1, high * 2 + 2, 1 << 70, -(1 << 70)):
        writer = Writer()
        with pytest.raises((OutOfRange, ValueError, OverflowError, TypeError)):
            getattr(writer, f"write_{kind}")(value)


@given(st.integers(0, (1 << 31) - 1))
def test_unsigned_varints_round_trip(value: int) -> None:
    writer = Writer()
    writer.write_uvarint(value)
    data = writer.getvalue()
    reader = Reader(data)
    assert reader.read_uvarint() == value
    assert reader.pos == len(data) <= 5


VARINTS = [
    ("ff7f", 16383, False),
    ("ffffffff07", (1 << 31) - 1, False),
    ("8000", 0, True),
    ("8080808000", 0, True),
    ("8080808010", 0, True),
    ("8280808010", 2, True),
    ("8080808008", -(1 << 31), True),
    ("ffffffff0f", -1, True),
    ("ffffffff7f", -1, True),
]
"""Bytes, what Kafka's ByteUtils.readUnsignedVarint reads, and whether a writer writes others."""


@pytest.mark.parametrize(("text", "value", "is_odd"), VARINTS)
def test_the_low_32_bits_of_a_varint_are_an_int32(text: str, value: int, is_odd: bool) -> None:
    data = bytes.fromhex(text)
    reader = Reader(data, lenient=True)
    assert reader.read_uvarint() == value
    deviations = reader.finish()
    assert (deviations == Deviations(long_varints=1)) if is_odd else (deviations is None)
    source = Source(data)
    assert UVARINT.read(source) == value
    assert source.deviations == ({"long_varints": 1} if is_odd else {})
    assert Walk("", data, False, Limits(), 0).uvarint() == value


COMPACT_LENGTHS = [("00", -1), ("ffffffff0f", -2), ("8080808008", (1 << 31) - 1), ("8180808010", 0)]


@pytest.mark.parametrize(("text", "n"), COMPACT_LENGTHS)
def test_a_compact_length_is_one_less_as_an_int32(text: str, n: int) -> None:
    data = bytes.fromhex(text)
    assert Reader(data).read_compact_length() == n
    assert Walk("", data, False, Limits(), 0).length(0) == n


ZIGZAG = [
    ("8080808010", 32, 0),
    ("8280808010", 32, 1),
    ("ffffffff0f", 32, -(1 << 31)),
    ("ffffffff7f", 32, -(1 << 31)),
    ("8080808008", 32, 1 << 30),
    ("80808080808080808002", 64, 0),
    ("82808080808080808004", 64, 1),
    ("ffffffffffffffffff01", 64, -(1 << 63)),
    ("ffffffffffffffffff7f", 64, -(1 << 63)),
]
"""What ByteUtils.readVarint and readVarlong of kafka-clients 4.3.1 read."""


@pytest.mark.parametrize(("text", "bits", "value"), ZIGZAG)
@pytest.mark.parametrize("behind", [b"", bytes(8)], ids=["by bytes", "by words"])
def test_zigzag_varints_wrap_as_in_kafka(text: str, bits: int, value: int, behind: bytes) -> None:
    data = bytes.fromhex(text)
    cursor = Cursor(data + behind, 0, len(data + behind))
    assert cursor.varint(data + behind, bits) == value
    assert cursor.pos == len(data)


@pytest.mark.parametrize(("size", "bits"), [(6, 32), (11, 64)])
def test_a_zigzag_varint_of_too_many_bytes_is_refused(size: int, bits: int) -> None:
    data = b"\x80" * (size - 1) + b"\x01"
    with pytest.raises(InvalidVarint):
        Cursor(data, 0, size).varint(data, bits)


def test_a_varint_ends_with_its_fifth_byte() -> None:
    with pytest.raises(InvalidVarint):
        Reader(bytes.fromhex("808080808001")).read_uvarint()
    with pytest.raises(IndexError):
        Reader(b"\x80\x80").read_uvarint()


@given(st.one_of(st.none(), st.text(max_size=60)), st.booleans())
def test_strings_round_trip(text: str | None, flexible: bool) -> None:
    writer = Writer()
    writer.write_nullable_string(text, flexible)
    reader = Reader(writer.getvalue())
    assert reader.read_nullable_string(flexible) == text
    assert reader.finish() is None


def test_a_string_has_at_most_32767_bytes() -> None:
    for flexible in (False, True):
        Writer().write_string("x" * 32767, flexible)
        with pytest.raises(OutOfRange, match="32768 bytes"):
            Writer().write_string("x" * 32768, flexible)
    data = bytes.fromhex("818002") + b"x" * 32768
    with pytest.raises(InvalidLength, match="a string of 32768 bytes"):
        Reader(data).read_string(True)


FEW = Limits(max_elements=4)
NONE = Limits(max_elements=0)

REFUSED = [
    (Truncated, lambda: Reader(b"\x00\x05abc").read_string(False)),
    (Truncated, lambda: Reader(b"\x7f\xff\xff\xff").read_bytes(False)),
    (UnexpectedNull, lambda: Reader(b"\xff\xff").read_string(False)),
    (UnexpectedNull, lambda: Reader(b"\xff\xfe").read_string(False)),
    (UnexpectedNull, lambda: Reader(b"\x00").read_bytes(True)),
    (UnexpectedNull, lambda: Reader(b"\xff\xff\xff\xff").read_array_length(False)),
    (InvalidLength, lambda: Reader(b"\x7f\xff\xff\xff").read_array_length(False)),
    (InvalidLength, lambda: Reader(b"\x03\x00").read_array_length(True)),
    (
        LimitExceeded,
        lambda: Reader(b"\x06" + bytes(5), limits=FEW).read_array_length(True),
    ),
    (
        LimitExceeded,
        lambda: Reader(b"\x02\x05\x00\x06\x00", limits=NONE).read_tags(),
    ),
    (InvalidTag, lambda: Reader(b"\x00").keep_misplaced_tag(None, 1, 1)),
    (InvalidTag, lambda: Reader(b"\x00\x00").end_tag(0, 2)),
    (TrailingBytes, lambda: Reader(b"\x00").finish()),
    (InvalidValue, lambda: Writer().write_uuid(b"short")),
    (InvalidValue, lambda: Writer().write_tags([(1, b"")], [(1, b"")])),
    (OutOfRange, lambda: Writer().write_tags(None, [(-1, b"")])),
    (OutOfRange, lambda: Writer().write_tags(None, [(0x7FFFFFFF, b"")])),
]


@pytest.mark.parametrize(("error", "call"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_refusals(error: type[Exception], call: object) -> None:
    with pytest.raises(error):
        call()  # type: ignore[operator]


def test_only_bytes_are_read() -> None:
    for wrong in (bytearray(b"\x00"), memoryview(b"\x00"), "\x00"):
        with pytest.raises(TypeError, match="bytes object expected"):
            Reader(wrong)  # type: ignore[arg-type]


def test_a_lenient_reader_keeps_what_it_bends() -> None:
    reader = Reader(b"\x00\x01\xff\x07\x07", lenient=True)
    text = reader.read_string(False)
    deviations = reader.finish()
    assert deviations is not None
    assert (deviations.trailing, deviations.invalid_text) == (b"\x07\x07", 1)
    assert str(deviations) == "2 trailing bytes, 1 string that is not UTF-8"
    with pytest.raises(UnicodeEncodeError):
        Writer().write_string(text, False)
    writer = Writer(lenient=True)
    writer.write_string(text, False)
    assert writer.getvalue() == b"\x00\x01\xff"


def test_tags_are_written_in_order() -> None:
    writer = Writer()
    writer.write_tags([(4, b"d")], [(9, b"i"), (0, b"a")])
    assert writer.getvalue().hex() == "03000161040164090169"


# -- errors


LEAVES = [
    cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.WireError)
]


@pytest.mark.parametrize("cls", LEAVES)
def test_errors_pickle_and_print(cls: type[errors.WireError]) -> None:
    error = cls("went wrong", "A.b[3].c", 17)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args) == (cls, error.args)
    assert str(again) == "A.b[3].c: went wrong (at byte 17)"
    assert isinstance(again, errors.KafkaWireError)
    assert str(cls("went wrong")) == "went wrong"
