"""Sealed frames on their way to another process, which opens them: a few flat values for many.

Law: what is unpacked says what was packed, in the same order; nothing but the parcel is needed to
open it.

    reading: packets, flows, framing, pairing     -- cheap, in the order of the capture
       [Told] --pack--> Parcel ~~pickle~~> unpack --> [Told] --open--> rows, text   -- anywhere
"""

from __future__ import annotations

from typing import NamedTuple

from .pairing import Item
from .reading import Asked, Sealed


class Told(NamedTuple):
    """A row that may still be sealed, and the connection it belongs to, as in Located.

    known_at: the packet that made it known.
    """

    connection: int | None
    client: str | None
    broker: str | None
    item: Item
    known_at: int = 0


class Parcel(NamedTuple):
    """Many of them. A request has 11 integers, a response 13, and texts by place in `texts`; the
    frames' bytes lie behind one another. others: what is a row already, by its place.
    """

    numbers: list[int]
    texts: list[str | None]
    frames: bytes
    others: dict[int, Told]


def pack(told: list[Told]) -> Parcel:
    """Put rows into a parcel."""
    numbers: list[int] = []
    texts: dict[str | None, int] = {}
    frames: list[bytes] = []
    others: dict[int, Told] = {}
    for at, one in enumerate(told):
        item = one.item
        if not isinstance(item, Sealed) or item.asked is None or one.connection is None:
            others[at] = one
            continue
        asked = item.asked
        frames.append(item.frame)
        numbers.append(one.connection)
        numbers.append(texts.setdefault(one.client, len(texts)))
        numbers.append(texts.setdefault(one.broker, len(texts)))
        numbers.append(len(item.frame))
        numbers.append(item.packet)
        numbers.append(item.time_ns)
        numbers.append(item.body)
        numbers.append(texts.setdefault(item.error, len(texts)))
        numbers.append(
            (asked.api_key & 0xFFFF) << 17 | (asked.api_version & 0xFFFF) << 1 | item.is_request
        )
        numbers.append(asked.correlation_id)
        numbers.append(texts.setdefault(asked.client_id, len(texts)))
        if not item.is_request:
            numbers.append(asked.packet)
            numbers.append(asked.time_ns)
    return Parcel(numbers, list(texts), b"".join(frames), others)


def unpack(parcel: Parcel) -> list[Told]:
    """Take rows out of a parcel."""
    numbers, texts, frames, others = parcel
    told: list[Told] = []
    at = start = 0
    end = len(numbers)
    while at < end or len(told) in others:
        other = others.get(len(told))
        if other is not None:
            told.append(other)
            continue
        connection, client, broker = numbers[at], texts[numbers[at + 1]], texts[numbers[at + 2]]
        size, packet, time_ns, body = numbers[at + 3 : at + 7]
        error = texts[numbers[at + 7]] or ""
        kind = numbers[at + 8]
        correlation_id, client_id = numbers[at + 9], texts[numbers[at + 10]]
        at += 11
        is_request = kind & 1 == 1
        asked_packet, asked_ns = packet, time_ns
        if not is_request:
            asked_packet, asked_ns = numbers[at], numbers[at + 1]
            at += 2
        asked = Asked(
            signed16(kind >> 17),
            signed16(kind >> 1 & 0xFFFF),
            correlation_id,
            client_id,
            asked_packet,
            asked_ns,
        )
        frame = frames[start : start + size]
        start += size
        item = Sealed(is_request, frame, packet, time_ns, asked, body, error)
        told.append(Told(connection, client, broker, item))
    return told


def signed16(value: int) -> int:
    return value - 0x10000 if value > 0x7FFF else value
