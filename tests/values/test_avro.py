"""Avro: values round-trip, and hostile ones end in an error, never in the end of the process."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import InvalidRecordValue, UnusableSchema
from kafkawire.values import Bounds, Reference, Schema, SchemaType
from kafkawire.values.avro import AvroCodec
from kafkawire.values.avro_growth import check
from kafkawire.values.json_form import json_form
from tests.fuzzing import examples

from .json_values import any_json

LIST = {
    "type": "record",
    "name": "List",
    "fields": [{"name": "next", "type": ["null", "List"]}],
}
NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "record", "name": "Empty", "fields": []}
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(),
    "string": st.text(st.characters(codec="utf-8")),
    "bytes": st.binary(),
}


def codec(schema: object, bounds: Bounds | None = None) -> AvroCodec:
    text = json.dumps(schema)
    return AvroCodec(Schema("it", SchemaType.AVRO, text), bounds or Bounds())


def doubling(levels: int) -> Any:
    """A record of 2**levels records without bytes."""
    schema: Any = EMPTY
    for level in range(levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": schema["name"]}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return schema


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a schema, and a strategy for its values."""
    kind = draw(st.sampled_from([*PRIMITIVES, *(["array", "map", "record"] if depth else [])]))
    if kind in PRIMITIVES:
        return kind, PRIMITIVES[kind]
    if kind == "record":
        inner = draw(st.lists(schemas(depth - 1), max_size=3))
        name = f"R{draw(st.uuids(version=4)).hex}"
        fields = [{"name": f"f{at}", "type": one} for at, (one, _) in enumerate(inner)]
        values = {f"f{at}": strategy for at, (_, strategy) in enumerate(inner)}
        return {"type": kind, "name": name, "fields": fields}, st.fixed_dictionaries(values)
    one, items = draw(schemas(depth - 1))
    if kind == "array":
        return {"type": kind, "items": one}, st.lists(items, max_size=3)
    keys = st.text(st.characters(codec="utf-8"), max_size=3)
    return {"type": kind, "values": one}, st.dictionaries(keys, items, max_size=3)


@pytest.mark.fuzz
@settings(max_examples=examples(60))
@given(st.data())
def test_what_is_encoded_is_decoded_and_passes_the_check(data: st.DataObject) -> None:
    schema, values = data.draw(schemas())
    value = data.draw(values)
    it = codec(schema)
    encoded = it.encode(json_form(value))
    found = it.decode(b"--" + encoded, 2)
    assert json_form(found) == json_form(value)
    named: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named_schemas=named)
    check(parsed, named, encoded, 0, Bounds())


@pytest.mark.fuzz
@settings(max_examples=examples(60))
@given(st.data(), st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(data: st.DataObject, given_bytes: bytes) -> None:
    schema, _ = data.draw(schemas())
    it = codec(schema)
    with suppress(InvalidRecordValue):
        json.dumps(json_form(it.decode(given_bytes, 0)), allow_nan=False)


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (LIST, b"\x02" * 1_000_000, "nested more than"),
        (NULLS, b"\x80\x80\x80\x80\x80\x80\x80\x40\0", "more items than"),
        (NULLS, b"\x01\x02" * 3, "ends early"),
        ({"type": "array", "items": doubling(40)}, b"\x02\0", "more fields and items"),
        (doubling(40), b"", "more fields and items"),
        (doubling(70), b"", "nested more than"),
        ("bytes", b"\xfe\xff\xff\xff\x0f", "ends early"),
        (["null", "string"], b"", "ends early"),
        ({"type": "map", "values": "long"}, b"\x80", "ends early"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x04", "symbol 2 of an enum of 2"),
        ("string", b"\x02\xff", "invalid Avro"),
        ("long", b"\x02\x02", "1 more bytes"),
        (["null", "long"], b"\x08", "branch 4 of a union of 2"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9},
            b"\x80\xc0\x01" + bytes(12288),
            "a decimal of 12288 bytes",
        ),
    ],
    ids=lambda given: str(given)[:12],
)
def test_hostile_values(schema: Any, data: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecordValue) as caught:
        codec(schema).decode(data, 0)
    assert reason in str(caught.value)


