"""Finds the fields of a body that tables need, once for each message and version.

Law: a layout covers every byte of a body as the decoder does; where steps do not suffice (a struct
outside an array, fields whose meaning depends on another), it is not simple, and the message is
decoded.

    class, version --once--> Layout: one Step per field in wire order; adjacent fields of fixed size
                             that are not needed are one Step
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from mypy_extensions import i64

from ....primitives import Structure
from ....protocol.fields import SIZES, Field, fields_at
from ...exchanges.topic_ids import topic_name_fields
from .entities import SPECIAL, Entities, recorder_of
from .partition_fields import REQUESTS, RESPONSES, PartitionPath
from .record_batches import RECORDS_MESSAGES

SKIP: Final = 0
TEXT: Final = 1
BYTES: Final = 2
UUID: Final = 3
INT16: Final = 4
INT32: Final = 5
RECORDS: Final = 6
FIXED_ITEMS: Final = 7
TEXTS: Final = 8
BLOBS: Final = 9
STRUCTS: Final = 10
INT32_ITEMS: Final = 11

NO_ROLE: Final = 0
TOPIC: Final = 1
GROUP: Final = 2
TRANSACTIONAL_ID: Final = 3
TOPIC_ID: Final = 4
ERROR: Final = 5
THROTTLE: Final = 6
NUMBER: Final = 7
SESSION_ID: Final = 8
SESSION_EPOCH: Final = 9
FORGOTTEN: Final = 10
FETCH_ERROR: Final = 11
RECORDS_FIELD: Final = 12

ROLES: Final[dict[Callable[[Entities, Any], None], int]] = {
    Entities.topic: TOPIC,
    Entities.group: GROUP,
    Entities.transactional_id: TRANSACTIONAL_ID,
    Entities._topic_id: TOPIC_ID,
    Entities._error: ERROR,
    Entities._throttled: THROTTLE,
}
"""What adds the entity of a decoded field -> its role here."""


SESSION: Final = {
    ("FetchRequest", "session_id"): SESSION_ID,
    ("FetchRequest", "session_epoch"): SESSION_EPOCH,
    ("FetchRequest", "forgotten_topics_data"): FORGOTTEN,
    ("FetchResponse", "session_id"): SESSION_ID,
    ("FetchResponse", "error_code"): FETCH_ERROR,
}
"""Fields of fetch sessions (KIP-227); FETCH_ERROR is added to the error codes, too."""


@final
class Step:
    """A field, or several of fixed size.

    size: their size, or that of an element. is_name, is_id: whether it identifies the topic of its
    struct. is_partitions: whether it lists partitions of that topic. allows_null: whether the
    decoder is known to accept a null here.
    """

    def __init__(self, op: int, size: int, role: int, inner: Layout | None) -> None:
        self.op: i64 = op
        self.size: i64 = size
        self.role: i64 = role
        self.inner: Layout | None = inner
        self.is_name: bool = False
        self.is_id: bool = False
        self.is_partitions: bool = False
        self.allows_null: bool = False


@final
class Layout:
    """The fields of a struct at a version.

    simple: whether it can be read without the decoder; flexible: whether lengths are varints and
    tagged fields follow; names_topic: whether it has the topic of fields behind it; maps_topic_id:
    whether it maps a topic id to a name.
    """

    def __init__(
        self, cls: type[Structure], version: int, flexible: bool, walks: list[_PathWalk]
    ) -> None:
        owner: Any = cls
        self.flexible: bool = flexible
        self.simple: bool = True
        self.steps: list[Step] = []
        names = _names_of(cls, version, walks)
        self.maps_topic_id: bool = len(names) == 1 and _has_topic_id(cls, version)
        self.names_topic: bool = len(names) > 0 or any(walk.is_topic for walk in walks)
        if len(names) > 1:
            self.simple = False
        for field in fields_at(cls, version):
            if field.tag >= 0:
                continue
            name = field.attribute
            step = self._step(field, owner.__name__, version, walks)
            step.is_name = name in names
            step.is_id = self.names_topic and step.op == UUID and name == "topic_id"
            step.is_partitions = any(walk.is_topic and walk.leads(name) for walk in walks)
            self._add(step)

    def _step(self, field: Field, owner: str, version: int, walks: list[_PathWalk]) -> Step:
        recorder = recorder_of(owner, field)
        role = NO_ROLE if recorder is None else ROLES[recorder]
        role = SESSION.get((owner, field.attribute), role)
        for walk in walks:
            role = walk.role_of(field, role)
        if field.struct is not None:
            inner_walks = [walk.next() for walk in walks if walk.leads(field.attribute)]
            inner = Layout(field.struct, version, self.flexible, inner_walks)
            self.simple = self.simple and inner.simple and field.is_array
            size = inner.fixed_size()
            if size and role == NO_ROLE:
                return Step(FIXED_ITEMS, size, NO_ROLE, None)
            return Step(STRUCTS, 0, role, inner)
        if field.is_array:
            return self._items(field.element, role)
        return self._value(field, role)

    def _value(self, field: Field, role: int) -> Step:
        kind = field.element
        if kind in ("string", "bytes", "records"):
            op = TEXT if kind == "string" else RECORDS if role == RECORDS_FIELD else BYTES
            return Step(op, 0, role, None)
        if kind not in SIZES:
            self.simple = False
            return Step(SKIP, 0, NO_ROLE, None)
        if role == NO_ROLE and not (kind == "uuid" and field.attribute == "topic_id"):
            return Step(SKIP, SIZES[kind], NO_ROLE, None)
        op = {"uuid": UUID, "int16": INT16, "int32": INT32}.get(kind, SKIP)
        self.simple = self.simple and op != SKIP
        return Step(op, SIZES[kind], role, None)

    def _items(self, kind: str, role: int) -> Step:
        if kind == "string":
            return Step(TEXTS, 0, role, None)
        if kind in ("bytes", "records"):
            return Step(BLOBS, 0, NO_ROLE, None)
        if kind == "int32" and role == NUMBER:
            return Step(INT32_ITEMS, 4, role, None)
        self.simple = self.simple and role == NO_ROLE and kind in SIZES
        return Step(FIXED_ITEMS, SIZES.get(kind, 0), NO_ROLE, None)

    def _add(self, step: Step) -> None:
        """Add a step, merged with the last one if both only skip."""
        if step.op == SKIP and self.steps and self.steps[-1].op == SKIP:
            self.steps[-1].size += step.size
        else:
            self.steps.append(step)

    def fixed_size(self) -> int:
        """Return the size of a struct of which every field is skipped; 0 for any other."""
        if self.flexible or not self.simple or len(self.steps) != 1 or self.steps[0].op != SKIP:
            return 0
        return int(self.steps[0].size)


def _has_topic_id(cls: type[Structure], version: int) -> bool:
    return any(field.attribute == "topic_id" for field in fields_at(cls, version))


def _names_of(cls: type[Structure], version: int, walks: list[_PathWalk]) -> set[str]:
    """Find the fields that name the topic of a struct."""
    here = {field.attribute for field in fields_at(cls, version)}
    names = {walk.path.name for walk in walks if walk.is_topic and walk.path.name in here}
    if "topic_id" in here:
        names |= set(topic_name_fields(cls, version))
    return names


@final
class _PathWalk:
    """A position on the path to partitions.

    It is at one of the path's attributes, in a topic struct, or in a partition struct.
    """

    def __init__(self, path: PartitionPath, at: int, has_records: bool) -> None:
        self.path = path
        self.at = at
        self.has_records = has_records
        self.is_topic = at == len(path.attributes)
        self.is_partition = at > len(path.attributes)

    def leads(self, attribute: str) -> bool:
        """Whether the path continues in a field."""
        if self.is_topic:
            return attribute == self.path.partitions
        return not self.is_partition and self.path.attributes[self.at] == attribute

    def next(self) -> _PathWalk:
        """Return the next position."""
        return _PathWalk(self.path, self.at + 1, self.has_records)

    def role_of(self, field: Field, role: int) -> int:
        """Return the role of a field on this path, else `role`."""
        if self.is_partition:
            if field.attribute == self.path.number:
                return NUMBER
            return RECORDS_FIELD if self.has_records and field.is_a("records") else role
        if self.is_topic and field.attribute == self.path.partitions and field.is_array:
            return NUMBER if field.element == "int32" else role
        return role


def layout_of(
    cls: type[Structure], api_key: int, is_request: bool, version: int, flexible: bool
) -> Layout | None:
    """Build the layout of a message; None if it is not simple."""
    direction = "request" if is_request else "response"
    if (api_key, direction) in SPECIAL:
        return None
    has_records = (api_key, direction) in RECORDS_MESSAGES
    paths = REQUESTS.get(api_key, ()) if is_request else ()
    if has_records:
        paths = (REQUESTS if is_request else RESPONSES)[api_key]
    layout = Layout(cls, version, flexible, [_PathWalk(path, 0, has_records) for path in paths])
    if not layout.simple or not _in_order(layout, False):
        return None
    return layout


def _in_order(layout: Layout, within: bool) -> bool:
    """Whether fields come in a usable order.

    A topic comes before its partitions, a partition before its records.
    """
    seen_partition = within
    for step in layout.steps:
        if step.is_name or step.is_id or (step.role == NUMBER and step.op == INT32):
            if seen_partition:
                return False
        elif step.role in (NUMBER, RECORDS_FIELD):
            seen_partition = True
        elif step.inner is not None:
            if not _in_order(step.inner, False):
                return False
            seen_partition = seen_partition or layout.names_topic
    return True
