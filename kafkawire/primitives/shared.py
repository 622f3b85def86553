"""Shares values that repeat in structs and messages: the interpreted version of `shared.c`.

Shared values are read-only, so sharing affects memory and time only. Both versions return
equal values; which ones they share may differ. A table of fixed size caches the most recent values.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any, Final, NoReturn, TypeVar
from zlib import crc32

from mypy_extensions import i64

T = TypeVar("T")

SMALLEST: Final = 4
LARGEST: Final = 32
"""The sizes of cached values: a name, or up to eight int32."""

SLOTS: Final = 1024


class SharedInts(list[int]):
    """A read-only list of integers that other structs may share.

    It compares, prints and iterates as any list.
    The field that holds it can be set to a list of its own: `p.isr_nodes = [*p.isr_nodes, 4]`.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a decoded list of integers may be shared with other structs and cannot be changed: "
            "set the field to a list of its own"
        )

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[type[SharedInts], tuple[list[int]]]:
        return SharedInts, (list(self),)


NO_INTS: Final[list[int]] = SharedInts()
"""The shared empty list of int32."""

_texts: Final[dict[int, tuple[bytes, str]]] = {}
_lists: Final[dict[int, tuple[bytes, list[int]]]] = {}
"""The slots of each table: a value, and the bytes that it was decoded from."""


def shared_text(data: bytes, p: i64, size: i64) -> str:
    """Return the text of `size` bytes at `p`; UnicodeDecodeError as `decode` raises it."""
    raw = _slice(data, p, size)
    slot = crc32(raw) % SLOTS
    stored = _texts.get(slot)
    if stored is not None and stored[0] == raw:
        return stored[1]
    text = raw.decode("utf-8")
    if SMALLEST <= size <= LARGEST:
        _texts[slot] = raw, text
    return text


def shared_int32_items(data: bytes, p: i64, size: i64) -> list[int]:
    """Return the int32 in `size` bytes at `p`: shared and read-only if they are few."""
    raw = _slice(data, p, size)
    items = unpack_from(f">{size // 4}i", raw)
    if not SMALLEST <= size <= LARGEST:
        return list(items)
    slot = crc32(raw) % SLOTS
    stored = _lists.get(slot)
    if stored is not None and stored[0] == raw:
        return stored[1]
    ints = SharedInts(items)
    _lists[slot] = raw, ints
    return ints


def _slice(data: bytes, p: i64, size: i64) -> bytes:
    if p < 0 or size < 0 or size > len(data) - p:
        raise IndexError("outside of the data")
    return data[p : p + size]
