"""Sealed frames on their way to another process, which opens them: a few flat values for many.

Law: what is unpacked says what was packed, in the same order; nothing but the parcel is needed to
open it.

    reading: packets, flows, framing, pairing     -- cheap, in the order of the capture
       [Told] --pack--> Parcel ~~pickle~~> unpack --> [Told] --open--> rows, text   -- anywhere
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64, mypyc_attr

from ..exchanges.pairing import Item
from .decoding import InFlightRequest, RawFrame


@final
@mypyc_attr(acyclic=True)
class LocatedItem:
    """A row that may still be sealed, and the connection it belongs to, as in Located.

    known_at: the packet that made it known.
    """

    __slots__ = ("broker", "client", "connection", "item", "known_at")

    def __init__(
        self,
        connection: int | None,
        client: str | None,
        broker: str | None,
        item: Item,
        known_at: i64 = 0,
    ) -> None:
        self.connection: int | None = connection
        self.client: str | None = client
        self.broker: str | None = broker
        self.item: Item = item
        self.known_at: i64 = known_at

    def __reduce__(self) -> tuple[Any, ...]:
        return LocatedItem, (self.connection, self.client, self.broker, self.item, self.known_at)


class SerialisedFrames(NamedTuple):
    """Many of them. A request has 11 integers, a response 13, each of them 8 bytes of `numbers`,
    and texts by place in `texts`; the frames' bytes lie behind one another. others: what is a row
    already, by its place.
    """

    numbers: bytes
    texts: list[str | None]
    frames: bytes
    others: dict[int, LocatedItem]


NUMBER: Final = 8
OF_REQUEST: Final = 11 * NUMBER
OF_RESPONSE: Final = 13 * NUMBER


def pack(told: list[LocatedItem]) -> SerialisedFrames:
    """Put rows into a parcel."""
    numbers = BytesWriter()
    texts: dict[str | None, i64] = {}
    frames: list[bytes] = []
    others: dict[int, LocatedItem] = {}
    for at, one in enumerate(told):
        item = one.item
        if not isinstance(item, RawFrame) or item.asked is None or one.connection is None:
            others[at] = one
            continue
        asked = item.asked
        frames.append(item.frame)
        write_i64_le(numbers, one.connection)
        write_i64_le(numbers, _place(texts, one.client))
        write_i64_le(numbers, _place(texts, one.broker))
        write_i64_le(numbers, len(item.frame))
        write_i64_le(numbers, item.packet)
        write_i64_le(numbers, item.time_ns)
        write_i64_le(numbers, item.body)
        write_i64_le(numbers, _place(texts, item.error))
        key, version = i64(asked.api_key) & 0xFFFF, i64(asked.api_version) & 0xFFFF
        write_i64_le(numbers, key << 17 | version << 1 | (1 if item.is_request else 0))
        write_i64_le(numbers, asked.correlation_id)
        write_i64_le(numbers, _place(texts, asked.client_id))
        if not item.is_request:
            write_i64_le(numbers, asked.packet)
            write_i64_le(numbers, asked.time_ns)
    return SerialisedFrames(numbers.getvalue(), list(texts), b"".join(frames), others)


def _place(texts: dict[str | None, i64], text: str | None) -> i64:
    found = texts.get(text)
    if found is None:
        found = texts[text] = len(texts)
    return found


def unpack(parcel: SerialisedFrames) -> list[LocatedItem]:
    """Take rows out of a parcel."""
    numbers, texts, frames, others = parcel
    told: list[LocatedItem] = []
    at: i64 = 0
    start: i64 = 0
    end: i64 = len(numbers)
    while at < end or len(told) in others:
        if others:
            other = others.get(len(told))
            if other is not None:
                told.append(other)
                continue
        size = read_i64_le(numbers, at + 3 * NUMBER)
        one = _unpacked(numbers, at, texts, frames[start : start + size])
        start += size
        at += OF_REQUEST if read_i64_le(numbers, at + 8 * NUMBER) & 1 else OF_RESPONSE
        told.append(one)
    return told


def _unpacked(numbers: bytes, at: i64, texts: list[str | None], frame: bytes) -> LocatedItem:
    packet = read_i64_le(numbers, at + 4 * NUMBER)
    time_ns = read_i64_le(numbers, at + 5 * NUMBER)
    kind = read_i64_le(numbers, at + 8 * NUMBER)
    is_request = kind & 1 == 1
    asked = InFlightRequest(
        signed16(kind >> 17),
        signed16(kind >> 1 & 0xFFFF),
        read_i64_le(numbers, at + 9 * NUMBER),
        texts[read_i64_le(numbers, at + 10 * NUMBER)],
        packet if is_request else read_i64_le(numbers, at + OF_REQUEST),
        time_ns if is_request else read_i64_le(numbers, at + OF_REQUEST + NUMBER),
    )
    error = texts[read_i64_le(numbers, at + 7 * NUMBER)] or ""
    body = read_i64_le(numbers, at + 6 * NUMBER)
    return LocatedItem(
        read_i64_le(numbers, at),
        texts[read_i64_le(numbers, at + NUMBER)],
        texts[read_i64_le(numbers, at + 2 * NUMBER)],
        RawFrame(is_request, frame, packet, time_ns, asked, body, error),
    )


def signed16(value: i64) -> i64:
    return value - 0x10000 if value > 0x7FFF else value
