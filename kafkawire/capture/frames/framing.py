"""Takes frames from the bytes of one direction, and decodes their headers.

Bytes are removed from a stream by `take` only; positions count from the first byte added.
Content never raises: a malformed header is the error of its raw frame, and the row of a truncated
frame has the captured bytes and says how many there should be.

    bytes of a direction --Stream--> frame, and the packet of its last byte (Mark)
    request frame ---header--> RawFrame(request: API, version, correlation id, client id)
    response frame --pairing--> RawFrame(request: the one that it responds to)
    truncated frame --header--> Row(status=truncated)
"""

# over 300 lines: the bytes of a direction and the headers of its frames, hot

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_le, write_i64_le
from mypy_extensions import i64, mypyc_attr

from ...errors import DecodeError
from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.header import REQUEST_PREFIX, decode_request_header
from ..rows import Row, Status
from .apis import KAFKA_APIS, Apis
from .decoding import InFlightRequest, RawFrame, with_header

SIZE: Final = 4
"""Bytes of the size in front of a frame."""

MARK_BYTES: Final = 24
"""Bytes of a packet in the state of a stream."""

MAX_SHOWN_ID: Final = 256
"""Bytes of a client id that is not UTF-8 that its error shows."""

MIN_HEADER: Final = 10
"""Bytes of a request header up to the length of its client id."""


@final
@mypyc_attr(acyclic=True)
class Mark:
    """The packet of the bytes up to `end` (a stream position), and its time."""

    def __init__(self, end: i64, packet: i64, time_ns: i64) -> None:
        self.end: i64 = end
        self.packet: i64 = packet
        self.time_ns: i64 = time_ns


