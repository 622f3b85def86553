"""Lists the bytes fields that hold payloads, for Kafka's messages and for those of other packages.

Kafka's are listed in `PLACES`. A package lists its own in a module `payloads` of its own,
beside the generated ones; they are checked when the package is first used.

    # mine/messages/payloads.py
    PAYLOADS = {"PutRequest.entries.value": Embedded("Document")}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import Truncated, UnknownApiKey, UnsupportedVersion
from ..primitives import Limits, MessageIndex, Structure
from .fields import Field, all_fields, fields_at
from .kinds import REQUEST, Kind
from .packages import KAFKA, Package, package_of
from .versioned import PREFIX, Reading, decode_at

METADATA: Final = {"consumer": "ConsumerProtocolSubscription", "connect": "ConnectWorkerMetadata"}
"""Metadata of a joining member: protocol type -> kind."""

ASSIGNMENT: Final = {"consumer": "ConsumerProtocolAssignment", "connect": "ConnectAssignment"}
"""Assignment of a member: protocol type -> kind."""

PROTOCOL_TYPE: Final = {
    "range": "consumer",
    "roundrobin": "consumer",
    "sticky": "consumer",
    "cooperative-sticky": "consumer",
    "stream": "consumer",
    "compatible": "connect",
    "sessioned": "connect",
}
"""Names of protocols that only one protocol type uses; Connect's eager "default" is ambiguous."""

USER_DATA: Final = {
    "sticky": "StickyUserData",
    "cooperative-sticky": "CooperativeStickyUserData",
    "stream": "SubscriptionInfoData",
}
"""User data of a subscription: protocol name -> kind."""


class PayloadField(NamedTuple):
    """A field that holds payloads.

    steps: the path of attributes from the message, through the elements of arrays. kinds: protocol
    type -> kind; without an attribute for the protocol type there is one kind. protocol_type,
    protocol_name: the attributes with those, of any struct on the path. own: the kinds of a package
    that is not kafkawire's.
    """

    steps: tuple[str, ...]
    kinds: Mapping[Any, str]
    protocol_type: str = ""
    protocol_name: str = ""
    own: Mapping[str, Kind] | None = None


PAYLOAD_FIELDS: Final[dict[str, tuple[PayloadField, ...]]] = {
    "JoinGroupRequest": (
        PayloadField(("protocols", "metadata"), METADATA, "protocol_type", "name"),
    ),
    "JoinGroupResponse": (
        PayloadField(("members", "metadata"), METADATA, "protocol_type", "protocol_name"),
    ),
    "SyncGroupRequest": (
        PayloadField(("assignments", "assignment"), ASSIGNMENT, "protocol_type", "protocol_name"),
    ),
    "SyncGroupResponse": (
        PayloadField(("assignment",), ASSIGNMENT, "protocol_type", "protocol_name"),
    ),
    "DescribeGroupsResponse": (
        PayloadField(
            ("groups", "members", "member_metadata"), METADATA, "protocol_type", "protocol_data"
        ),
        PayloadField(
            ("groups", "members", "member_assignment"), ASSIGNMENT, "protocol_type", "protocol_data"
        ),
    ),
    "EnvelopeRequest": (
        PayloadField(("request_data",), {"": REQUEST}),
        PayloadField(("request_principal",), {"": "DefaultPrincipalData"}),
    ),
    "GroupMetadataValue": (
        PayloadField(("members", "subscription"), METADATA, "protocol_type", "protocol"),
        PayloadField(("members", "assignment"), ASSIGNMENT, "protocol_type", "protocol"),
    ),
    "ConsumerGroupMemberMetadataValue": (
        PayloadField(
            ("classic_member_metadata", "supported_protocols", "metadata"),
            {"": METADATA["consumer"]},
            protocol_name="name",
        ),
    ),
}
"""Message -> its fields with payloads."""

PayloadFields: TypeAlias = Mapping[str, tuple[PayloadField, ...]]
"""Message -> its fields with payloads."""


class Embedded(NamedTuple):
    """What a bytes field holds: another message of its package.

    message: its name, or, where an attribute `by` of a struct on the field's path says which, names
    by the value of that. version: of the message; None: an int16 in front of it is its version.
    """

    message: str | Mapping[Any, str]
    by: str = ""
    version: int | None = None


def declared_payload_fields(package: Package, payloads: Mapping[str, Embedded]) -> PayloadFields:
    """Make fields of what a package declares: `{"PutRequest.entries.value": Embedded(...)}`.

    A path begins with the name of a message; its steps are attributes, through arrays and structs.
    Raises ValueError for a path or a message that does not exist.
    """
    by_message: dict[str, tuple[PayloadField, ...]] = {}
    for path, embedded in payloads.items():
        name, *steps = path.split(".")
        try:
            by_message[name] = (
                *by_message.get(name, ()),
                _payload_field(package.index, name, steps, embedded),
            )
        except (ValueError, UnknownApiKey) as error:
            raise ValueError(f"payloads of {package.name}: {path}: {error}") from None
    return by_message


