"""Describes where the partitions are in bodies, to read them without the decoder.

Law: a block read by a program equals that of `decoded_partitions.block_of`; a message has a
program only if every byte of it is a field in wire order (no structs outside arrays), and what
identifies partitions comes before them.

    class, version --once--> Program: one step per field; adjacent fields of fixed size that are
                             not needed are one step
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from ....messages.fetch_request import FetchPartition
from ....primitives import Structure
from ....protocol.fields import SIZES, Field, all_fields, fields_at
from .partition_blocks import COLUMNS, Program
from .partition_fields import (
    GROUP_ID,
    REQUEST_FIELDS,
    REQUESTS,
    RESPONSE_FIELDS,
    RESPONSES,
    PartitionPath,
)
from .record_batches import RECORDS_MESSAGES

# as `partition_blocks.c` numbers them
SKIP: Final = 0
STRING: Final = 1
BYTES: Final = 2
ITEMS: Final = 3
STRINGS: Final = 4
BLOBS: Final = 5
STRUCTS: Final = 6
GROUP: Final = 7
NAME: Final = 8
ID: Final = 9
PARTITIONS: Final = 10
NUMBERS: Final = 11
NUMBER: Final = 12
INTEGER: Final = 13
TEXT: Final = 14
RECORDS: Final = 15
HEADER: Final = 16
NO_STRUCTS: Final = 17

SESSION: Final = {
    ("FetchRequest", "session_id"): 0,
    ("FetchRequest", "session_epoch"): 1,
    ("FetchResponse", "session_id"): 0,
    ("FetchResponse", "error_code"): 2,
}
"""Fields of fetch sessions (KIP-227) -> their place in the header of a block."""

FORGOTTEN: Final = "FetchRequest", "forgotten_topics_data"
"""A Fetch that removes partitions from its session is decoded."""

INTEGERS: Final = frozenset({"int8", "int16", "int32", "int64"})
ITEM_KINDS: Final = {"string": STRINGS, "bytes": BLOBS, "records": BLOBS}
VALUE_KINDS: Final = {"string": STRING, "bytes": BYTES, "records": BYTES}

NAMES: Final = (
    "request_offset",
    "request_timestamp_ms",
    "current_leader_epoch",
    "max_bytes",
    "error_code",
    "error",
    "error_message",
    "offset",
    "timestamp_ms",
    "high_watermark",
    "last_stable_offset",
    "log_start_offset",
    "preferred_read_replica",
    "leader_id",
    "leader_epoch",
    "metadata",
    "records_bytes",
    "batches",
    "records",
)
"""The columns of a block."""

AT: Final = {name: at for at, name in enumerate(NAMES)}
RECORDS_AT: Final = AT["records_bytes"], AT["batches"], AT["records"]

assert len(NAMES) == COLUMNS


Step: TypeAlias = "tuple[int, int, int, bool, Program | None]"


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


def partition_program(
    cls: type[Structure], api_key: int, is_request: bool, version: int, flexible: bool
) -> Program | None:
    """Make the program of a message; None if it has to be decoded."""
    paths = (REQUESTS if is_request else RESPONSES).get(api_key, ())
    here = {field.attribute for field in fields_at(cls, version)}
    paths = tuple([path for path in paths if path.attributes[0] in here])
    if len(paths) > 1:
        return None  # rows are in the order of the paths
    direction = "request" if is_request else "response"
    has_records = (api_key, direction) in RECORDS_MESSAGES
    message = _Message(version, flexible, is_request, has_records)
    try:
        return _program(cls, message, paths[0] if paths else None, 0)
    except _Complex:
        return None


def _program(
    cls: type[Structure], message: _Message, path: PartitionPath | None, depth: int
) -> Program:
    """Make the program of a struct. path: to partitions, `depth` attributes of it done."""
    steps: list[Step] = []
    is_partition = path is not None and depth > len(path.attributes)
    seen = False
    for field in fields_at(cls, message.version):
        if field.is_tagged:
            if not field.is_tagged_at(message.version):
                raise _Complex
            continue
        if field.is_compact_at(message.version, message.flexible) != message.flexible:
            raise _Complex
        step = _session_step(cls, field, message) or _step(field, message, path, depth)
        if step[0] in (GROUP, NAME, ID) and seen:
            raise _Complex
        seen = seen or step[4] is not None or step[0] == NUMBERS
        if step[0] == SKIP and steps and steps[-1][0] == SKIP:
            step = (SKIP, steps.pop()[1] + step[1], 0, False, None)
        steps.append(step)
    defaults = _defaults(cls, message) if is_partition else ()
    return Program(message.flexible, tuple(steps), defaults)


def _session_step(cls: type[Structure], field: Field, message: _Message) -> Step | None:
    owner: Any = cls
    place = owner.__name__, field.attribute
    if place == FORGOTTEN:
        return NO_STRUCTS, 0, 0, field.is_nullable_at(message.version), None
    at = SESSION.get(place)
    return None if at is None else (HEADER, SIZES[field.element], at, False, None)


def _step(field: Field, message: _Message, path: PartitionPath | None, depth: int) -> Step:
    null = field.is_nullable_at(message.version)
    is_topic = path is not None and depth == len(path.attributes)
    if field.struct is not None:
        if not field.is_array:
            raise _Complex
        leads = path is not None and field.attribute == (
            path.partitions if is_topic else (*path.attributes, None, None)[depth]
        )
        inner = _program(field.struct, message, path if leads else None, depth + 1)
        return PARTITIONS if leads and is_topic else STRUCTS, 0, 0, null, inner
    if field.is_array:
        if path is not None and is_topic and field.attribute == path.partitions:
            if field.element != "int32":
                raise _Complex
            return NUMBERS, 4, 0, null, None
        if field.element in ITEM_KINDS:
            return ITEM_KINDS[field.element], 0, 0, null, None
        return ITEMS, _size_of(field), 0, null, None
    if path is None:
        return _skipped(field, null)
    return _value(field, message, path, depth, null)


def _value(field: Field, message: _Message, path: PartitionPath, depth: int, null: bool) -> Step:
    """Make the step of a field on the path that is not an array."""
    name = field.attribute
    if depth < len(path.attributes):
        is_group = name == GROUP_ID.name
        return (GROUP, 0, 0, null, None) if is_group else _skipped(field, null)
    if depth > len(path.attributes):
        return _of_partition(field, message, path, null)
    if name == path.name:
        return NAME, 0, 0, null, None
    return (ID, 16, 0, False, None) if name == "topic_id" else _skipped(field, null)


def _of_partition(field: Field, message: _Message, path: PartitionPath, null: bool) -> Step:
    name, kind = field.attribute, field.element
    if name == path.number:
        if kind != "int32":
            raise _Complex
        return NUMBER, 4, 0, False, None
    if name in message.columns:
        column = AT[message.columns[name]]
        if kind == "string":
            return TEXT, 0, column, null, None
        if kind not in INTEGERS:
            raise _Complex
        return INTEGER, SIZES[kind], column, False, None
    if message.has_records and name == "records":
        return RECORDS, 0, RECORDS_AT[0], null, None
    return _skipped(field, null)


def _skipped(field: Field, null: bool) -> Step:
    if field.element in VALUE_KINDS:
        return VALUE_KINDS[field.element], 0, 0, null, None
    return SKIP, _size_of(field), 0, False, None


def _size_of(field: Field) -> int:
    if field.element not in SIZES:
        raise _Complex
    return SIZES[field.element]


def _defaults(cls: type[Structure], message: _Message) -> tuple[tuple[int, int | None, bool], ...]:
    """List what a partition has that is not on the wire.

    Tagged fields have their defaults; a Fetch request those of other versions, too: a later request
    of its session may be of another version.
    """
    made: list[tuple[int, int | None, bool]] = []
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
        made.append((AT[column], value, field in here))
    return tuple(made)
