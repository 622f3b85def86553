"""Rules for one field: its name, type, versions, nullability and flags."""

from __future__ import annotations

from typing import Final

from ..dialect import ENTITY_TYPES
from ..keys import did_you_mean
from ..versions import Versions
from ..wire_types import WIRE_TYPES
from .names import brief, is_plain_name, wrong_class_name, wrong_field_name
from .rule import FieldAt, FieldRule


def _field_name(at: FieldAt) -> str | None:
    return wrong_field_name(at.written.schema.name)


def _array_of_arrays(at: FieldAt) -> str | None:
    if not at.written.schema.element.startswith("[]"):
        return None
    return "an array cannot hold arrays: name a struct that holds the inner array"


def _is_struct(at: FieldAt) -> bool:
    element = at.written.schema.element
    return element not in WIRE_TYPES and not element.startswith("[]")


def _struct_name(at: FieldAt) -> str | None:
    if not _is_struct(at) or not at.written.fields:
        return None
    return wrong_class_name(at.written.schema.element, "struct")


def _unknown_type(at: FieldAt) -> str | None:
    element = at.written.schema.element
    if not _is_struct(at) or element in at.common or "fields" in at.written.node.members:
        return None
    hint = did_you_mean(element, [*WIRE_TYPES, *at.common])
    reason = f"unknown type {element!r}: not a primitive, not a common struct, and without fields"
    return reason + hint


def _no_fields(at: FieldAt) -> str | None:
    written = at.written
    if not _is_struct(at) or "fields" not in written.node.members or written.fields:
        return None
    return f"the struct {written.schema.element} has no fields: a struct has at least one"


def _fields_on_primitive(at: FieldAt) -> str | None:
    schema = at.written.schema
    if schema.element not in WIRE_TYPES or "fields" not in at.written.node.members:
        return None
    return f"{schema.type} has no fields; only a struct or an array of structs does"


def _never_present(at: FieldAt) -> str | None:
    versions = at.written.schema.versions
    if not at.around or versions & at.around:
        return None
    return f"the field is in no version: its are {versions}, those around it {at.around}"


def _versions_beyond(at: FieldAt) -> str | None:
    return _beyond(at, at.written.schema.versions)


def _nullable_beyond(at: FieldAt) -> str | None:
    return _beyond(at, at.written.schema.nullable_versions)


def _beyond(at: FieldAt, versions: Versions) -> str | None:
    """Return the error of a run that ends after the newest version; `never-present` has others."""
    valid = at.message.schema.valid_versions
    if versions.open_ended or versions.high <= valid.high or not versions & at.around:
        return None
    return f"{versions} ends after {valid.high}, the newest version: {versions.low}+ has no end"


def _nullable_type(at: FieldAt) -> str | None:
    schema = at.written.schema
    wire = WIRE_TYPES.get(schema.type)
    if not schema.nullable_versions or wire is None or wire.can_be_null:
        return None
    return f"{schema.type} cannot be null; string, bytes, records, arrays and structs can"


def _nullable_outside(at: FieldAt) -> str | None:
    schema = at.written.schema
    # Kafka often writes 0+ on a field that came later; versions outside are ignored.
    if not schema.nullable_versions or schema.nullable_versions & schema.versions:
        return None
    return f"nullable in {schema.nullable_versions}, but the field is only in {schema.versions}"


def _map_key_place(at: FieldAt) -> str | None:
    if not at.written.schema.map_key or at.in_array:
        return None
    return "only a field of a struct that is the element of an array can be its key"


def _map_key_type(at: FieldAt) -> str | None:
    schema = at.written.schema
    if not schema.map_key or schema.type in WIRE_TYPES:
        return None
    return f"{schema.type} cannot be a key; a primitive type can"


def _zero_copy_type(at: FieldAt) -> str | None:
    schema = at.written.schema
    if not schema.zero_copy or schema.type == "bytes":
        return None
    return f"{schema.type} cannot be zero-copy; only bytes can"


def _entity_type_name(at: FieldAt) -> str | None:
    entity = at.written.schema.entity_type
    if entity is None or is_plain_name(entity):
        return None
    return f"{brief(entity)} is not a valid entity type: a letter, then letters and digits"


