"""Finds the fields of bodies that `writer` has to know for payloads in bytes fields.

Law: a message has roles only if wire order gives a payload's path, and its protocol before it.

    class, version --once--> class of a struct -> attribute -> role
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from ...primitives.structure import Structure
from ...protocol.embedded import PayloadSteps, payload_steps
from ...protocol.fields import Field, fields_at
from ...protocol.payload_fields import PayloadField, payload_fields_of
from .records_fields import WITHIN

# roles of steps, behind those of `records_fields`, as `writer.c` numbers them
PROTOCOL_TYPE: Final = 5
PROTOCOL_NAME: Final = 6
PAYLOAD: Final = 7
LAST_ROLE: Final = 127

Roles: TypeAlias = Mapping[type[Structure], Mapping[str, int]]
"""Class of a struct -> attribute -> role."""

_numbered: Final[list[PayloadField]] = []
"""The fields whose role is PAYLOAD, PAYLOAD + 1, and so on."""


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
    made: dict[Any, dict[str, int]] = {}
    for field in payload_fields_of(cls):
        steps = payload_steps(cls, field, version)
        if steps is None:
            continue
        wanted = _roles_of(field, steps, version)
        if wanted is None:
            return None
        for at, attribute, role in wanted:
            roles = made.setdefault(steps.owners[at], {})
            if roles.setdefault(attribute, role) != role:
                return None
    return made


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
    wanted = [(at, step.attribute, WITHIN) for at, step in enumerate(outer)]
    wanted.append((len(outer), last.attribute, role))
    for at, attribute, named in (
        (steps.type_at, field.protocol_type, PROTOCOL_TYPE),
        (steps.name_at, field.protocol_name, PROTOCOL_NAME),
    ):
        if at is None:
            continue
        if not _is_before(fields_at(steps.owners[at], version), attribute, steps.fields[at]):
            return None
        wanted.append((at, attribute, named))
    return wanted


def _is_before(fields: tuple[Field, ...], attribute: str, step: Field) -> bool:
    """Whether a text is read before the field that leads to the payload."""
    at = [field.attribute for field in fields].index(attribute)
    return fields[at].is_a("string") and not fields[at].is_tagged and at < fields.index(step)
