"""Bounds how often the subschemas of a JSON Schema apply to a value, before it is checked.

Two references to one subschema in each of thirty are a billion checks of one value. A schema
whose subschemas are few, even if each reference is written out, needs no look at its values; of
others, recursive ones among them, the subschemas that may apply to a value are counted. More may
be counted than are checked; a dynamic reference counts as a static one, and what a reference is to
that is not in the schemas (a meta-schema) does not count.

Source: JSON Schema 2020-12, core, sections 8 and 10; drafts 4 to 2019-09 for older keywords.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from ..errors import InvalidRecordValue

MAX_WRITTEN_OUT: Final = 10_000
"""Subschemas of a schema whose values are not looked at."""
FREE: Final = 500_000
PER_BYTE: Final = 64
"""Subschemas that are looked at for a value: whatever its size, and for each byte of it."""


class Applies(Enum):
    """What the subschemas of a keyword apply to."""

    TO_VALUE = auto()
    TO_FIELD = auto()
    """Each to the field of an object that its name says."""
    TO_ALL = auto()
    """To all fields of an object, or all items of an array."""


KEYWORDS: Final = {
    **dict.fromkeys(
        (
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "dependentSchemas",
            "dependencies",
        ),
        Applies.TO_VALUE,
    ),
    "properties": Applies.TO_FIELD,
    **dict.fromkeys(
        (
            "patternProperties",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames",
            "items",
            "prefixItems",
            "additionalItems",
            "unevaluatedItems",
            "contains",
        ),
        Applies.TO_ALL,
    ),
}
"""Keyword with subschemas -> what they apply to."""
NAMED: Final = frozenset({"dependentSchemas", "dependencies", "properties", "patternProperties"})
"""Keywords whose subschemas are the values of an object."""
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS: Final = ("$anchor", "$dynamicAnchor")


class Subschema(NamedTuple):
    """A schema in another one. name: of the field that it applies to."""

    applies: Applies
    name: str
    schema: Any


class SchemaWork:
    """Counts what a schema applies to a value. documents: by name; that of "" is the schema."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._schema = documents[""]
        self._names = [name for name in documents if name]
        self._targets: dict[str, Any] = {}  # by URI
        self._bases: dict[int, str] = {}  # of objects, by identity
        self._subschemas_of: dict[int, list[Subschema]] = {}  # likewise
        for name, document in documents.items():
            self._add(document, name)
        self._needs_check = self._written_out() > MAX_WRITTEN_OUT

    def _add(self, document: Any, name: str) -> None:
        """Note the URIs of a document and of what is in it."""
        self._targets[name] = document
        values = [(document, name)]
        while values:
            value, base = values.pop()
            if isinstance(value, dict):
                base = self._identify(value, base)
                self._bases[id(value)] = base
                values += [(inner, base) for inner in value.values()]
            elif isinstance(value, list):
                values += [(inner, base) for inner in value]

    def _identify(self, schema: dict[str, Any], base: str) -> str:
        """Note the URIs of an object; return the base of references in it."""
        for key in ("$id", "id"):
            if isinstance(identifier := schema.get(key), str):
                document, fragment = _joined(base, identifier)
                base = base if fragment else document
                self._targets.setdefault(f"{document}#{fragment}".removesuffix("#"), schema)
        for key in ANCHORS:
            if isinstance(anchor := schema.get(key), str):
                self._targets.setdefault(f"{base}#{anchor}", schema)
        return base

    def _target(self, schema: dict[str, Any], reference: str) -> Any:
        """Return what a reference is to; None if that is not known: it is not checked then."""
        document, fragment = _joined(self._bases.get(id(schema), ""), reference)
        if document not in self._targets:
            ends = [name for name in self._names if document.endswith(f"/{name}")]
            document = max(ends, key=len, default=document)
        value = self._targets.get(document)
        if fragment and not fragment.startswith("/"):
            return self._targets.get(f"{self._bases.get(id(value), document)}#{fragment}")
        for word in fragment.split("/")[1:]:
            value = _inner(value, unquote(word).replace("~1", "/").replace("~0", "~"))
        return value

    def _subschemas(self, schema: Any) -> list[Subschema]:
        """List the subschemas of a schema, with what its references are to."""
        subschemas = self._subschemas_of.get(id(schema))
        if subschemas is None:
            subschemas = list(self._read(schema)) if isinstance(schema, dict) else []
            self._subschemas_of[id(schema)] = subschemas
        return subschemas

    def _read(self, schema: dict[str, Any]) -> Iterator[Subschema]:
        for reference in REFERENCES:
            if isinstance(uri := schema.get(reference), str):
                yield Subschema(Applies.TO_VALUE, "", self._target(schema, uri))
        for keyword in schema.keys() & KEYWORDS.keys():
            held = schema[keyword]
            if keyword in NAMED and isinstance(held, dict):
                for name, subschema in held.items():
                    yield Subschema(KEYWORDS[keyword], name, subschema)
            else:
                for subschema in held if isinstance(held, list) else [held]:
                    yield Subschema(KEYWORDS[keyword], "", subschema)

    def _written_out(self) -> int:
        """Count the subschemas if each reference were written out, at least to MAX_WRITTEN_OUT."""
        count, schemas = 0, [self._schema]
        while schemas and count <= MAX_WRITTEN_OUT:
            more = [each.schema for each in self._subschemas(schemas.pop())]
            count += len(more)
            schemas += more
        return count

    def check(self, value: object, size: int) -> None:
        """Raise InvalidRecordValue if too many subschemas may apply to a value of `size` bytes."""
        if not self._needs_check:
            return
        left = most = FREE + PER_BYTE * size
        pairs = [(self._schema, value)]
        while pairs:
            schema, here = pairs.pop()
            for applies, name, subschema in self._subschemas(schema):
                more = [(subschema, each) for each in _chosen(applies, name, here)]
                left -= 1 + len(more)
                if left < 0:
                    raise InvalidRecordValue(f"over {most:,} subschemas may apply to the value")
                pairs += more


def _chosen(applies: Applies, name: str, value: Any) -> Iterable[Any]:
    """Return to what of a value a subschema may apply."""
    if applies is Applies.TO_VALUE:
        return (value,)
    if isinstance(value, dict):
        if applies is Applies.TO_FIELD:
            return (value[name],) if name in value else ()
        return value.values()
    return value if isinstance(value, list | tuple) and applies is Applies.TO_ALL else ()


def _joined(base: str, reference: str) -> tuple[str, str]:
    """Resolve a reference: the URI of a document, and the fragment."""
    try:
        document, fragment = urldefrag(urljoin(base, reference))
    except ValueError:  # such as an invalid address in it
        document, fragment = reference, ""
    return document, fragment


def _inner(value: Any, word: str) -> Any:
    if isinstance(value, list):
        index = int(word[:9]) if word.isdecimal() else len(value)
        return value[index] if index < len(value) else None
    return value.get(word) if isinstance(value, dict) else None
