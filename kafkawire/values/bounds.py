"""Limits of schemas and values: what comes from a registry or a producer may be hostile."""

from __future__ import annotations

from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """Limits on schemas and on what their values may grow to.

    schema_bytes: of a schema with all those that it refers to. references: their number. depth:
    levels of nesting, of a schema's text and of a value. schemas: that are kept.
    nodes_per_byte: fields, items and nulls of a value, per byte of it.
    """

    schema_bytes: int = 1 << 20
    references: int = 100
    depth: int = 64
    schemas: int = 1000
    nodes_per_byte: int = 16

    def nodes(self, size: int) -> int:
        """Return how many fields, items and nulls a value of `size` bytes may have."""
        return FREE_NODES + self.nodes_per_byte * size


FREE_NODES: Final = 100_000
"""Fields that a value may have whatever its size: most of them may take no bytes."""

DEFAULT_BOUNDS: Final = Bounds()


def json_depth(value: object) -> int:
    """Return the levels of nesting of a JSON value; a scalar has none."""
    depth = 0
    level = [value]
    while level := [inner for outer in level for inner in _inner(outer)]:
        depth += 1
    return depth


def _inner(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values()) or [None]
    return (list(value) or [None]) if isinstance(value, list) else []
