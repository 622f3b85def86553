"""Reads the releases that are merged: sources, with the name of a release each.

A release has a name before it is merged, given or read from its archives; several sources of
the same name are parts of one release, in which a message is defined once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from .. import files
from ..dialect import MessageSchema
from ..releases import parse
from ..schema import load_sources
from ..source import SchemaError, SchemaErrors
from .timeline import Release, identity

_GIVEN: Final = re.compile(r"(?P<name>[0-9A-Za-z][0-9A-Za-z._-]{0,63})=(?P<source>.+)", re.DOTALL)
_VERSION: Final = re.compile(r"([0-9]{1,4}\.[0-9]{1,4})(?:[.-].*)?")
_JAR: Final = re.compile(r".*?-([0-9]{1,4}\.[0-9]{1,4}(?:[.-].*)?)\.(?:jar|zip)")
_COMMENTS: Final = re.compile(r"\A(?:[ \t]*//[^\n]*\n)*")


class NamelessRelease(ValueError):
    """A source that is not there, or whose release is neither given nor in its name."""


class NamedSource(NamedTuple):
    """A source; release: None for a timeline, which has a releases.json."""

    release: str | None
    path: Path


def named_source(argument: str) -> NamedSource:
    """Read `NAME=SOURCE`, or a source that says its release; NamelessRelease if it does not."""
    match = _GIVEN.fullmatch(argument)
    if match is not None and not Path(argument).exists():
        return NamedSource(match["name"], Path(match["source"]))
    path = Path(argument)
    if not path.exists():
        raise NamelessRelease(f"{argument}: no such file or directory")
    if path.is_dir() and (path / files.RELEASES).is_file():
        return NamedSource(None, path)
    names = {name for name in map(_release, _archives(path)) if name is not None}
    if len(names) != 1:
        reason = "of several releases" if names else "its release is unknown"
        raise NamelessRelease(f"{argument}: {reason}: give it as NAME={argument}")
    return NamedSource(names.pop(), path)


def _archives(path: Path) -> list[Path]:
    """List the archives that say the release of a source."""
    if not path.is_dir():
        return [path] if path.is_file() else []
    return sorted(path.glob("kafka-*.jar"))


def _release(archive: Path) -> str | None:
    """Return the release of an archive, `4.3` of kafka-clients-4.3.1.jar."""
    match = _JAR.fullmatch(archive.name)
    version = match[1] if match else files.kafka_version(archive)
    release = _VERSION.fullmatch(version or "")
    return release[1] if release else None


def read_releases(sources: Sequence[NamedSource]) -> list[Release]:
    """Read releases, in the order of their first sources.

    Raises SchemaErrors for the schemas, also for a message that two parts of a release define;
    OSError for sources that cannot be read.
    """
    parts: dict[tuple[str, int], list[Path]] = {}
    for number, (name, path) in enumerate(sources):
        key = ("", number) if name is None else (name, 0)
        parts.setdefault(key, []).append(path)
    return [_read(name, paths) for (name, _), paths in parts.items()]


def _read(name: str, paths: list[Path]) -> Release:
    messages = [message for path in paths for message in load_sources(path)]
    errors = list(_duplicates(messages))
    if errors:
        raise SchemaErrors(tuple(errors))
    if name:
        return Release(name, messages)
    (path,) = paths
    read = files.read(path)
    assert read.releases is not None
    table = parse(read.releases.data, read.releases.file)
    return Release(list(table.ranges or ["the first"])[-1], messages, table, comments(path))


def _duplicates(messages: Sequence[MessageSchema]) -> Iterator[SchemaError]:
    """Find messages of one name, or requests of one api key, in different parts of a release."""
    names: dict[str, MessageSchema] = {}
    keys: dict[tuple[str, str], MessageSchema] = {}
    for message in messages:
        first = names.setdefault(message.name.lower(), message)
        other = keys.setdefault(identity(message), message)
        if first is not message:
            reason = f"{message.name} is defined in {first.location.file} already"
            yield SchemaError.at(message.location, message.name, "duplicate-message", reason)
        elif other is not message:
            reason = f"{message.api_key} is the key of {other.name} already"
            yield SchemaError.at(message.location, message.name, "duplicate-api-key", reason)


def comments(path: Path) -> Mapping[str, Sequence[str]]:
    """Read the comments above the schemas of a directory, by the names of their files."""
    comments_of = {}
    for file in files.read(path).schemas:
        text = file.data.decode("utf-8-sig", "replace")
        lines = _COMMENTS.match(text)
        above = lines[0].splitlines() if lines else []
        comments_of[Path(file.file).stem] = [
            line.strip().removeprefix("//").strip() for line in above
        ]
    return comments_of
