"""Finds what each version of a message changed, and which releases have it.

FetchRequest 12: + ClusterId (tag 0), flexible; Kafka 2.7 and newer; KIP-482, KIP-595
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ... import naming
from ...dialect import MessageSchema
from ...layout import Spot
from ...model import Message
from ...releases import Releases
from ...versions import NONE, Versions
from .texts import Part, anchor, kips, parts

_ABOUT_VERSION: Final = re.compile(r"Version ([0-9]{1,5})\b")
"""How a comment about one version begins."""


@dataclass(frozen=True, slots=True)
class Change:
    """A field that a version has first (+), has no longer (−), or has otherwise (~)."""

    sign: str
    anchor: str
    path: str
    note: str


@dataclass(frozen=True, slots=True)
class Availability:
    """The releases with a version. since: "2.2"; until: the first without it, or empty.

    earliest: whether `since` is the first release that we know, so that older ones may have it.
    unstable: where it was not final.
    """

    since: str
    until: str
    earliest: bool
    unstable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of a message, or several that are the same.

    first: whether nothing is before it. header: the version of the header, or None. comments: those
    of the schema's file that begin with its number.
    """

    versions: Versions
    first: bool
    flexible: bool
    becomes_flexible: bool
    deprecated: bool
    unstable: bool
    header: int | None
    changes: tuple[Change, ...]
    comments: tuple[tuple[Part, ...], ...]
    kips: tuple[int, ...]
    availability: Availability | None


def history(
    schema: MessageSchema,
    message: Message,
    fields: list[Spot],
    columns: tuple[Versions, ...],
    comments: Sequence[str],
    releases: Releases | None,
) -> list[Entry]:
    """Describe each column of a message, oldest first. comments: those about its versions."""
    changes = _by_version(fields)
    entries: list[Entry] = []
    for number, column in enumerate(columns):
        version, first = column.low, number == 0
        changes_here = [] if first else changes.get(version, [])
        about = [text for text in comments if _version_of(text) in column]
        texts = [spot.field.about for change, spot in changes_here if change.sign != "−"]
        flexible = version in message.flexible
        entries.append(
            Entry(
                versions=column,
                first=first,
                flexible=flexible,
                becomes_flexible=flexible and not first and version == message.flexible.low,
                deprecated=version in message.deprecated,
                unstable=message.latest_unstable and message.versions.high in column,
                header=message.header_version(version),
                changes=tuple(change for change, _ in changes_here),
                comments=tuple(map(parts, about)),
                kips=kips([*texts, *about]),
                availability=availability(schema, version, releases),
            )
        )
    return entries


def general(comments: Sequence[str], versions: Versions) -> list[str]:
    """List the comments of a file that are about none of the message's versions."""
    return [text for text in comments if _version_of(text) not in versions]


def _version_of(comment: str) -> int | None:
    match = _ABOUT_VERSION.match(comment)
    return None if match is None else int(match[1])


def _by_version(fields: list[Spot]) -> dict[int, list[tuple[Change, Spot]]]:
    """Map each version to its changes; of a new or removed struct only the struct is named."""
    changes: dict[int, list[tuple[Change, Spot]]] = {}
    around: list[Spot] = []
    for spot in fields:
        del around[spot.depth :]
        parent = around[-1].versions if around else NONE
        around.append(spot)
        for version, sign, note in _changes(spot, parent):
            change = Change(sign, anchor(spot.path), spot.path.replace("[]", ""), note)
            changes.setdefault(version, []).append((change, spot))
    return changes


def _changes(spot: Spot, parent: Versions) -> Iterator[tuple[int, str, str]]:
    """Give the versions that change a field. parent: the versions of the struct around it."""
    versions = spot.versions
    if not (parent and parent.low == versions.low):
        yield versions.low, "+", _attributes(spot, versions.low)
    if not (parent and parent.high == versions.high):
        yield versions.high + 1, "−", ""
    for edge in sorted({*spot.nullable.edges, *spot.tagged.edges}):
        if versions.low < edge <= versions.high:
            yield edge, "~", _attributes(spot, edge) or "neither nullable nor tagged"


def _attributes(spot: Spot, version: int) -> str:
    tag = [f"tag {spot.field.tag}"] if version in spot.tagged else []
    return ", ".join(tag + ["nullable"] * (version in spot.nullable))


def availability(
    schema: MessageSchema, version: int, releases: Releases | None
) -> Availability | None:
    """Find the releases with a version of a request or response; None if there are none."""
    if releases is None or schema.type not in ("request", "response"):
        return None
    api = naming.api_name(schema.name)
    names = list(releases.ranges)
    having = [name for name in names if version in releases.ranges[name].get(api, NONE)]
    if not having:
        return None
    unstable = [
        name for name in having if version in releases.unstable.get(name, {}).get(api, NONE)
    ]
    after = names.index(having[-1]) + 1
    until = names[after] if after < len(names) else ""
    return Availability(having[0], until, having[0] == names[0], tuple(unstable))
