"""Draws faults for requests."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..protocol.frame import SIZE
from .faults import INT16, INT32, Fault, Kind, Layout

LENGTHS: Final = ("length", "count", "size")
UNUSED_KEYS: Final = (-1, -(1 << 15), (1 << 15) - 1, 1000, 9999)
"""API keys that Kafka does not have."""
SIZES: Final = (-1, -(1 << 31), 0, 1, 7, (1 << 31) - 1)
NOT_UTF_8: Final = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80")
TAGS: Final = (
    "01",
    "0105",
    "01e80705ff",
    "01e807ffffffff07",
    "02e80701aae80701bb",
    "02e80701aae70701bb",
    "ffffffff07",
    "ffffffff0f",
    "01ffffffff0f00",
    "0100ffffffff0f",
    "010000",
    "80808080808080808001",
)
"""Blocks of tagged fields that are cut off, too long, unordered, or twice there."""
LONG_VARINT: Final = b"\xff" * 9 + b"\x01"
TRAILING: Final = (1, 4, 1000)
TEXT: Final = "UTF-8"


def drawn(layout: Layout, versions: range, scrambles: bool, rng: random.Random) -> Fault:
    """Draw a fault of a frame.

    versions: that the broker offers. scrambles: whether any byte may change: names, too. Other
    faults leave the beginning of every name as it is, or a body that cannot be decoded.
    """
    draws = [draw for kind, draw in DRAW.items() if scrambles or kind.leaves_names]
    while True:
        fault = rng.choice(draws)(layout, versions, rng)
        if fault is not None:
            return fault


Draw = Callable[[Layout, range, random.Random], "Fault | None"]


def _draw_length(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    nodes = layout.of(*LENGTHS)
    if not nodes:
        return None
    node = rng.choice(nodes)
    fault = Fault(Kind.LENGTH, node.path, node.name)
    actual = node.value if isinstance(node.value, int) else 0
    left = len(layout.frame) - node.end
    numbers: Sequence[int] = (
        *(-1, -2, INT16[0], INT32[0], INT16[-1], INT32[-1]),
        *(actual + 1, left + 1, left + 1000, 1 << 20),
    )
    if node.type == "uvarint" and rng.random() < 0.1:
        return fault._replace(data=LONG_VARINT)
    return fault._replace(number=rng.choice([each for each in numbers if each != actual]))


def _draw_text(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    data = rng.choice(NOT_UTF_8)
    nodes = [node for node in layout.of("text") if node.type == TEXT and node.size >= len(data)]
    return Fault(Kind.TEXT, rng.choice(nodes).path, "text", data=data) if nodes else None


def _draw_tags(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    nodes = layout.of("tagged fields")
    if not nodes:
        return None
    data = bytes.fromhex(rng.choice(TAGS))
    return Fault(Kind.TAGS, rng.choice(nodes).path, "tagged fields", data=data)


def _draw_cut(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    return Fault(Kind.CUT, number=rng.randrange(SIZE, len(layout.frame)))


def _draw_trailing(_: Layout, __: range, rng: random.Random) -> Fault | None:
    return Fault(Kind.TRAILING, number=rng.choice(TRAILING))


def _draw_size(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    return Fault(Kind.SIZE, number=rng.choice((*SIZES, len(layout.frame) - SIZE - 1)))


def _draw_incomplete(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    return Fault(Kind.INCOMPLETE, number=rng.randrange(1, len(layout.frame)))


def _draw_version(_: Layout, versions: range, rng: random.Random) -> Fault | None:
    others = [versions.start - 1, versions.stop, versions.stop + 1, INT16[0], INT16[-1]]
    return Fault(Kind.VERSION, number=rng.choice([each for each in others if each not in versions]))


def _draw_api_key(_: Layout, __: range, rng: random.Random) -> Fault | None:
    return Fault(Kind.API_KEY, number=rng.choice(UNUSED_KEYS))


def _draw_bytes(layout: Layout, _: range, rng: random.Random) -> Fault | None:
    body = bytearray(layout.frame[layout.body :])
    for _number in range(rng.randint(1, 4) if body else 0):
        start = rng.randrange(len(body) + 1)
        body[start : start + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
    return Fault(Kind.BYTES, data=bytes(body))


DRAW: Final[Mapping[Kind, Draw]] = {
    Kind.LENGTH: _draw_length,
    Kind.TEXT: _draw_text,
    Kind.TAGS: _draw_tags,
    Kind.CUT: _draw_cut,
    Kind.TRAILING: _draw_trailing,
    Kind.SIZE: _draw_size,
    Kind.INCOMPLETE: _draw_incomplete,
    Kind.VERSION: _draw_version,
    Kind.API_KEY: _draw_api_key,
    Kind.BYTES: _draw_bytes,
}
