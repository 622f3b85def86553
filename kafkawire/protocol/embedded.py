"""Payloads carried in bytes fields, decoded as what they are.

Law: one table says which fields hold them, and what says of which kind they are. Where nothing says
it, a field is decoded only if its content leaves no doubt. An empty field holds nothing. Content
never raises.

    JoinGroup, SyncGroup, DescribeGroups, the group's record
      |-- protocol type "consumer": subscription, assignment
      |     `-- protocol name "sticky", "cooperative-sticky", "stream": a subscription's user data
      `-- protocol type "connect": worker metadata, assignment
    Envelope
      |-- principal, version in front
      `-- a whole request

Old versions of JoinGroup responses and of SyncGroup do not name the protocol type (KIP-559): there
the protocol's name tells, where it is one that only one type uses, and otherwise the content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..primitives import DEFAULT_LIMITS, Limits, Message, Structure
from .json_form import Json
from .kinds import REQUEST, read_payload, recognise
from .payload import Payload, decoded_name, json_name

METADATA: Final = {"consumer": "ConsumerProtocolSubscription", "connect": "ConnectWorkerMetadata"}
"""What a member says when it joins: protocol type -> kind."""

ASSIGNMENT: Final = {"consumer": "ConsumerProtocolAssignment", "connect": "ConnectAssignment"}
"""What a member is told to do: protocol type -> kind."""

PROTOCOL_TYPE: Final = {
    "range": "consumer",
    "roundrobin": "consumer",
    "sticky": "consumer",
    "cooperative-sticky": "consumer",
    "stream": "consumer",
    "compatible": "connect",
    "sessioned": "connect",
}
"""Names of protocols that only one protocol type uses; Connect's eager "default" is anybody's."""

USER_DATA: Final = {
    "sticky": "StickyUserData",
    "cooperative-sticky": "CooperativeStickyUserData",
    "stream": "SubscriptionInfoData",
}
"""What stands in a subscription's user data: protocol name -> kind."""


class Place(NamedTuple):
    """A field that holds payloads.

    steps: the attributes that lead to it from the message; arrays are walked.
    kinds: protocol type -> kind; where there is but one kind, nothing needs to be asked.
    protocol_type, protocol_name: the attributes that say them, of any struct on the way.
    """

    steps: tuple[str, ...]
    kinds: Mapping[str, str]
    protocol_type: str = ""
    protocol_name: str = ""


PLACES: Final[dict[str, tuple[Place, ...]]] = {
    "JoinGroupRequest": (Place(("protocols", "metadata"), METADATA, "protocol_type", "name"),),
    "JoinGroupResponse": (
        Place(("members", "metadata"), METADATA, "protocol_type", "protocol_name"),
    ),
    "SyncGroupRequest": (
        Place(("assignments", "assignment"), ASSIGNMENT, "protocol_type", "protocol_name"),
    ),
    "SyncGroupResponse": (Place(("assignment",), ASSIGNMENT, "protocol_type", "protocol_name"),),
    "DescribeGroupsResponse": (
        Place(("groups", "members", "member_metadata"), METADATA, "protocol_type", "protocol_data"),
        Place(
            ("groups", "members", "member_assignment"), ASSIGNMENT, "protocol_type", "protocol_data"
        ),
    ),
    "EnvelopeRequest": (
        Place(("request_data",), {"": REQUEST}),
        Place(("request_principal",), {"": "DefaultPrincipalData"}),
    ),
    "GroupMetadataValue": (
        Place(("members", "subscription"), METADATA, "protocol_type", "protocol"),
        Place(("members", "assignment"), ASSIGNMENT, "protocol_type", "protocol"),
    ),
    "ConsumerGroupMemberMetadataValue": (
        Place(
            ("classic_member_metadata", "supported_protocols", "metadata"),
            {"": METADATA["consumer"]},
            protocol_name="name",
        ),
    ),
}
"""Message -> the fields of it that hold payloads."""


class Found(NamedTuple):
    """A payload where it was found: in which struct and attribute, and by which way in the JSON."""

    owner: Structure
    attribute: str
    json_steps: tuple[str | int, ...]
    payload: Payload


