"""Schemas of an Apicurio registry with its own API, versions 2 and 3 (/apis/registry/v3).

    value, header --ApicurioId--> /ids/globalIds/N, and .../references --> Schema

No I/O here: `fetch` gets the body of a path. A response is the text of a schema, without its type,
which is detected.

Source: Apicurio Registry, "Registry REST API" (v2, v3); Routes of its client.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Final
from urllib.parse import quote
from uuid import UUID

from ..errors import UnusableSchema
from .bounds import DEFAULT_BOUNDS, Bounds
from .schema import ApicurioId, IdKind, Schema, SchemaKey, SchemaType, Subject
from .schema_registry import Fetch, References, RegistryBodies, RegistrySchemas

VERSION_2: Final = 2
PATHS: Final = ("/apis/registry/v2", "/apis/registry/v3")
"""How the URL of an Apicurio registry with its own API ends."""
DEFAULT_GROUP: Final = "default"
NAMED_TYPES: Final = frozenset({"record", "enum", "fixed", "error"})
"""Of Avro schemas that are JSON objects; JSON Schemas have none of them."""


class ApicurioSchemas:
    """Schemas of an Apicurio registry. version: of its API. now: a clock in seconds.

    Ids in front of values are global ids in version 2 and content ids in version 3, which are the
    defaults of Apicurio's serialisers.
    """

    is_local: ClassVar[bool] = False

    def __init__(
        self,
        fetch: Fetch,
        now: Callable[[], float],
        version: int = 3,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._bodies = RegistryBodies(fetch, now, 2 * bounds.schema_bytes)
        self._bounds = bounds
        self._version = version

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:  # noqa: ARG002
        """Return the schema with an id. Raises UnusableSchema."""
        if isinstance(key, UUID):
            return None
        if isinstance(key, int):
            kind = IdKind.GLOBAL if self._version == VERSION_2 else IdKind.CONTENT
            key = ApicurioId(kind, key)
        return self._schema(f"/ids/{key.kind}s/{key.number}", f"schema {key.number}", key)

    def by_subject(self, subject: Subject) -> Schema | None:
        """Return the newest schema of a topic, in the default group. Raises UnusableSchema."""
        artifact = f"/groups/{DEFAULT_GROUP}/artifacts/{quote(subject.name, safe='')}"
        newest = "/meta" if self._version == VERSION_2 else "/versions/branch=latest"
        metadata = self._json(artifact + newest, subject.name)
        if metadata is None:
            return None
        number = metadata.get("contentId") if isinstance(metadata, dict) else None
        if not isinstance(number, int) or isinstance(number, bool):
            raise UnusableSchema("the registry's response has no contentId", subject.name)
        key = number if self._version > VERSION_2 else ApicurioId(IdKind.CONTENT, number)
        return self._schema(f"/ids/contentIds/{number}", subject.name, key)

    def _schema(self, path: str, name: str, key: SchemaKey | None) -> Schema | None:
        body = self._body(path, name)
        if body is None:
            return None
        references = References(self._referenced, self._bounds, name)
        references.count(body["schema"])
        references.add(body)
        kind = schema_type(body["schema"])
        return Schema(name, kind, body["schema"], tuple(references.collected), key)

    def _body(self, path: str, name: str, references: str | None = None) -> dict[str, Any] | None:
        """Get a text and what it refers to, in the form of Confluent's API."""
        data = self._bodies.get(path, name)
        if data is None:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise UnusableSchema("the registry's response is not text", name) from None
        listed = self._json(references or f"{path}/references", name) or []
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise UnusableSchema("invalid references", name)
        return {"schema": text, "references": [_in_confluents_form(one) for one in listed]}

    def _referenced(self, artifact: str, version: str | int) -> dict[str, Any] | None:
        place = f"{artifact}/versions/{quote(str(version), safe='')}"
        content = place if self._version == VERSION_2 else f"{place}/content"
        return self._body(content, artifact, f"{place}/references")

    def _json(self, path: str, name: str) -> Any:
        data = self._bodies.get(path, name)
        if data is None:
            return None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise UnusableSchema("the registry's response is not JSON", name) from None


def _in_confluents_form(reference: dict[str, Any]) -> dict[str, Any]:
    group, artifact = reference.get("groupId") or DEFAULT_GROUP, reference.get("artifactId")
    subject = f"/groups/{quote(str(group), safe='')}/artifacts/{quote(str(artifact), safe='')}"
    return {
        "name": reference.get("name"),
        "subject": subject,
        "version": reference.get("version"),
    }


def schema_type(text: str) -> SchemaType:
    """Detect the type of a schema: .proto files are not JSON; Avro has types of its own."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return SchemaType.PROTOBUF
    if not isinstance(schema, dict):
        return SchemaType.JSON if isinstance(schema, bool) else SchemaType.AVRO
    kind = schema.get("type")
    is_avro = isinstance(kind, str) and kind in NAMED_TYPES and "name" in schema
    return SchemaType.AVRO if is_avro else SchemaType.JSON


def registry_schemas(
    path: str, fetch: Fetch, now: Callable[[], float]
) -> RegistrySchemas | ApicurioSchemas:
    """Return the schemas of a registry, by the path of its URL: with Apicurio's API or Confluent's.

    fetch: gets paths below that path. now: a clock in seconds.
    """
    for version, end in enumerate(PATHS, VERSION_2):
        if path.rstrip("/").endswith(end):
            return ApicurioSchemas(fetch, now, version)
    return RegistrySchemas(fetch, now)
