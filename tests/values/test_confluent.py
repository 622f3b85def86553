"""Values that confluent-kafka's serializers write are what its deserializers give."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory

from kafkawire.net.schema_registry import RegistryAddress, RegistryHttp
from kafkawire.values import RegistrySchemas, Subject, ValueDecoder, ValueFormat
from kafkawire.values.protobuf.text import file_descriptor

from .registry import SchemaRegistry

ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "acme",
    "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": ["null", "int"]}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "acme",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "to", "type": "acme.Address"},
        {"name": "billed", "type": ["null", "acme.Address"]},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "items", "type": {"type": "array", "items": ["int", "string"]}},
        {"name": "tags", "type": {"type": "map", "values": "bytes"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
VALUE = {
    "id": UUID(int=7),
    "to": {"city": "Oslo", "zip": None},
    "billed": {"city": "Rome", "zip": 184},
    "amount": Decimal("12.34"),
    "at": datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC),
    "day": date(2026, 1, 31),
    "items": [1, "two"],
    "tags": {"raw": b"\xff\x00"},
    "kind": "B",
}
PROTO = """
syntax = "proto3";
package acme;
import "google/protobuf/timestamp.proto";
message Outer {
  message Unused {}
  message Order {
    string id = 1;
    repeated Line lines = 2;
    map<string, int64> counts = 3;
    optional sint64 amount = 4;
    Kind kind = 5;
    google.protobuf.Timestamp at = 6;
    oneof way { string road = 7; bytes rail = 8; }
    message Line { double price = 1; }
    enum Kind { NONE = 0; GIFT = 1; }
  }
}
message Other {}
"""
CONTEXT = SerializationContext("orders", MessageField.VALUE, headers=[])


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as one:
        yield one


def decoder(registry: SchemaRegistry, form: ValueFormat = ValueFormat.AUTO) -> ValueDecoder:
    fetch = RegistryHttp(RegistryAddress(registry.url))
    return ValueDecoder(form, [RegistrySchemas(fetch, lambda: 0.0)])


def test_avro_with_references_and_logical_types(
    registry: SchemaRegistry, client: SchemaRegistryClient
) -> None:
    registry.register("address", {"schema": json.dumps(ADDRESS)})
    reference = SchemaReference("acme.Address", "address", 1)
    schema = Schema(json.dumps(ORDER), "AVRO", [reference])
    data = AvroSerializer(client, schema)(VALUE, CONTEXT)
    wanted = AvroDeserializer(client)(data, CONTEXT)
    for form in (ValueFormat.AUTO, ValueFormat.AVRO):
        found = decoder(registry, form).decode(data, Subject("orders"))
        assert found is not None
        assert (found.format, found.type, found.error) == ("avro", "acme.Order", None)
        assert found.value == wanted == VALUE
    assert found is not None
    assert found.to_json()["value"] == VALUE | {
        "id": str(UUID(int=7)),
        "amount": "12.34",
        "at": "2026-01-31T12:00:00.000005Z",
        "day": "2026-01-31",
        "tags": {"raw": {"hex": "ff00"}},
    }


def test_a_guid_in_a_header(registry: SchemaRegistry, client: SchemaRegistryClient) -> None:
    headers: list[tuple[str, Any]] = []
    context = SerializationContext("orders", MessageField.VALUE, headers=headers)
    serializer = AvroSerializer(
        client, '"long"', conf={"schema.id.serializer": header_schema_id_serializer}
    )
    data = serializer(42, context)
    found = decoder(registry).decode(data, Subject("orders"), headers)
    assert found is not None
    assert (found.value, found.schema) == (42, registry.guid(1))


def _order_class() -> Any:
    pool = descriptor_pool.Default()
    pool.Add(file_descriptor("acme/outer.proto", PROTO))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("acme.Outer.Order"))


ORDERS = _order_class()


@pytest.mark.parametrize(("as_text", "in_header"), [(False, False), (True, False), (True, True)])
def test_nested_messages_of_protobuf(
    registry: SchemaRegistry, client: SchemaRegistryClient, as_text: bool, in_header: bool
) -> None:
    """As the Python client registers them (a descriptor in base64), and as text."""
    headers: list[tuple[str, Any]] = []
    context = SerializationContext("orders", MessageField.VALUE, headers=headers)
    settings = {"schema.id.serializer": header_schema_id_serializer} if in_header else None
    message = ORDERS(id="x", counts={"a": 2**60}, amount=-3, kind=1, rail=b"\xff")
    message.lines.add(price=1.5)
    message.lines.add()
    message.at.FromJsonString("2026-01-31T12:00:00.000000001Z")
    data = ProtobufSerializer(ORDERS, client, settings)(message, context)
    if as_text:
        registry.schemas = [
            schema | {"schema": PROTO} if "references" in schema else schema
            for schema in registry.schemas
        ]
    found = decoder(registry).decode(data, Subject("orders"), headers)
    assert found is not None
    number = len(registry.schemas)
    name = {"schemaGuid": str(registry.guid(number))} if in_header else {"schemaId": number}
    assert bool(headers) == in_header
    assert found.to_json() == name | {
        "format": "protobuf",
        "type": "acme.Outer.Order",
        "value": {
            "id": "x",
            "lines": [{"price": 1.5}, {"price": 0.0}],
            "counts": {"a": 2**60},
            "amount": -3,
            "kind": "GIFT",
            "at": "2026-01-31T12:00:00.000000001Z",
            "rail": {"hex": "ff"},
        },
    }


def test_json_schema(registry: SchemaRegistry, client: SchemaRegistryClient) -> None:
    schema = json.dumps({"title": "Order", "type": "object"})
    data = JSONSerializer(schema, client)({"id": 1}, CONTEXT)
    found = decoder(registry).decode(data, Subject("orders"))
    assert found is not None
    assert (found.format, found.value) == ("json-schema", {"id": 1})
    assert JSONDeserializer(schema, schema_registry_client=client)(data, CONTEXT) == found.value


@pytest.mark.parametrize(
    ("form", "schema", "value", "read"),
    [
        (
            ValueFormat.AVRO,
            {
                "schema": json.dumps(ORDER),
                "references": [{"name": "acme.Address", "subject": "address", "version": 1}],
            },
            VALUE,
            lambda client, data: AvroDeserializer(client)(data, CONTEXT),
        ),
        (
            ValueFormat.JSON_SCHEMA,
            {"schema": '{"type": "object"}', "schemaType": "JSON"},
            {"id": 1},
            lambda client, data: JSONDeserializer(
                '{"type": "object"}', schema_registry_client=client
            )(data, CONTEXT),
        ),
    ],
    ids=["avro", "json-schema"],
)
def test_their_deserializers_read_what_is_encoded(
    registry: SchemaRegistry,
    client: SchemaRegistryClient,
    form: ValueFormat,
    schema: dict[str, Any],
    value: Any,
    read: Callable[[Any, bytes], Any],
) -> None:
    registry.register("address", {"schema": json.dumps(ADDRESS)})
    registry.register("orders-value", schema)
    values = decoder(registry, form)
    shown: Any = values.decode(values.encode(_in_json(value), Subject("orders")), Subject("orders"))
    assert shown.value == value
    assert read(client, values.encode(_in_json(value), Subject("orders"))) == value


def _in_json(value: Any) -> Any:
    from kafkawire.values.json_form import json_form

    return json_form(value)