class Carried(NamedTuple):
    """A bytes field that holds something, and what is said of it.

    owner, attribute: the struct and field. path, json_steps: the way there, as Python and as JSON
    name it. place: what is known of such fields. protocol_type, name: as the message says them, or
    None. What the bytes are depends on place, protocol_type, name and the bytes, and on no more.
    """

    owner: Structure
    attribute: str
    path: str
    json_steps: tuple[str | int, ...]
    place: Place
    protocol_type: str | None
    name: str | None
    value: bytes


class _Field(NamedTuple):
    """A bytes field with the structs that lead to it, the message first."""

    owners: tuple[Structure, ...]
    path: str
    json_steps: tuple[str | int, ...]
    value: Any


def embedded_payloads(
    message: Message, version: int, *, limits: Limits = DEFAULT_LIMITS
) -> list[Payload]:
    """Decode the payloads that a message carries in bytes fields, in wire order.

    version: the version the message is written in; a field that it lacks says nothing.
    A field that is empty, of a protocol type that is not known, or of none and not recognised,
    gives no payload.
    """
    return [found.payload for found in walk_payloads(message, version, limits=limits)]


def walk_payloads(
    message: Message, version: int, *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Found]:
    """Decode as `embedded_payloads` does, and say where each payload was found."""
    for carried in carried_bytes(message, version):
        payload = payload_of(carried, limits)
        if payload is not None:
            yield Found(carried.owner, carried.attribute, carried.json_steps, payload)


def carried_bytes(message: Message, version: int) -> Iterator[Carried]:
    """Find the fields of a message that may hold payloads, in wire order."""
    for place in PLACES.get(type(message).__name__, ()):
        for owners, path, json_steps, value in _fields(message, place.steps, (), "", ()):
            if value:
                yield Carried(
                    owners[-1],
                    place.steps[-1],
                    path,
                    json_steps,
                    place,
                    _said(owners, place.protocol_type, version),
                    _said(owners, place.protocol_name, version),
                    value,
                )


def add_payloads(
    made: dict[str, Json],
    message: Message,
    version: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    secrets: bool = True,
) -> None:
    """Add the decoded payloads to a message's JSON object, as fields named `<field>Decoded`.

    secrets: whether secrets in them are shown.
    """
    for found in walk_payloads(message, version, limits=limits):
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
    value = getattr(struct, attribute)
    owners = (*owners, struct)
    path = f"{path}.{attribute}" if path else attribute
    json_steps = (*json_steps, json_name(struct, attribute))
    if not rest:
        yield _Field(owners, path, json_steps, value)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _fields(item, tuple(rest), owners, f"{path}[{i}]", (*json_steps, i))
    elif value is not None:
        yield from _fields(value, tuple(rest), owners, path, json_steps)


def payload_of(carried: Carried, limits: Limits = DEFAULT_LIMITS) -> Payload | None:
    """Decode what a field carries; None where nothing says what it is."""
    kind = _kind(carried, limits)
    if kind is None:
        return None
    payload = read_payload(carried.path, kind, carried.value, limits)
    inner = _inner(payload, carried.name, limits)
    return payload if inner is None else payload._replace(inner=inner)


def _kind(carried: Carried, limits: Limits) -> str | None:
    kinds = carried.place.kinds
    if len(kinds) == 1:
        return next(iter(kinds.values()))
    protocol_type = carried.protocol_type
    if protocol_type is None and carried.name is not None:
        protocol_type = PROTOCOL_TYPE.get(carried.name)
    if protocol_type is None:
        return recognise(kinds.values(), carried.value, limits)
    return kinds.get(protocol_type)


def _said(owners: tuple[Structure, ...], attribute: str, version: int) -> str | None:
    """Read an attribute of the struct on the way that has it in that version; None for ""."""
    at = _who_says(tuple([type(owner) for owner in owners]), attribute, version)
    return None if at is None else getattr(owners[at], attribute) or None


@lru_cache(1 << 10)
def _who_says(owners: tuple[type[Structure], ...], attribute: str, version: int) -> int | None:
    for at, owner in enumerate(owners):
        for row in owner.__fields__:
            if row.attribute == attribute and row.first <= version <= row.last:
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
