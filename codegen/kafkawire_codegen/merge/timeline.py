"""Merges releases, oldest first, into one timeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from .. import naming
from ..dialect import MessageSchema
from ..files import SchemaFile
from ..releases import Releases
from ..schema import check_text
from ..versions import Versions
from .changes import Change, Renumbered, changes
from .combine import Unmergeable, combine
from .normal import Normal, normal, to_schema
from .text import schema_text

PAIRED: Final = ("request", "response")
"""Types whose messages keep their api key when they are renamed."""

Identity = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Release:
    """One source of a timeline.

    table: its releases.json, if it is a timeline itself; its comments, by message, are kept.
    """

    name: str
    messages: Sequence[MessageSchema]
    table: Releases | None = None
    comments: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unmerged:
    """Versions of a message that are not in the timeline, and why.

    release: the newest that has them.
    """

    message: str
    release: str
    versions: Versions
    reason: str

    def __str__(self) -> str:
        return f"{self.message} {self.versions} of {self.release}: not merged: {self.reason}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Every version of every message, sorted by name; comments by message."""

    messages: tuple[MessageSchema, ...]
    comments: Mapping[str, tuple[str, ...]]
    releases: Releases
    changes: tuple[Change, ...]
    renumbered: tuple[Renumbered, ...]
    unmerged: tuple[Unmerged, ...]


def timeline(releases: Sequence[Release]) -> Timeline:
    """Merge releases, oldest first; a message that no release has in any version is left out."""
    history: dict[Identity, list[tuple[Release, MessageSchema]]] = {}
    for release in releases:
        for message in release.messages:
            if message.valid_versions:
                history.setdefault(identity(message), []).append((release, message))
    merged = [_Merging(forms) for forms in history.values()]
    names = {identity: m.result.name for identity, m in zip(history, merged, strict=True)}
    merged.sort(key=lambda m: m.result.name)
    return Timeline(
        messages=tuple(m.result for m in merged),
        comments={m.result.name: tuple(m.comments()) for m in merged},
        releases=_table(releases, names),
        changes=tuple(change for m in merged for change in m.changes),
        renumbered=tuple(each for m in merged for each in m.renumbered),
        unmerged=tuple(each for m in merged for each in m.unmerged.values()),
    )


def identity(message: MessageSchema) -> Identity:
    """Return what a message keeps in all releases: its type and api key, or its name."""
    if message.type in PAIRED and message.api_key is not None:
        return message.type, str(message.api_key)
    return "", message.name.lower()


class _Merging:
    """One message in all releases that have it, oldest first."""

    def __init__(self, forms: list[tuple[Release, MessageSchema]]) -> None:
        self.forms = forms
        self.changes: list[Change] = []
        self.renumbered: list[Renumbered] = []
        self.unmerged: dict[tuple[Versions, str], Unmerged] = {}
        for (before, older), (after, newer) in pairwise(forms):
            self.changes += changes(older, newer, (before.name, after.name))
            keys = older.api_key, newer.api_key
            if keys[0] != keys[1] and older.type == newer.type:
                self.renumbered.append(Renumbered(newer.name, before.name, after.name, *keys))
        form = normal(forms[-1][1])
        for release, message in reversed(forms[:-1]):
            for run in reversed(message.valid_versions.without(form.versions)):
                form = self.added(form, release, message, run)
        self.result = to_schema(form)

    def added(
        self, form: Normal, release: Release, message: MessageSchema, run: Versions
    ) -> Normal:
        """Add versions of an older form, if one schema can describe them with the others."""
        try:
            if message.type != form.head.type:
                raise Unmergeable(f"the type was {message.type}, and is {form.head.type}")
            combined = combine(form, normal(message), run)
            _check(to_schema(combined))
        except Unmergeable as reason:
            unmerged = Unmerged(form.name, release.name, run, str(reason))
            self.unmerged.setdefault((run, str(reason)), unmerged)
            return form
        return combined

    def comments(self) -> Iterator[str]:
        """Yield the comments of timelines among the releases, then those on what was found."""
        seen: dict[str, None] = {}
        for release, message in self.forms:
            seen |= dict.fromkeys(release.comments.get(message.name, ()))
        former = dict.fromkeys(message.name for _, message in self.forms)
        former.pop(self.result.name, None)
        seen |= dict.fromkeys(f"Formerly named {name}." for name in former)
        seen |= dict.fromkeys(change.comment for change in self.changes)
        yield from seen


def _check(schema: MessageSchema) -> None:
    """Raise Unmergeable if a schema breaks a rule, such as one tag for two fields."""
    text = schema_text(schema)
    for error in check_text(SchemaFile(f"{schema.name}.json", text.encode("utf-8"))):
        raise Unmergeable(f"{error.path}: {error.reason}")


def _table(releases: Iterable[Release], names: Mapping[Identity, str]) -> Releases:
    """List the versions of each API in each release, by age."""
    ranges: dict[str, Mapping[str, Versions]] = {}
    unstable: dict[str, Mapping[str, Versions]] = {}
    for release in releases:
        if release.table is not None:
            ranges |= release.table.ranges
            unstable |= release.table.unstable
            continue
        requests = sorted(_requests(release), key=lambda request: request.api_key or 0)
        apis = {r: naming.api_name(names[identity(r)]) for r in requests}
        ranges[release.name] = {apis[r]: r.valid_versions for r in requests}
        newest = {
            apis[r]: Versions(r.valid_versions.high, r.valid_versions.high)
            for r in requests
            if r.latest_version_unstable
        }
        unstable.pop(release.name, None)
        if newest:
            unstable[release.name] = newest
    order = sorted(ranges, key=_age)
    return Releases(
        {name: ranges[name] for name in order},
        {name: unstable[name] for name in order if name in unstable},
    )


def _age(name: str) -> tuple[bool, list[int]]:
    """Sort releases by their numbers, then those without one as they are."""
    numbers = re.findall(r"[0-9]{1,9}", name) if name[:1].isdigit() else []
    return not numbers, [int(number) for number in numbers]


def _requests(release: Release) -> list[MessageSchema]:
    return [m for m in release.messages if m.type == "request" and m.valid_versions]


def with_texts_of(merged: Timeline, words: Sequence[MessageSchema]) -> tuple[Timeline, list[str]]:
    """Replace the purposes of messages, structs and fields that an existing set has, too.

    Returns also the paths of texts that are not from there.
    """
    from .texts import reworded

    written = {identity(message): message for message in words}
    messages: list[MessageSchema] = []
    others: list[str] = []
    for message in merged.messages:
        reworded_message, missing = reworded(message, written.get(identity(message)))
        messages.append(reworded_message)
        others += missing
    return replace(merged, messages=tuple(messages)), others
