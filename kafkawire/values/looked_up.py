"""Schemas that were looked up before: for processes that cannot, or should not, reach a registry.

A value is decoded as by the sources that the schemas are from, errors included; the number of
schemas is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeAlias

from ..errors import UnusableSchema
from .schema import Schema, SchemaKey, SchemaSource, Subject


class NamedSchema(NamedTuple):
    """What decides about the schema of a value: the key that it names, and its subject.

    key: None for a value that names none. subject: None if its topic is unknown.
    """

    key: SchemaKey | None
    subject: Subject | None


class Failure(NamedTuple):
    """Why a schema is not usable, as in UnusableSchema."""

    reason: str
    name: str


Result: TypeAlias = Schema | Failure | None


class LookedUpSchemas:
    """The results of looking schemas up, which can be pickled. most: their number at most."""

    is_local: ClassVar[bool] = True

    def __init__(self, results: Mapping[NamedSchema, Result], most: int) -> None:
        self._results = results
        self._most = most

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:
        """Return the schema with an id or GUID. Raises UnusableSchema."""
        return self._result(NamedSchema(key, subject), f"schema {key}")

    def by_subject(self, subject: Subject) -> Schema | None:
        """Return the schema of a subject. Raises UnusableSchema."""
        return self._result(NamedSchema(None, subject), subject.name)

    def _result(self, named: NamedSchema, name: str) -> Schema | None:
        if named not in self._results:
            raise UnusableSchema(f"not looked up: only {self._most} schemas are", name)
        result = self._results[named]
        if isinstance(result, Failure):
            raise UnusableSchema(*result)
        return result


def look_up(
    named: Iterable[NamedSchema], sources: Sequence[SchemaSource], most: int, *, local: bool
) -> LookedUpSchemas:
    """Look schemas up, the first `most` of them, each once; the first source that has one counts.

    local: whether schemas of subjects come only from sources where that costs nothing.
    """
    results: dict[NamedSchema, Result] = {}
    depends = any(source.is_local for source in sources)  # on the subject: directories have files
    by_key: dict[SchemaKey, Result] = {}
    for one in named:
        if one in results:
            continue
        if len(results) == most:
            break
        if one.key is None or depends:
            results[one] = _first(one, sources, local=local)
        else:
            if one.key not in by_key:
                by_key[one.key] = _first(one, sources, local=local)
            results[one] = by_key[one.key]
    return LookedUpSchemas(results, most)


def _first(named: NamedSchema, sources: Sequence[SchemaSource], *, local: bool) -> Result:
    key, subject = named
    try:
        for source in sources:
            schema = None
            if key is not None:
                schema = source.by_key(key, subject)
            elif subject is not None and (source.is_local or not local):
                schema = source.by_subject(subject)
            if schema is not None:
                return schema
    except UnusableSchema as error:
        return Failure(error.reason, error.name)
    return None
