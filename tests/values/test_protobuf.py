"""Protobuf: .proto files are parsed as protoc does; hostile schemas and values are errors."""

from __future__ import annotations

import json
import sysconfig
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import InvalidRecordValue, UnusableSchema
from kafkawire.values import Bounds, Reference, Schema, SchemaType
from kafkawire.values.json_form import json_form
from kafkawire.values.protobuf.codec import ProtobufCodec
from kafkawire.values.protobuf.text import file_descriptor
from tests.fuzzing import examples

from .json_values import any_json

PACKAGES = Path(sysconfig.get_paths()["purelib"])
FILES = [path.relative_to(PACKAGES).as_posix() for path in PACKAGES.glob("google/type/*.proto")]
FILES += [f"google/rpc/{name}.proto" for name in ("error_details", "status")]
FILES += ["google/api/distribution.proto", "google/api/metric.proto", "google/api/http.proto"]

PROTO2 = """
syntax = 'proto2';
message M {
  required int32 n = 0x1;
  repeated group Part = 2 { optional string s = 3; }
  optional E e = 4 [default = B, (x.y) = { z: [1, 2] }];
  extensions 100 to max;
  extend M { optional int32 more = 100; }
  enum E { option allow_alias = true; A = -1; B = 2; C = 2; }
  reserved 50, 60 to 70; reserved "old";
}
service S { rpc Get (M) returns (stream M) { option (http) = { get: "/}" }; } }
"""
ORDER = """
    syntax = "proto3"; import "google/protobuf/timestamp.proto";
    import "confluent/type/decimal.proto";
    message Order {
        int32 n = 1; bytes data = 2; enum Kind { A = 0; } Kind kind = 3;
        google.protobuf.Timestamp at = 4; Order inner = 5; map<string, Order> orders = 6;
        confluent.type.Decimal price = 7; repeated bytes parts = 8;
    }
"""
TREE = 'syntax = "proto3"; message Tree { Tree child = 1; int32 n = 2; }'


def codec(text: str, *references: tuple[str, str]) -> ProtobufCodec:
    listed = tuple(Reference(*one) for one in references)
    return ProtobufCodec(Schema("it", SchemaType.PROTOBUF, text, listed), Bounds())


def facts(message: Any) -> dict[str, Any]:
    """Describe the fields of a message, and of those in it."""
    found: dict[str, Any] = {
        field.full_name: (
            *(field.number, field.type, field.is_repeated, field.is_required, field.json_name),
            *(field.has_presence, field.is_packed),
            field.message_type and field.message_type.full_name,
            field.enum_type and field.enum_type.full_name,
            field.containing_oneof and field.containing_oneof.name,
        )
        for field in message.fields
    }
    for inner in message.nested_types:
        found |= facts(inner)
    for enum in message.enum_types:
        found[enum.full_name] = [(value.name, value.number) for value in enum.values]
    return found


@pytest.mark.parametrize("path", sorted(FILES))
def test_files_are_parsed_as_protoc_does(path: str) -> None:
    wanted = import_module(f"{path.removesuffix('.proto').replace('/', '.')}_pb2").DESCRIPTOR
    pool = descriptor_pool.DescriptorPool()
    added = set()

    def add(file: Any) -> None:
        for needed in file.dependencies:
            add(needed)
        if file.name != path and file.name not in added:
            added.add(file.name)
            pool.Add(FileDescriptorProto.FromString(file.serialized_pb))

    add(wanted)
    pool.Add(file_descriptor(path, (PACKAGES / path).read_text("utf-8")))
    found = pool.FindFileByName(path)
    assert list(found.message_types_by_name) == list(wanted.message_types_by_name)
    for name, message in wanted.message_types_by_name.items():
        assert facts(found.message_types_by_name[name]) == facts(message)


def test_proto2_with_groups_and_what_is_left_out() -> None:
    it = codec(PROTO2)
    assert it.decode(b"\x08\x05\x13\x1a\x01a\x14\x20\x02", 0, (0,)) == {
        "n": 5,
        "part": [{"s": "a"}],
        "e": "B",
    }


def test_entries_of_maps_that_are_messages() -> None:
    """As Apicurio writes the schemas of Java's classes."""
    entry = "message NEntry { option map_entry = true; string key = 1; int32 value = 2; }"
    text = f'syntax = "proto3"; message M {{ repeated NEntry n = 1; {entry} }}'
    message = b"\x0a\x05\x0a\x01a\x10\x07"
    assert codec(text).decode(message, 0, (0,)) == {"n": {"a": 7}}
    plain = text.replace("option map_entry = true;", "option map_entry = false;")
    assert codec(plain).decode(message, 0, (0,)) == {"n": [{"key": "a", "value": 7}]}
    with pytest.raises(UnusableSchema):
        codec(text.replace("string key = 1;", ""))


def test_imports() -> None:
    money = 'syntax = "proto3"; package a; message Money { int64 units = 1; }'
    middle = 'syntax = "proto3"; import public "money.proto";'
    main = """syntax = "proto3"; package b;
        import "middle.proto"; import "options.proto";
        import "google/protobuf/duration.proto"; import "confluent/type/decimal.proto";
        message M {
          a.Money m = 1; google.protobuf.Duration d = 2; confluent.type.Decimal n = 3;
        }"""
    it = codec(main, ("middle.proto", middle), ("money.proto", money))
    data = b"\x0a\x02\x08\x07" + b"\x12\x02\x08\x01" + b"\x1a\x06\x0a\x02\x04\xd2\x18\x02"
    assert json_form(it.decode(data, 0, (0,))) == {
        "m": {"units": 7},
        "d": "1s",
        "n": "12.34",
    }


