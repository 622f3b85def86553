"""What a registry of Karapace responded, and values that confluent-kafka wrote with it.

karapace.json is a recording (docs/internals/peers.md): paths with the bodies of responses, null for
404, and values in hex.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.values import RegistrySchemas, Subject, ValueDecoder, ValueFormat

from .test_confluent import VALUE

RECORDED: Final[dict[str, dict[str, Any]]] = json.loads(
    Path(__file__).with_name("karapace.json").read_text()
)


def fetch(path: str, most: int) -> bytes | None:
    """Respond as Karapace did; KeyError for another path than those that it got."""
    body = RECORDED["responses"][path]
    assert body is None or len(body) <= most
    return None if body is None else str(body).encode()


def decoder(form: ValueFormat = ValueFormat.AUTO) -> ValueDecoder:
    return ValueDecoder(form, [RegistrySchemas(fetch, lambda: 0.0)])


@pytest.mark.parametrize(
    ("name", "form", "value", "error"),
    [
        ("avro", "avro", VALUE, None),
        ("json-schema", "json-schema", {"id": 1}, None),
        ("missing", "schema", None, "schema 9999: not found"),
    ],
)
def test_values_that_name_their_schema(
    name: str, form: str, value: object, error: str | None
) -> None:
    found = decoder().decode(bytes.fromhex(RECORDED["values"][name]), Subject("orders"))
    assert found is not None
    assert (found.format, found.value, found.error) == (form, value, error)


def test_the_newest_schemas_of_topics() -> None:
    values = decoder(ValueFormat.AVRO)
    framed = bytes.fromhex(RECORDED["values"]["avro"])
    of_orders = values.decode(framed[5:], Subject("orders"))
    assert of_orders is not None
    assert of_orders.value == VALUE
    for topic, reason in (("events", "events-value is json-schema"), ("none", "names no schema")):
        found = values.decode(b"\xff", Subject(topic))
        assert found is not None
        assert reason in str(found.error)
