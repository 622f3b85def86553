"""Decodes payloads inside bytes fields.

Law: one table lists the fields with payloads and the fields that name their kind
(`payload_fields`). If the kind is not named, a field is decoded only if its content is
unambiguous. An empty field has no payload. Content never raises.

    JoinGroup, SyncGroup, DescribeGroups, the group's record
      |-- protocol type "consumer": subscription, assignment
      |     `-- protocol name "sticky", "cooperative-sticky", "stream": a subscription's user data
      `-- protocol type "connect": worker metadata, assignment
    Envelope
      |-- principal, version in front
      `-- a whole request

Old versions of JoinGroup responses and of SyncGroup do not name the protocol type (KIP-559): there
it follows from the protocol's name, if only one type uses that, otherwise from the content.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from ..primitives import DEFAULT_LIMITS, Limits, Message, Structure
from .fields import fields_at
from .json_form import Json
from .kinds import read_payload, recognise
from .payload import Payload, decoded_name, json_name
from .payload_fields import (
    ASSIGNMENT,
    METADATA,
    PROTOCOL_TYPE,
    USER_DATA,
    PayloadField,
    PayloadFields,
    payload_fields_of,
)


class Found(NamedTuple):
    """A payload with its struct, its attribute, and its path in the JSON."""

    owner: Structure
    attribute: str
    json_steps: tuple[str | int, ...]
    payload: Payload


class Carried(NamedTuple):
    """A bytes field that is not empty, and what the message says about it.

    owner, attribute: the struct and field. path, json_steps: the path in Python's and in JSON's
    names. field: facts about such fields. protocol_type, name: as in the message, or None. The kind
    of the bytes depends only on field, protocol_type, name and the bytes.
    """

    owner: Structure
    attribute: str
    path: str
    json_steps: tuple[str | int, ...]
    field: PayloadField
    protocol_type: Any
    name: Any
    value: bytes


class _Field(NamedTuple):
    """A bytes field with the structs on its path, the message first."""

    owners: tuple[Structure, ...]
    path: str
    json_steps: tuple[str | int, ...]
    value: Any


def embedded_payloads(
    message: Message,
    version: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    payload_fields: PayloadFields | None = None,
) -> list[Payload]:
    """Decode the payloads in the bytes fields of a message, in wire order.

    version: the version of the message; fields of other versions are ignored. A field that is
    empty, of an unknown protocol type, or unrecognised, has no payload. payload_fields: those of
    each message, if they are not those of the message's package.
    """
    found = walk_payloads(message, version, limits=limits, payload_fields=payload_fields)
    return [each.payload for each in found]


def walk_payloads(
    message: Message,
    version: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    payload_fields: PayloadFields | None = None,
) -> Iterator[Found]:
    """Decode as `embedded_payloads` does; yield each payload with its field."""
    for carried in carried_bytes(message, version, payload_fields):
        payload = payload_of(carried, limits)
        if payload is not None:
            yield Found(carried.owner, carried.attribute, carried.json_steps, payload)


def carried_bytes(
    message: Message, version: int, payload_fields: PayloadFields | None = None
) -> Iterator[Carried]:
    """Find the fields of a message that may hold payloads, in wire order."""
    cls: Any = type(message)
    for field in (
        payload_fields_of(cls) if payload_fields is None else payload_fields.get(cls.__name__, ())
    ):
        for owners, path, json_steps, value in _fields(message, field.steps, (), "", ()):
            if value:
                yield Carried(
                    owners[-1],
                    field.steps[-1],
                    path,
                    json_steps,
                    field,
                    _said(owners, field.protocol_type, version),
                    _said(owners, field.protocol_name, version),
                    value,
                )


def add_payloads(
    made: dict[str, Json],
    message: Message,
    version: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    secrets: bool = True,
    payload_fields: PayloadFields | None = None,
) -> None:
    """Add the decoded payloads to a message's JSON object, as fields named `<field>Decoded`.

    secrets: whether secrets in them are shown.
    """
    for found in walk_payloads(message, version, limits=limits, payload_fields=payload_fields):
        node: Any = made
        for step in found.json_steps[:-1]:
            node = node[step]
        node[decoded_name(found.owner, found.attribute)] = found.payload.to_json(secrets=secrets)


def _fields(
    struct: Structure,
    steps: tuple[str, ...],
    owners: tuple[Structure, ...],
    path: str,
    json_steps: tuple[str | int, ...],
) -> Iterator[_Field]:
    attribute, *rest = steps
    cls: Any = type(struct)  # mypy does not see that it is hashable
    value = getattr(struct, attribute)
    owners = (*owners, struct)
    path = f"{path}.{attribute}" if path else attribute
    json_steps = (*json_steps, json_name(cls, attribute))
    if not rest:
        yield _Field(owners, path, json_steps, value)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _fields(item, tuple(rest), owners, f"{path}[{i}]", (*json_steps, i))
    elif value is not None:
        yield from _fields(value, tuple(rest), owners, path, json_steps)


def payload_of(carried: Carried, limits: Limits = DEFAULT_LIMITS) -> Payload | None:
    """Decode a field; None if its kind is unknown."""
    kind = _kind(carried, limits)
    if kind is None:
        return None
    own = carried.field.own
    payload = read_payload(carried.path, kind, carried.value, limits, own)
    if own is not None:
        return payload
    inner = _inner(payload, carried.name, limits)
    return payload if inner is None else payload._replace(inner=inner)


def _kind(carried: Carried, limits: Limits) -> str | None:
    kinds = carried.field.kinds
    if not carried.field.protocol_type:
        return next(iter(kinds.values()))
    protocol_type = carried.protocol_type
    if carried.field.own is not None:
        return None if protocol_type is None else kinds.get(protocol_type)
    if protocol_type is None and carried.name is not None:
        protocol_type = PROTOCOL_TYPE.get(carried.name)
    if protocol_type is None:
        return recognise(kinds.values(), carried.value, limits)
    return kinds.get(protocol_type)


def _said(owners: tuple[Structure, ...], attribute: str, version: int) -> Any:
    """Read an attribute of the struct on the path that has it in that version; None for ""."""
    if not attribute:
        return None
    at = _who_says(tuple([type(owner) for owner in owners]), attribute, version)
    value = None if at is None else getattr(owners[at], attribute)
    return None if value == "" else value


@lru_cache(1 << 10)
def _who_says(owners: tuple[type[Structure], ...], attribute: str, version: int) -> int | None:
    for at, owner in enumerate(owners):
        if any(field.attribute == attribute for field in fields_at(owner, version)):
            return at
    return None


def _inner(payload: Payload, name: str | None, limits: Limits) -> Payload | None:
    if payload.kind == METADATA["consumer"]:
        attribute, kind = "user_data", USER_DATA.get(name or "")
    elif payload.kind == METADATA["connect"]:
        attribute, kind = "allocation", ASSIGNMENT["connect"]
    else:
        return None
    data = getattr(payload.value, attribute, None)
    if not data or kind is None:
        return None
    return read_payload(f"{payload.path}.{attribute}", kind, data, limits)
