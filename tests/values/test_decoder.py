"""The decoder: formats, what values say of themselves, schemas of a directory."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import InvalidRecordValue, MissingPackage, UnusableSchema
from kafkawire.values import Bounds, DirectorySchemas, Schema, Subject, ValueDecoder, ValueFormat
from kafkawire.values.framing import frame_bytes, message_indexes, message_name
from kafkawire.values.plain import decode_uuid, encode_uuid
from tests.fuzzing import examples

ORDERS = Subject("orders")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Schemas of a topic, of an id, and of a message with an import."""
    record = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "to", "type": ["null", "acme.Address"]}, {"name": "n", "type": "long"}],
    }
    address = {
        "type": "record",
        "name": "Address",
        "namespace": "acme",
        "fields": [{"name": "zip", "type": "int"}],
    }
    (tmp_path / "orders.avsc").write_text(json.dumps(record))
    (tmp_path / "orders-key.avsc").write_text('"string"')
    (tmp_path / "acme.Address.avsc").write_text(json.dumps(address))
    (tmp_path / "7.avsc").write_text('"long"')
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "money.proto").write_text("message Money { optional int64 units = 1; }")
    (tmp_path / "sales-value.proto").write_text(
        'import "common/money.proto"; message Unused {} message Sale { optional Money price = 1; }'
    )
    return tmp_path


def decoded(form: str, data: bytes, *sources: Any, subject: Subject | None = ORDERS) -> Any:
    found = ValueDecoder(ValueFormat(form), sources).decode(data, subject)
    assert found is not None
    return found.to_json()


@pytest.mark.parametrize(
    ("form", "data", "value"),
    [
        ("int16", b"\xff\xfe", -2),
        ("int32", b"\0\0\1\0", 256),
        ("int64", bytes(7) + b"\x2a", 42),
        ("float32", b"\x3f\xc0\0\0", 1.5),
        ("float64", b"\x7f\xf8" + bytes(6), "NaN"),
        ("string", "ü".encode(), "ü"),
        ("uuid", str(UUID(int=5)).encode(), str(UUID(int=5))),
        ("uuid", UUID(int=5).bytes, str(UUID(int=5))),
        ("json", b"[1, null]", [1, None]),
        ("msgpack", msgpack.packb({1: [b"\xff", "a"]}), {"1": [{"hex": "ff"}, "a"]}),
        ("bytes", b"\0\xff", {"hex": "00ff"}),
    ],
)
def test_formats_without_schemas(form: str, data: bytes, value: object) -> None:
    assert decoded(form, data) == {"format": form, "value": value}
    if form != "bytes":
        it = ValueDecoder(ValueFormat(form))
        assert decoded(form, it.encode(value, ORDERS))["value"] == value or form == "msgpack"


@pytest.mark.parametrize(
    ("form", "data", "reason"),
    [
        ("int64", b"\0", "1 bytes, not 8"),
        ("string", b"a\xff", "not UTF-8 (at byte 1)"),
        ("uuid", b"x", "not a UUID"),
        ("json", b"{", "invalid JSON"),
        ("json", b"NaN", "invalid JSON"),
        ("json", b"[" * 100_000, "nested too deeply"),
        ("json", b"[" * 100 + b"]" * 100, "nested too deeply"),
        ("msgpack", b"\xdd\xff\xff\xff\xff", "invalid MessagePack"),
        ("msgpack", b"\x91" * 100_000, "invalid MessagePack"),
        ("msgpack", b"\x91" * 100 + b"\0", "nested too deeply"),
        ("avro", b"\0\0\0\0\7\2", "schema 7: no schemas"),
        ("avro", b"\2", "there is none for orders-value"),
        ("protobuf", b"\0\0\0\0\7\2", "schema 7: no schemas"),
        ("auto", b"\0\0\0\0\7\2", "no schemas to decode it with"),
    ],
)
def test_what_cannot_be_decoded_says_why(form: str, data: bytes, reason: str) -> None:
    found = decoded(form, data)
    assert "value" not in found
    assert reason in found["error"]


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b'{"a": 1}', "json"),
        (b"12", "json"),
        (b"{a", "string"),
        (b"caf\xc3\xa9\n", "string"),
        (b"", "string"),
        (msgpack.packb({"a": 1}), "msgpack"),
        (b"\0\xff", "bytes"),
        (bytes(8), "bytes"),
    ],
)
def test_detection_without_schemas(data: bytes, form: str) -> None:
    found = decoded("auto", data)
    assert found["format"] == form
    assert "error" not in found


