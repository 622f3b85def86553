"""Makes the body of a request from the descriptions of its fields."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..primitives import Message, Structure
from ..protocol.fields import Field, fields_at
from .batches import damaged_records, usual_records
from .names import Names
from .scopes import Scope, scope_of
from .values import (
    BITS,
    UNUSUAL,
    USUAL,
    unusual_number,
    usual_bytes,
    usual_number,
    usual_text,
)

ENTITIES: Final = frozenset({"topicName", "groupId", "transactionalId"})
NAMES: Final = frozenset({"resource_name"})
"""Fields without an entity type that name a topic, too."""
PINNED: Final[dict[str, tuple[int, ...]]] = {"resource_type": (2,)}
"""Fields of requests that change what they name: only topics are named."""
NULLS: Final = 0.1
USUAL_COUNTS: Final = (1, 1, 1, 1, 2, 0)
UNUSUAL_COUNTS: Final = (0, 0, 1, 2, 5)
UNKNOWN_TAGS: Final = [(1000, b"unknown")]
TAGGED: Final = 0.2
"""The chance of an unknown tagged field, where other values are unusual, too."""


def is_name(field: Field) -> bool:
    """Whether a field, or the type beside one, says what a request changes."""
    names = field.entity_type in ENTITIES or field.attribute in NAMES
    return names or field.attribute in PINNED


@dataclass(frozen=True)
class Maker:
    """Draws requests of an API in a version.

    unusual: the chance of each field to be at a boundary. number: of the case.
    """

    api: ApiKey
    version: int
    names: Names
    rng: random.Random
    number: int
    unusual: float

    def request(self) -> Message:
        """Draw a request."""
        info = REGISTRY.request(self.api)
        assert info is not None
        message = self._struct(REGISTRY.load(info.name))
        if info.is_flexible(self.version) and self._is_unusual() and self.rng.random() < TAGGED:
            message.unknown_tags = UNKNOWN_TAGS
        assert isinstance(message, Message)
        return message

    def _struct(self, cls: type[Structure]) -> Any:
        struct: Any = cls()
        for field in fields_at(cls, self.version):
            default = getattr(struct, field.attribute)
            setattr(struct, field.attribute, self._value(cls.__name__, field, default))
        return struct

    def _value(self, owner: str, field: Field, default: object) -> object:
        nullable = field.is_nullable_at(self.version)
        if nullable and self.rng.random() < (NULLS if default is not None else 0.5):
            return None
        if not field.is_array:
            return self._one(owner, field, default)
        counts = UNUSUAL_COUNTS if self._is_unusual() else USUAL_COUNTS
        return [self._one(owner, field, None) for _ in range(self.rng.choice(counts))]

    def _one(self, owner: str, field: Field, default: object) -> object:
        if field.struct is not None:
            return self._struct(field.struct)
        if field.attribute in PINNED and scope_of(self.api) is Scope.NAMED:
            return self.rng.choice(PINNED[field.attribute])
        unusual = self._is_unusual()
        if field.entity_type in ENTITIES or field.attribute in NAMES:
            return self._name(field, unusual)
        return self._unusual(field) if unusual else self._usual(owner, field, default)

    def _unusual(self, field: Field) -> object:
        if field.element in BITS:
            return unusual_number(field, self.rng)
        if field.element == "records":
            return self.rng.choice((damaged_records, UNUSUAL["bytes"]))(self.rng)
        return UNUSUAL[field.element](self.rng)

    def _usual(self, owner: str, field: Field, default: object) -> object:
        match field.element:
            case element if element in BITS:
                return usual_number(field, default, self.rng)
            case "records":
                return usual_records(self.api, self.version, self.rng)
            case "string":
                return usual_text(owner, field, self.rng)
            case "uuid":
                return self.names.id(self.api, self.rng)
            case "bytes":
                return usual_bytes(self.names.topic, self.rng)
            case _:
                return USUAL[field.element](self.rng)

    def _name(self, field: Field, unusual: bool) -> str:
        if unusual:
            return self.names.unusual(self.rng)
        return self.names.of(field.entity_type, self.api, self.rng, self.number)

    def _is_unusual(self) -> bool:
        return self.unusual > 0 and self.rng.random() < self.unusual
