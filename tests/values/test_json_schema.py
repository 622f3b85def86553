"""JSON values are encoded if their schema allows them; files refer to each other by their ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkawire.errors import InvalidRecordValue, MissingPackage, UnusableSchema
from kafkawire.values import DirectorySchemas, Subject, ValueDecoder, ValueFormat
from kafkawire.values.json_schema import MAX_REASON, JsonSchemaCodec
from kafkawire.values.schema import Reference, Schema, SchemaType

ORDER = {
    "$id": "https://example.org/shop/order.json",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"$ref": "common/id.json#/definitions/number"},
        "lines": {"type": "array", "items": {"$ref": "#"}},
        "note": {"$ref": "https://example.org/elsewhere/note.json"},
    },
}
ID = {"definitions": {"number": {"type": "integer", "minimum": 1}}, "$ref": "../note.json"}


@pytest.fixture
def values(tmp_path: Path) -> ValueDecoder:
    """A decoder with schemas of topics, two of which cannot be used."""
    (tmp_path / "common").mkdir()
    for path, schema in {
        "order.json": ORDER,
        "common/id.json": ID,
        "note.json": {"type": "string"},
        "lost.json": {"allOf": [{"$ref": "https://example.org/lost/none.json"}]},
        "wrong.json": {"type": "nothing"},
    }.items():
        (tmp_path / path).write_text(json.dumps(schema))
    (tmp_path / "text.json").write_text("{")
    return ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])


@pytest.mark.parametrize(
    "value", [{"id": 1}, {"id": 2**70, "lines": [{"id": 1, "note": "\N{SNOWMAN}"}]}]
)
def test_a_value_that_the_schema_allows(values: ValueDecoder, value: Any) -> None:
    assert json.loads(values.encode(value, Subject("order"))) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, '"id" is a required property'),
        ({"id": 0}, "id: 0 is less than the minimum of 1"),
        ({"id": 1, "lines": [{"id": 1}, {"id": "x"}]}, 'lines/1/id: "x" is not of type "integer"'),
        ({"id": 1, "note": 5}, 'note: 5 is not of type "string"'),
        ({"id": float("nan")}, "not JSON"),
        ({"id": b"1"}, "not JSON"),
        ([], 'is not of type "object"'),
    ],
)
def test_a_value_that_it_does_not_allow(values: ValueDecoder, value: Any, reason: str) -> None:
    with pytest.raises(InvalidRecordValue) as caught:
        values.encode(value, Subject("order"))
    assert reason in str(caught.value)


def test_such_a_value_is_decoded_and_its_reason_is_short(values: ValueDecoder) -> None:
    found = values.decode(b'{"id": "x"}', Subject("order"))
    assert found is not None
    assert (found.value, found.error) == ({"id": "x"}, None)
    with pytest.raises(InvalidRecordValue) as caught:
        values.encode({"id": "x" * 10_000}, Subject("order"))
    assert len(str(caught.value)) < 2 * MAX_REASON


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("lost", "lost.json: refers to https://example.org/lost/none.json, which is not found"),
        ("wrong", "wrong.json: invalid JSON Schema"),
        ("text", "text.json: invalid JSON Schema"),
    ],
)
def test_schemas_that_cannot_be_used(values: ValueDecoder, topic: str, reason: str) -> None:
    with pytest.raises(UnusableSchema) as caught:
        values.encode(1, Subject(topic))
    assert reason in str(caught.value)


def test_references_of_a_registry_have_the_name_that_the_schema_uses() -> None:
    text = json.dumps({"properties": {"id": {"$ref": "acme.id"}}})
    codec = JsonSchemaCodec(
        Schema("7", SchemaType.JSON, text, (Reference("acme.id", '{"type": "integer"}'),), 7)
    )
    assert codec.encode({"id": 1}) == b'{"id":1}'
    with pytest.raises(InvalidRecordValue):
        codec.encode({"id": "1"})


def test_files_that_refer_to_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"properties": {"b": {"$ref": "b.json"}}}')
    (tmp_path / "b.json").write_text('{"type": "object", "properties": {"a": {"$ref": "a.json"}}}')
    values = ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])
    assert values.encode({"b": {"a": {}}}, Subject("a"))
    with pytest.raises(InvalidRecordValue, match="b/a/b: 1 is not"):
        values.encode({"b": {"a": {"b": 1}}}, Subject("a"))


def test_the_file_with_most_of_a_uri_is_the_one(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "id.json").write_text('{"type": "string"}')
    (tmp_path / "shop" / "id.json").write_text('{"type": "integer"}')
    properties = {"a": {"$ref": "https://example.org/shop/id.json"}, "b": {"$ref": "id.json"}}
    (tmp_path / "order.json").write_text(json.dumps({"properties": properties}))
    values = ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])
    assert values.encode({"a": 1, "b": "x"}, Subject("order"))


@pytest.mark.parametrize("uri", ["https://[", "a/" * 300_000 + "b", "\0", "//", "urn:a:b"])
def test_references_to_nothing(uri: str, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text(json.dumps({"$ref": uri}))
    values = ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])
    found = values.decode(b"1", Subject("order"))
    assert found is not None
    assert found.value == 1
    with pytest.raises(UnusableSchema) as caught:
        values.encode(1, Subject("order"))
    assert len(str(caught.value)) < 2 * MAX_REASON


def test_decoding_needs_no_package(values: ValueDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    found = values.decode(b"{}", Subject("order"))
    assert found is not None
    assert found.value == {}
    with pytest.raises(MissingPackage, match=r"jsonschema-rs is not installed.*kafkawire\[values]"):
        values.encode({}, Subject("order"))


LEVELS = 22


def doubled(reference: str, definition: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
    """A schema each of whose definitions refers to the next one twice, which has its number."""

    def of(number: int, value: Any) -> Any:
        return json.loads(json.dumps(value).replace("NUMBER", str(number)))

    twice = [{"$ref": reference}, {"$ref": reference}]
    definitions = {
        f"d{number}": of(number, definition) | {"allOf": of(number + 1, twice)}
        for number in range(LEVELS)
    }
    return {
        "$defs": definitions | {f"d{LEVELS}": of(LEVELS, definition) | last},
        "$ref": of(0, reference),
    }


DOUBLED = {
    "pointers": doubled("#/$defs/dNUMBER", {}, {}),
    "anchors": doubled("#aNUMBER", {"$anchor": "aNUMBER"}, {}),
    "ids": doubled("https://example.org/iNUMBER", {"$id": "https://example.org/iNUMBER"}, {}),
    "relative ids": {"$id": "https://example.org/a/b"}
    | doubled("../iNUMBER", {"$id": "https://example.org/iNUMBER"}, {}),
    "files": doubled("https://example.org/twice.json#/$defs/dNUMBER", {}, {}),
    "anchors of a file with an id": {"$id": "https://example.org/x/other.json"}
    | doubled("twice.json#aNUMBER", {"$anchor": "aNUMBER"}, {}),
    "the same field": {
        "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "object"}]}}
    },
    "all fields": {"additionalProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}},
    "items": {"items": {"anyOf": [{"type": "string"}, {"$ref": "#"}, {"$ref": "#"}]}},
    "itself": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "patterns": {"patternProperties": {f"^{'a?' * n}": {"$ref": "#"} for n in range(1000)}},
}
"""Schemas whose subschemas apply to a value a million times, by how they are referred to."""


def nested(kind: str) -> Any:
    value: Any = {}
    for _ in range(LEVELS):
        value = [value] if kind == "items" else {"a": value}
    return value


@pytest.mark.parametrize("kind", DOUBLED)
def test_subschemas_that_apply_too_often_are_refused_before_they_do(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "twice.json").write_text(json.dumps(DOUBLED[kind]))
    values = ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])
    with pytest.raises(InvalidRecordValue, match="subschemas may apply to the value"):
        values.encode(nested(kind), Subject("twice"))


@pytest.mark.parametrize("kind", ["the same field", "all fields", "items"])
def test_what_such_schemas_do_with_shallow_values_is_no_trouble(kind: str, tmp_path: Path) -> None:
    (tmp_path / "twice.json").write_text(json.dumps(DOUBLED[kind]))
    values = ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])
    assert values.encode([[]] if kind == "items" else {"a": {}}, Subject("twice"))


def test_recursive_schemas_are_for_large_values(tmp_path: Path) -> None:
    """What is counted grows with the value, and so does what is allowed."""
    tree = {"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}}
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    values = ValueDecoder(ValueFormat.JSON_SCHEMA, [DirectorySchemas(tmp_path)])
    leaves: list[Any] = [{"children": [{} for _ in range(100)]} for _ in range(1000)]
    assert values.encode({"children": leaves}, Subject("tree"))
    with pytest.raises(InvalidRecordValue, match="children/0/children/0"):
        values.encode({"children": [{"children": [1]}]}, Subject("tree"))
