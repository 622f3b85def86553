"""Walks over a body to the first byte that cannot be decoded, in constant memory.

Its errors are those of the decoder, in the same order, with the reasons and offsets of the
reference codec's `parse`; its memory depends on the nesting of a message, not on its size.

    struct  | field | ... | tagged fields |      a Step reads one field, a Plan is all of a struct
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ...errors import (
    DecodeError,
    InvalidLength,
    InvalidTag,
    InvalidText,
    InvalidVarint,
    LimitExceeded,
    Truncated,
    UnexpectedNull,
    counted,
)
from ...primitives.limits import FREE_OBJECTS, UNLIMITED, Limits

UNKNOWN_TAGS: Final = "unknown_tags"
MAX_STRING: Final = 32767


class GaveUp(Exception):
    """The walk exceeded its elements; internal to this package."""


class Walk:
    """A position in a body, its path, and the rest of the limits.

    max_elements: elements of arrays and tagged fields before GaveUp.
    """

    def __init__(
        self, name: str, data: bytes, lenient: bool, limits: Limits, max_elements: int
    ) -> None:
        self.data = data
        self.pos = 0
        self.end = len(data)
        self.lenient = lenient
        self.steps = [name]
        self.elements = limits.max_elements
        each = limits.bytes_per_object
        self.objects = FREE_OBJECTS + (len(data) // each if each else UNLIMITED)
        self.left_to_take = max_elements

    def fault(self, kind: type[DecodeError], reason: str, offset: int) -> DecodeError:
        return kind(reason, "".join(self.steps), offset)

    def take(self, size: int) -> int:
        """Skip `size` bytes, and return their start."""
        start = self.pos
        left = self.end - start
        if size > left:
            raise self.fault(Truncated, f"{counted(size, 'byte')} wanted, {left} left", self.end)
        self.pos = start + size
        return start

    def integer(self, size: int) -> int:
        start = self.take(size)
        return int.from_bytes(self.data[start : self.pos], "big", signed=True)

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.data[self.take(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return int32(value)
        raise self.fault(InvalidVarint, "a varint goes on after its fifth byte", self.pos - 1)

    def length(self, size: int) -> int:
        """Read a length or count: an integer of `size` bytes, or a compact one where that is 0."""
        return self.integer(size) if size else int32(self.uvarint() - 1)

    def spend(self, elements: int, what: str, offset: int) -> None:
        self.elements -= elements
        if self.elements < 0:
            raise self.fault(LimitExceeded, f"more {what} than max_elements allows", offset)

    def spend_objects(self, objects: int, offset: int) -> None:
        self.objects -= objects
        if self.objects < 0:
            raise self.fault(LimitExceeded, "more objects than bytes_per_object allows", offset)

    def begin_element(self) -> None:
        self.left_to_take -= 1
        if self.left_to_take < 0:
            raise GaveUp

    def null(self, nullable: bool, start: int) -> None:
        if not nullable:
            raise self.fault(UnexpectedNull, "null, and not nullable in this version", start)

    def struct(self, plan: Plan) -> None:
        """Walk over a struct and its tagged fields."""
        for step, read in plan.fields:
            self.steps.append(step)
            read(self)
            self.steps.pop()
        if plan.is_flexible:
            self.tags(plan)

    def tags(self, plan: Plan) -> None:
        unknown = 0
        start = self.pos
        count = self.uvarint()
        if count < 0 and not self.lenient:
            reason = f"a negative number of tagged fields ({count})"
            raise self.fault(InvalidLength, reason, start)
        for _ in range(count):
            self.begin_element()
            start = self.pos
            tag = self.uvarint()
            tagged_field = plan.tagged.get(tag)
            if tagged_field is not None:
                self.known_tag(*tagged_field)
                continue
            misplaced = plan.elsewhere.get(tag)
            self.steps.append(misplaced or f".{UNKNOWN_TAGS}[{unknown}]")
            self.unknown_tag(tag, misplaced is not None, start)
            self.steps.pop()
            unknown += 1

    def known_tag(self, step: str, read: Read) -> None:
        self.steps.append(step)
        declared = self.pos
        size = self.uvarint()
        start = self.pos
        read(self)
        taken = self.pos - start
        if taken != size and not self.lenient:
            reason = f"a tagged field of {counted(size, 'byte')} takes {taken}"
            raise self.fault(InvalidTag, reason, declared)
        self.steps.pop()

    def unknown_tag(self, tag: int, is_misplaced: bool, start: int) -> None:
        size = self.uvarint()
        if is_misplaced and not self.lenient:
            raise self.fault(InvalidTag, f"tag {tag} does not exist in this version", start)
        self.spend(1, "tagged fields", start)
        self.spend_objects(1, start)
        if size < 0:
            raise self.fault(InvalidLength, f"a tagged field of {size} bytes", start)
        self.take(size)


Read = Callable[[Walk], object]


class Plan(NamedTuple):
    """The layout of a struct in one version.

    fields: step of the path, and reader. tagged: the same by tag; elsewhere: the steps of tags of
    other versions.
    """

    fields: tuple[tuple[str, Read], ...]
    is_flexible: bool
    tagged: dict[int, tuple[str, Read]]
    elsewhere: dict[int, str]


def read_struct(walk: Walk, plan: Plan) -> None:
    """Read a struct."""
    walk.struct(plan)


def read_optional(walk: Walk, tagged: bool, read: Read) -> None:
    """Read a struct after its null marker."""
    if walk.uvarint() > 0 if tagged else walk.integer(1) >= 0:
        read(walk)


def read_array(walk: Walk, size: int, nullable: bool, read: Read, objects: int = 0) -> None:
    """Read an array; objects: 1 where each element counts as an object."""
    start = walk.pos
    n = walk.length(size)
    if n < 0:
        walk.null(nullable, start)
        return
    walk.spend_objects(1, start)
    left = walk.end - walk.pos
    if n > left:
        reason = f"an array of {counted(n, 'element')}, {counted(left, 'byte')} left"
        raise walk.fault(InvalidLength, reason, start)
    walk.spend(n, "array elements", start)
    walk.spend_objects(n * objects, start)
    walk.steps.append("")
    for i in range(n):
        walk.begin_element()
        walk.steps[-1] = f"[{i}]"
        read(walk)
    walk.steps.pop()


def read_bytes(walk: Walk, size: int, nullable: bool) -> None:
    """Read bytes after their length; size: of the length, 0 for a varint."""
    start = walk.pos
    n = walk.length(size)
    if n < 0:
        walk.null(nullable, start)
    else:
        walk.take(n)


def read_text(walk: Walk, size: int, nullable: bool) -> None:
    """Read a string after its length; size: of the length, 0 for a varint."""
    start = walk.pos
    n = walk.length(size)
    if n > MAX_STRING:
        reason = f"a string of {n} bytes; {MAX_STRING} is the most"
        raise walk.fault(InvalidLength, reason, start)
    if n < 0:
        walk.null(nullable, start)
        return
    begin = walk.take(n)
    if walk.lenient:
        return
    try:
        walk.data[begin : walk.pos].decode("utf-8")
    except UnicodeDecodeError as error:
        bad = begin + error.start
    else:
        return
    raise walk.fault(InvalidText, f"the byte {walk.data[bad]:#04x} is not UTF-8", bad)


def int32(value: int) -> int:
    """Return the low 32 bits of a value as a signed number, as Java's casts do."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
