"""Faults of requests: what is wrong with the bytes of one, as values that can be applied again.

A fault names the field that it damages, so that it stays the same while others leave the request.

    request ─▶ frame ─▶ Layout (the part of every byte) ─Fault─▶ bytes on the wire
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..protocol.frame import SIZE
from ..protocol.header import request_header_version
from ..reference.codec import parse
from ..reference.tree import Node

KEY, VERSION, CORRELATION_ID = 4, 6, 8
"""Offsets in a frame."""
INT16: Final = range(-(1 << 15), 1 << 15)
INT32: Final = range(-(1 << 31), 1 << 31)


class Kind(Enum):
    """What is wrong with a request."""

    LENGTH = "length or count"
    TEXT = "text that is not UTF-8"
    TAGS = "tagged fields"
    CUT = "body cut off"
    TRAILING = "bytes after the body"
    SIZE = "size of the frame"
    INCOMPLETE = "frame not sent to its end"
    VERSION = "version that is not offered"
    API_KEY = "unknown API key"
    BYTES = "random bytes"

    @property
    def leaves_names(self) -> bool:
        """Whether what can still be decoded has the names of the request."""
        return self is not Kind.BYTES


class Fault(NamedTuple):
    """A fault.

    path: the damaged field, part: `length`, `count`, `text` or `tagged fields`, where there is one.
    number, data: what is written there, by kind.
    """

    kind: Kind
    path: str = ""
    part: str = ""
    number: int = 0
    data: bytes = b""

    def __str__(self) -> str:
        where = f" of {self.path}" if self.path else ""
        written = f" {self.data.hex()}" if self.data else f" {self.number}"
        return f"{self.kind.value}{where}:{written}"


class NotApplicable(ValueError):
    """A request has no such field to damage."""


class Layout:
    """A frame of a request and the meaning of its bytes."""

    def __init__(self, frame: bytes, api: ApiKey, version: int) -> None:
        self.frame = frame
        info = REGISTRY.request(api)
        assert info is not None
        header = parse(
            "RequestHeader", request_header_version(api, version), frame, start=SIZE, whole=False
        )
        self.body = header.end
        self.nodes = [
            *header.tree.walk(),
            *parse(info.name, version, frame, start=header.end).tree.walk(),
        ]

    def of(self, *names: str) -> list[Node]:
        """Return the nodes with one of these names."""
        return [node for node in self.nodes if node.name in names and node.raw]

    def node(self, fault: Fault) -> Node:
        """Return the node that a fault damages. Raises NotApplicable."""
        for node in self.of(fault.part):
            if node.path == fault.path:
                return node
        raise NotApplicable(f"{fault.path} has no {fault.part}")

    def replaced(self, start: int, end: int, data: bytes) -> bytes:
        """Replace bytes; the frame has the size of what it is then."""
        return sized(self.frame[SIZE:start] + data + self.frame[end:])


def sized(data: bytes) -> bytes:
    """Put the size before the data of a frame."""
    return len(data).to_bytes(SIZE, "big") + data


def applied(layout: Layout, fault: Fault) -> bytes:
    """Return the bytes that a fault makes of a frame. Raises NotApplicable."""
    return APPLY[fault.kind](layout, fault)


def _length(layout: Layout, fault: Fault) -> bytes:
    node = layout.node(fault)
    data = fault.data or _number(node.type, fault.number)
    return layout.replaced(node.offset, node.end, data)


def _number(type: str, number: int) -> bytes:
    """Encode a length of a type; a varint has one more (KIP-482)."""
    if type == "uvarint":
        return b"".join(_varint((number + 1) & 0xFFFFFFFF))
    limits, size = (INT16, 2) if type == "int16" else (INT32, 4)
    return min(max(number, limits[0]), limits[-1]).to_bytes(size, "big", signed=True)


def _varint(number: int) -> Iterator[bytes]:
    while number > 0x7F:
        yield bytes([number & 0x7F | 0x80])
        number >>= 7
    yield bytes([number])


def _text(layout: Layout, fault: Fault) -> bytes:
    node = layout.node(fault)
    if node.size < len(fault.data):
        raise NotApplicable(f"{fault.path} is shorter than {len(fault.data)} bytes")
    return layout.replaced(node.end - len(fault.data), node.end, fault.data)


def _tags(layout: Layout, fault: Fault) -> bytes:
    node = layout.node(fault)
    return layout.replaced(node.offset, node.end, fault.data)


def _cut(layout: Layout, fault: Fault) -> bytes:
    if fault.number >= len(layout.frame):
        raise NotApplicable(f"the frame has {len(layout.frame)} bytes")
    return sized(layout.frame[SIZE : fault.number])


def _trailing(layout: Layout, fault: Fault) -> bytes:
    return sized(layout.frame[SIZE:] + bytes(fault.number))


def _size(layout: Layout, fault: Fault) -> bytes:
    return fault.number.to_bytes(SIZE, "big", signed=True) + layout.frame[SIZE:]


def _incomplete(layout: Layout, fault: Fault) -> bytes:
    if fault.number >= len(layout.frame):
        raise NotApplicable(f"the frame has {len(layout.frame)} bytes")
    return layout.frame[: fault.number]


def _int16_at(offset: int) -> Callable[[Layout, Fault], bytes]:
    def apply(layout: Layout, fault: Fault) -> bytes:
        number = fault.number.to_bytes(2, "big", signed=True)
        return layout.replaced(offset, offset + len(number), number)

    return apply


def _bytes(layout: Layout, fault: Fault) -> bytes:
    return sized(layout.frame[SIZE : layout.body] + fault.data)


APPLY: Final[Mapping[Kind, Callable[[Layout, Fault], bytes]]] = {
    Kind.LENGTH: _length,
    Kind.TEXT: _text,
    Kind.TAGS: _tags,
    Kind.CUT: _cut,
    Kind.TRAILING: _trailing,
    Kind.SIZE: _size,
    Kind.INCOMPLETE: _incomplete,
    Kind.VERSION: _int16_at(VERSION),
    Kind.API_KEY: _int16_at(KEY),
    Kind.BYTES: _bytes,
}
