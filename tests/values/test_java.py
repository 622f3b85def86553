"""Values that serialisers of Java write, in either framing, decode to what they were.

Those of Confluent are not on Maven Central; those of Apicurio use the same libraries of Avro,
Protobuf and JSON (Serialise.java).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.values import DecodedValue, Subject, ValueFormat
from kafkawire.values.proto_text import file_descriptor
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
