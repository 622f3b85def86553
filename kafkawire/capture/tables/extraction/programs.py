"""Describes where bodies have what tables need, to read them without the decoder.

What is read by a program equals what `body_facts.body_facts_of` and `decoded_partitions` take
from the decoded message; a message has a program only if every byte of it is a field in wire order
(no structs outside arrays), and what identifies partitions comes before them.

    class, version --once--> Program: one step per field; adjacent fields of fixed size that are
                             not needed are one step
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ....messages.fetch_request import FetchPartition
from ....primitives import Structure
from ....protocol.fields import SIZES, Field, all_fields, fields_at
from ...exchanges.topic_ids import topic_name_fields
from .blocks import Program
from .entities import SPECIAL, recorder_of
from .partition_fields import GROUP_ID
from .partition_paths import REQUEST_FIELDS, REQUESTS, RESPONSE_FIELDS, RESPONSES, PartitionPath
from .record_batches import RECORDS_MESSAGES
from .steps import (
    AT,
    FORGOTTEN,
    GROUP,
    HEADER,
    ID,
    INTEGER,
    INTEGERS,
    ITEM_KINDS,
    ITEMS,
    NAME,
    NO_ROLE,
    NO_STRUCTS,
    NUMBER,
    NUMBERS,
    PARTITIONS,
    RECORDS,
    RECORDS_AT,
    ROLES,
    SCALAR,
    SESSION,
    SKIP,
    STRUCTS,
    TEXT,
    VALUE_KINDS,
)

if TYPE_CHECKING:
    from .blocks import Step


class _Complex(Exception):
    """The struct has no program."""


class _Message(NamedTuple):
    """What the structs of a message have in common."""

    version: int
    flexible: bool
    is_request: bool
    has_records: bool

    @property
    def columns(self) -> dict[str, str]:
        """Attribute of a partition struct -> its column."""
        return REQUEST_FIELDS if self.is_request else RESPONSE_FIELDS


class _Struct(NamedTuple):
    """A struct on the way to partitions; path: None outside of it, depth: attributes of it done.

    names: the fields that name the topic of the struct. maps_topic_id: whether it has the id, too.
    """

    cls: type[Structure]
    message: _Message
    path: PartitionPath | None
    depth: int
    names: tuple[str, ...]
    maps_topic_id: bool

    @property
    def is_topic(self) -> bool:
        """Whether the path's partitions are in it."""
        return self.path is not None and self.depth == len(self.path.attributes)

    @property
    def is_partition(self) -> bool:
        return self.path is not None and self.depth > len(self.path.attributes)

    def leads(self, attribute: str) -> bool:
        """Whether the path continues in a field."""
        path = self.path
        if path is None or self.is_partition:
            return False
        return attribute == (path.partitions if self.is_topic else path.attributes[self.depth])

    def role_of(self, field: Field) -> int:
        """Return what a field identifies."""
        owner: Any = self.cls
        recorder = recorder_of(owner.__name__, field)
        if recorder is None:
            return NO_ROLE
        role, kind = ROLES[recorder]
        if field.element != kind or (field.is_array and kind != "string"):
            raise _Complex
        return role


def program_of(
    cls: type[Structure], api_key: int, is_request: bool, version: int, flexible: bool
) -> Program | None:
    """Make the program of a message; None if it has to be decoded."""
    direction = "request" if is_request else "response"
    paths = (REQUESTS if is_request else RESPONSES).get(api_key, ())
    here = {field.attribute for field in fields_at(cls, version)}
    paths = tuple([path for path in paths if path.attributes[0] in here])
    if (api_key, direction) in SPECIAL or len(paths) > 1:  # rows are in the order of the paths
        return None
    has_records = (api_key, direction) in RECORDS_MESSAGES
    message = _Message(version, flexible, is_request, has_records)
    try:
        struct = _struct(cls, message, paths[0] if paths else None, 0)
        return _program(struct, _steps(struct))
    except _Complex:
        return None


def _struct(
    cls: type[Structure], message: _Message, path: PartitionPath | None, depth: int
) -> _Struct:
    """Describe a struct. path: to partitions, `depth` attributes of it done."""
    here = fields_at(cls, message.version)
    has_id = any(field.attribute == "topic_id" for field in here)
    named = topic_name_fields(cls, message.version) if has_id else []
    if path is not None and depth == len(path.attributes) and path.name not in named:
        named += [field.attribute for field in here if field.attribute == path.name]
    if len(named) > 1:
        raise _Complex
    return _Struct(cls, message, path, depth, tuple(named), has_id and bool(named))


def _steps(struct: _Struct) -> tuple[Step, ...]:
    """Make the steps of a struct."""
    steps: list[Step] = []
    version, flexible = struct.message.version, struct.message.flexible
    for field in fields_at(struct.cls, version):
        if field.is_tagged:
            if not field.is_tagged_at(version):
                raise _Complex
            continue
        if field.is_compact_at(version, flexible) != flexible:
            raise _Complex
        step = _session_step(struct, field) or _step(struct, field)
        if step[0] == SKIP and steps and steps[-1][0] == SKIP:
            step = (SKIP, steps.pop()[1] + step[1], 0, False, None, NO_ROLE)
        steps.append(step)
    _check_order(steps)
    return tuple(steps)


