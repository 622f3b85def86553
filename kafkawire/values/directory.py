"""Schemas in a directory: .avsc, .proto and .json files named by subject, topic, id or GUID.

    orders-value.avsc   values of the topic orders          orders.proto   the same, shorter
    7.avsc              the schema with id 7                common/money.proto   for imports

Only files listed when the directory was opened are read; names never become paths.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from ..errors import UnusableSchema
from .bounds import DEFAULT_BOUNDS, Bounds
from .json_schema import references_of
from .protobuf.text import imports_of
from .schema import Reference, Schema, SchemaKey, SchemaType, Subject

TYPES: Final = {
    ".avsc": SchemaType.AVRO,
    ".proto": SchemaType.PROTOBUF,
    ".json": SchemaType.JSON,
}
MAX_FILES: Final = 10_000


class DirectorySchemas:
    """Schemas in a directory. Raises OSError if it cannot be listed, UnusableSchema if too large.

    A schema that values name by an id, of which there is no file, is that of their topic.
    """

    is_local: ClassVar[bool] = True

    def __init__(self, directory: Path, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        self._bounds = bounds
        self._by_path: dict[str, Path] = {}
        self._by_name: dict[str, Path] = {}
        for path in _files(directory):
            if len(self._by_path) == MAX_FILES:
                raise UnusableSchema(f"more than {MAX_FILES} schemas", str(directory))
            self._by_path[path.relative_to(directory).as_posix()] = path
            other = self._by_name.setdefault(path.stem, path)
            if other is not path and other.parent == path.parent:
                raise UnusableSchema(f"has {other.name} and {path.name}", str(directory))

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:
        """Return the schema with an id or GUID, or that of the topic."""
        path = self._by_name.get(str(key))
        if path is not None:
            return self._read(path, key)
        return None if subject is None else self.by_subject(subject)

    def by_subject(self, subject: Subject) -> Schema | None:
        """Return the schema of a subject, or of a topic's values."""
        path = self._by_name.get(subject.name)
        if path is None and not subject.is_key:
            path = self._by_name.get(subject.topic)
        return None if path is None else self._read(path, None)

    def _read(self, path: Path, key: SchemaKey | None) -> Schema:
        kind = TYPES[path.suffix]
        text = self._text(path)
        references = _Collected(self._bounds, path.name, self._find(kind))
        references.add(text)
        return Schema(path.name, kind, text, tuple(references.collected), key)

    def _find(self, kind: SchemaType) -> Callable[[str], Iterator[tuple[str, str]]]:
        """Return what finds the files that a text refers to, as names and texts."""

        def imports(text: str) -> Iterator[tuple[str, str]]:
            for name in imports_of(text):
                if name in self._by_path:
                    yield name, self._text(self._by_path[name])

        def types(text: str) -> Iterator[tuple[str, str]]:
            for name in _avro_names(text):
                path = self._by_name.get(name)
                if path is not None and path.suffix == ".avsc":
                    yield name, self._text(path)

        def parts(text: str) -> Iterator[tuple[str, str]]:
            for uri in references_of(text):
                path = self._end_of(uri)
                if path is not None:
                    yield path, self._text(self._by_path[path])

        return {
            SchemaType.AVRO: types,
            SchemaType.JSON: parts,
            SchemaType.PROTOBUF: imports,
        }[kind]

    def _end_of(self, uri: str) -> str | None:
        """Return the path of the file with which a URI ends, the longest one; None if none."""
        names = uri.split("/")[-self._bounds.depth :]
        ends = ("/".join(names[start:]) for start in range(len(names)))
        return next((path for path in ends if path in self._by_path), None)

    def _text(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                data = file.read(self._bounds.schema_bytes + 1)
            if len(data) > self._bounds.schema_bytes:
                raise UnusableSchema(f"more than {self._bounds.schema_bytes} bytes", path.name)
            return data.decode()
        except OSError as error:
            raise UnusableSchema(error.strerror or "cannot be read", path.name) from None
        except UnicodeDecodeError:
            raise UnusableSchema("not UTF-8", path.name) from None


class _Collected:
    """The schemas that one refers to, each after those that it needs itself."""

    def __init__(
        self, bounds: Bounds, name: str, find: Callable[[str], Iterator[tuple[str, str]]]
    ) -> None:
        self.collected: list[Reference] = []
        self._seen: set[str] = set()
        self._left = bounds.schema_bytes
        self._bounds = bounds
        self._name = name
        self._find = find

    def add(self, text: str, depth: int = 0) -> None:
        self._left -= len(text)
        if self._left < 0:
            reason = f"more than {self._bounds.schema_bytes} bytes with its references"
            raise UnusableSchema(reason, self._name)
        if depth > self._bounds.depth:
            raise UnusableSchema("its references are nested too deeply", self._name)
        for name, inner in self._find(text):
            if name in self._seen:
                continue
            self._seen.add(name)
            if len(self._seen) > self._bounds.references:
                reason = f"more than {self._bounds.references} references"
                raise UnusableSchema(reason, self._name)
            self.add(inner, depth + 1)
            self.collected.append(Reference(name, inner))


def _files(directory: Path) -> Iterator[Path]:
    """List the schemas in a directory and those in it, in order; links are not followed."""

    def failed(error: OSError) -> None:
        raise error

    for root, directories, names in os.walk(directory, onerror=failed):
        directories.sort()
        for name in sorted(names):
            path = Path(root, name)
            if path.suffix in TYPES:
                yield path


def _avro_names(text: str) -> Iterator[str]:
    """Return the texts in an Avro schema that may be full names of types."""
    try:
        level: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return  # reported when it is parsed
    while level:
        outer, level = level, []
        for value in outer:
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                level += [value[key] for key in ("type", "items", "values") if key in value]
                level += [each for each in value.get("fields") or [] if isinstance(each, dict)]
            elif isinstance(value, list):
                level += value
