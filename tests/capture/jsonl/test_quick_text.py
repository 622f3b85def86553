"""JSON straight from the wire: what is written of decoded messages, or nothing at all.

Without a compiler nothing is written straight, and these tests say that all is written all the
same.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkawire.capture.frames.decoding import located
from kafkawire.capture.frames.serialised import SerialisedReader, pack
from kafkawire.capture.jsonl import writer as quick_text
from kafkawire.capture.jsonl.records import batch_body, counts_of, records_of, shown_value
from kafkawire.capture.jsonl.rows import Lines
from kafkawire.capture.jsonl.wire_layouts import program_of
from kafkawire.capture.jsonl.writer import Program, Text
from kafkawire.capture.multifile import Traffic
from kafkawire.errors import DecodeError
from kafkawire.messages import REGISTRY
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.primitives import Structure
from kafkawire.protocol.embedded import embedded_payloads
from kafkawire.protocol.fields import fields_at
from kafkawire.protocol.json_text import to_json_text
from kafkawire.records import BatchBuilder, Compression, castagnoli
from kafkawire.records.checksum import crc32c
from kafkawire.records.replaced_text import replaced_bytes
from tests.capture.truth import capture_of, captures
from tests.records.drawn import Batch, batches
from tests.vectors import NAMES, by_message

ELEMENTS = 1 << 20
NATIVE = not str(quick_text.__file__).endswith(".py")


def text() -> Text:
    return Text(shown_value, records_of, batch_body, True)


def written(program: Program, data: bytes) -> str | None:
    """Write a body."""
    out = text()
    if out.body(data, 0, program, ELEMENTS):
        return bytes(out.view()).decode()
    assert len(out) == 0
    return None


def damaged(data: bytes) -> Iterator[bytes]:
    """Give the bytes with one or two of them changed, the same each time."""
    rng = random.Random(data)
    for _ in range(40 if data else 0):
        bad = bytearray(data)
        for _ in range(rng.randint(1, 2)):
            bad[rng.randrange(len(bad))] = rng.choice([0, 1, 2, 127, 128, 255])
        yield bytes(bad)


def test_what_is_written_of_vectors_is_their_json() -> None:
    plain = count = 0
    for name in NAMES:
        info = REGISTRY.get(name)
        cls = REGISTRY.load(name)
        for row in by_message("messages").get(name, []):
            version, data = row["version"], bytes.fromhex(row["hex"])
            program = program_of(cls, version, info.is_flexible(version), True)
            count += 1
            text = None if program is None else written(program, data)
            if text is not None:
                plain += 1
                assert text == to_json_text(cls.decode(data, version), version), row
    assert plain > count // 3 if NATIVE else plain == 0


def test_nothing_is_written_of_what_the_decoder_refuses() -> None:
    refused = 0
    for name in NAMES:
        info = REGISTRY.get(name)
        cls = REGISTRY.load(name)
        for row in by_message("messages").get(name, [])[::25]:
            version, data = row["version"], bytes.fromhex(row["hex"])
            program = program_of(cls, version, info.is_flexible(version), True)
            if program is None or len(data) > 300:
                continue
            cuts = [(data + b"\0")[:cut] for cut in (*range(len(data)), len(data) + 1)]
            for bad in (*cuts, *damaged(data)):
                try:
                    message = cls.decode(bad, version)
                except DecodeError:
                    refused += 1
                    assert not text().body(bad, 0, program, ELEMENTS), (row, bad)
                else:
                    expected = to_json_text(message, version)
                    assert written(program, bad) in (None, expected), (row, bad)
    assert refused > 500


@pytest.mark.parametrize("truth", captures(), ids=lambda path: path.name)
@pytest.mark.parametrize("options", [(False, True), (True, False), (False, True, True)])
def test_lines_of_frames_are_those_of_rows(truth: Path, options: tuple[Any, ...]) -> None:
    items = [item for batch in Traffic([capture_of(truth)]).item_batches() for item in batch]
    straight = Lines("c", *options)
    # each with its own writer, without cached texts
    expected = [Lines("c", *options).line(*located(one)) for one in items]
    serialised = Lines("c", *options)
    for _ in range(2):  # the second time, texts are cached
        assert straight.text(items).decode().splitlines() == expected
        with serialised.view_serialised(SerialisedReader(pack(items))) as text:
            assert bytes(text).decode().splitlines() == expected
        assert serialised.clean == straight.clean


def test_what_a_payload_is_depends_on_more_than_its_bytes() -> None:
    user_data = (0).to_bytes(4, "big")
    metadata = b"\0\0" + bytes(4) + len(user_data).to_bytes(4, "big") + user_data
    lines, made = Lines("c"), []
    for protocol_type in ("consumer", "connect", "other"):
        for name in ("sticky", "cooperative-sticky", "mine"):
            protocol = JoinGroupRequestProtocol(name=name, metadata=metadata)
            message = JoinGroupRequest(protocol_type=protocol_type, protocols=[protocol])
            decoded = json.loads(f"{{{lines.message_text(message, 5)}}}")
            payloads = {one.path: one.to_json() for one in embedded_payloads(message, 5)}
            assert decoded.get("embedded", {}) == payloads
            made.append(json.dumps(payloads))
    assert len(set(made)) == 5, "three subscriptions, a worker's metadata, nothing"


def test_more_elements_than_are_allowed_are_left_to_the_decoder() -> None:
    cls = REGISTRY.load("MetadataRequest")
    program = program_of(cls, 0, False, True)
    assert program is not None
    data = b"\0\0\0\2\0\1a\0\1b"
    assert text().body(data, 0, program, 3) == NATIVE  # the array, and two elements
    assert not text().body(data, 0, program, 2)


def full_of_nulls(cls: type[Structure], version: int) -> Any:
    """Make a struct whose nullable fields are null; its arrays of structs have one element."""
    values: dict[str, Any] = {}
    for field in fields_at(cls, version):
        if field.is_tagged:
            continue
        if field.is_nullable_at(version):
            values[field.attribute] = None
        elif field.struct is not None and field.is_array:
            values[field.attribute] = [full_of_nulls(field.struct, version)]
    return cls(**values)


def test_nulls_are_written_where_a_version_has_them() -> None:
    found = 0
    bodies = [name for name in NAMES if name.endswith(("Request", "Response"))]
    for name in bodies:
        info, cls = REGISTRY.get(name), REGISTRY.load(name)
        for version in range(info.first, info.last + 1):
            program = program_of(cls, version, info.is_flexible(version), True)
            if program is None:
                continue
            message = full_of_nulls(cls, version)
            data = message.encode(version)
            expected = to_json_text(cls.decode(data, version), version)
            assert written(program, data) == (expected if NATIVE else None), (name, version)
            found += "null" in expected
    assert found > 200


def test_a_null_that_a_version_does_not_have_is_left_to_the_decoder() -> None:
    program = program_of(REGISTRY.load("FindCoordinatorRequest"), 0, False, True)
    assert program is not None
    assert written(program, b"\xff\xff") is None


def test_nothing_is_written_while_somebody_looks() -> None:
    out = text()
    out.write("a" * 100)
    view = out.view()
    assert bytes(view) == b"a" * 100
    if NATIVE:
        with pytest.raises(BufferError):
            out.write("b" * 10_000)
    view.release()
    out.truncate(1)
    out.write("b" * 10_000)
    assert bytes(out.view()) == b"a" + b"b" * 10_000


# -- keys and values

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=3).map(float),
    st.text(max_size=8),
    st.sampled_from(["\x7f", '"\\/', "\u2028", "😀", "é\n"]),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@st.composite
def values(draw: st.DrawFn) -> bytes:
    """JSON as programs write it, and the same with a few bytes changed."""
    tree = draw(st.lists(TREES, max_size=3) | st.dictionaries(st.text(max_size=3), TREES))
    text: Any = json.dumps(
        tree, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))
    )
    data = bytearray(text.encode())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data) - 1))
        data[at] = draw(st.sampled_from(list(b'{}[],:"\\0123456789.eE-+ \n\xc3\xa9tfnu')))
    return bytes(data)


ODD_JSON = (
    b'{"a":1,"a":2}',
    b'{"k":{"a":1,"b":2,"a":3}}',
    b"[-0,-0.0,0.0,1E400]",
    b"[0.00012,0.00001,1.50,100.0,123456789012345.6,1e5,12345678901234567890]",
    b"[01]",
    b"[1 2]",
    b"[NaN]",
    b'["\\ud83d\\ude00","\\uD83D","\\/","\\u00e9","\\u000a","\\x"]',
    b'["\\u00e"]',
    b'["tab\there"]',
    b'{"a":[]} \n',
    b"{} x",
    b"[" * 200 + b"]" * 200,
    b"[" + b"9" * 5000 + b"]",
    b'{"' + b'":1,"'.join(b"%d" % n for n in range(100)) + b'":1}',
    b"{",
    b'["\xed\xa0\x80"]',
    b'["\xf4\x90\x80\x80"]',
    b'["\xc0\x80"]',
    b'["' + b"\xc3\xa9" * 5000 + b'"]',
    b'"' + b"\xe6\x97\xa5" * 3000,
    b"a" * 4095 + b"\xf0\x9f\x98\x80" + b"\x01\n" * 3000,
    b"\x7f",
    b"a\0b",
    b"\xff",
    "\u200b".encode(),
    b"",
)


def check_value(data: bytes) -> None:
    out = text()
    out.value(data)
    assert bytes(out.view()).decode() == shown_value(data)


@pytest.mark.parametrize("data", ODD_JSON, ids=range(len(ODD_JSON)))
def test_odd_values_are_shown_as_the_decoder_shows_them(data: bytes) -> None:
    check_value(data)


@given(values())
def test_json_in_values_is_shown_as_the_decoder_shows_it(data: bytes) -> None:
    check_value(data)


@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
@example(b"\n\xc2")
def test_values_are_shown_as_the_decoder_shows_them(data: bytes) -> None:
    check_value(data)


def decimals(rng: random.Random) -> Iterator[str]:
    """Give numbers as Python writes them, and others as long, near them or halfway between them."""
    for _ in range(500):
        small, large = rng.uniform(-1, 1), rng.uniform(0, 10 ** rng.randint(-6, 17))
        for value in (small, large):
            text = repr(value)
            yield text
            if "e" not in text:
                yield text[:-1] + rng.choice("0123456789")
                yield text + rng.choice("0123456789")
        power = 2.0 ** rng.randint(-14, 54)
        near = rng.choice([power, math.nextafter(power, 0), math.nextafter(power, math.inf)])
        yield f"{near:.{rng.randint(14, 22)}f}"
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 22)))
        yield rng.choice(["0.", "0.0", "0.00", "0.0000", "7.", "1234567."]) + digits


def test_fractions_are_shown_as_the_decoder_shows_them() -> None:
    for number in decimals(random.Random(11)):
        check_value(f"[{number}]".encode())


def test_what_needs_an_escape_is_found_everywhere() -> None:
    for odd in ('"', "\\", "\x1f", "\x7f", "\u00e9", "\u65e5", "\n"):
        for size in range(70):
            text = "a" * size + odd + "b" * (size % 37)
            check_value(text.encode())
            check_value(json.dumps([text]).encode())
            check_value(json.dumps({text: text}, ensure_ascii=False).encode())


def test_bytes_of_any_length_are_shown_as_the_decoder_shows_them() -> None:
    program = program_of(JoinGroupRequest, 0, False, True)
    assert program is not None
    rng = random.Random(5)
    for size in range(300):
        protocol = JoinGroupRequestProtocol(name="p", metadata=rng.randbytes(size))
        message = JoinGroupRequest(protocols=[protocol])
        expected = to_json_text(message, 0)
        assert written(program, message.encode(0)) == (expected if NATIVE else None)


# -- records


def check_records(data: bytes) -> None:
    for field_text in (records_of, counts_of):
        out = Text(shown_value, field_text, batch_body, field_text is records_of)
        out.place("a[0].records", "t", 0, data)
        assert bytes(out.view()).decode() == field_text("a[0].records", "t", 0, data)


@given(st.lists(batches(), min_size=1, max_size=2), st.integers(0, 1 << 40).map(random.Random))
def test_records_are_shown_as_the_decoder_shows_them(some: list[Batch], rng: random.Random) -> None:
    data = bytearray(b"".join(batch.encode() for batch in some))
    check_records(bytes(data))
    data[rng.randrange(len(data))] = rng.randrange(256)
    check_records(bytes(data))
    check_records(bytes(data[: rng.randrange(len(data))]))


@given(batches(magic=2), st.integers(0, 1 << 40).map(random.Random))
def test_damaged_records_are_shown_as_the_decoder_shows_them(
    batch: Batch, rng: random.Random
) -> None:
    """Under a checksum that is right, so that only header and records are wrong."""
    data = bytearray(batch._replace(compression=Compression.NONE).encode())
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(rng.choice([21, 61]), len(data))
        data[at] = rng.choice([0, 1, 2, 127, 128, 255, data[at] ^ 1, rng.randrange(256)])
    data[17:21] = crc32c(bytes(data), 21, len(data)).to_bytes(4, "big")
    check_records(bytes(data))


@given(st.lists(batches(magic=2), max_size=3), st.none() | st.text(), st.none() | st.integers(0, 9))
def test_what_is_plain_is_not_left_to_python(
    some: list[Batch], topic: str | None, partition: int | None
) -> None:
    left: list[object] = []

    def noted(*place: Any) -> str:
        left.append(place)
        return records_of(*place)

    data = b"".join(batch.encode() for batch in some)
    out = Text(shown_value, noted, batch_body, True)
    out.place("records", topic, partition, data)
    assert bytes(out.view()).decode() == records_of("records", topic, partition, data)
    records = [record for batch in some for record in batch.records]
    has_invalid_text = any(replaced_bytes(key) for each in records for key, _ in each.headers)
    assert len(left) == (0 if NATIVE and not has_invalid_text else 1)


def of_one_record(codec: Compression) -> bytes:
    builder = BatchBuilder(compression=codec)
    builder.append(b"key", b"value" * 40, 7)
    return builder.build()


def test_python_only_decompresses() -> None:
    checked: list[int] = []

    def counted(*args: Any) -> tuple[bytes, int, int] | None:
        checked.append(args[1])
        return batch_body(*args)

    plain, packed = (of_one_record(codec) for codec in (Compression.NONE, Compression.GZIP))
    out = Text(shown_value, records_of, counted, True)
    out.place("records", "t", 0, plain + packed + plain)
    if castagnoli.function is not None:  # in C, and the processor has what it needs
        assert checked == [len(plain)]
    assert bytes(out.view()).decode() == records_of("records", "t", 0, plain + packed + plain)
    broken = plain[:-1] + bytes([plain[-1] ^ 1])
    out.truncate(0)
    out.place("records", "t", 0, broken)
    assert bytes(out.view()).decode() == records_of("records", "t", 0, broken)
