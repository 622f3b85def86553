"""Converts Kafka's names to Python's.

A name changes only its case; a reserved name gets one trailing underscore.

    MaxWaitMs    -> max_wait_ms (attribute), maxWaitMs (JSON)
    FetchRequest -> fetch_request (module)
"""

from __future__ import annotations

import keyword
import re
from typing import Final

_ACRONYM: Final = re.compile(r"([A-Z]+)([A-Z][a-z])")
_HUMP: Final = re.compile(r"([a-z0-9])([A-Z])")

_TAKEN_BY_STRUCTURE: Final = frozenset(
    {"decode", "encode", "decode_from", "encode_to", "encode_buffers", "deviations", "unknown_tags"}
    | {"self"}
    # types of the constructor's parameters, which a parameter of that name would shadow
    | {"bool", "bytes", "float", "int", "list", "str", "tuple"}
)
_TAKEN_BY_RENDERING: Final = frozenset(
    {"r", "w", "m", "n", "version", "flexible", "tag", "size", "start", "end", "tags"}
    | {"len", "range", "isinstance", "i64", "add_tag", "not_in_version", "null_not_allowed"}
)


def snake(name: str) -> str:
    """Insert an underscore at each change of case, and convert to lower case."""
    return _HUMP.sub(r"\1_\2", _ACRONYM.sub(r"\1_\2", name)).lower()


def attribute(name: str) -> str:
    """Name the attribute (and constructor keyword) of a field."""
    text = snake(name)
    return f"{text}_" if keyword.iskeyword(text) or text in _TAKEN_BY_STRUCTURE else text


def module(message_name: str) -> str:
    """Name the module of a message."""
    text = snake(message_name)
    return f"{text}_" if keyword.iskeyword(text) else text


def local(attribute_name: str) -> str:
    """Name the local variable that holds a field while it is decoded or encoded.

    It never shadows a name that a generated function uses.
    """
    return f"{attribute_name}_" if attribute_name in _TAKEN_BY_RENDERING else attribute_name


def json_name(name: str) -> str:
    """Name the key in Kafka's JSON form: the first letter lowered, nothing else."""
    return name[:1].lower() + name[1:]


def api_name(message_name: str) -> str:
    """`FetchRequest` and `FetchResponse` are both of the API `Fetch`."""
    name = message_name.removesuffix("Request")
    return name if name != message_name else name.removesuffix("Response")


def constant(name: str) -> str:
    """Name an enum member: `ListOffsets` -> `LIST_OFFSETS`."""
    return snake(name).upper()
