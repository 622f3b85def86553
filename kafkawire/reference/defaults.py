"""Default values of fields, and comparisons with them."""

from __future__ import annotations

from typing import Any, Final

from kafkawire_codegen import model

UNKNOWN_TAGS: Final = "unknown_tags"
"""The attribute of unknown tagged fields in every struct."""


def default_of(f: model.Field) -> Any:
    """Make the value of an absent field."""
    if f.default is model.EMPTY_STRUCT:
        assert f.struct is not None
        return defaults(f.struct)
    return [] if f.default == [] else f.default


def defaults(struct: model.Struct) -> dict[str, Any]:
    """Make the values of a struct with all fields at their defaults."""
    values = {f.attribute: default_of(f) for f in struct.fields}
    if struct.has_tags:
        values[UNKNOWN_TAGS] = None
    return values


def member(value: Any, attribute: str) -> Any:
    """Take a field's value from a dict of values or from an instance of a generated class."""
    return value[attribute] if isinstance(value, dict) else getattr(value, attribute)


def is_set(f: model.Field, value: Any, module: str | None = None) -> bool:
    """Whether a field differs from its default; module: as in `fits`."""
    if value is None or f.default is None:
        return value is not f.default
    if f.default is model.EMPTY_STRUCT:
        assert f.struct is not None
        return not fits(f.struct, value, module) or is_any_set(f.struct, value, module)
    if isinstance(f.default, bool):
        return value is not f.default
    if f.default != f.default:  # NaN, which does not equal itself
        return bool(value == value)
    return bool(value != f.default)


def is_any_set(struct: model.Struct, value: Any, module: str | None) -> bool:
    """Whether any field of a struct differs from its default."""
    if any(is_set(f, member(value, f.attribute), module) for f in struct.fields):
        return True
    return struct.has_tags and member(value, UNKNOWN_TAGS) is not None


def fits(struct: model.Struct, value: Any, module: str | None) -> bool:
    """Whether a value is that struct.

    That is an instance of its class in `module`, or where that is None a dict with all its fields.
    """
    names = [f.attribute for f in struct.fields] + [UNKNOWN_TAGS] * struct.has_tags
    if module is None:
        return isinstance(value, dict) and all(name in value for name in names)
    if type(value).__name__ != struct.name or type(value).__module__ != module:
        return False
    return all(hasattr(value, name) for name in names)