def test_a_recursive_value_within_the_limits() -> None:
    data = b"\x02" * 20 + b"\0"
    value: Any = codec(LIST).decode(data, 0)
    for _ in range(20):
        value = value["next"]
    assert value == {"next": None}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"type": "record"}', "invalid Avro schema"),
        ("{", "invalid Avro schema"),
        ("[" * 100_000, "invalid Avro schema"),
        ("[" * 400 + "]" * 400, "nested too deeply"),
        ('"acme.Missing"', "unknown type acme.Missing"),
        ('{"type": "array"}', "invalid Avro schema"),
        ("7", "invalid Avro schema"),
    ],
)
def test_invalid_schemas(schema: str, reason: str) -> None:
    with pytest.raises(UnusableSchema) as caught:
        AvroCodec(Schema("schema 7", SchemaType.AVRO, schema), Bounds())
    assert reason in str(caught.value)
    assert caught.value.name == "schema 7"


def test_a_union_of_types_of_other_schemas() -> None:
    schema = Schema(
        "it", SchemaType.AVRO, '["null", "List"]', (Reference("List", json.dumps(LIST)),)
    )
    it = AvroCodec(schema, Bounds())
    assert it.decode(b"\x02\0", 0) == {"next": None}
    assert it.encode(None) == b"\0"


def test_fields_that_are_left_out_have_their_default() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    part = {
        "type": "record",
        "name": "Part",
        "fields": [_field("n", "int", 7), _field("b", "Pair")],
    }
    fields = [
        _field("union", ["null", "long"], None),
        _field("data", "bytes", "\xff\0"),
        _field("pair", PAIR, "\xfe\0"),
        _field("price", price, "\1"),
        _field("parts", {"type": "array", "items": part}, [{"b": "ab"}]),
        _field("map", {"type": "map", "values": "bytes"}, {"k": "\x80"}),
        {"name": "needed", "type": "int"},
    ]
    orders = codec({"type": "record", "name": "Order", "fields": fields})
    found = orders.decode(orders.encode({"needed": 1, "pair": {"hex": "0001"}}), 0)
    assert found == {
        "union": None,
        "data": b"\xff\0",
        "pair": b"\0\1",
        "price": Decimal("0.01"),
        "parts": [{"n": 7, "b": b"ab"}],
        "map": {"k": b"\x80"},
        "needed": 1,
    }
    with pytest.raises(InvalidRecordValue, match="needed"):
        orders.encode({})


PAIR = {"type": "fixed", "name": "Pair", "size": 2}


def _field(name: str, type_: object, *default: object) -> dict[str, object]:
    return {"name": name, "type": type_} | dict(zip(["default"], default, strict=False))


@pytest.mark.parametrize("text", ["1e999999999", "-1e-999999999", "NaN", "x", "9" * 5000])
def test_a_decimal_is_bounded(text: str) -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    with pytest.raises(InvalidRecordValue, match="decimal"):
        codec(price).encode(text)


@pytest.mark.fuzz
@settings(max_examples=examples(100))
@given(st.sampled_from(["list", "order"]), any_json(["next", "n", "price", "at", "pair", "hex"]))
def test_any_value_is_encoded_or_an_error(name: str, value: object) -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    at = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [
        _field("n", ["null", "long", "double", "boolean"], None),
        _field("price", price, ""),
        _field("at", ["string", at], ""),
        _field("pair", ["null", {"type": "map", "values": PAIR}, "Order"], None),
    ]
    order = {"type": "record", "name": "Order", "fields": fields}
    it = codec(LIST if name == "list" else order)
    with suppress(InvalidRecordValue):
        it.decode(it.encode(value), 0)


def test_a_value_that_does_not_fit_is_not_encoded() -> None:
    with pytest.raises(InvalidRecordValue, match="not a value of the schema"):
        codec(LIST).encode({"next": 7})


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        ("string", '"a\u2028b\x85c"', "a\u2028b\x85c"),
        ("bytes", '"\\u00ff\\u0000"', b"\xff\0"),
        (["null", "long"], ' {\n"long": 9007199254740993}\n', 2**53 + 1),
        (["null", "long"], "null", None),
    ],
)
def test_values_in_the_json_encoding(schema: Any, data: str, value: object) -> None:
    assert codec(schema).decode_json(data.encode()) == value


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'"a" "b"', b'"a"}, "x": {', b"[" * 100_000])
def test_invalid_values_in_the_json_encoding(data: bytes) -> None:
    with pytest.raises(InvalidRecordValue, match="invalid JSON of Avro"):
        codec("string").decode_json(data)
