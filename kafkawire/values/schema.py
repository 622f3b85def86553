"""Schemas as their sources give them: text, with the schemas it refers to.

A schema is a value; nothing of it has been parsed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, NamedTuple, Protocol
from uuid import UUID


class SchemaType(StrEnum):
    """Types of schemas, with the names that registries have for them."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


class IdKind(StrEnum):
    """Kinds of ids in an Apicurio registry, with the names that headers have for them.

    Confluent's API has content ids.
    """

    CONTENT = "contentId"
    GLOBAL = "globalId"


class ApicurioId(NamedTuple):
    """An id of a schema in an Apicurio registry."""

    kind: IdKind
    number: int

    def __str__(self) -> str:
        return str(self.number)


SchemaKey = int | UUID | ApicurioId
"""The id of a schema in its registry, or its GUID, or an id of a kind (Apicurio)."""


class Schema(NamedTuple):
    """The text of a schema.

    name: where it is from, for errors: `schema 7`, `orders.avsc`. text: JSON, the text of a .proto
    file, or a FileDescriptorProto in base64. references: the schemas that it refers to, directly or
    not, in an order in which each only needs those before it.
    key: its id or GUID in a registry, if it is known.
    """

    name: str
    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    key: SchemaKey | None = None


class Reference(NamedTuple):
    """A schema under the name by which another refers to it: a type, or the path of an import."""

    name: str
    text: str


class Subject(NamedTuple):
    """The keys or the values of a topic, whose schemas have a subject (TopicNameStrategy)."""

    topic: str
    is_key: bool = False

    @property
    def name(self) -> str:
        return f"{self.topic}-key" if self.is_key else f"{self.topic}-value"


class SchemaSource(Protocol):
    """Where schemas come from. Both methods raise UnusableSchema.

    is_local: whether looking one up costs nothing, so that `auto` may do so for every topic.
    """

    is_local: ClassVar[bool]

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:
        """Return the schema with an id or GUID; None if the source does not have it.

        subject: whose value names the schema, None if unknown.
        """

    def by_subject(self, subject: Subject) -> Schema | None:
        """Return the newest schema of a subject; None if the source does not have it."""