def _unknown_entity_type(at: FieldAt) -> str | None:
    entity = at.written.schema.entity_type
    if entity is None or entity in ENTITY_TYPES or entity == "unknown":
        return None
    if not is_plain_name(entity):  # an error, not advice
        return None
    names = ", ".join(ENTITY_TYPES)
    return f"unknown entity type {entity!r} ({names}){did_you_mean(entity, ENTITY_TYPES)}"


def _entity_type_mismatch(at: FieldAt) -> str | None:
    schema = at.written.schema
    wanted = ENTITY_TYPES.get(schema.entity_type or "")
    if wanted is None or schema.element == wanted:
        return None
    return f"a {schema.entity_type} is {wanted}, or an array of it, not {schema.type}"


def _flexible_type(at: FieldAt) -> str | None:
    schema = at.written.schema
    if schema.flexible_versions is None or schema.type in ("string", "bytes"):
        return None
    return f"{schema.type} cannot have flexible versions of its own; string and bytes can"


def _flexible_outside(at: FieldAt) -> str | None:
    own = at.written.schema.flexible_versions
    message = at.message.schema.flexible_versions
    if own is None or message.covers(own):
        return None
    return f"flexible in {own}, but the message in {message}: none or a part of that is right"


FIELD_RULES: Final = (
    FieldRule(
        "field-name",
        "a field name is a letter, then letters and digits",
        "name",
        (),
        _field_name,
    ),
    FieldRule(
        "array-of-arrays",
        "an array holds primitives or structs",
        "type",
        (),
        _array_of_arrays,
    ),
    FieldRule(
        "struct-name",
        "a struct name begins with a capital",
        "type",
        ("fields",),
        _struct_name,
    ),
    FieldRule(
        "unknown-type",
        "a type is primitive or a struct",
        "type",
        ("fields",),
        _unknown_type,
    ),
    FieldRule("struct-without-fields", "a struct has fields", "fields", ("type",), _no_fields),
    FieldRule(
        "fields-on-primitive",
        "only structs have fields",
        "fields",
        ("type",),
        _fields_on_primitive,
    ),
    FieldRule(
        "never-present",
        "a field is in some version of what is around it",
        "versions",
        ("taggedVersions",),
        _never_present,
    ),
    FieldRule(
        "versions-beyond",
        "a field's versions end with the newest at the latest, or not at all",
        "versions",
        ("taggedVersions",),
        _versions_beyond,
    ),
    FieldRule(
        "nullable-beyond",
        "nullable versions end with the newest at the latest, or not at all",
        "nullableVersions",
        ("versions", "taggedVersions"),
        _nullable_beyond,
    ),
    FieldRule(
        "nullable-type",
        "the type can be null",
        "nullableVersions",
        ("type",),
        _nullable_type,
    ),
    FieldRule(
        "nullable-outside",
        "a nullable field is so in a version that has it",
        "nullableVersions",
        ("versions", "taggedVersions"),
        _nullable_outside,
    ),
    FieldRule(
        "map-key-place",
        "a map key is in the element of an array",
        "mapKey",
        (),
        _map_key_place,
    ),
    FieldRule(
        "map-key-type",
        "a map key is of a primitive type",
        "mapKey",
        ("type",),
        _map_key_type,
    ),
    FieldRule("zero-copy-type", "only bytes are zero-copy", "zeroCopy", ("type",), _zero_copy_type),
    FieldRule(
        "entity-type-name",
        "an entity type is a letter, then letters and digits",
        "entityType",
        (),
        _entity_type_name,
    ),
    FieldRule(
        "unknown-entity-type",
        "an entity type is a known one",
        "entityType",
        (),
        _unknown_entity_type,
    ),
    FieldRule(
        "entity-type-mismatch",
        "an entity type stands on its own wire type",
        "entityType",
        ("type",),
        _entity_type_mismatch,
    ),
    FieldRule(
        "field-flexible-type",
        "only string and bytes have flexible versions of their own",
        "flexibleVersions",
        ("type",),
        _flexible_type,
    ),
    FieldRule(
        "field-flexible-outside",
        "a field is flexible only where its message is",
        "flexibleVersions",
        (),
        _flexible_outside,
    ),
)