def test_imports_in_a_circle_are_an_error() -> None:
    first = 'syntax = "proto3"; import "b.proto"; message A { B b = 1; }'
    second = 'syntax = "proto3"; import "a.proto"; message B { A a = 1; }'
    with pytest.raises(UnusableSchema, match="invalid Protobuf schema"):
        codec(
            'syntax = "proto3"; import "a.proto"; message M { A a = 1; }',
            ("a.proto", first),
            ("b.proto", second),
        )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no message"),
        ("message M {", "line 1: expected a name"),
        ("\n\nmessage M { int32 a = 0; }", "line 3: field number 0 is out of range"),
        ("message M { int32 a = x; }", "expected an integer, got 'x'"),
        ("message M { Missing a = 1; }", "invalid Protobuf schema"),
        ('edition = "2023";', "editions are not supported"),
        ("message M { optional int32 \x1b = 1; }", "unexpected"),
        ("message M {" * 10_000, "nested too deeply"),
        ("option a = " + "{" * 100_000, "the text ends"),
        ("option a = " + "/* " * 100_000, "unexpected '/'"),
        ("bm90IGEgZGVzY3JpcHRvcg==", "neither the text"),
    ],
    ids=lambda text: text[:12],
)
def test_invalid_schemas(text: str, reason: str) -> None:
    with pytest.raises((UnusableSchema, InvalidRecordValue)) as caught:
        codec(text).message((0,))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("data", "indexes", "reason"),
    [
        (b"\x0a\x05", (0,), "not a Tree"),
        (b"", (1,), "no message [1]"),
        (b"", (0, 0), "no message [0, 0]"),
    ],
)
def test_hostile_values(data: bytes, indexes: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InvalidRecordValue) as caught:
        codec(TREE).decode(data, 0, indexes)
    assert reason in str(caught.value)


@pytest.mark.parametrize("levels", [70, 10_000])
def test_deep_values(levels: int) -> None:
    data = b""
    for _ in range(levels):
        size = len(data)
        data = b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + data
    with pytest.raises(InvalidRecordValue):
        codec(TREE).decode(data, 0, (0,))


def test_values_that_grow() -> None:
    """A message without bytes has all fields that have no presence."""
    fields = " ".join(f"int32 f{at} = {at};" for at in range(1, 2000))
    it = codec(f'syntax = "proto3"; message M {{ repeated N n = 1; message N {{ {fields} }} }}')
    with pytest.raises(InvalidRecordValue, match="more fields"):
        it.decode(b"\x0a\0" * 10_000, 0, (0,))


@pytest.mark.parametrize(
    "value",
    [
        {"n": 1, "data": b"\xff", "kind": "A", "at": "2026-01-31T12:00:00.5Z"},
        {"parts": [b"", b"\1"]},
        *({"price": Decimal(text)} for text in ("0", "-0.01", "12.340", "128", "-128", "-129")),
    ],
)
def test_what_is_encoded_is_decoded(value: dict[str, Any]) -> None:
    orders = codec(ORDER)
    found: Any = orders.decode(orders.encode(json_form(value)), 0, (0,))
    assert {name: found[name] for name in value} == value
    of_map: Any = orders.decode(orders.encode({"orders": {"a": json_form(value)}}), 0, (0,))
    assert of_map["orders"] == {"a": found}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"n": "x"}, "not a Order: "),
        ({"unknown": 1}, 'no field named "unknown"'),
        ({"data": {"hex": "0"}}, "fromhex"),
        ({"data": "*"}, "base64"),
        ({"orders": {"a": {"data": "*"}}}, "base64"),
        ({"kind": "NONE"}, "not a Order: "),
        ({"at": "yesterday"}, "not a Order: "),
        ({"n": 2**40}, "not a Order: "),
        (1, "Order is an object, not int"),
        (None, "Order is an object"),
        ([], "Order is an object"),
        ({"inner": [{}]}, "Order is an object"),
        ({"price": "NaN"}, "not a decimal"),
        ({"price": "x"}, "not a decimal"),
        ({"price": "1e999999999"}, "digits"),
        ({"price": 5}, "not a Order: "),
    ],
)
def test_values_that_are_not_encoded(value: object, reason: str) -> None:
    with pytest.raises(InvalidRecordValue) as caught:
        codec(ORDER).encode(value)
    assert reason in str(caught.value)


@pytest.mark.fuzz
@settings(max_examples=examples(100))
@given(any_json(["n", "data", "kind", "at", "inner", "orders", "price", "parts", "hex"]))
def test_any_value_is_encoded_or_an_error(value: object) -> None:
    orders = codec(ORDER)
    with suppress(InvalidRecordValue):
        orders.decode(orders.encode(value), 0, (0,))


@pytest.mark.fuzz
@settings(max_examples=examples(100))
@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    with suppress(InvalidRecordValue):
        json.dumps(json_form(codec(PROTO2).decode(data, 0, (0,))), allow_nan=False)


@pytest.mark.fuzz
@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from([*PROTO2.split(), "{", "}", ";", "<", '"', "map"])).map(" ".join))
def test_any_text_is_a_schema_or_an_error(text: str) -> None:
    with suppress(UnusableSchema):
        codec(text)