def test_null_is_not_decoded() -> None:
    assert ValueDecoder().decode(None, ORDERS) is None


def test_a_directory(directory: Path) -> None:
    source = DirectorySchemas(directory)
    order = b"\x02\x0a\x54"
    wanted = {"to": {"zip": 5}, "n": 42}
    assert decoded("auto", order, source)["value"] == wanted
    assert decoded("avro", order, source)["type"] == "Order"
    assert decoded("auto", b"\0\0\0\0\7\x54", source) == {
        "format": "avro",
        "schemaId": 7,
        "value": 42,
    }
    framed = decoded("auto", b"\0\0\0\0\x09" + order, source)
    assert (framed["schemaId"], framed["value"]) == (9, wanted)
    key = decoded("avro", b"\x02a", source, subject=Subject("orders", True))
    assert key["value"] == "a"
    sale = decoded("protobuf", b"\0\0\0\0\1\2\2\x0a\2\x08\7", source, subject=Subject("sales"))
    assert (sale["type"], sale["value"]) == ("Sale", {"price": {"units": 7}})
    assert decoded("auto", b'"x"', source, subject=Subject("other"))["format"] == "json"
    mismatch = decoded("protobuf", order, source)
    assert mismatch["error"] == "orders.avsc is avro"


def test_an_avro_value_that_begins_as_a_frame_does(directory: Path) -> None:
    """A null, and a long of 5 bytes."""
    data = b"\0" + b"\x82\x82\x82\x82\x01"
    found = decoded("auto", data, DirectorySchemas(directory))
    assert found["value"] == {"to": None, "n": 136_331_393}


def test_ids_of_eight_bytes(directory: Path) -> None:
    """As Apicurio's serialisers write them; a value without a frame may begin with zeros, too."""
    schemas = DirectorySchemas(directory)
    framed = bytes([0, *bytes(7), 7, 0x54])
    for form in ("auto", "avro"):
        found = ValueDecoder(ValueFormat(form), [schemas]).decode(framed, Subject("other"))
        assert found is not None
        assert (found.value, found.schema, found.error) == (42, 7, None)
    unknown = bytes([0, *bytes(7), 9, 0x54])
    other = ValueDecoder(sources=[schemas]).decode(unknown, Subject("other"))
    assert other is not None
    assert (other.format, other.value) == ("bytes", unknown), "as without a schema"
    missing = ValueDecoder(ValueFormat.AVRO, [schemas]).decode(unknown, Subject("other"))
    assert missing is not None
    assert (missing.schema, missing.value) == (9, None)
    assert "schema 9" in str(missing.error)
    for data in (bytes(9), framed):  # no schema has the id 0; without schemas, none has any
        assert decoded("auto", data)["format"] == "bytes"


def test_values_without_a_frame_that_begin_with_zeros(tmp_path: Path) -> None:
    fields = [{"name": f"f{at}", "type": "int"} for at in range(9)]
    schema = {"type": "record", "name": "Zeros", "fields": fields}
    (tmp_path / "orders.avsc").write_text(json.dumps(schema))
    data = bytes([0, 0, 0, 0, 0, 2, 0, 0, 0])
    assert decoded("avro", data, DirectorySchemas(tmp_path))["value"]["f5"] == 1


def test_a_schema_is_read_once(directory: Path) -> None:
    paths: list[Subject] = []

    class Counted(DirectorySchemas):
        def by_subject(self, subject: Subject) -> Schema | None:
            paths.append(subject)
            return super().by_subject(subject)

    decoder = ValueDecoder(sources=[Counted(directory)])
    for _ in range(3):
        for data in (b"\x02\x0a\x54", b"\0\0\0\0\x09\x02\x0a\x54"):
            assert decoder.decode(data, ORDERS)
        assert decoder.decode(b"x", Subject("other"))
    assert len(paths) == 3


def test_directories_that_cannot_be_used(directory: Path) -> None:
    (directory / "big.avsc").write_text(" " * 100)
    small = DirectorySchemas(directory, Bounds(schema_bytes=50))
    assert "more than 50 bytes" in decoded("avro", b"\0", small, subject=Subject("big"))["error"]
    few = DirectorySchemas(directory, Bounds(references=0))
    assert "more than 0 references" in decoded("avro", b"\0", few)["error"]
    both = DirectorySchemas(directory, Bounds(schema_bytes=200))
    assert "200 bytes with its references" in decoded("avro", b"\0", both)["error"]
    (directory / "orders.proto").write_text("")
    with pytest.raises(UnusableSchema, match=r"orders\.avsc and orders\.proto"):
        DirectorySchemas(directory)
    with pytest.raises(OSError, match="missing"):
        DirectorySchemas(directory / "missing")


