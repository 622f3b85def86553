"""Infers a JSON Schema from values, where no schema is registered: a starting point.

Every value that was added is valid in the schema. Memory is bounded: an object with very many
different keys becomes a map, and what is nested too deeply may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from .bounds import DEFAULT_BOUNDS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_KEYS: Final = 1000
"""Properties of an object; one with more is a map."""
MAX_NODES: Final = 100_000
"""Objects, arrays and their members that are described; others may be anything."""

FORMATS: Final[Mapping[str, re.Pattern[str]]] = {
    "date-time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII),
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "uuid": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE),
}
"""Formats of text -> what matches all of it."""
ORDER: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


class Inference:
    """Collects values; `schema` describes them all."""

    def __init__(self) -> None:
        self._nodes_left = MAX_NODES
        self._root = _Node()

    def add(self, value: object) -> None:
        """Add a value, as `json.loads` returns it."""
        self._add(self._root, value, 0)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of all values; without any, it allows anything."""
        return {"$schema": DIALECT} | self._root.schema()

    def _add(self, node: _Node, value: object, depth: int) -> None:
        if depth > DEFAULT_BOUNDS.depth:
            node.is_any = True
        if node.is_any:
            return
        kind = _kind(value)
        node.types.add(kind)
        if isinstance(value, str):
            node.add_text(value)
        elif isinstance(value, dict):
            self._add_object(node, value, depth)
        elif isinstance(value, list):
            for inner in value:
                node.items = node.items or self._new()
                self._add(node.items, inner, depth + 1)

    def _add_object(self, node: _Node, value: dict[str, object], depth: int) -> None:
        node.objects += 1
        for key, inner in value.items():
            child = node.values or node.properties.get(key)
            if child is None:
                child = self._new()
                node.properties[key] = child
                if len(node.properties) > MAX_KEYS:
                    child = node.become_map(self._new())
            child.present += 1
            self._add(child, inner, depth + 1)

    def _new(self) -> _Node:
        node = _Node()
        self._nodes_left -= 1
        node.is_any = self._nodes_left < 0
        return node


class _Node:
    """What was seen in one place.

    present: how many objects have it, as a property. objects: how many objects it was. values: of a
    map, in place of properties.
    """

    def __init__(self) -> None:
        self.is_any = False
        self.present = 0
        self.types: set[str] = set()
        self.formats: set[str] | None = None
        self.objects = 0
        self.properties: dict[str, _Node] = {}
        self.values: _Node | None = None
        self.items: _Node | None = None

    def add_text(self, text: str) -> None:
        if self.formats is None:
            self.formats = set(FORMATS)
        if self.formats:
            self.formats = {one for one in self.formats if FORMATS[one].fullmatch(text)}

    def become_map(self, values: _Node) -> _Node:
        """Forget the properties; their values may be anything."""
        values.is_any = True
        self.values = values
        self.properties = {}
        return values

    def schema(self) -> dict[str, Any]:
        if self.is_any or not self.types:
            return {}
        types = self.types - {"integer"} if "number" in self.types else self.types
        listed = [one for one in ORDER if one in types]
        schema: dict[str, Any] = {"type": listed[0] if len(listed) == 1 else listed}
        if self.formats:
            schema["format"] = min(self.formats)
        if self.items is not None:
            schema["items"] = self.items.schema()
        if self.properties:
            schema["properties"] = {name: one.schema() for name, one in self.properties.items()}
            required = [
                name for name, one in self.properties.items() if one.present == self.objects
            ]
            schema |= {"required": required} if required else {}
        return schema


def _kind(value: object) -> str:
    for kind, name in KINDS.items():
        if isinstance(value, kind):
            return name
    return "null"


KINDS: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""Types of Python -> those of JSON Schema; a bool is an int, too."""
