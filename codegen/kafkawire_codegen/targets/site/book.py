"""Collects what all pages need: messages with their fields, APIs, and what is there to link to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...dialect import MessageSchema
from ...layout import Spot
from ...model import Message
from ...releases import Releases
from ...versions import NONE, Versions
from .. import Source
from ..supplied import ErrorCode, Examples
from .history import Availability, availability
from .table import positions
from .texts import Part, kips, parts

KINDS: Final = {
    "request": "Request",
    "response": "Response",
    "header": "Header",
    "data": "Data",
    "metadata": "Metadata record",
    "coordinator-key": "Record key",
    "coordinator-value": "Record value",
}
"""The type of a message -> what pages call it."""

RECORDS: Final = ("metadata", "coordinator-key", "coordinator-value")
LISTENERS: Final = {
    "broker": "brokers",
    "controller": "controllers",
    "zkBroker": "brokers that use ZooKeeper",
}


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A message with its schema, its fields at every position, and the comments of its file."""

    message: Message
    schema: MessageSchema
    spots: list[Spot]
    comments: tuple[str, ...]

    @property
    def kind(self) -> str:
        return KINDS[self.message.type]

    @property
    def about(self) -> tuple[Part, ...]:
        return parts(self.schema.about)

    @property
    def kips(self) -> tuple[int, ...]:
        """The proposals that its texts name."""
        abouts = (spot.field.about for spot in self.spots)
        return kips([self.schema.about, *self.comments, *abouts])


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """A request with its response; one of them may be missing.

    newest: when its newest version came; oldest: when its oldest one did.
    """

    name: str
    key: int | None
    request: Entry | None
    response: Entry | None
    newest: Availability | None
    oldest: Availability | None

    @property
    def entry(self) -> Entry:
        """The request, or the response of an API without one."""
        entry = self.request or self.response
        assert entry is not None
        return entry

    @property
    def versions(self) -> Versions:
        return self.entry.message.versions

    @property
    def flexible(self) -> Versions:
        return self.entry.message.flexible

    @property
    def receivers(self) -> tuple[str, ...]:
        """Who gets its requests: "brokers"."""
        listeners = self.request.message.listeners if self.request else ()
        return tuple(LISTENERS.get(listener, listener) for listener in listeners)


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """All messages of a source. apis: by key. kips: every proposal that a text names."""

    name: str
    entries: tuple[Entry, ...]
    apis: tuple[Api, ...]
    releases: Releases | None
    errors: tuple[ErrorCode, ...]
    examples: Examples | None
    kips: tuple[int, ...]

    @classmethod
    def of(cls, source: Source) -> Book:
        """Collect; SchemaErrors for a message with too many fields to list."""
        pairs = zip(source.messages, source.schemas, strict=True)
        comments = source.comments
        entries = tuple(
            Entry(message, schema, positions(schema), comments.get(schema.name, ()))
            for message, schema in pairs
        )
        named = sorted({kip for entry in entries for kip in entry.kips})
        return cls(
            source.name,
            entries,
            tuple(_apis(entries, source.releases)),
            source.releases,
            source.supplied.errors,
            source.supplied.examples,
            tuple(named),
        )

    @property
    def listed(self) -> list[tuple[MessageSchema, list[Spot]]]:
        """Every message with its fields."""
        return [(entry.schema, entry.spots) for entry in self.entries]

    def of_types(self, *types: str) -> list[Entry]:
        """List the messages of some types: records by their number, then by name."""
        entries = [entry for entry in self.entries if entry.message.type in types]
        return sorted(entries, key=lambda e: (e.message.api_key or 0, e.message.name))


def _apis(entries: Sequence[Entry], releases: Releases | None) -> list[Api]:
    halves: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        if entry.message.type in ("request", "response"):
            halves.setdefault(entry.message.api, {})[entry.message.type] = entry
    apis = [_api(name, of, releases) for name, of in halves.items()]
    return sorted(apis, key=lambda api: (api.key is None, api.key or 0, api.name))


def _api(name: str, halves: dict[str, Entry], releases: Releases | None) -> Api:
    request, response = halves.get("request"), halves.get("response")
    either = request or response
    assert either is not None
    versions = either.message.versions or NONE
    return Api(
        name,
        either.message.api_key,
        request,
        response,
        availability(either.schema, versions.high, releases),
        availability(either.schema, versions.low, releases),
    )