@given(st.integers(1, 2**32 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5))
def test_frames_round_trip(key: int, indexes: list[int]) -> None:
    data = frame_bytes(key, tuple(indexes))
    assert int.from_bytes(data[1:5], "big") == key
    assert message_indexes(data, 5) == (tuple(indexes), len(data))


def test_names_of_messages() -> None:
    """As Apicurio writes them; whatever is cut off or different is not a name."""
    data = b"\x07\x0a\x05Order."
    assert message_name(b"xx" + data, 2) == ("Order", 10)
    for other in (*(data[:at] for at in range(8)), b"\x08" + data[1:], b"\x07\x12" + data[2:]):
        assert message_name(other, 0) is None
    assert message_name(b"\x03\x0a\x01\xff", 0) is None


@pytest.mark.parametrize(
    ("head", "value"),
    [
        (b"\x07\x0a\x05Inner", {"n": 5}),
        (b"\x07\x0a\x05Outer", {"s": ""}),
        (b"\x04\x00\x00", {"n": 5}),
        (b"\x07\x0a\x05Other", None),
    ],
)
def test_messages_by_name(directory: Path, head: bytes, value: object) -> None:
    text = 'syntax = "proto3"; message Outer { string s = 2; message Inner { int32 n = 1; } }'
    (directory / "by-name.proto").write_text(text)
    values = ValueDecoder(ValueFormat.PROTOBUF, [DirectorySchemas(directory)])
    found = values.decode(b"\0\0\0\0\x09" + head + b"\x08\x05", Subject("by-name"))
    assert found is not None
    assert found.value == value
    assert (found.error is None) == (value is not None)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x80" * 9, b"\x7e", b"\x01", b"\x02\x01"])
def test_invalid_message_indexes(data: bytes) -> None:
    with pytest.raises(InvalidRecordValue):
        message_indexes(data, 0)


@pytest.mark.parametrize(
    ("package", "name", "data"),
    [
        ("fastavro", "fastavro", b"\x02\x0a\x54"),
        ("google.protobuf", "protobuf", b"\x08\7"),
        ("msgpack", "msgpack", b"\x90"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    package: str, name: str, data: bytes, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    form, topic = {
        "fastavro": (ValueFormat.AVRO, "orders"),
        "protobuf": (ValueFormat.PROTOBUF, "sales"),
        "msgpack": (ValueFormat.MSGPACK, "other"),
    }[name]
    decoder = ValueDecoder(form, [DirectorySchemas(directory)])
    with pytest.raises(MissingPackage, match=rf"{name} is not installed.*kafkawire\[values\]"):
        decoder.decode(data, Subject(topic))
    assert decoded("auto", b"\x90\xff")["format"] == "bytes"


@pytest.mark.fuzz
@settings(max_examples=examples(150))
@given(st.sampled_from(list(ValueFormat)), st.binary(max_size=40), st.booleans())
def test_any_bytes_become_json(form: ValueFormat, data: bytes, in_header: bool) -> None:
    headers = [("__value_schema_id", data)] if in_header else []
    found = ValueDecoder(form).decode(data, ORDERS, headers)
    assert found is not None
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("text", ["0-1-2-3-A", "00000000-0001-0002-0003-00000000000a"])
def test_a_uuid_is_what_java_reads(text: str) -> None:
    uuid = UUID(int=0x1_0002_0003_0000_0000_000A)
    assert decode_uuid(text.encode()) == uuid
    assert encode_uuid(text) == str(uuid).encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0-1-2-3",
        "0-1-2-3-",
        "0-1-2-3-4-5",
        "00000000000100020003000000000004",
        "0000-00000001-0002-0003-000000000004",
        "{00000000-0001-0002-0003-000000000004}",
        "urn:uuid:00000000-0001-0002-0003-000000000004",
        "00000000-0001-0002-0003-00000000000g",
        "00000000-0001-0002-0003-0000000000004",
    ],
)
def test_other_texts_are_no_uuids(text: str) -> None:
    with pytest.raises(InvalidRecordValue, match="not a UUID"):
        decode_uuid(text.encode())
    with pytest.raises(InvalidRecordValue, match="is not a UUID"):
        encode_uuid(text)
