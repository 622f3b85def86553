"""The kinds of rules: for a field, the fields of a struct, a message, a directory.

A rule about an ill-formed key is not checked; that error is already reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..form import WrittenField, WrittenMessage, WrittenStruct
from ..source import SchemaError
from ..versions import Versions


@dataclass(frozen=True, slots=True)
class FieldAt:
    """A field in its struct.

    around: the versions of its struct; in_array: whether that struct is the element of an array.
    """

    written: WrittenField
    message: WrittenMessage
    common: Mapping[str, WrittenStruct]
    around: Versions
    in_array: bool


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A rule for one field: `check` returns the error, or None; `key` is its place.

    also: the other keys that it reads.
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
                location = at.written.node.at(self.key)
                yield SchemaError.at(location, at.written.path, self.id, reason)


@dataclass(frozen=True, slots=True)
class FieldsRule:
    """A rule for one key of all fields of a struct: `check` yields invalid ones, and why."""

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
    """A rule for the head of one message: `check` returns the error, or None; `key` is its place.

    also: the other keys that it reads.
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
    """A rule for the definition and use of the structs of one message."""

    id: str
    demand: str
    check: Callable[[WrittenMessage], Iterable[tuple[WrittenField | WrittenStruct, str, str]]]

    def errors(self, message: WrittenMessage) -> Iterable[SchemaError]:
        for written, key, reason in self.check(message):
            yield SchemaError.at(written.node.at(key), written.path, self.id, reason)


@dataclass(frozen=True, slots=True)
class Directory:
    """All messages of a directory. unread: the names of files whose message is unknown."""

    messages: list[WrittenMessage]
    unread: frozenset[str]


@dataclass(frozen=True, slots=True)
class DirectoryRule:
    """A rule for all messages of a directory: `check` yields a message, a key, the error."""

    id: str
    demand: str
    check: Callable[[Directory], Iterable[tuple[WrittenMessage, str, str]]]

    def errors(self, directory: Directory) -> Iterable[SchemaError]:
        for message, key, reason in self.check(directory):
            yield SchemaError.at(message.node.at(key), message.path, self.id, reason)
