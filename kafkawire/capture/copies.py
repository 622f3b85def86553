"""Recognises connections that a capture has twice, before and after address translation.

`tcpdump -i any` on a host with NAT or a bridge sees each packet of a connection on several
interfaces, with other addresses. Such a copy has the same client port and the same sequence numbers
in both directions as another connection that began at the same time. Of a copy, only what is equal
to a message of the original, byte for byte, is left out, once for each; anything else stays, so
that nothing is lost, whatever is taken for a copy.

    original   message -----> rows         copy   message --equal to one of the original--> left out
                  `--digest--------------------------'  `--waits for one, or else--> rows

Memory is bounded: by the connections that began last, by digests and by waiting messages of a copy.
"""

from __future__ import annotations

from typing import Final, final

from .frames.decoding import Item, RawFrame
from .rows import MESSAGES, Row, Status
from .tcp.connection import UNKNOWN, Connection
from .tcp.events import Closed
from .tcp.flow import MASK

FIRST_ITEMS: Final = 8
"""A copy begins before so many items of its original."""

MAX_PORTS: Final = 4096
MAX_BEGINNINGS: Final = 4
"""Client ports, and connections of each, among which the original of a new connection is sought."""

MAX_COPIES: Final = 4
"""Copies of a connection."""

MAX_DISTANCE: Final = 1 << 16
"""How far apart the first sequence numbers of a copy are if its SYN was not captured."""

MAX_DIGESTS: Final = 4096
MAX_WAITING: Final = 256
MAX_WAITING_BYTES: Final = 1 << 22
"""Messages of the original that its copy has not had so far, and the other way around."""

SIZE: Final = 4


@final
class Copy:
    """A connection that copies another one.

    original: the other. messages, bytes: left out.
    """

    def __init__(self, original: Connection) -> None:
        self.original: Connection = original
        self.messages = 0
        self.bytes = 0
        self._unmatched: dict[int, int] = {}
        self._waiting: dict[int, tuple[int, Item]] = {}
        self._waiting_for: dict[int, list[int]] = {}
        self._waiting_bytes = 0
        self._next = 0
        self._original_ended = False
        self._closed: Closed | None = None

    def handle_original(self, digest: int) -> None:
        """Handle an item of the original."""
        waiting = self._waiting_for.get(digest)
        if waiting:
            self._leave_out(self._remove(waiting[0]))
            return
        unmatched = self._unmatched
        unmatched[digest] = unmatched.get(digest, 0) + 1
        if len(unmatched) > MAX_DIGESTS:
            del unmatched[next(iter(unmatched))]

    def handle_copy(self, item: Item) -> list[Item]:
        """Handle an item of the copy; return the items that are none of the original."""
        digest = digest_of(item)
        count = self._unmatched.pop(digest, 0)
        if count:
            if count > 1:
                self._unmatched[digest] = count - 1
            self._leave_out(item)
            return []
        self._waiting[self._next] = digest, item
        self._waiting_for.setdefault(digest, []).append(self._next)
        self._waiting_bytes += captured_bytes(item)
        self._next += 1
        passed = []
        while len(self._waiting) > MAX_WAITING or self._waiting_bytes > MAX_WAITING_BYTES:
            passed.append(self._remove(next(iter(self._waiting))))
        return passed

    def defers(self, closed: Closed) -> bool:
        """Whether the end of the copy waits for that of its original, which returns it."""
        if self._original_ended:
            return False
        self._closed = closed
        return True

    def end_original(self) -> Closed | None:
        """Handle the end of the original; return that of the copy, if it waited."""
        self._original_ended = True
        return self._closed

    def finish(self) -> list[Item]:
        """Return the items that waited for one of the original."""
        return [self._remove(number) for number in [*self._waiting]]

    def row(self, packet: int, time_ns: int) -> Row | None:
        """Make the row that names the copy, if anything of it was left out."""
        if not self.bytes:
            return None
        original = self.original
        ends = f"{original.name(0)} - {original.name(1)}"
        text = f"copy of connection {original.id} ({ends}), messages left out: {self.messages}"
        return Row(packet, time_ns, "", self.bytes, Status.COPY, text)

    def _remove(self, number: int) -> Item:
        digest, item = self._waiting.pop(number)
        same = self._waiting_for[digest]
        same.remove(number)
        if not same:
            del self._waiting_for[digest]
        self._waiting_bytes -= captured_bytes(item)
        return item

    def _leave_out(self, item: Item) -> None:
        self.messages += isinstance(item, RawFrame) or item.is_message
        self.bytes += captured_bytes(item)


