"""Bodies as they are on the wire -> the JSON text of their messages, without the messages.

Law: it writes what `row_text` writes of the decoded message, or nothing: what is not plain (tagged
fields, a null that the decoder has not been seen to take, anything wrong) is left to the decoder.

    class, version --once--> Layout: a Step a field, in wire order
    bytes, Layout --> {"topics":[{"name":"a",...    and where records lie, on the way
"""

from __future__ import annotations

import sys
from binascii import b2a_base64
from typing import Any, Final, final

from librt.strings import BytesWriter, read_f64_be, read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ..primitives.structure import FieldRow, Structure
from ..protocol.json_form import uuid_text
from ..protocol.json_text import CREDENTIALS, FLOAT, write_value
from .record_text import PARTITION, TOPIC, TOPIC_ID, Place, plan
from .text import put_int, put_text

INT8: Final = 1
INT16: Final = 2
UINT16: Final = 3
INT32: Final = 4
UINT32: Final = 5
INT64: Final = 6
BOOL: Final = 7
TEXT: Final = 8
BYTES: Final = 9
UUID: Final = 10
FLOAT64: Final = 11
RECORDS: Final = 12
STRUCT: Final = 13
KINDS: Final = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "uint32": UINT32,
    "int64": INT64,
    "bool": BOOL,
    "string": TEXT,
    "bytes": BYTES,
    "uuid": UUID,
    "float64": FLOAT64,
    "records": RECORDS,
}

MAX_STRING: Final = 0x7FFF


class Odd(ValueError):
    """What is left to the decoder."""


@final
class Step:
    """A field: the text before its value, its kind, whether it is an array. role: what it says of
    records (see `record_text`), -1 for nothing. nulls: whether the decoder is known to take a null
    here.
    """

    def __init__(self, lead: bytes, row: FieldRow, inner: Layout | None, role: int) -> None:
        element = row.type.removeprefix("[]")
        self.lead: bytes = lead
        self.attribute: str = row.attribute
        self.kind: i64 = KINDS.get(element, STRUCT)
        self.array: bool = element != row.type
        self.inner: Layout | None = inner
        self.role: i64 = role
        self.nulls: bool = False


@final
class Layout:
    """The fields of a struct at a version. plain: whether it can be written here at all; flexible:
    whether lengths are varints and tags follow.
    """

    def __init__(self, cls: type[Structure], version: int, flexible: bool, secrets: bool) -> None:
        roles = {step.attribute: step.role for step in plan(cls, version)}
        owner: Any = cls
        module = sys.modules[owner.__module__]
        self.flexible: bool = flexible
        self.plain: bool = True
        self.steps: list[Step] = []
        for row in cls.__fields__:
            if row.tag >= 0 or not row.first <= version <= row.last:
                continue
            element = row.type.removeprefix("[]")
            inner: Layout | None = None
            if element[0].isupper():
                inner = Layout(getattr(module, element), version, flexible, secrets)
                # a struct that stands alone may have a mark before it
                self.plain = self.plain and inner.plain and element != row.type
            elif element not in KINDS or (row.json_name in CREDENTIALS and not secrets):
                self.plain = False
            lead = f'{"," if self.steps else "{"}"{row.json_name}":'
            self.steps.append(Step(lead.encode(), row, inner, roles.get(row.attribute, -1)))
        self.plain = self.plain and len(self.steps) > 0


