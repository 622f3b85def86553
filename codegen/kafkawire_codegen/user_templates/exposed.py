"""What templates see: the variables, and the attributes of each type of value.

The sandbox allows these attributes and no others, and docs/templates.md lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..versions import VersionCondition, Versions
from ..wire_types import WireType
from .apis import Api, Release
from .messages import Message, MessageVersion
from .structs import Field, FieldVersion, Struct, StructVersion

VARIABLES: Final[Mapping[str, tuple[str, str]]] = {
    "messages": ("tuple[Message, ...]", "All messages, sorted by name."),
    "message": (
        "Message",
        "The message that the file is made for, in a template whose path contains `message`.",
    ),
    "apis": ("tuple[Api, ...]", "All APIs, sorted by key."),
    "releases": (
        "tuple[Release, ...]",
        "The releases in `releases.json` of the schemas, oldest first; empty without that file.",
    ),
    "name": ("str", "The value of `--package`, or `kafka`."),
}
"""Each variable of templates: its type, its description."""

MODEL: Final = (
    Message,
    MessageVersion,
    Struct,
    StructVersion,
    Field,
    FieldVersion,
    Api,
    Release,
)
"""The types made for templates: all of their public attributes."""

SHARED: Final[Mapping[type, Mapping[str, str]]] = {
    WireType: {
        "name": "`bool`, `int8`, `int16`, `uint16`, `int32`, `uint32`, `int64`, `float64`, `uuid`, "
        "`string`, `bytes` or `records`.",
        "size": "The bytes on the wire; None if the value has a length before it.",
        "low": "The lowest value of an integer type; None for other types.",
        "high": "The highest value of an integer type; None for other types.",
        "is_integer": "Whether it is an integer type.",
        "can_be_null": "Whether a field of it may be null: `string`, `bytes` and `records`.",
    },
    Versions: {
        "low": "The lowest version.",
        "high": "The highest version; below `low` if there is none.",
        "covers": "Whether every version of `other` is in it.",
        "intersection": "The versions of both.",
        "without": "The runs that remain without `other`: none, one or two.",
    },
    VersionCondition: {
        "wanted": "The versions for which it holds.",
        "possible": "The versions that can occur.",
        "always": "Whether it holds in every possible version.",
        "depends": "Whether it holds in some possible versions, and not in others.",
        "at_least": "The lowest wanted version, if lower ones are possible; else None.",
        "at_most": "The highest wanted version, if higher ones are possible; else None.",
    },
}
"""Types of the generator's own model: the attributes that templates see, with descriptions."""


def _public(cls: type) -> frozenset[str]:
    return frozenset(name for name in dir(cls) if not name.startswith("_"))


NAMES: Final[Mapping[type, frozenset[str]]] = {cls: _public(cls) for cls in MODEL} | {
    cls: frozenset(names) for cls, names in SHARED.items()
}
"""Type of a value -> the attributes that templates may read."""
