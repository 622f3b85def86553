"""The model that templates see: messages, structs and fields, in all versions or in one.

Names and meanings here are stable, whatever the generator's own model becomes; values cannot
be changed. docs/templates.md lists every attribute (`documentation.py` writes it from these
docstrings).

    Message --at(version)--> MessageVersion: of the same names, with what one version has
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import model
from ..versions import Versions
from .structs import Field, FieldVersion, Struct, StructVersion


class Message:
    """A message, in all of its versions."""

    __slots__ = ("_message", "_structs")

    def __init__(self, message: model.Message, structs: Iterable[Struct]) -> None:
        self._message = message
        self._structs = tuple(structs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name: `FetchRequest`."""
        return self._message.name

    @property
    def type(self) -> str:
        """`request`, `response`, `header`, `data`, ... as in the schema."""
        return self._message.type

    @property
    def api(self) -> str:
        """The API of a request or response: `Fetch`; for any other message, its name."""
        return self._message.api

    @property
    def api_key(self) -> int | None:
        """The key of its API, or None."""
        return self._message.api_key

    @property
    def about(self) -> str:
        """Its purpose; any text, so escape it."""
        return self._message.about

    @property
    def versions(self) -> Versions:
        """Its versions."""
        return self._message.versions

    @property
    def flexible(self) -> Versions:
        """Those of `versions` that are flexible (KIP-482)."""
        return self._message.flexible

    @property
    def deprecated(self) -> Versions:
        """Those of `versions` that are deprecated."""
        return self._message.deprecated

    @property
    def latest_unstable(self) -> bool:
        """Whether the highest version may still change."""
        return self._message.latest_unstable

    @property
    def listeners(self) -> tuple[str, ...]:
        """Who accepts the request: `broker`, `controller`."""
        return self._message.listeners

    @property
    def structs(self) -> tuple[Struct, ...]:
        """All structs, each after those that it holds; the last is `root`."""
        return self._structs

    @property
    def root(self) -> Struct:
        """The struct of the message's own fields, which has the message's name."""
        return self._structs[-1]

    def header_version(self, version: int) -> int | None:
        """The version of the header of a version; None for a message without a header."""
        return self._message.header_version(version)

    def at(self, version: int) -> MessageVersion:
        """The message in one version; ValueError if it has no such version."""
        if version not in self._message.versions:
            reason = f"{self.name} has versions {self.versions}, not {version}"
            raise ValueError(reason)
        return _at(self._message, version)


class MessageVersion(Message):
    """A message in one version: a `Message` whose `structs` are `StructVersion`s."""

    __slots__ = ("_version",)

    def __init__(self, message: model.Message, structs: Iterable[Struct], version: int) -> None:
        super().__init__(message, structs)
        self._version = version

    @property
    def version(self) -> int:
        """The version."""
        return self._version

    @property
    def is_flexible(self) -> bool:
        """Whether it is flexible (KIP-482)."""
        return self._version in self.flexible

    @property
    def is_deprecated(self) -> bool:
        """Whether it is deprecated."""
        return self._version in self.deprecated

    @property
    def is_unstable(self) -> bool:
        """Whether it may still change."""
        return self.latest_unstable and self._version == self.versions.high

    @property
    def header(self) -> int | None:
        """The version of its header; None for a message without a header."""
        return self.header_version(self._version)


def message_of(message: model.Message) -> Message:
    """Build what templates see of a message."""
    structs: dict[str, Struct] = {}
    for struct in message.structs:
        fields = (Field(f, None if f.struct is None else structs[f.element]) for f in struct.fields)
        structs[struct.name] = Struct(struct, fields)
    return Message(message, structs.values())


def _at(message: model.Message, version: int) -> MessageVersion:
    """Build a message with what one version has: each struct once, children first."""
    used = model.used_structs(message.root, Versions(version, version))
    structs: dict[str, StructVersion] = {}
    for struct in message.structs:
        if struct.name in used:
            fields = [
                FieldVersion(f, None if f.struct is None else structs[f.element], version)
                for f in struct.fields
                if version in f.versions
            ]
            structs[struct.name] = StructVersion(struct, fields, version)
    return MessageVersion(message, structs.values(), version)