@final
class BodyText:
    """Reads bodies and writes them to `out`.

    places: records fields of the last body. doubts: its nulls that nobody has taken yet.
    """

    def __init__(self) -> None:
        self.out: BytesWriter = BytesWriter()
        self.data: bytes = b""
        self.pos: i64 = 0
        self.end: i64 = 0
        self.elements: i64 = 0
        self.flexible: bool = False
        self.places: list[Place] = []
        self.doubts: list[Step] = []

    def write(self, layout: Layout, data: bytes, start: int, elements: int) -> bool:
        """Write the body that begins at `start`; False where it is left to the decoder, and then
        `out` may have the beginning of it.
        """
        self.data, self.pos, self.end, self.elements = data, start, len(data), elements
        self.flexible = layout.flexible
        self.places = []
        self.doubts = []
        try:
            self.struct(layout, "", None, None)
        except (IndexError, ValueError):
            self.doubts = []
            return False
        if self.pos != self.end:
            self.doubts = []
            return False
        return not self.doubts

    def struct(self, layout: Layout, path: str, topic: str | None, partition: int | None) -> None:
        out = self.out
        data = self.data
        for step in layout.steps:
            out.write(step.lead)
            kind = step.kind
            if step.array:
                self.array(step, path, topic, partition)
            elif step.role >= 0:
                if kind == RECORDS:
                    size = self.blob(step)
                    if size >= 0:
                        held = data[self.pos - size : self.pos]
                        self.places.append(Place(path + step.attribute, topic, partition, held))
                elif step.role == TOPIC:
                    size = self.text(step)
                    if size >= 0:
                        topic = data[self.pos - size : self.pos].decode("utf-8")
                elif step.role == TOPIC_ID:
                    topic = uuid_text(data[self.pos : self.pos + 16])
                    self.scalar(kind)
                elif step.role == PARTITION:
                    start = self.pos
                    self.scalar(kind)
                    partition = int.from_bytes(data[start : self.pos], "big", signed=True)
                else:
                    raise Odd
            elif kind == TEXT:
                self.text(step)
            elif kind in (BYTES, RECORDS):
                self.blob(step)
            else:
                self.scalar(kind)
        out.append(125)
        if self.flexible:
            p = self.pos
            if data[p] != 0:
                raise Odd
            self.pos = p + 1

    def array(self, step: Step, path: str, topic: str | None, partition: int | None) -> None:
        out = self.out
        n = self.uvarint() - 1 if self.flexible else self.int32()
        if n < 0:
            self.null(step)
            return
        self.elements -= n
        if n > self.end - self.pos or self.elements < 0:
            raise Odd
        out.append(91)
        kind = step.kind
        inner = step.inner
        at: i64 = 0
        while at < n:
            if at:
                out.append(44)
            if inner is not None:
                here = f"{path}{step.attribute}[{at}]." if step.role >= 0 else ""
                self.struct(inner, here, topic, partition)
            elif kind == TEXT:
                if self.text(None) < 0:
                    raise Odd
            elif kind in (BYTES, RECORDS):
                if self.blob(None) < 0:
                    raise Odd
            else:
                self.scalar(kind)
            at += 1
        out.append(93)

    def null(self, step: Step | None) -> None:
        if step is not None and not step.nulls:
            self.doubts.append(step)
        self.out.write(b"null")

    # -- values

    def scalar(self, kind: i64) -> None:
        data = self.data
        p = self.pos
        if kind == INT32:
            self.pos = p + 4
            put_int(self.out, i64(read_i32_be(data, p)))
        elif kind == INT64:
            self.pos = p + 8
            put_int(self.out, read_i64_be(data, p))
        elif kind == INT16:
            self.pos = p + 2
            put_int(self.out, i64(read_i16_be(data, p)))
        elif kind == BOOL:
            self.pos = p + 1
            self.out.write(b"true" if data[p] != 0 else b"false")
        elif kind == INT8:
            self.pos = p + 1
            value: i64 = data[p]
            put_int(self.out, value - 256 if value > 127 else value)
        elif kind == UUID:
            if p + 16 > self.end:
                raise Odd
            self.pos = p + 16
            self.out.write(f'"{uuid_text(data[p : p + 16])}"'.encode())
        elif kind == UINT16:
            self.pos = p + 2
            put_int(self.out, i64(read_i16_be(data, p)) & 0xFFFF)
        elif kind == UINT32:
            self.pos = p + 4
            put_int(self.out, i64(read_i32_be(data, p)) & 0xFFFFFFFF)
        else:
            self.pos = p + 8
            self.out.write(write_value(read_f64_be(data, p), FLOAT, None).encode())

    def int32(self) -> i64:
        p = self.pos
        self.pos = p + 4
        return i64(read_i32_be(self.data, p))

    def uvarint(self) -> i64:
        data = self.data
        p = self.pos
        byte: i64 = data[p]
        p += 1
        value = byte & 0x7F
        shift: i64 = 0
        while byte > 127:
            shift += 7
            if shift > 28:
                raise Odd
            byte = data[p]
            p += 1
            value |= (byte & 0x7F) << shift
        self.pos = p
        return value

    def text(self, step: Step | None) -> i64:
        """Write a string; returns its size, -1 for null."""
        n: i64
        if self.flexible:
            n = self.uvarint() - 1
            if n > MAX_STRING:
                raise Odd
        else:
            p = self.pos
            self.pos = p + 2
            n = i64(read_i16_be(self.data, p))
        if n < 0:
            self.null(step)
            return -1
        start = self.pos
        if start + n > self.end:
            raise Odd
        self.pos = start + n
        put_text(self.out, self.data, start, n)
        return n

    def blob(self, step: Step | None) -> i64:
        """Write bytes as base64; returns their size, -1 for null."""
        n = self.uvarint() - 1 if self.flexible else self.int32()
        if n < 0:
            self.null(step)
            return -1
        start = self.pos
        if start + n > self.end:
            raise Odd
        self.pos = start + n
        out = self.out
        out.append(34)
        out.write(b2a_base64(self.data[start : start + n], newline=False))
        out.append(34)
        return n


_layouts: Final[dict[tuple[type[Structure], int, bool], Layout]] = {}


def layout_of(cls: type[Structure], version: int, flexible: bool, secrets: bool) -> Layout:
    """Give the layout of a message's class at a version."""
    found = _layouts.get((cls, version, secrets))
    if found is None:
        found = _layouts[cls, version, secrets] = Layout(cls, version, flexible, secrets)
    return found
