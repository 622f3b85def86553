"""Decodes payloads inside bytes fields.

One table lists the fields with payloads and the fields that name their kind
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

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from ..primitives import DEFAULT_LIMITS, Limits, Message, Structure
from .json_form import Json
from .kinds import read_payload, recognise
from .payload import Payload, decoded_name
from .payload_fields import (
    ASSIGNMENT,
    METADATA,
    USER_DATA,
    PayloadField,
    PayloadFields,
    kinds_of,
    on_path,
    payload_fields_of,
    who_says,
)

MAX_CACHED: Final = 1 << 12
"""Payloads whose text is cached."""

MAX_CACHED_BYTES: Final = 1 << 12
"""The largest payload whose text is cached."""


class Found(NamedTuple):
    """A payload with its struct, its attribute, and its path in the JSON."""

    owner: Structure
    attribute: str
    json_steps: tuple[str | int, ...]
    payload: Payload


class Carried(NamedTuple):
    """A bytes field that is not empty, and what the message says about it.

    owner, attribute: the struct and field. path: its path in Python's names; indices: those in it.
    field: facts about such fields. protocol_type, name: as in the message, or None. The kind of the
    bytes depends only on field, protocol_type, name and the bytes.
    """

    owner: Structure
    attribute: str
    path: str
    indices: tuple[int, ...]
    field: PayloadField
    protocol_type: Any
    name: Any
    value: bytes


_Step: TypeAlias = tuple[tuple[Structure, ...], str, tuple[int, ...], Any]
"""A field on a path: the structs above it, the message first; the path to it; the indices in that;
its value, which is not empty. A plain tuple, since there is one for each element of an array.
"""


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
    payloads = walk_payloads(message, version, limits=limits, payload_fields=payload_fields)
    return [each.payload for each in payloads]


def walk_payloads(
    message: Message,
    version: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    payload_fields: PayloadFields | None = None,
) -> Iterator[Found]:
    """Decode as `embedded_payloads` does; yield each payload with its field."""
    cls: Any = type(message)  # mypy does not see that it is hashable
    for carried in carried_bytes(message, version, payload_fields):
        payload = payload_of(carried, limits)
        if payload is not None:
            json_steps = _json_steps(cls, carried.field.steps, carried.indices)
            yield Found(carried.owner, carried.attribute, json_steps, payload)


def carried_bytes(
    message: Message, version: int, payload_fields: PayloadFields | None = None
) -> Iterator[Carried]:
    """Find the fields of a message that may hold payloads, in wire order."""
    cls: Any = type(message)
    for field in (
        payload_fields_of(cls) if payload_fields is None else payload_fields.get(cls.__name__, ())
    ):
        steps, by_type, by_name = field.steps, field.protocol_type, field.protocol_name
        first = getattr(message, steps[0])
        if not first:
            continue
        type_at = who_says(cls, steps, by_type, version)
        name_at = who_says(cls, steps, by_name, version)
        carried: Iterable[_Step] = [((message,), steps[0], (), first)]
        for step in steps[1:]:
            carried = _inside(carried, step)
        for owners, path, indices, value in carried:
            protocol_type = None if type_at is None else getattr(owners[type_at], by_type)
            name = None if name_at is None else getattr(owners[name_at], by_name)
            yield Carried(
                owners[-1],
                steps[-1],
                path,
                indices,
                field,
                None if protocol_type == "" else protocol_type,
                None if name == "" else name,
                value,
            )


def add_payloads(
    obj: dict[str, Json],
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
    for payload in walk_payloads(message, version, limits=limits, payload_fields=payload_fields):
        node: Any = obj
        for step in payload.json_steps[:-1]:
            node = node[step]
        node[decoded_name(payload.owner, payload.attribute)] = payload.payload.to_json(
            secrets=secrets
        )


def _inside(steps: Iterable[_Step], attribute: str) -> Iterator[_Step]:
    """Go one step further, into each element of arrays, leaving out what is empty."""
    for owners, path, indices, value in steps:
        if isinstance(value, list):
            for i, item in enumerate(value):
                inner = getattr(item, attribute)
                if inner:
                    yield (*owners, item), f"{path}[{i}].{attribute}", (*indices, i), inner
        else:
            inner = getattr(value, attribute)
            if inner:
                yield (*owners, value), f"{path}.{attribute}", indices, inner


def _json_steps(
    cls: Any, steps: tuple[str, ...], indices: tuple[int, ...]
) -> tuple[str | int, ...]:
    named: list[str | int] = []
    rest = iter(indices)
    for field in on_path(cls, steps):
        named.append(field.json_name)
        if field.is_array:
            named.append(next(rest))
    return tuple(named)


def payload_of(carried: Carried, limits: Limits = DEFAULT_LIMITS) -> Payload | None:
    """Decode a field; None if its kind is unknown."""
    kinds = kinds_of(carried.field, carried.protocol_type, carried.name)
    return payload_of_kinds(kinds, carried.field, carried.name, carried.path, carried.value, limits)


def payload_of_kinds(
    kinds: tuple[str, ...],
    field: PayloadField,
    name: str | None,
    path: str,
    value: bytes,
    limits: Limits = DEFAULT_LIMITS,
) -> Payload | None:
    """Decode bytes that may be of some kinds; None if they are of none. name: of the protocol."""
    own = field.own
    if not kinds:
        return None
    if len(kinds) > 1:
        payload = recognise(path, kinds, value, limits)
    else:
        payload = read_payload(path, kinds[0], value, limits, own)
    if own is not None or payload is None:
        return payload
    inner = _inner(payload, name, limits)
    return payload if inner is None else payload._replace(inner=inner)


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


class DecodedPayloadTexts:
    """Writes the payloads of decoded messages as JSON text; cached.

    Members of a group send the same, and get in responses what was in requests. secrets: whether
    secrets are shown. texts: by kinds, protocol name and bytes. kinds: by what decides about them.
    """

    def __init__(self, secrets: bool) -> None:
        self.secrets = secrets
        self.texts: dict[tuple[Any, ...], str | None] = {}
        self.kinds: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def text_of(self, cls: type[Structure], carried: Carried) -> str | None:
        """Write the payload of a field of a message; None if it has none."""
        field, data = carried.field, carried.value
        kinds = kinds_of(field, carried.protocol_type, carried.name)
        key: tuple[Any, ...] = (kinds, carried.name, data)
        if field.own is not None:  # another package may have kinds with the same names
            key = (cls, field.steps, *key)
        cached = self.texts.get(key, "")
        if cached != "":
            return cached
        payload = payload_of_kinds(kinds, field, carried.name, carried.path, data)
        text = None if payload is None else payload.to_json_text(secrets=self.secrets)
        return self.keep(key, data, text)

    def keep(self, key: tuple[Any, ...], data: bytes, text: str | None) -> str | None:
        """Cache the text of a payload, and return it."""
        if len(data) <= MAX_CACHED_BYTES:
            if len(self.texts) == MAX_CACHED:
                self.texts.clear()
            self.texts[key] = text
        return text
