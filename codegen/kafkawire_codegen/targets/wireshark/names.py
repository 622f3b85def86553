"""Names the fields of the dissector.

The name of a field follows from its API, its path and its type alone, and is total: two fields
have the same name only if they are of one API, path and type.

    PROTOCOL.api.path      kafkawire.fetch.topics.topic    the path in snake case
    PROTOCOL.api.path__T   of a response whose request has the path with another type than T
    PROTOCOL.name          what is not a field of a schema: kafkawire.correlation_id

Names in schemas are letters and digits, so a path in snake case has no `__`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ... import naming
from ...model import Field, Message, Struct
from ...source import SchemaError, SchemaErrors

MOST_FIELDS: Final = 100_000
"""The most fields of all messages together, every position counted; Kafka's have about 5000."""

_PROTOCOL: Final = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")


@dataclass(frozen=True, slots=True)
class NamedField:
    """A field of the dissector. type: a primitive type, or `struct`."""

    name: str
    label: str
    type: str
    about: str
    has_errors: bool
    has_apis: bool


@dataclass(slots=True, eq=False)
class Position:
    """A field at one position of a message, and the positions inside it."""

    field: Field
    number: int
    inside: list[Position]


class Names:
    """The fields of the dissector, numbered from 1, and the positions of each message."""

    def __init__(self) -> None:
        self.fields: list[NamedField] = []
        self.positions: dict[str, list[Position]] = {}
        self._numbers: dict[str, int] = {}
        self._count = 0

    def add(self, message: Message) -> None:
        """Name the fields of a message; a request comes before its response.

        SchemaErrors for more than MOST_FIELDS: twenty structs that each hold the next one twice
        give a million.
        """
        self._count += positions(message)
        if self._count > MOST_FIELDS:
            reason = f"the structs of all messages unfold to more than {MOST_FIELDS} fields"
            error = SchemaError(message.name, 1, 1, message.name, reason, "too-many-fields")
            raise SchemaErrors((error,))
        self.positions[message.name] = self._add(message, message.root, api_prefix(message))

    def paths(self, message: Message) -> dict[str, str]:
        """Map each path of a message, attributes joined by dots, to the name of its field."""
        return dict(self._paths(self.positions[message.name], ""))

    def _paths(self, positions: Iterable[Position], prefix: str) -> Iterator[tuple[str, str]]:
        for each in positions:
            path = prefix + each.field.attribute
            yield path, self.fields[each.number - 1].name
            yield from self._paths(each.inside, f"{path}.")

    def _add(self, message: Message, struct: Struct, prefix: str) -> list[Position]:
        added: list[Position] = []
        for field in struct.fields:
            path = f"{prefix}.{naming.snake(field.kafka_name)}"
            inside = [] if field.struct is None else self._add(message, field.struct, path)
            added.append(Position(field, self._number(path, field), inside))
        return added

    def _number(self, path: str, field: Field) -> int:
        """Find the field of that name and type, or make it."""
        kind = kind_of(field)
        for name in (path, f"{path}__{kind}"):
            number = self._numbers.get(name)
            if number is None:
                self.fields.append(_named(name, field, kind))
                self._numbers[name] = len(self.fields)
                return len(self.fields)
            if self.fields[number - 1].type == kind:
                return number
        raise AssertionError(f"{path} has two names and a third type")  # the suffix is the type


def positions(message: Message) -> int:
    """Count the positions of a message's fields without visiting each."""
    inside: dict[str, int] = {}
    for struct in message.structs:  # children first
        fields = struct.fields
        inside[struct.name] = sum(1 + inside[f.struct.name] if f.struct else 1 for f in fields)
    return inside[message.root.name]


def kind_of(field: Field) -> str:
    """The type of one value of a field: a primitive type, or `struct`."""
    return "struct" if field.wire is None else field.wire.name


def api_prefix(message: Message) -> str:
    """The first part of the names of a message's fields."""
    return naming.snake(message.api or message.name)


def is_protocol_name(text: str) -> bool:
    """Whether Wireshark takes it as the name of a protocol, and as the prefix of its fields."""
    return _PROTOCOL.match(text) is not None


def _named(name: str, field: Field, kind: str) -> NamedField:
    snake = naming.snake(field.kafka_name)
    is_short = kind == "int16"
    return NamedField(
        name,
        field.kafka_name,
        kind,
        field.about,
        is_short and snake.endswith("error_code"),
        is_short and snake == "api_key",
    )
