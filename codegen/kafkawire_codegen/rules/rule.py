"""What a rule is, by what it looks at: a field, the fields of a struct, a message, a directory.

Law: a rule that would have to look at a key which was ill-formed stays silent; that fault is
reported already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..form import WrittenField, WrittenMessage, WrittenStruct
from ..source import SchemaError
from ..versions import Versions


@dataclass(frozen=True, slots=True)
class FieldAt:
    """A field where it stands.

    around: the versions of the struct it stands in; in_array: whether that struct is the element of
    an array.
    """

    written: WrittenField
    message: WrittenMessage
    common: Mapping[str, WrittenStruct]
    around: Versions
    in_array: bool


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Looks at one field: `check` says what is wrong, or None; `key` is where to point.

    also: the other keys it looks at.
    """

    id: str
    demand: str
    key: str
    also: tuple[str, ...]
    check: Callable[[FieldAt], str | None]

    def errors(self, at: FieldAt) -> Iterable[SchemaError]:
        if at.written.unread.isdisjoint((self.key, *self.also)):
            reason = self.check(at)
            if reason is not None:
                place = at.written.node.at(self.key)
                yield SchemaError.at(place, at.written.path, self.id, reason)


@dataclass(frozen=True, slots=True)
class FieldsRule:
    """Looks at one key of all fields of a struct: `check` yields those at fault, and why."""

    id: str
    demand: str
    key: str
    check: Callable[[tuple[WrittenField, ...]], Iterable[tuple[WrittenField, str]]]

    def errors(self, fields: tuple[WrittenField, ...]) -> Iterable[SchemaError]:
        if not any(self.key in field.unread for field in fields):
            for field, reason in self.check(fields):
                yield SchemaError.at(field.node.at(self.key), field.path, self.id, reason)


@dataclass(frozen=True, slots=True)
class MessageRule:
    """Looks at the head of one message: `check` says what is wrong, or None; `key` is where to
    point.

    also: the other keys it looks at.
    """

    id: str
    demand: str
    key: str
    also: tuple[str, ...]
    check: Callable[[WrittenMessage], str | None]

    def errors(self, message: WrittenMessage) -> Iterable[SchemaError]:
        if message.unread.isdisjoint((self.key, *self.also)):
            reason = self.check(message)
            if reason is not None:
                yield SchemaError.at(message.node.at(self.key), message.path, self.id, reason)


@dataclass(frozen=True, slots=True)
class StructsRule:
    """Looks at how the structs of one message are defined and used."""

    id: str
    demand: str
    check: Callable[[WrittenMessage], Iterable[tuple[WrittenField | WrittenStruct, str, str]]]

    def errors(self, message: WrittenMessage) -> Iterable[SchemaError]:
        for written, key, reason in self.check(message):
            yield SchemaError.at(written.node.at(key), written.path, self.id, reason)


@dataclass(frozen=True, slots=True)
class DirectoryRule:
    """Looks at all messages of a directory: `check` yields a message, a key, what is wrong."""

    id: str
    demand: str
    check: Callable[[list[WrittenMessage]], Iterable[tuple[WrittenMessage, str, str]]]

    def errors(self, messages: list[WrittenMessage]) -> Iterable[SchemaError]:
        for message, key, reason in self.check(messages):
            yield SchemaError.at(message.node.at(key), message.path, self.id, reason)
