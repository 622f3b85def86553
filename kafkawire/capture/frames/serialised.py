"""Serialises raw frames for another process, which decodes their bodies.

Unpacked items equal the packed ones, in the same order; decoding needs nothing but what the
recipient has got of a packer, in order.

    in capture order, cheap:   packets, flows, framing, pairing --> [LocatedItem] --pack-->
    in any process:            SerialisedFrames --unpack--> [LocatedItem] --decode--> rows
                               SerialisedFrames --SerialisedReader--> text
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64, mypyc_attr

from .apis import KAFKA_APIS, Apis, apis_of
from .decoding import InFlightRequest, LocatedItem, RawFrame

Shared: TypeAlias = tuple[int, str | None, str | None, str | None]
"""What the items of a connection have in common: its number, client, broker and client id."""


class SerialisedFrames(NamedTuple):
    """Items as a few flat values.

    numbers: 8 integers of each request, 10 of each response, of 8 bytes each; one is the index of
    an error, of which the first is "". frames: the bytes of all frames, concatenated, unless they
    are apart. shared: what items have in common, behind what the recipient knows of it, which it
    forgets first if `forgets`. others: the items that are not raw frames, by index. package: the
    import name of their package.
    """

    numbers: bytes
    errors: list[str]
    frames: bytes
    shared: list[Shared]
    others: dict[int, LocatedItem]
    package: str = KAFKA_APIS.package.name
    forgets: bool = True


NUMBER: Final = 8
REQUEST_BYTES: Final = 8 * NUMBER
RESPONSE_BYTES: Final = 10 * NUMBER

MAX_KNOWN: Final = 1 << 12
"""What a recipient knows of connections at most; then it forgets all."""


def pack(items: list[LocatedItem]) -> SerialisedFrames:
    """Serialise items, all of one package."""
    packed, frames = Packer().pack_apart(items)
    return packed._replace(frames=b"".join(frames))


@final
@mypyc_attr(acyclic=True)
class Packer:
    """Serialises items for a recipient, which gets what they have in common only once.

    delivered: whether the recipient has got what was packed last; otherwise it gets all again.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Shared]] = {}
        self._count: int = 0
        self.delivered: bool = False

    def pack_apart(self, items: list[LocatedItem]) -> tuple[SerialisedFrames, list[bytes]]:
        """Serialise items without a copy of their frames, which are returned apart."""
        forgets = not self.delivered or self._count > MAX_KNOWN
        if forgets:
            self._known.clear()
            self._count = 0
        self.delivered = False
        numbers = BytesWriter()
        errors: dict[str, i64] = {"": 0}
        frames: list[bytes] = []
        shared: list[Shared] = []
        others: dict[int, LocatedItem] = {}
        apis = KAFKA_APIS
        for index, located in enumerate(items):
            item, connection = located.item, located.connection
            if not isinstance(item, RawFrame) or item.request is None or connection is None:
                others[index] = located
                continue
            request = item.request
            apis = request.apis
            frames.append(item.frame)
            write_i64_le(numbers, self._index(connection, located, request.client_id, shared))
            _write(numbers, item, request, errors)
        name: str = apis.package.name
        content = numbers.getvalue(), list(errors), b"", shared, others, name, forgets
        return SerialisedFrames(*content), frames

    def _index(
        self, connection: int, located: LocatedItem, client_id: str | None, shared: list[Shared]
    ) -> i64:
        """Return the index of what an item has in common with others; add it if it is new."""
        client, broker = located.client, located.broker
        numbered = self._known.get(connection)
        if numbered is not None:
            index, its = numbered
            is_of_client = its[3] is client_id or its[3] == client_id
            if is_of_client and its[1] is client and its[2] is broker:
                return index
        new = connection, client, broker, client_id
        shared.append(new)
        index = self._count
        self._known[connection] = index, new
        self._count = index + 1
        return index


def _write(
    numbers: BytesWriter, item: RawFrame, request: InFlightRequest, errors: dict[str, i64]
) -> None:
    write_i64_le(numbers, len(item.frame))
    write_i64_le(numbers, item.packet)
    write_i64_le(numbers, item.time_ns)
    write_i64_le(numbers, item.body)
    write_i64_le(numbers, _index(errors, item.error) if item.error else 0)
    key, version = i64(request.api_key) & 0xFFFF, i64(request.api_version) & 0xFFFF
    write_i64_le(numbers, key << 17 | version << 1 | (1 if item.is_request else 0))
    write_i64_le(numbers, request.correlation_id)
    if not item.is_request:
        write_i64_le(numbers, request.packet)
        write_i64_le(numbers, request.time_ns)


