"""Serialises raw frames for another process, which decodes their bodies.

Law: unpacked items equal the packed ones, in the same order; decoding needs nothing else.

    in capture order, cheap:   packets, flows, framing, pairing --> [LocatedItem] --pack-->
    in any process:            SerialisedFrames --unpack--> [LocatedItem] --decode--> rows, text
"""

from __future__ import annotations

from mmap import mmap
from typing import Final, NamedTuple

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

from .apis import KAFKA_APIS, Apis, apis_of
from .decoding import InFlightRequest, LocatedItem, RawFrame


class SerialisedFrames(NamedTuple):
    """Items as a few flat values.

    numbers: 11 integers of each request, 13 of each response, of 8 bytes each; some of them are
    indices into `texts`. frames: the bytes of all frames, concatenated, unless they are apart.
    others: the items that are not raw frames, by index. package: the import name of their package.
    """

    numbers: bytes
    texts: list[str | None]
    frames: bytes
    others: dict[int, LocatedItem]
    package: str = KAFKA_APIS.package.name


NUMBER: Final = 8
REQUEST_BYTES: Final = 11 * NUMBER
RESPONSE_BYTES: Final = 13 * NUMBER


def pack(items: list[LocatedItem]) -> SerialisedFrames:
    """Serialise items, all of one package."""
    packed, frames = pack_apart(items)
    return packed._replace(frames=b"".join(frames))


def pack_apart(items: list[LocatedItem]) -> tuple[SerialisedFrames, list[bytes]]:
    """Serialise items without a copy of their frames, which are returned apart."""
    numbers = BytesWriter()
    texts: dict[str | None, i64] = {}
    frames: list[bytes] = []
    others: dict[int, LocatedItem] = {}
    apis = KAFKA_APIS
    for at, located in enumerate(items):
        item = located.item
        if not isinstance(item, RawFrame) or item.request is None or located.connection is None:
            others[at] = located
            continue
        request = item.request
        apis = request.apis
        frames.append(item.frame)
        write_i64_le(numbers, located.connection)
        write_i64_le(numbers, _index(texts, located.client))
        write_i64_le(numbers, _index(texts, located.broker))
        write_i64_le(numbers, len(item.frame))
        write_i64_le(numbers, item.packet)
        write_i64_le(numbers, item.time_ns)
        write_i64_le(numbers, item.body)
        write_i64_le(numbers, _index(texts, item.error))
        key, version = i64(request.api_key) & 0xFFFF, i64(request.api_version) & 0xFFFF
        write_i64_le(numbers, key << 17 | version << 1 | (1 if item.is_request else 0))
        write_i64_le(numbers, request.correlation_id)
        write_i64_le(numbers, _index(texts, request.client_id))
        if not item.is_request:
            write_i64_le(numbers, request.packet)
            write_i64_le(numbers, request.time_ns)
    package: str = apis.package.name
    return SerialisedFrames(numbers.getvalue(), list(texts), b"", others, package), frames


def _index(texts: dict[str | None, i64], text: str | None) -> i64:
    index = texts.get(text)
    if index is None:
        index = texts[text] = len(texts)
    return index


def unpack(serialised: SerialisedFrames) -> list[LocatedItem]:
    """Deserialise items."""
    return _unpacked(serialised, None, 0)


def unpack_apart(serialised: SerialisedFrames, memory: mmap, start: int) -> list[LocatedItem]:
    """Deserialise items whose frames begin at `start` in the memory; each is copied once."""
    return _unpacked(serialised, memory, start)


def _unpacked(serialised: SerialisedFrames, memory: mmap | None, start: i64) -> list[LocatedItem]:
    numbers, texts, frames, others, package = serialised
    apis = apis_of(package)
    items: list[LocatedItem] = []
    at: i64 = 0
    end: i64 = len(numbers)
    while at < end or len(items) in others:
        if others:
            other = others.get(len(items))
            if other is not None:
                items.append(other)
                continue
        stop = start + read_i64_le(numbers, at + 3 * NUMBER)
        frame = frames[start:stop] if memory is None else memory[start:stop]
        located = _item_at(numbers, at, texts, frame, apis)
        start = stop
        at += REQUEST_BYTES if read_i64_le(numbers, at + 8 * NUMBER) & 1 else RESPONSE_BYTES
        items.append(located)
    return items


def _item_at(
    numbers: bytes, at: i64, texts: list[str | None], frame: bytes, apis: Apis
) -> LocatedItem:
    packet = read_i64_le(numbers, at + 4 * NUMBER)
    time_ns = read_i64_le(numbers, at + 5 * NUMBER)
    kind = read_i64_le(numbers, at + 8 * NUMBER)
    is_request = kind & 1 == 1
    request = InFlightRequest(
        signed16(kind >> 17),
        signed16(kind >> 1 & 0xFFFF),
        read_i64_le(numbers, at + 9 * NUMBER),
        texts[read_i64_le(numbers, at + 10 * NUMBER)],
        packet if is_request else read_i64_le(numbers, at + REQUEST_BYTES),
        time_ns if is_request else read_i64_le(numbers, at + REQUEST_BYTES + NUMBER),
        apis,
    )
    error = texts[read_i64_le(numbers, at + 7 * NUMBER)] or ""
    body = read_i64_le(numbers, at + 6 * NUMBER)
    return LocatedItem(
        read_i64_le(numbers, at),
        texts[read_i64_le(numbers, at + NUMBER)],
        texts[read_i64_le(numbers, at + 2 * NUMBER)],
        RawFrame(is_request, frame, packet, time_ns, request, body, error),
    )


def signed16(value: i64) -> i64:
    """Convert an unsigned 16-bit integer to a signed one."""
    return value - 0x10000 if value > 0x7FFF else value
