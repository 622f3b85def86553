"""Encodes JSON values that their JSON Schema allows, with jsonschema-rs.

Values that are decoded are not checked: what is in a topic is shown as it is. Nothing that a schema
refers to is read from the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar, Final

from ..errors import InvalidRecordValue, UnusableSchema
from ..extras import requires
from .json_schema_work import SchemaWork
from .plain import encode_json
from .schema import Schema

MAX_REASON: Final = 500
"""Characters of a reason, which contains the part of a value that does not fit."""


class JsonSchemaCodec:
    """Encodes the values of a schema, which is compiled for the first one."""

    name: ClassVar[None] = None

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def encode(self, value: object) -> bytes:
        """Encode a value that the schema allows. Raises InvalidRecordValue, UnusableSchema."""
        validator = self._validator
        encoded = encode_json(value)
        self._work.check(value, len(encoded))
        try:
            validator.validate(value)
        except ValueError as error:
            path = "/".join(map(str, getattr(error, "instance_path", ())))
            where = f"{path}: " if path else ""
            reason = f"not a value of the schema: {where}{_reason(error)}"
            raise InvalidRecordValue(reason) from None
        return encoded

    @cached_property
    def _work(self) -> SchemaWork:
        documents = {"": self._schema.text}
        documents |= {reference.name: reference.text for reference in self._schema.references}
        return SchemaWork({name: _parsed(text) for name, text in documents.items()})

    @cached_property
    def _validator(self) -> Any:
        with requires("jsonschema_rs", "values", "jsonschema-rs"):
            import jsonschema_rs
        texts = {reference.name: reference.text for reference in self._schema.references}
        missing: list[str] = []

        def retrieve(uri: str) -> Any:
            """Read a reference, whose name is the URI or its end; nothing is fetched."""
            names = [name for name in texts if uri == name or uri.endswith(f"/{name}")]
            if names:
                return json.loads(texts[max(names, key=len)])
            missing.append(uri)
            raise LookupError(uri)

        try:
            schema = json.loads(self._schema.text)
            return jsonschema_rs.validator_for(schema, retriever=retrieve)
        except RecursionError:
            reason = "invalid JSON Schema: nested too deeply"
        except ValueError as error:
            reason = f"invalid JSON Schema: {_reason(error)}"
        if missing:
            reason = f"refers to {_cut(missing[0])}, which is not found"
        raise UnusableSchema(reason, self._schema.name)


def _parsed(text: str) -> Any:
    """Parse a schema; None for invalid JSON, which is reported when it is compiled."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def references_of(text: str) -> Iterator[str]:
    """List the URIs to which a schema refers, without their fragments."""
    level: list[Any] = [_parsed(text)]
    while level:
        outer, level = level, []
        for value in outer:
            if isinstance(value, dict):
                reference = value.get("$ref")
                if isinstance(reference, str) and reference.partition("#")[0]:
                    yield reference.partition("#")[0]
            level += _inner(value)


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _reason(error: ValueError) -> str:
    return _cut(str(getattr(error, "message", error)))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}..."