def _payload_field(
    index: MessageIndex, name: str, steps: list[str], embedded: Embedded
) -> PayloadField:
    owners = _owners(index.load(name), steps)
    names = {"": embedded.message} if isinstance(embedded.message, str) else embedded.message
    if bool(embedded.by) == isinstance(embedded.message, str):
        raise ValueError("expected a message, or messages by the values of an attribute")
    if embedded.by and not any(_has(owner, embedded.by) for owner in owners):
        raise ValueError(f"no struct on the path has {embedded.by!r}")
    kinds = {
        kind: Kind(
            partial(_read_declared, index, kind, embedded.version),
            slice(0, PREFIX) if embedded.version is None else None,
        )
        for kind in names.values()
    }
    for kind in kinds:
        info = index.get(kind)
        if embedded.version is not None and not info.first <= embedded.version <= info.last:
            raise ValueError(f"{kind} has versions {info.first}-{info.last}")
    return PayloadField(tuple(steps), dict(names), embedded.by, own=kinds)


def _owners(cls: Any, steps: list[str]) -> list[Any]:
    """List the classes on a path; ValueError unless it ends in a bytes field."""
    owners = [cls]
    for at, step in enumerate(steps):
        named = [field for field in all_fields(owners[-1]) if field.attribute == step]
        if not named:
            raise ValueError(f"{owners[-1].__name__} has no field {step!r}")
        if at == len(steps) - 1 and named[0].is_a("bytes"):
            return owners
        if named[0].struct is None or at == len(steps) - 1:
            break
        owners.append(named[0].struct)
    raise ValueError("does not end in a bytes field")


def _has(cls: Any, attribute: str) -> bool:
    fields = [field for field in all_fields(cls) if field.attribute == attribute]
    return any(field.struct is None and not field.is_array for field in fields)


def _read_declared(
    index: MessageIndex, name: str, version: int | None, data: bytes, limits: Limits
) -> Reading:
    start = 0
    if version is None:
        if len(data) < PREFIX:
            raise Truncated("the data ends inside the version", name, len(data))
        start, version = PREFIX, int.from_bytes(data[:PREFIX], "big", signed=True)
    info = index.get(name)
    if not info.first <= version <= info.last:
        raise UnsupportedVersion(f"{name} has versions {info.first}-{info.last}, not {version}")
    return Reading(version, version, decode_at(index.load(name), data, start, version, limits))


_declared: Final[dict[Package, PayloadFields]] = {KAFKA: PAYLOAD_FIELDS}


def payload_fields_in(package: Package) -> PayloadFields:
    """Return the fields with payloads of a package, which its module `payloads` lists, if any.

    Raises ValueError for a list that does not fit the package.
    """
    declared = _declared.get(package)
    if declared is None:
        name = f"{package.name}.payloads"
        listed: Any = {}
        if find_spec(name) is not None:
            listed = getattr(import_module(name), "PAYLOADS", {})
        declared = _declared[package] = declared_payload_fields(package, listed)
    return declared


@cache
def payload_fields_of(cls: type[Structure]) -> tuple[PayloadField, ...]:
    """Return the fields with payloads of a message's class."""
    package = package_of(cls)
    return () if package is None else payload_fields_in(package).get(cls.__name__, ())


# -- on the way to a field


@lru_cache(1 << 10)
def on_path(cls: Any, steps: tuple[str, ...]) -> tuple[Field, ...]:
    """List the fields on a path."""
    fields = []
    for step in steps:
        fields.append(next(field for field in all_fields(cls) if field.attribute == step))
        cls = fields[-1].struct
    return tuple(fields)


@lru_cache(1 << 10)
def who_says(cls: Any, steps: tuple[str, ...], attribute: str, version: int) -> int | None:
    """Find the struct on a path that has an attribute in a version: how deep, 0 for the message."""
    if not attribute:
        return None
    owners = [cls, *[field.struct for field in on_path(cls, steps[:-1])]]
    for at, owner in enumerate(owners):
        assert owner is not None
        if any(field.attribute == attribute for field in fields_at(owner, version)):
            return at
    return None


class PayloadSteps(NamedTuple):
    """The way to a field with payloads at a version of its message.

    owners: the message's class and those of the structs on the way. fields: one of each owner; the
    last one is the field. type_at, name_at: which owner has the protocol's type and name, if any.
    """

    owners: tuple[type[Structure], ...]
    fields: tuple[Field, ...]
    type_at: int | None
    name_at: int | None


def payload_steps(cls: type[Structure], field: PayloadField, version: int) -> PayloadSteps | None:
    """Find the way to a field with payloads; None if messages do not have it at that version."""
    owner: Any = cls
    fields = on_path(owner, field.steps)
    owners = (owner, *[step.struct for step in fields[:-1]])
    if any(step not in fields_at(of, version) for of, step in zip(owners, fields, strict=True)):
        return None
    return PayloadSteps(
        owners,
        fields,
        who_says(owner, field.steps, field.protocol_type, version),
        who_says(owner, field.steps, field.protocol_name, version),
    )


def kinds_of(field: PayloadField, protocol_type: Any, name: Any) -> tuple[str, ...]:
    """List the kinds that a field may be of: several if the message does not say which."""
    kinds = field.kinds
    if not field.protocol_type:
        return (next(iter(kinds.values())),)
    if protocol_type is None:
        if field.own is not None:
            return ()
        if name is not None:
            protocol_type = PROTOCOL_TYPE.get(name)
        if protocol_type is None:
            return tuple(kinds.values())
    kind = kinds.get(protocol_type)
    return () if kind is None else (kind,)