def _program(struct: _Struct, steps: tuple[Step, ...]) -> Program:
    defaults = _defaults(struct.cls, struct.message) if struct.is_partition else ()
    return Program(struct.message.flexible, steps, defaults, struct.maps_topic_id)


def _check_order(steps: list[Step]) -> None:
    """Refuse a struct that has a topic after its partitions, or a partition after its records."""
    seen = False
    for op, *_, inner, _ in steps:
        if op in (GROUP, NAME, ID, NUMBER) and seen:
            raise _Complex
        seen = seen or inner is not None or op in (NUMBERS, RECORDS)


def _session_step(struct: _Struct, field: Field) -> Step | None:
    owner: Any = struct.cls
    place = owner.__name__, field.attribute
    if place == FORGOTTEN:
        null = field.is_nullable_at(struct.message.version)
        return NO_STRUCTS, 0, 0, null, None, NO_ROLE
    index = SESSION.get(place)
    if index is None:
        return None
    return HEADER, SIZES[field.element], index, False, None, struct.role_of(field)


def _step(struct: _Struct, field: Field) -> Step:
    null = field.is_nullable_at(struct.message.version)
    if field.struct is not None:
        return _structs(struct, field, null)
    role = struct.role_of(field)
    if field.is_array:
        return _items(struct, field, null, role)
    if struct.is_partition:
        return _of_partition(struct, field, null, role)
    name = field.attribute
    if name in struct.names:
        return NAME, 0, 0, null, None, role
    if struct.path is not None and not struct.is_topic and name == GROUP_ID.name:
        return GROUP, 0, 0, null, None, role
    return _value(field, null, role)


def _items(struct: _Struct, field: Field, null: bool, role: int) -> Step:
    """Make the step of an array of values."""
    if struct.is_topic and struct.leads(field.attribute):
        if field.element != "int32":
            raise _Complex
        return NUMBERS, 4, 0, null, None, NO_ROLE
    if field.element in ITEM_KINDS:
        return ITEM_KINDS[field.element], 0, 0, null, None, role
    return ITEMS, _size_of(field), 0, null, None, NO_ROLE


def _structs(struct: _Struct, field: Field, null: bool) -> Step:
    """Make the step of an array of structs."""
    if not field.is_array or field.struct is None:
        raise _Complex
    leads = struct.leads(field.attribute)
    path = struct.path if leads else None
    inner = _struct(field.struct, struct.message, path, struct.depth + 1)
    steps = _steps(inner)
    if not leads and not struct.message.flexible and [step[0] for step in steps] == [SKIP]:
        return ITEMS, steps[0][1], 0, null, None, NO_ROLE
    op = PARTITIONS if leads and struct.is_topic else STRUCTS
    return op, 0, 0, null, _program(inner, steps), NO_ROLE


def _of_partition(struct: _Struct, field: Field, null: bool, role: int) -> Step:
    """Make the step of a field of a partition that is not an array."""
    path, message = struct.path, struct.message
    name, kind = field.attribute, field.element
    if path is not None and name == path.number:
        if kind != "int32":
            raise _Complex
        return NUMBER, 4, 0, False, None, NO_ROLE
    if name in message.columns:
        column = AT[message.columns[name]]
        if kind == "string" and role == NO_ROLE:
            return TEXT, 0, column, null, None, NO_ROLE
        if kind not in INTEGERS:
            raise _Complex
        return INTEGER, SIZES[kind], column, False, None, role
    if message.has_records and name == "records":
        return RECORDS, 0, RECORDS_AT[0], null, None, NO_ROLE
    return _value(field, null, role)


def _value(field: Field, null: bool, role: int) -> Step:
    """Make the step of a field that has no column and is not an array."""
    if field.element in VALUE_KINDS:
        return VALUE_KINDS[field.element], 0, 0, null, None, role
    if field.element == "uuid" and field.attribute == "topic_id":
        return ID, 16, 0, False, None, role
    op = SKIP if role == NO_ROLE else SCALAR
    return op, _size_of(field), 0, False, None, role


def _size_of(field: Field) -> int:
    if field.element not in SIZES:
        raise _Complex
    return SIZES[field.element]


def _defaults(cls: type[Structure], message: _Message) -> tuple[tuple[int, int | None, bool], ...]:
    """List what a partition has that is not on the wire.

    Tagged fields have their defaults; a Fetch request those of other versions, too: a later request
    of its session may be of another version.
    """
    instructions: list[tuple[int, int | None, bool]] = []
    here = fields_at(cls, message.version)
    fields = all_fields(cls) if cls is FetchPartition else here
    taken = [message.columns.get(field.attribute) for field in fields]
    for field in fields:
        column = message.columns.get(field.attribute)
        if column is None or (field in here and not field.is_tagged):
            continue
        value: Any = getattr(cls(), field.attribute)
        if taken.count(column) > 1 or not (value is None or isinstance(value, int)):
            raise _Complex
        instructions.append((AT[column], value, field in here))
    return tuple(instructions)
