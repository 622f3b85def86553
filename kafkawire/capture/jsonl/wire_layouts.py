"""Describes the wire layout of bodies, to write them as JSON without creating messages.

A body has a program only if its JSON form follows the wire format: fields in order, no
optional structs, no redacted fields; with payloads, only if wire order gives a payload's path, and
its protocol before it. `writer.c` itself skips records of the metadata topic, which are redacted.

    class, version --once--> Program: one step per field, in wire order
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from ...primitives.structure import Structure
from ...protocol.fields import Field, fields_at
from ...protocol.payload_fields import (
    PayloadField,
    PayloadSteps,
    payload_fields_of,
    payload_steps,
)
from ...protocol.secrets import CONFIG_STRUCTS, SECRET_FIELDS, SNAPSHOT_MODULE
from .records_fields import NO_ROLE, WITHIN, plan
from .writer import Program

# as `writer.c` numbers them
INT8: Final = 1
INT16: Final = 2
UINT16: Final = 3
INT32: Final = 4
UINT32: Final = 5
INT64: Final = 6
BOOL: Final = 7
STRING: Final = 8
BYTES: Final = 9
UUID: Final = 10
FLOAT64: Final = 11
RECORDS: Final = 12
STRUCT: Final = 13
ERROR_CODE: Final = 14
"""An int16 that is 0, or else the message has to be created: its row lists its errors."""

KINDS: Final = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "uint32": UINT32,
    "int64": INT64,
    "bool": BOOL,
    "string": STRING,
    "bytes": BYTES,
    "uuid": UUID,
    "float64": FLOAT64,
    "records": RECORDS,
}


# roles of steps, behind those of `records_fields`, as `writer.c` numbers them
PROTOCOL_TYPE: Final = 5
PROTOCOL_NAME: Final = 6
PAYLOAD: Final = 7
LAST_ROLE: Final = 127

Roles: TypeAlias = Mapping[type[Structure], Mapping[str, int]]
"""Class of a struct -> attribute -> role."""

_numbered: Final[list[PayloadField]] = []
"""The fields whose role is PAYLOAD, PAYLOAD + 1, and so on."""


def is_error_code(field: Field) -> bool:
    """Whether the values of a field are error codes, as for `tables.extraction.entities`."""
    return field.element == "int16" and field.attribute.endswith("error_code")


_programs: Final[dict[tuple[type[Structure], int, bool], Program | None]] = {}


def program_of(cls: type[Structure], version: int, flexible: bool, secrets: bool) -> Program | None:
    """Return the program of a struct's class at a version; None if messages have to be created.

    flexible: whether lengths are varints and tags follow. secrets: whether secrets are shown.
    """
    key = (cls, version, secrets)
    if key not in _programs:
        roles = payload_roles(cls, version)
        _programs[key] = None if roles is None else _compile(cls, version, flexible, secrets, roles)
    return _programs[key]


def _compile(
    cls: type[Structure], version: int, flexible: bool, secrets: bool, payloads: Roles
) -> Program | None:
    owner: Any = cls
    roles = {step.attribute: step.role for step in plan(cls, version)}
    roles |= payloads.get(owner, {})
    if not secrets and (
        owner.__name__ in CONFIG_STRUCTS or owner.__module__.endswith(SNAPSHOT_MODULE)
    ):
        return None
    steps: list[tuple[bytes, bytes, int, bool, bool, int, Program | None]] = []
    for field in fields_at(cls, version):
        if field.is_tagged:
            continue
        inner: Program | None = None
        if field.struct is not None:
            inner = _compile(field.struct, version, flexible, secrets, payloads)
            # an optional struct may have a marker byte before it
            if inner is None or not field.is_array:
                return None
        elif field.element not in KINDS or (field.json_name in SECRET_FIELDS and not secrets):
            return None
        lead = f'{"," if steps else "{"}"{field.json_name}":'.encode()
        name, kind = field.attribute.encode(), KINDS.get(field.element, STRUCT)
        if is_error_code(field):
            kind = ERROR_CODE
        role = roles.get(field.attribute, NO_ROLE)
        nullable = field.is_nullable_at(version)
        steps.append((lead, name, kind, field.is_array, nullable, role, inner))
    return Program(flexible, tuple(steps))


# -- payloads


def number_of(field: PayloadField) -> int:
    """Return the number of a field, which may be new."""
    if field not in _numbered:
        _numbered.append(field)
    return _numbered.index(field)


def field_of(number: int) -> PayloadField:
    """Return the field of a number: its role is PAYLOAD + `number`."""
    return _numbered[number]


def payload_roles(cls: type[Structure], version: int) -> Roles | None:
    """Find the roles of a message's fields for its payloads; None if it has to be decoded."""
    by_owner: dict[Any, dict[str, int]] = {}
    owner: Any = cls  # mypy does not see that it is hashable
    for field in payload_fields_of(owner):
        steps = payload_steps(cls, field, version)
        if steps is None:
            continue
        wanted = _roles_of(field, steps, version)
        if wanted is None:
            return None
        for depth, attribute, role in wanted:
            roles = by_owner.setdefault(steps.owners[depth], {})
            if roles.setdefault(attribute, role) != role:
                return None
    return by_owner


def _roles_of(
    field: PayloadField, steps: PayloadSteps, version: int
) -> list[tuple[int, str, int]] | None:
    """List (owner, attribute, role) for a field; None if wire order does not do."""
    role = PAYLOAD + number_of(field)
    *outer, last = steps.fields
    if field.own is not None or role > LAST_ROLE or last.is_array or last.is_tagged:
        return None
    if not all(step.is_array for step in outer):
        return None
    wanted = [(depth, step.attribute, WITHIN) for depth, step in enumerate(outer)]
    wanted.append((len(outer), last.attribute, role))
    for depth, attribute, named in (
        (steps.type_at, field.protocol_type, PROTOCOL_TYPE),
        (steps.name_at, field.protocol_name, PROTOCOL_NAME),
    ):
        if depth is None:
            continue
        if not _is_before(fields_at(steps.owners[depth], version), attribute, steps.fields[depth]):
            return None
        wanted.append((depth, attribute, named))
    return wanted


def _is_before(fields: tuple[Field, ...], attribute: str, step: Field) -> bool:
    """Whether a text is read before the field that leads to the payload."""
    index = [field.attribute for field in fields].index(attribute)
    return (
        fields[index].is_a("string") and not fields[index].is_tagged and index < fields.index(step)
    )
