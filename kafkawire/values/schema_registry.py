"""Schemas of a registry with Confluent's API, which Karapace, Apicurio (ccompat) and others have.

No I/O here: `fetch` gets the body of a path. Schemas are bounded in size, references and their
depth; while a registry cannot be reached, it is tried again after RETRY_S seconds only.

Source: Confluent, "Schema Registry API Reference".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import quote
from uuid import UUID

from ..errors import UnusableSchema
from .bounds import DEFAULT_BOUNDS, Bounds
from .schema import ApicurioId, IdKind, Reference, Schema, SchemaKey, SchemaType, Subject

RETRY_S: Final = 30.0
EDITION: Final = re.compile(r"^\s*edition\s*=", re.MULTILINE)
SERIALIZED: Final = "format=serialized"
"""Asks for a FileDescriptorProto in base64 instead of the text of a .proto file."""


class Fetch(Protocol):
    """Gets a path of a registry."""

    def __call__(self, path: str, most: int) -> bytes | None:
        """Return the body, of at most `most` bytes; None if there is no such schema.

        Raises UnusableSchema.
        """


class RegistryBodies:
    """Gets bodies of a registry, of at most `most` bytes; after a failure not for RETRY_S."""

    def __init__(self, fetch: Fetch, now: Callable[[], float], most: int) -> None:
        self._fetch = fetch
        self._now = now
        self._most = most
        self._failure: tuple[float, str] | None = None

    def get(self, path: str, name: str) -> bytes | None:
        """Return the body of a path; None if it is not found.

        name: of the schema, for errors. Raises UnusableSchema.
        """
        if self._failure is not None:
            until, reason = self._failure
            if self._now() < until:
                raise UnusableSchema(reason, name, True)
            self._failure = None
        try:
            return self._fetch(path, self._most)
        except UnusableSchema as error:
            if error.transient:
                self._failure = self._now() + RETRY_S, error.reason
            raise UnusableSchema(error.reason, name, error.transient) from None


class RegistrySchemas:
    """Schemas of a registry. now: a clock in seconds."""

    is_local: ClassVar[bool] = False

    def __init__(
        self, fetch: Fetch, now: Callable[[], float], bounds: Bounds = DEFAULT_BOUNDS
    ) -> None:
        self._bodies = RegistryBodies(fetch, now, 2 * bounds.schema_bytes)  # quotes are escaped
        self._bounds = bounds

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:  # noqa: ARG002
        """Return the schema with an id or GUID; None for a global id, which this API lacks."""
        if isinstance(key, ApicurioId) and key.kind is IdKind.GLOBAL:
            return None
        kind = "guids" if isinstance(key, UUID) else "ids"
        return self._schema(f"/schemas/{kind}/{key}", f"schema {key}", key)

    def by_subject(self, subject: Subject) -> Schema | None:
        """Return the newest schema of a subject."""
        path = f"/subjects/{quote(subject.name, safe='')}/versions/latest"
        return self._schema(path, subject.name, None)

    def _schema(self, path: str, name: str, key: SchemaKey | None) -> Schema | None:
        body = self._get(path, name)
        if body is None:
            return None
        kind = _type(body, name)
        text = _text(body, name)
        if kind is SchemaType.PROTOBUF and EDITION.search(text):
            serialized = self._get(f"{path}?{SERIALIZED}", name)
            text = text if serialized is None else _text(serialized, name)
        references = References(self._version, self._bounds, name)
        references.count(text)
        references.add(body)
        number = body.get("id")
        is_id = isinstance(number, int) and not isinstance(number, bool) and number > 0
        cached = key if key is not None else number if is_id else None
        return Schema(name, kind, text, tuple(references.collected), cached)

    def _version(self, subject: str, version: int | str) -> dict[str, Any] | None:
        name = f"{subject} version {version}"
        return self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}", name)

    def _get(self, path: str, name: str) -> dict[str, Any] | None:
        """Get a JSON object."""
        data = self._bodies.get(path, name)
        if data is None:
            return None
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            raise UnusableSchema("the registry's response is not JSON", name) from None
        if not isinstance(body, dict):
            raise UnusableSchema("the registry's response is not a JSON object", name)
        return body


class References:
    """Collects the schemas that one refers to, each after those that it needs itself."""

    def __init__(
        self,
        version: Callable[[str, int | str], dict[str, Any] | None],
        bounds: Bounds,
        name: str,
    ) -> None:
        self.collected: list[Reference] = []
        self._seen: set[tuple[str, str, int | str]] = set()
        self._left = bounds.schema_bytes
        self._version = version
        self._bounds = bounds
        self._name = name

    def count(self, text: str) -> None:
        """Count a text; raise UnusableSchema if all together are too large."""
        self._left -= len(text)
        if self._left < 0:
            raise UnusableSchema(f"more than {self._bounds.schema_bytes} bytes", self._name)

    def add(self, body: dict[str, Any], depth: int = 0) -> None:
        """Add what a body refers to, and what that refers to. Raises UnusableSchema."""
        listed = body.get("references") or []
        if not isinstance(listed, list):
            raise UnusableSchema("invalid references", self._name)
        if depth > self._bounds.depth:
            raise UnusableSchema("its references are nested too deeply", self._name)
        for one in listed:
            place = _reference(one)
            if place is None:
                raise UnusableSchema("an invalid reference", self._name)
            if place not in self._seen:
                self._seen.add(place)
                self._add(place, depth)

    def _add(self, place: tuple[str, str, int | str], depth: int) -> None:
        name, subject, version = place
        if len(self._seen) > self._bounds.references:
            raise UnusableSchema(f"more than {self._bounds.references} references", self._name)
        inner = self._version(subject, version)
        if inner is None:
            reason = f"refers to {subject} version {version}, which is not found"
            raise UnusableSchema(reason, self._name)
        text = _text(inner, self._name)
        self.count(text)
        self.add(inner, depth + 1)
        self.collected.append(Reference(name, text))


def _reference(one: object) -> tuple[str, str, int | str] | None:
    if not isinstance(one, dict):
        return None
    name, subject, version = (one.get(key) for key in ("name", "subject", "version"))
    if isinstance(name, str) and isinstance(subject, str) and isinstance(version, int | str):
        return name, subject, version
    return None


def _type(body: dict[str, Any], name: str) -> SchemaType:
    kind = body.get("schemaType") or SchemaType.AVRO  # which registries leave out
    try:
        return SchemaType(kind)
    except ValueError:
        raise UnusableSchema(f"unsupported type {kind!r}", name) from None


def _text(body: dict[str, Any], name: str) -> str:
    text = body.get("schema")
    if not isinstance(text, str):
        raise UnusableSchema("the registry's response has no schema", name)
    return text
