"""Finds the structs of a message and their nesting.

Law: each struct is visited once, however often it is used, without recursion: a message of n fields
takes n steps, at any nesting depth.

    struct_fields   name -> fields, of the message itself, its common structs and its inline ones
    children_first  the names of those that the message holds, each after all that it holds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .dialect import FieldSchema, MessageSchema
from .wire_types import WIRE_TYPES

Fields = tuple[FieldSchema, ...]


def struct_fields(schema: MessageSchema) -> dict[str, Fields]:
    """Map each struct of a message to its fields; the message's own fields are under its name."""
    found: dict[str, Fields] = {schema.name: schema.fields}
    found |= {struct.name: struct.fields for struct in schema.common_structs}
    pending: list[FieldSchema] = [f for fields in found.values() for f in fields]
    while pending:
        field = pending.pop()
        if field.element not in WIRE_TYPES:
            found.setdefault(field.element, field.fields)
            pending += field.fields
    return found


def children_first(root: str, fields: Mapping[str, Fields]) -> list[str]:
    """Order the structs below `root`, each after those of its fields, in field order."""
    done: dict[str, None] = {}
    entered = {root}
    path: list[tuple[str, Iterable[str]]] = [(root, _held(root, fields))]
    while path:
        name, held = path[-1]
        child = next((c for c in held if c not in entered), None)
        if child is None:
            done[name] = None
            path.pop()
        else:
            entered.add(child)
            path.append((child, _held(child, fields)))
    return list(done)


def _held(name: str, fields: Mapping[str, Fields]) -> Iterable[str]:
    return iter([f.element for f in fields[name] if f.element in fields])


def depths(order: Iterable[str], fields: Mapping[str, Fields]) -> dict[str, int]:
    """Count for each struct, children first, the levels of structs inside it; 0 for none."""
    deep: dict[str, int] = {}
    for name in order:
        inside = (deep[f.element] for f in fields[name] if f.element in deep)
        deep[name] = 1 + max(inside, default=-1)
    return deep
