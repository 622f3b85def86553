"""Which fields of a body tables look at, found once for each message and version.

Law: a layout leads over every byte of a body as the decoder does; where that takes more than is
here (a struct that stands alone, fields whose meaning another one says), it is not plain, and the
message is decoded.

    class, version --once--> Layout: a Step a field in wire order; fields that say nothing and are
                             of fixed size together make one Step
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, final

from mypy_extensions import i64

from ....primitives import FieldRow, Structure
from ...exchanges.topic_ids import topic_name_fields
from .entities import SPECIAL, Entities, role
from .partition_fields import REQUESTS, RESPONSES, Place
from .record_batches import CARRIERS

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

SIZES: Final = {
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "bool": 1,
    "uuid": 16,
    "float64": 8,
}

NOTHING: Final = 0
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
ANSWER: Final = 11
CARRIED: Final = 12

NOTES: Final[dict[Callable[[Entities, Any], None], int]] = {
    Entities.topic: TOPIC,
    Entities.group: GROUP,
    Entities.transactional_id: TRANSACTIONAL_ID,
    Entities._topic_id: TOPIC_ID,
    Entities._error: ERROR,
    Entities._throttled: THROTTLE,
}
"""How a field is noted of a decoded message -> what it is called here."""


SESSION: Final = {
    ("FetchRequest", "session_id"): SESSION_ID,
    ("FetchRequest", "session_epoch"): SESSION_EPOCH,
    ("FetchRequest", "forgotten_topics_data"): FORGOTTEN,
    ("FetchResponse", "session_id"): SESSION_ID,
    ("FetchResponse", "error_code"): ANSWER,
}
"""What messages say of fetch sessions (KIP-227); ANSWER is an error code like any other, too."""


@final
class Step:
    """A field, or several of fixed size. size: theirs, or that of an element. is_name, is_id:
    whether it names the topic that its struct is about. is_partitions: whether it lists partitions
    of that topic. nulls: whether the decoder is known to take a null here.
    """

    def __init__(self, op: int, size: int, role: int, inner: Layout | None) -> None:
        self.op: i64 = op
        self.size: i64 = size
        self.role: i64 = role
        self.inner: Layout | None = inner
        self.is_name: bool = False
        self.is_id: bool = False
        self.is_partitions: bool = False
        self.nulls: bool = False


@final
class Layout:
    """The fields of a struct at a version. plain: whether it can be read here at all; flexible:
    whether lengths are varints and tags follow; about_topic: whether what names a topic in it is
    kept for what stands behind; states: whether it says which name an id has.
    """

    def __init__(
        self, cls: type[Structure], version: int, flexible: bool, ways: list[_Way]
    ) -> None:
        owner: Any = cls
        self.flexible: bool = flexible
        self.plain: bool = True
        self.steps: list[Step] = []
        here = [row for row in cls.__fields__ if row.tag < 0 and row.first <= version <= row.last]
        names = _names_of(cls, version, ways)
        self.states: bool = len(names) == 1 and _says_id(cls, version)
        self.about_topic: bool = len(names) > 0 or any(way.is_topic for way in ways)
        if len(names) > 1:
            self.plain = False
        for row in here:
            step = self._step(row, owner, version, ways)
            step.is_name = row.attribute in names
            step.is_id = self.about_topic and step.op == UUID and row.attribute == "topic_id"
            step.is_partitions = any(way.is_topic and way.leads(row.attribute) for way in ways)
            self._add(step)

    def _step(self, row: FieldRow, owner: Any, version: int, ways: list[_Way]) -> Step:
        kind = row.type.removeprefix("[]")
        is_array = kind != row.type
        note = role(owner.__name__, row)
        said = NOTHING if note is None else NOTES[note]
        said = SESSION.get((owner.__name__, row.attribute), said)
        for way in ways:
            said = way.role_of(row, said)
        if kind[0].isupper():
            inner_class = getattr(sys.modules[owner.__module__], kind)
            inner_ways = [way.next() for way in ways if way.leads(row.attribute)]
            inner = Layout(inner_class, version, self.flexible, inner_ways)
            self.plain = self.plain and inner.plain and is_array
            size = inner.fixed_size()
            if size and said == NOTHING:
                return Step(FIXED_ITEMS, size, NOTHING, None)
            return Step(STRUCTS, 0, said, inner)
        if is_array:
            return self._items(kind, said)
        if kind in ("string", "bytes", "records"):
            op = TEXT if kind == "string" else RECORDS if said == CARRIED else BYTES
            return Step(op, 0, said, None)
        if kind not in SIZES:
            self.plain = False
            return Step(SKIP, 0, NOTHING, None)
        if said == NOTHING and not (kind == "uuid" and row.attribute == "topic_id"):
            return Step(SKIP, SIZES[kind], NOTHING, None)
        op = {"uuid": UUID, "int16": INT16, "int32": INT32}.get(kind, SKIP)
        self.plain = self.plain and op != SKIP
        return Step(op, SIZES[kind], said, None)

    def _items(self, kind: str, said: int) -> Step:
        if kind == "string":
            return Step(TEXTS, 0, said, None)
        if kind in ("bytes", "records"):
            return Step(BLOBS, 0, NOTHING, None)
        if kind == "int32" and said == NUMBER:
            return Step(INT32_ITEMS, 4, said, None)
        self.plain = self.plain and said == NOTHING and kind in SIZES
        return Step(FIXED_ITEMS, SIZES.get(kind, 0), NOTHING, None)

    def _add(self, step: Step) -> None:
        """Add a step, to the last one if both only skip."""
        if step.op == SKIP and self.steps and self.steps[-1].op == SKIP:
            self.steps[-1].size += step.size
        else:
            self.steps.append(step)

    def fixed_size(self) -> int:
        """Bytes of a struct that is nothing but fields to skip; 0 for any other."""
        if self.flexible or not self.plain or len(self.steps) != 1 or self.steps[0].op != SKIP:
            return 0
        return int(self.steps[0].size)


def _says_id(cls: type[Structure], version: int) -> bool:
    return any(
        row.attribute == "topic_id" and row.first <= version <= row.last for row in cls.__fields__
    )


def _names_of(cls: type[Structure], version: int, ways: list[_Way]) -> set[str]:
    """Find the fields that name the topic a struct is about."""
    here = {row.attribute for row in cls.__fields__ if row.first <= version <= row.last}
    names = {way.place.name for way in ways if way.is_topic and way.place.name in here}
    if "topic_id" in here:
        names |= set(topic_name_fields(cls, version))
    return names


@final
class _Way:
    """How far a struct is on the way to partitions: at which of the way's attributes, in the topic
    struct, or in a partition's.
    """

    def __init__(self, place: Place, at: int, carries: bool) -> None:
        self.place = place
        self.at = at
        self.carries = carries
        self.is_topic = at == len(place.way)
        self.is_partition = at > len(place.way)

    def leads(self, attribute: str) -> bool:
        """Whether the way goes on behind a field."""
        if self.is_topic:
            return attribute == self.place.partitions
        return not self.is_partition and self.place.way[self.at] == attribute

    def next(self) -> _Way:
        """Take the next step."""
        return _Way(self.place, self.at + 1, self.carries)

    def role_of(self, row: FieldRow, said: int) -> int:
        """Say what a field is on this way, if it is anything."""
        if self.is_partition and row.attribute == self.place.number:
            return NUMBER
        if self.is_partition and self.carries and row.type == "records":
            return CARRIED
        if self.is_topic and row.attribute == self.place.partitions and row.type == "[]int32":
            return NUMBER
        return said


def layout_of(
    cls: type[Structure], api_key: int, is_request: bool, version: int, flexible: bool
) -> Layout | None:
    """Make the layout of a message; None where it is not plain."""
    direction = "request" if is_request else "response"
    if (api_key, direction) in SPECIAL:
        return None
    carries = (api_key, direction) in CARRIERS
    places = REQUESTS.get(api_key, ()) if is_request else ()
    if carries:
        places = (REQUESTS if is_request else RESPONSES)[api_key]
    layout = Layout(cls, version, flexible, [_Way(place, 0, carries) for place in places])
    if not layout.plain or not _in_order(layout, False):
        return None
    return layout


def _in_order(layout: Layout, within: bool) -> bool:
    """Whether each thing is said before what it is needed for: a topic before its partitions, a
    partition before its records.
    """
    told = within
    for step in layout.steps:
        if step.is_name or step.is_id or (step.role == NUMBER and step.op == INT32):
            if told:
                return False
        elif step.role in (NUMBER, CARRIED):
            told = True
        elif step.inner is not None:
            if not _in_order(step.inner, False):
                return False
            told = told or layout.about_topic
    return True
