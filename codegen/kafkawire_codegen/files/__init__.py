"""Finds the schema files of a source: a directory, a jar or ZIP archive, or one file.

What is read of an archive is bounded, and nothing is written; a file is named as a person
finds it, an entry of an archive as `ARCHIVE!ENTRY`.

    source --read--> SourceFiles { schemas, releases } -> SchemaFile { file, data }
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .archive import NoSchemas, UnreadableArchive, kafka_version, read_archive
from .found import RELEASES, SchemaFile, SourceFiles

__all__ = [
    "RELEASES",
    "NoSchemas",
    "SchemaFile",
    "SourceFiles",
    "Sources",
    "UnreadableArchive",
    "as_sources",
    "kafka_version",
    "read",
]

Sources = Path | str | Sequence[Path | str]
"""One source of schemas, or several, of which a later one overrides an earlier one."""

SCHEMA_SUFFIX: Final = ".json"
ARCHIVE_SUFFIX: Final = ".jar"
"""The archives that are read in a directory without schemas, such as Kafka's `libs`."""


def as_sources(sources: Sources) -> tuple[Path, ...]:
    """Return sources as a tuple."""
    several = (sources,) if isinstance(sources, Path | str) else sources
    return tuple(map(Path, several))


def read(source: Path) -> SourceFiles:
    """Read the schema files of a source, sorted by name.

    A directory: its *.json; if it has none, the schemas of the jars in it. An archive: those in
    folders that are named as Kafka names them, or else every *.json outside META-INF. Raises
    UnreadableArchive, NoSchemas for an archive without any, OSError for what cannot be read.
    """
    if source.is_dir():
        return _directory(source)
    if source.exists() and not source.is_file():
        raise UnreadableArchive(source, "not a directory or a regular file")
    if source.suffix == SCHEMA_SUFFIX:
        return SourceFiles((_file(source),), None)
    return read_archive(source)


def _directory(source: Path) -> SourceFiles:
    files = sorted(path for path in source.iterdir() if path.suffix == SCHEMA_SUFFIX)
    schemas = tuple(_file(path) for path in files if path.name != RELEASES)
    releases = next((_file(path) for path in files if path.name == RELEASES), None)
    jars = () if schemas else sorted(source.glob(f"*{ARCHIVE_SUFFIX}"))
    for jar in jars:
        schemas += read_archive(jar, only_kafkas=True).schemas
    if jars and not schemas:
        raise NoSchemas(source, "no schemas in this directory, nor in its jars")
    return SourceFiles(schemas, releases)


def _file(path: Path) -> SchemaFile:
    return SchemaFile(str(path), path.read_bytes())
