"""Values that serialisers of Java write, in either framing, decode to what they were.

Those of Confluent are not on Maven Central; those of Apicurio use the same libraries of Avro,
Protobuf and JSON (Serialise.java).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from kafkawire.values import (
    ApicurioId,
    DecodedValue,
    IdKind,
    Subject,
    ValueDecoder,
    ValueFormat,
    registry_schemas,
)
from kafkawire.values.protobuf.text import file_descriptor
from tests.real.compiler import compiled
from tests.real.java import install

from .registry import SchemaRegistry
from .test_confluent import ADDRESS, ORDER, PROTO, VALUE, decoder

POM: Final = Path(__file__).with_name("serdes.xml")
SOURCE: Final = Path(__file__).with_name("Serialise.java")
FIELDS: Final[Any] = ORDER["fields"]
MESSAGE: Final = {
    "id": "x",
    "lines": [{"price": 1.5}, {"price": 0.0}],
    "counts": {"a": 2**60},
    "amount": -3,
    "kind": "GIFT",
    "at": "2026-01-31T12:00:00.000000001Z",
}


@pytest.fixture(scope="module")
def serialised_by_java() -> dict[str, Any]:
    """Values by format, in hex, and the schemas that were registered for them."""
    fields = [field | {"type": ADDRESS} if field["name"] == "to" else field for field in FIELDS]
    given = {
        "avro": json.dumps(ORDER | {"fields": fields}),
        "descriptor": base64.b64encode(
            file_descriptor("acme/outer.proto", PROTO).SerializeToString()
        ).decode(),
        "message": MESSAGE | {"rail": "/w=="},
        "jsonSchema": '{"title": "Order", "type": "object"}',
        "value": {"id": 1},
    }
    program = compiled(install(POM, "serdes"), SOURCE)
    found: dict[str, Any] = json.loads(program.run(SOURCE.stem, stdin=json.dumps(given)))
    return found


@pytest.fixture(params=["4", "8"])
def id_bytes(request: pytest.FixtureRequest) -> str:
    """The size of the ids: as Confluent writes them, and Apicurio's own."""
    size: str = request.param
    return size


def decoded(
    registry: SchemaRegistry, serialised: dict[str, Any], form: ValueFormat, id_bytes: str
) -> tuple[DecodedValue, DecodedValue]:
    """Decode a value by what it says, and by its format."""
    for one in serialised["schemas"]:
        registry.register(one["subject"], one | {"schemaType": one["type"]})
    data = bytes.fromhex(serialised["values"][form.value][id_bytes])
    assert 0 < int.from_bytes(data[1 : 1 + int(id_bytes)]) <= len(serialised["schemas"])
    by_itself, by_format = (
        decoder(registry, each).decode(data, Subject("orders")) for each in (ValueFormat.AUTO, form)
    )
    assert by_itself is not None
    assert by_format is not None
    return by_itself, by_format


def test_avro_with_logical_types(
    registry: SchemaRegistry, serialised_by_java: dict[str, Any], id_bytes: str
) -> None:
    for found in decoded(registry, serialised_by_java, ValueFormat.AVRO, id_bytes):
        assert (found.value, found.error, found.type) == (VALUE, None, "acme.Order")


def test_avro_with_references(registry: SchemaRegistry, serialised_by_java: dict[str, Any]) -> None:
    """The same value, by a schema that refers to another one."""
    reference = {"name": "acme.Address", "subject": "address", "version": 1}
    registry.register("orders-value", {"schema": json.dumps(ORDER), "references": [reference]})
    registry.register("address", {"schema": json.dumps(ADDRESS)})
    data = bytes.fromhex(serialised_by_java["values"]["avro"]["4"])
    assert int.from_bytes(data[1:5]) == 1
    found = decoder(registry).decode(data, Subject("orders"))
    assert found is not None
    assert found.value == VALUE


def test_nested_messages_of_protobuf(
    registry: SchemaRegistry, serialised_by_java: dict[str, Any], id_bytes: str
) -> None:
    """The schema refers to another one, and the value names its message."""
    for found in decoded(registry, serialised_by_java, ValueFormat.PROTOBUF, id_bytes):
        assert (found.error, found.type) == (None, "acme.Outer.Order")
        assert found.value == MESSAGE | {"rail": b"\xff"}


def test_json_schema(
    registry: SchemaRegistry, serialised_by_java: dict[str, Any], id_bytes: str
) -> None:
    for found in decoded(registry, serialised_by_java, ValueFormat.JSON_SCHEMA, id_bytes):
        assert (found.format, found.value, found.error) == ("json-schema", {"id": 1}, None)


CONTENT_IDS: Final = 100
"""What the content ids of `Serialise.java` are more than the global ids."""


