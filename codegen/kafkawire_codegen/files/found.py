"""The files that a source of schemas holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RELEASES: Final = "releases.json"
"""The only JSON file of a source that is not a schema: the versions of each release."""


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """One file, and its name in errors."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The schemas of a source, sorted by name, and its releases.json if it has one."""

    schemas: tuple[SchemaFile, ...]
    releases: SchemaFile | None