@final
@mypyc_attr(acyclic=True)
class Stream:
    """Buffered bytes of one direction.

    in_sync: whether a frame is known to begin at `position`. skip: bytes of an incomplete frame
    still to be skipped. skipped: bytes skipped of it, up to the packet `last`. need: the number of
    held bytes to wait for before the next attempt.
    """

    def __init__(self, in_sync: bool) -> None:
        self.in_sync: bool = in_sync
        self.position: i64 = 0
        self.skip: i64 = 0
        self.skipped: i64 = 0
        self.last: Mark | None = None
        self.need: i64 = 1
        self.held: i64 = 0
        self._data: bytes = b""
        self._at: i64 = 0
        self._more: list[bytes] = []
        self._marks: list[Mark] = []

    def add(self, data: bytes, packet: i64, time_ns: i64) -> None:
        """Append bytes."""
        if self.held:
            self._more.append(data)
        else:
            self._data = data
            self._at = 0
        self.held += len(data)
        self._marks.append(Mark(self.position + self.held, packet, time_ns))

    @property
    def ready(self) -> bool:
        return self.held >= self.need

    @property
    def at_frame_start(self) -> bool:
        """Whether a frame is known to begin at the next byte."""
        return self.in_sync and not self.held and not self.skip

    @property
    def is_in_order(self) -> bool:
        """Whether a frame is known to begin at `position`, and nothing is skipped."""
        return self.in_sync and not self.skip and not self.skipped

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to report."""
        return not self.held and not self.skipped

    def peek(self) -> bytes:
        """Return all held bytes without consuming them."""
        if self._more:
            self._data = b"".join([self._data[self._at :], *self._more])
            self._more = []
            self._at = 0
        elif self._at:
            self._data = self._data[self._at :]
            self._at = 0
        return self._data

    def size(self) -> int:
        """Read the int32 at the start of the held bytes, of which there are at least four."""
        if self._more and len(self._data) - self._at < 4:
            self.peek()
        return int(read_i32_be(self._data, self._at))

    def take(self, size: i64) -> bytes:
        """Consume the first `size` held bytes; `size` is at most `held`."""
        return self._take(size, 0)

    def take_frame(self, size: i64) -> bytes:
        """Consume a frame of `size` bytes and its size, which must be held; return the frame."""
        return self._take(SIZE + size, SIZE)

    def _take(self, size: i64, skipped: i64) -> bytes:
        """Consume bytes, and return them without the first ones."""
        if self._more and len(self._data) - self._at < size:
            self.peek()
        start = self._at
        taken = self._data[start + skipped : start + size]
        self.held -= size
        self.position += size
        self.need = 1
        if self.held:
            self._at = start + size
            if self._at == len(self._data):
                self._data = self._more.pop(0)
                self._at = 0
        else:
            self._data = b""
            self._at = 0
        return taken

    def skip_held(self) -> None:
        """Consume the held bytes of the frame that is being skipped."""
        size = self.skip if self.skip < self.held else self.held
        self.last = self.mark(size)
        self.take(size)
        self.skip -= size
        self.skipped += size

    def partial_frame(self) -> tuple[int, int] | None:
        """Return the size of the incomplete frame at the start, and how many bytes it lacks."""
        if not self.in_sync or self.held < SIZE or self.skip:
            return None
        size = self.size()
        return size, SIZE + size - self.held

    def save(self, out: BytesWriter) -> bytes:
        """Write end, packet and time of the packets of the held bytes, as int64; return these."""
        for mark in self._marks:
            if self.held and mark.end > self.position:
                write_i64_le(out, mark.end)
                write_i64_le(out, mark.packet)
                write_i64_le(out, mark.time_ns)
        return self.peek() if self.held else b""

    def restore(self, position: i64, data: bytes, marks: bytes) -> None:
        """Continue behind frames that were taken elsewhere. data, marks: as `save` makes them."""
        self.position = position
        self.need = 1
        self.held = len(data)
        self._data = data
        self._at = 0
        self._more = []
        self._marks = [
            Mark(
                read_i64_le(marks, offset),
                read_i64_le(marks, offset + 8),
                read_i64_le(marks, offset + 16),
            )
            for offset in range(0, len(marks), MARK_BYTES)
        ]

    def mark(self, size: i64) -> Mark:
        """Return the packet of the held byte at `size - 1`; drop the packets before it."""
        marks = self._marks
        wanted = self.position + size
        index: i64 = 0
        last: i64 = len(marks) - 1
        while index < last and marks[index].end < wanted:
            index += 1
        if index:
            del marks[:index]
        return marks[0]


# -- headers


def in_flight_request(row: Row, apis: Apis = KAFKA_APIS) -> InFlightRequest | None:
    """Return the in-flight request of a request row; None if its header could not be decoded."""
    if row.api_key is None or row.api_version is None or row.correlation_id is None:
        return None
    id, client_id, packet = row.correlation_id, row.client_id, row.packet
    return InFlightRequest(row.api_key, row.api_version, id, client_id, packet, row.time_ns, apis)


def raw_request(
    frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS, apis: Apis = KAFKA_APIS
) -> RawFrame:
    """Decode the header of a request frame (without its size)."""
    try:
        head = decode_request_header(frame, lenient=True, limits=limits, package=apis.package)
    except DecodeError as malformed:
        request = _prefix(frame, mark, apis)
        return RawFrame(True, frame, mark.packet, mark.time_ns, request, -1, str(malformed))
    header = head.header
    client_id: str | None = getattr(header, "client_id", None)
    error = ""
    if header.deviations is not None and client_id is not None:
        client_id, error = replaced_text(client_id)
    request = InFlightRequest(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        client_id,
        mark.packet,
        mark.time_ns,
        apis,
    )
    if header.deviations is not None and not error:
        error = f"client id: {header.deviations}"
    return RawFrame(True, frame, mark.packet, mark.time_ns, request, head.end, error)


def replaced_text(client_id: str) -> tuple[str, str]:
    """Return a client id with U+FFFD for what is not UTF-8, and an error with its bytes.

    client_id: as the lenient decoder returns it. The error is empty if all of it is UTF-8.
    """
    data = client_id.encode("utf-8", "surrogateescape")
    text = data.decode("utf-8", "replace")
    if text == client_id:
        return text, ""
    more = "..." if len(data) > MAX_SHOWN_ID else ""
    return text, f"client id: not UTF-8 (bytes {data[:MAX_SHOWN_ID].hex()}{more})"


@final
class RequestHeads:
    """Decodes the ordinary request headers of a connection, fast.

    The result is that of `raw_request`, or None.
    """

    def __init__(self, apis: Apis = KAFKA_APIS) -> None:
        self._apis: Apis = apis
        self._client_id: str | None = None
        self._client_bytes: bytes = b""

    def read(self, frame: bytes, packet: i64, time_ns: i64) -> RawFrame | None:
        """Decode the header of a request frame (without its size); None: use `raw_request`."""
        size: i64 = len(frame)
        if size < MIN_HEADER:
            return None
        key, version = i64(read_i16_be(frame, 0)), i64(read_i16_be(frame, 2))
        api = self._apis.api(key)
        if version < api.ordinary:
            return None
        length = i64(read_i16_be(frame, 8))
        if length < -1:
            return None
        end = MIN_HEADER if length == -1 else MIN_HEADER + length
        body = end
        if version >= api.tagged:
            body += 1
            if body <= size and frame[end] != 0:
                return None
        if body > size:
            return None
        client_id: str | None = None
        if length >= 0:
            text = frame[MIN_HEADER:end]
            if text != self._client_bytes or self._client_id is None:
                if not text.isascii():
                    return None
                self._client_bytes, self._client_id = text, text.decode("ascii")
            client_id = self._client_id
        id = read_i32_be(frame, 4)
        request = InFlightRequest(key, version, id, client_id, packet, time_ns, self._apis)
        return RawFrame(True, frame, packet, time_ns, request, body, "")


def raw_response(frame: bytes, mark: Mark, request: InFlightRequest) -> RawFrame:
    """Pair a response frame (without its size) with its request."""
    return RawFrame(False, frame, mark.packet, mark.time_ns, request, 4, "")


def _prefix(frame: bytes, mark: Mark, apis: Apis) -> InFlightRequest | None:
    """Decode the fixed first fields of a request whose header is malformed behind them."""
    if len(frame) < REQUEST_PREFIX:
        return None
    key, version = int(read_i16_be(frame, 0)), int(read_i16_be(frame, 2))
    id = int(read_i32_be(frame, 4))
    return InFlightRequest(key, version, id, None, mark.packet, mark.time_ns, apis)


def request_row(frame: bytes, mark: Mark, limits: Limits, apis: Apis) -> Row:
    """Decode a request frame (without its size)."""
    return raw_request(frame, mark, limits, apis).decode(limits)


def response_row(
    frame: bytes, mark: Mark, request: InFlightRequest, limits: Limits = DEFAULT_LIMITS
) -> Row:
    """Decode a response frame (without its size) to a request."""
    return raw_response(frame, mark, request).decode(limits)


# -- truncated frames


def partial_request(frame: bytes, size: int, mark: Mark, apis: Apis = KAFKA_APIS) -> Row:
    """Decode the header of a truncated request; `frame`: the captured part of its `size` bytes."""
    raw = raw_request(frame, mark, apis=apis)
    error = f"truncated frame: {len(frame)} of {size} bytes"
    row = Row(mark.packet, mark.time_ns, "request", size, Status.TRUNCATED, error, raw=frame)
    return row if raw.request is None else with_header(row, raw.request)


def partial_response(frame: bytes, size: int, mark: Mark, request: InFlightRequest | None) -> Row:
    """Make the row of a truncated response."""
    row = Row(
        mark.packet,
        mark.time_ns,
        "response",
        size,
        Status.TRUNCATED,
        f"truncated frame: {len(frame)} of {size} bytes",
        raw=frame,
    )
    if request is None:
        return row
    return with_header(row, request)._replace(
        request_packet=request.packet, request_time_ns=request.time_ns
    )
