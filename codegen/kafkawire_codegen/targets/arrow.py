"""Writes a Python package of Arrow and Spark schemas: one schema for all versions of a message.

Types are those that Arrow, Parquet and Spark share: no unsigned, large or view types, and the
child of a list is named `element`; all fields are nullable. A struct that is used several times is
written once.

    uint16 -> int32, uint32 -> int64      uuid -> string, 22 characters of URL-safe base64
    bytes, records -> binary              unknown tagged fields -> a list of tag and data
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ..model import Field, Message, Struct
from ..output import File
from ..statements.spelling import literal
from ..templating import fill
from ..versions import Versions
from . import Source

NAME: Final = "kafka_arrow"
LINE: Final = 100
INDENT: Final = " " * 4
_PIECES: Final = re.compile(r".{1,80}(?: |\Z)|.{1,80}", re.DOTALL)
"""Text in pieces that end with words, where they can."""

TYPES: Final[Mapping[str, str]] = {
    "bool": "pa.bool_()",
    "int8": "pa.int8()",
    "int16": "pa.int16()",
    "uint16": "pa.int32()",
    "int32": "pa.int32()",
    "uint32": "pa.int64()",
    "int64": "pa.int64()",
    "float64": "pa.float64()",
    "uuid": "pa.string()",
    "string": "pa.string()",
    "bytes": "pa.binary()",
    "records": "pa.binary()",
}
"""Wire type -> the expression of its Arrow type."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field of a schema: its column's name and type, its versions and its purpose."""

    name: str
    type: str
    versions: Versions
    about: str

    def lines(self, indent: str) -> list[str]:
        """Write the row on one line, or its parts on lines of their own."""
        parts = [literal(self.name), self.type, literal(str(self.versions))]
        parts += [literal(self.about)] if self.about else []
        whole = f"{indent}field({', '.join(parts)}),"
        if len(whole) <= LINE:
            return [whole]
        inside = indent + INDENT
        lines = [f"{inside}{part}," for part in parts[:3]]
        pieces = [f"{inside}{literal(piece)}" for piece in _PIECES.findall(self.about)]
        about = [*pieces[:-1], f"{pieces[-1]},"] if pieces else []
        return [f"{indent}field(", *lines, *about, f"{indent}),"]


def files(source: Source) -> Iterator[File]:
    """Write the package: its functions, and a module for each message."""
    messages = source.messages
    yield File("__init__.py", fill("arrow/index.py.j2", messages=messages))
    yield File("_types.py", fill("arrow/types.py.j2"))
    for message in messages:
        yield File(f"{message.module}.py", module(message))


def module(message: Message) -> str:
    """Write the module of a message: the types of its structs, children first, and its schema."""
    structs = [(f"_{struct.name}", _lines(struct)) for struct in message.structs[:-1]]
    metadata = {
        "message": message.name,
        "versions": str(message.versions),
        "about": message.about,
        **({} if message.api_key is None else {"api_key": str(message.api_key)}),
    }
    return fill(
        "arrow/message.py.j2",
        title=f"{message.name}, version{'s' * (len(message.versions) > 1)} {message.versions}.",
        structs=structs,
        fields=_lines(message.root),
        metadata=[f"{literal(key)}: {literal(text)}" for key, text in metadata.items() if text],
    )


def _lines(struct: Struct) -> list[str]:
    return [line for row in _rows(struct) for line in row.lines(INDENT * 2)]


def _rows(struct: Struct) -> Iterator[Row]:
    for field in struct.fields:
        yield Row(field.attribute, _type(field), field.versions, field.about)
    if struct.flexible:
        about = "Tagged fields that the schema does not know (KIP-482)."
        yield Row("unknown_tags", "UNKNOWN_TAGS", struct.flexible, about)


def _type(field: Field) -> str:
    element = f"_{field.element}" if field.struct is not None else TYPES[field.element]
    return f"list_of({element})" if field.is_array else element