@final
class Beginning:
    """The first items of a connection, which may have copies.

    copies: those found; digests: of the first items.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.copies: list[Copy] = []
        self.digests: list[int] = []
        self._has_ended = False

    @property
    def is_over(self) -> bool:
        """Whether no copy can begin any more."""
        full = len(self.digests) >= FIRST_ITEMS or len(self.copies) >= MAX_COPIES
        return full or self._has_ended

    def handle(self, item: Item) -> None:
        """Handle an item of the connection."""
        digest = digest_of(item)
        for copy in self.copies:
            copy.handle_original(digest)
        if len(self.digests) < FIRST_ITEMS:
            self.digests.append(digest)

    def close(self) -> list[Closed]:
        """Handle the end of the connection; return those of its copies that waited for it."""
        self._has_ended = True
        ends = [copy.end_original() for copy in self.copies]
        return [closed for closed in ends if closed is not None]


@final
class Copies:
    """The connections that began last, by client port."""

    def __init__(self) -> None:
        self._beginnings: dict[int, list[Beginning]] = {}

    def begin(self, connection: Connection) -> Copy | Beginning:
        """Handle the first bytes of a connection: it is a copy, or may have copies."""
        port = _client_port(connection)
        beginnings = self._beginnings.setdefault(port, [])
        for beginning in beginnings:
            if not beginning.is_over and _is_copy(connection, beginning.connection, port):
                copy = Copy(beginning.connection)
                for digest in beginning.digests:
                    copy.handle_original(digest)
                beginning.copies.append(copy)
                return copy
        new = Beginning(connection)
        beginnings.append(new)
        del beginnings[:-MAX_BEGINNINGS]
        if len(self._beginnings) > MAX_PORTS:
            del self._beginnings[next(iter(self._beginnings))]
        return new


def digest_of(item: Item) -> int:
    """Return a digest of what an item contains, without its packet and time.

    It is Python's keyed hash: nobody who writes a capture can know two contents with the same one.
    """
    if isinstance(item, RawFrame):
        return hash((item.is_request, item.frame))
    return hash((item.direction, item.status, item.length, item.error, item.raw))


def captured_bytes(item: Item) -> int:
    """Count the captured bytes of an item, including the size field of a frame."""
    if isinstance(item, RawFrame):
        return len(item.frame) + SIZE
    if item.status in MESSAGES:
        return item.length + SIZE
    if item.status is Status.TRUNCATED:
        return len(item.raw) + (SIZE if item.length > len(item.raw) else 0)
    return 0 if item.status is Status.GAP else item.length


def _client_port(connection: Connection) -> int:
    ports = [end.port for end in connection.endpoints]
    return max(ports) if connection.client is None else ports[connection.client]


def _is_copy(connection: Connection, original: Connection, port: int) -> bool:
    """Whether both have the same sequence numbers in both directions."""
    return all(
        _same_start(connection, original, one, other)
        for one, other in zip(_sides(connection, port), _sides(original, port), strict=True)
    )


def _sides(connection: Connection, port: int) -> tuple[int, int]:
    """Return the sides of the client and of the broker."""
    return (0, 1) if connection.endpoints[0].port == port else (1, 0)


def _same_start(connection: Connection, original: Connection, side: int, other: int) -> bool:
    first, second = connection.starts[side], original.starts[other]
    if first == second:
        return first != UNKNOWN
    if UNKNOWN in (first, second) or connection.syn_seen[side] or original.syn_seen[other]:
        return False
    distance = (first - second) & MASK
    return min(distance, MASK + 1 - distance) <= MAX_DISTANCE
