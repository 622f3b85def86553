"""Writes an explanation as a JSON object, for programs.

{"nodes": [{"name", "path", "type", "offset", "size", "hex" | "children", "value"}], "error": {...}}
"""

from __future__ import annotations

from typing import Any

from ..protocol.secrets import placeholder
from .explain import NOT_DECODED, TRAILING
from .rendering import Explanation
from .tree import Node


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Make a JSON object of an explanation: the trees, and the error if there is one."""
    obj: dict[str, Any] = {"nodes": [node_json(tree) for tree in explanation.trees]}
    error = explanation.error
    if error is not None:
        obj["error"] = {
            "kind": type(error).__name__,
            "reason": error.reason,
            "path": error.path,
            "offset": error.offset,
        }
    left = [row for row in explanation.rows if row.field in (NOT_DECODED, TRAILING)]
    if left:
        raw = b"".join(row.raw for row in left)
        shown = placeholder(len(raw), "byte") if left[0].secret else raw.hex()
        obj["not_decoded"] = {"offset": left[0].offset, "size": len(raw), "hex": shown}
    return obj


def node_json(node: Node) -> dict[str, Any]:
    """Make the JSON object of a node and those below it."""
    obj: dict[str, Any] = {
        "name": node.name,
        "path": node.path,
        "type": node.type,
        "offset": node.offset,
        "size": node.size,
    }
    if node.secret and not node.children:
        return obj | {"hex": placeholder(node.size, "byte")}
    if not node.children:
        obj["hex"] = node.raw.hex()
    if node.closed and not node.secret and not isinstance(node.value, (dict, list)):
        value = node.value
        obj["value"] = value.hex() if isinstance(value, bytes) else value
    if node.children:
        obj["children"] = [node_json(child) for child in node.children]
    return obj
