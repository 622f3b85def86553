"""Writes a schema and a list of releases in the form of kafkawire's own files.

The text is read back as the same schema; ranges that reach the newest version are open. Texts
from outside are escaped as in JSON, so that a comment or a string cannot end early.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from textwrap import TextWrapper
from typing import Final

from ..dialect import FieldSchema, MessageSchema, StructSchema
from ..releases import Releases
from ..versions import Versions

RELEASES_WIDTH: Final = 97
"""The width of a list of releases."""


def schema_text(schema: MessageSchema, comments: Iterable[str] = ()) -> str:
    """Write a schema, below comments of a line each."""
    lines = [f"// {' '.join(comment.split())}" for comment in comments]
    head = [f"  {_member(*pair)}" for pair in _head(schema)]
    newest = schema.valid_versions.high
    blocks = [_list("fields", (_field(f, 4, newest) for f in schema.fields))]
    if schema.common_structs:
        structs = (_struct(struct, newest) for struct in schema.common_structs)
        blocks.append(_list("commonStructs", structs))
    return "\n".join([*lines, "{", ",\n".join([*head, *blocks]), "}", ""])


def _head(schema: MessageSchema) -> Iterator[tuple[str, str]]:
    newest = schema.valid_versions.high
    if schema.api_key is not None:
        yield "apiKey", str(schema.api_key)
    yield "type", _string(schema.type)
    if schema.listeners:
        yield "listeners", f"[{', '.join(map(_string, schema.listeners))}]"
    yield "name", _string(schema.name)
    if schema.about:
        yield "about", _string(schema.about)
    yield "validVersions", _string(str(schema.valid_versions))
    if schema.deprecated_versions:
        yield "deprecatedVersions", _string(str(schema.deprecated_versions))
    yield "flexibleVersions", _string(_range(schema.flexible_versions, newest))
    if schema.header_versions:
        pairs = (f'"{_range(run, newest)}": "{header}"' for run, header in schema.header_versions)
        yield "headerVersions", f"{{ {', '.join(pairs)} }}"
    if schema.latest_version_unstable:
        yield "latestVersionUnstable", "true"


def _list(key: str, items: Iterable[str]) -> str:
    inside = ",\n".join(items)
    return f'  "{key}": [\n{inside}\n  ]' if inside else f'  "{key}": []'


def _struct(struct: StructSchema, newest: int) -> str:
    head = [("name", _string(struct.name)), ("versions", _string(_range(struct.versions, newest)))]
    return _object(head, struct.about, struct.fields, 4, newest)


def _field(field: FieldSchema, indent: int, newest: int) -> str:
    return _object(list(_attributes(field, newest)), field.about, field.fields, indent, newest)


def _attributes(field: FieldSchema, newest: int) -> Iterator[tuple[str, str]]:
    """Write the attributes of a field that it has, in order, without about and fields."""
    yield "name", _string(field.name)
    yield "type", _string(field.type)
    yield "versions", _string(_range(field.versions, newest))
    if field.nullable_versions:
        yield "nullableVersions", _string(_range(field.nullable_versions, newest))
    if field.tagged_versions:
        yield "taggedVersions", _string(_range(field.tagged_versions, newest))
        yield "tag", str(field.tag)
    if field.flexible_versions is not None:
        yield "flexibleVersions", _string(_range(field.flexible_versions, newest))
    if field.default is not None:
        yield "default", _string(field.default)
    if field.ignorable:
        yield "ignorable", "true"
    if field.map_key:
        yield "mapKey", "true"
    if field.entity_type is not None:
        yield "entityType", _string(field.entity_type)
    if field.zero_copy:
        yield "zeroCopy", "true"


def _object(
    pairs: list[tuple[str, str]],
    about: str,
    fields: tuple[FieldSchema, ...],
    indent: int,
    newest: int,
) -> str:
    """Write one field or struct: a line, then its purpose, then its fields."""
    space = " " * indent
    text = f"{space}{{ {', '.join(_member(*pair) for pair in pairs)}"
    if about:
        text += f',\n{space}  "about": {_string(about)}'
    if not fields:
        return f"{text} }}"
    inside = ",\n".join(_field(field, indent + 2, newest) for field in fields)
    return f'{text}, "fields": [\n{inside}\n{space}]}}'


def _member(key: str, value: str) -> str:
    return f'"{key}": {value}'


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _range(versions: Versions, newest: int) -> str:
    return f"{versions.low}+" if versions and versions.high >= newest else str(versions)


def releases_text(releases: Releases) -> str:
    """Write a releases.json: a release with its APIs, wrapped."""
    stable = ",\n".join(_release(name, of) for name, of in releases.ranges.items())
    unstable = ",\n".join(
        f'    "{name}": {{{", ".join(_pairs(of))}}}' for name, of in releases.unstable.items()
    )
    texts = (f"{{\n{text}\n  }}" if text else "{}" for text in (stable, unstable))
    return '{{\n  "releases": {},\n  "unstable": {}\n}}\n'.format(*texts)


def _release(name: str, of: Mapping[str, Versions]) -> str:
    wrapper = TextWrapper(
        RELEASES_WIDTH,
        initial_indent=" " * 6,
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )
    # no-break spaces keep an API and its versions on a line
    pairs = ", ".join(pair.replace(" ", "\xa0") for pair in _pairs(of))
    return f'    "{name}": {{\n{wrapper.fill(pairs)}\n    }}'.replace("\xa0", " ")


def _pairs(of: Mapping[str, Versions]) -> list[str]:
    return [f'{_string(api)}: "{versions}"' for api, versions in of.items()]