class Apicurio:
    """The API of an Apicurio registry, as far as it is read: a `kafkawire.values.Fetch`."""

    def __init__(self, schemas: list[dict[str, Any]], version: int) -> None:
        self.schemas = schemas
        self.version = version

    def __call__(self, path: str, most: int) -> bytes | None:  # noqa: ARG002
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["ids", kind, number, *rest]:
                first = 1 + CONTENT_IDS if kind == "contentIds" else 1
                return self._part(int(number) - first, rest)
            case ["groups", "default", "artifacts", subject, *rest]:
                subjects = [one["subject"] for one in self.schemas]
                if subject not in subjects:
                    return None
                position = subjects.index(subject)
                if rest == (["meta"] if self.version == 2 else ["versions", "branch=latest"]):
                    return json.dumps({"contentId": position + 1 + CONTENT_IDS}).encode()
                assert rest[:2] == ["versions", "1"]
                is_content = rest[2:] == ([] if self.version == 2 else ["content"])
                return self._part(position, [] if is_content else rest[2:])
        raise AssertionError(path)

    def _part(self, position: int, rest: list[str]) -> bytes | None:
        if not 0 <= position < len(self.schemas):
            return None
        schema = self.schemas[position]
        if not rest:
            text: str = schema["schema"]
            return text.encode()
        assert rest == ["references"]
        references = [
            {"groupId": None, "artifactId": one["subject"], "version": "1", "name": one["name"]}
            for one in schema["references"]
        ]
        return json.dumps(references).encode()


FORMS: Final = {
    ValueFormat.AVRO: ("acme.Order", VALUE),
    ValueFormat.PROTOBUF: ("acme.Outer.Order", MESSAGE | {"rail": b"\xff"}),
    ValueFormat.JSON_SCHEMA: (None, {"id": 1}),
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", IdKind)
@pytest.mark.parametrize("form", FORMS)
def test_ids_in_headers_of_apicurio(
    form: ValueFormat, kind: IdKind, version: int, serialised_by_java: dict[str, Any]
) -> None:
    values = serialised_by_java["values"][form.value]
    headers = [
        (key.removeprefix(f"{kind} "), bytes.fromhex(value))
        for key, value in values.items()
        if key.startswith(f"{kind} ")
    ]
    assert f"apicurio.value.{kind}" in dict(headers)
    fetch = Apicurio(serialised_by_java["schemas"], version)
    source = registry_schemas(f"/apis/registry/v{version}/", fetch, lambda: 0.0)
    data = bytes.fromhex(values[kind])
    value = ValueDecoder(sources=[source]).decode(data, Subject("orders"), headers)
    assert value is not None
    assert (value.error, value.type, value.value) == (None, *FORMS[form])
    number = dict(headers)[f"apicurio.value.{kind}"]
    assert value.to_json()["schemaId"] == value.schema_id == int.from_bytes(number, "big")
    assert value.schema_guid is None


def headers_of(values: dict[str, str], case: str) -> dict[str, bytes]:
    """Return the headers of a value that `Serialise.java` wrote."""
    named = (key.partition(" ") for key in values)
    return {
        name: bytes.fromhex(values[f"{of} {name}"]) for of, _, name in named if of == case and name
    }


def test_avro_in_its_json_encoding(serialised_by_java: dict[str, Any]) -> None:
    """The header apicurio.value.encoding says which encoding an Avro value has."""
    values = serialised_by_java["values"]["avro"]
    headers = headers_of(values, "json")
    assert headers["apicurio.value.encoding"] == b"JSON"
    assert headers_of(values, "globalId")["apicurio.value.encoding"] == b"BINARY"
    data = bytes.fromhex(values["json"])
    assert data.startswith(b"{")
    source = registry_schemas(
        "/apis/registry/v3/", Apicurio(serialised_by_java["schemas"], 3), lambda: 0.0
    )
    values_of = ValueDecoder(sources=[source])
    decoded_one = values_of.decode(data, Subject("orders"), headers.items())
    assert decoded_one is not None
    assert (decoded_one.error, decoded_one.type, decoded_one.value) == (None, "acme.Order", VALUE)
    for bad in (data[:-1], b"[]", b'{"id": 1}', b"[" * 5000, b"\xff", b""):
        damaged = values_of.decode(bad, Subject("orders"), headers.items())
        assert damaged is not None
        assert damaged.value is None
        assert damaged.error


@pytest.mark.parametrize("version", [2, 3])
def test_schemas_of_topics_and_unknown_ids_of_apicurio(
    version: int, serialised_by_java: dict[str, Any]
) -> None:
    schemas = serialised_by_java["schemas"]
    fetch = Apicurio([{**schemas[0], "subject": "orders-value"}], version)
    source = registry_schemas(f"/apis/registry/v{version}", fetch, lambda: 0.0)
    schema = source.by_subject(Subject("orders"))
    assert schema is not None
    assert (schema.text, schema.type.value) == (schemas[0]["schema"], schemas[0]["type"])
    content_id = 1 + CONTENT_IDS
    assert schema.key == (ApicurioId(IdKind.CONTENT, content_id) if version == 2 else content_id)
    assert source.by_subject(Subject("orders", is_key=True)) is None
    assert source.by_key(ApicurioId(IdKind.GLOBAL, 99), None) is None


def test_ids_in_headers_of_apicurio_by_confluents_api(
    registry: SchemaRegistry,
) -> None:
    """Its ids are content ids; it has no global ids."""
    number = registry.register("orders-value", {"schema": json.dumps("string")})
    decode = decoder(registry).decode
    data = b"\x04ab"
    for kind, error in ((IdKind.CONTENT, None), (IdKind.GLOBAL, "no such schema")):
        headers = [(f"apicurio.value.{kind}", number.to_bytes(8, "big"))]
        value = decode(data, Subject("orders"), headers)
        assert value is not None
        assert (value.value, value.error and error) == (None if error else "ab", error)