def _index(errors: dict[str, i64], error: str) -> i64:
    index = errors.get(error)
    if index is None:
        index = errors[error] = len(errors)
    return index


def unpack(serialised: SerialisedFrames) -> list[LocatedItem]:
    """Deserialise items."""
    return SerialisedReader(serialised).items()


@final
@mypyc_attr(acyclic=True)
class SerialisedReader:
    """Reads serialised items one after the other, without creating objects for them.

    other: the current item, if it is not a raw frame; otherwise its fields are those of the raw
    frame and of its request, and `frames[start:end]` are its bytes. known: what this recipient
    knows of connections, to which what the items share is added.
    """

    def __init__(
        self, serialised: SerialisedFrames, shared_before: list[Shared] | None = None
    ) -> None:
        if shared_before is None:
            shared_before = serialised.shared
        else:
            if serialised.forgets:
                shared_before.clear()
            shared_before += serialised.shared
        self._known: list[Shared] = shared_before
        self._numbers: bytes = serialised.numbers
        self._errors: list[str] = serialised.errors
        self.frames: bytes = serialised.frames
        self._others: dict[int, LocatedItem] = serialised.others
        self.apis: Apis = apis_of(serialised.package)
        self._at: i64 = 0
        self._following: i64 = 0
        self._count: i64 = 0
        self.other: LocatedItem | None = None
        self.start: i64 = 0
        self.end: i64 = 0
        self.connection: int = 0
        self.client: str | None = None
        self.broker: str | None = None
        self.client_id: str | None = None
        self.error: str = ""
        self.packet: i64 = 0
        self.time_ns: i64 = 0
        self.body: i64 = 0
        self.is_request: bool = False
        self.api_key: i64 = 0
        self.api_version: i64 = 0
        self.correlation_id: i64 = 0

    def items(self) -> list[LocatedItem]:
        """Create all items."""
        items: list[LocatedItem] = []
        while self.next():
            items.append(self.item())
        return items

    def next(self) -> bool:
        """Read the next item; False if there is none."""
        position = self._at = self._following
        count = self._count
        self._count = count + 1
        if self._others:
            self.other = self._others.get(count)
            if self.other is not None:
                return True
        numbers = self._numbers
        if position == len(numbers):
            return False
        shared = self._known[read_i64_le(numbers, position)]
        self.connection, self.client, self.broker, self.client_id = shared
        self.start = self.end
        self.end += read_i64_le(numbers, position + NUMBER)
        self.packet = read_i64_le(numbers, position + 2 * NUMBER)
        self.time_ns = read_i64_le(numbers, position + 3 * NUMBER)
        self.body = read_i64_le(numbers, position + 4 * NUMBER)
        self.error = self._errors[read_i64_le(numbers, position + 5 * NUMBER)]
        kind = read_i64_le(numbers, position + 6 * NUMBER)
        self.is_request = kind & 1 == 1
        self.api_key = signed16(kind >> 17)
        self.api_version = signed16(kind >> 1 & 0xFFFF)
        self.correlation_id = read_i64_le(numbers, position + 7 * NUMBER)
        self._following = position + (REQUEST_BYTES if kind & 1 else RESPONSE_BYTES)
        return True

    def item(self) -> LocatedItem:
        """Create the current item."""
        if self.other is not None:
            return self.other
        packet, time_ns = self.packet, self.time_ns
        if not self.is_request:
            packet = read_i64_le(self._numbers, self._at + REQUEST_BYTES)
            time_ns = read_i64_le(self._numbers, self._at + REQUEST_BYTES + NUMBER)
        request = InFlightRequest(
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            packet,
            time_ns,
            self.apis,
        )
        raw_frame = RawFrame(
            self.is_request,
            self.frames[self.start : self.end],
            self.packet,
            self.time_ns,
            request,
            self.body,
            self.error,
        )
        return LocatedItem(self.connection, self.client, self.broker, raw_frame)


def signed16(value: i64) -> i64:
    """Convert an unsigned 16-bit integer to a signed one."""
    return value - 0x10000 if value > 0x7FFF else value
