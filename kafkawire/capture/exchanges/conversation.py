"""The state machine of a captured connection: bytes of both directions in, rows out.

Law: the capture may lack the beginning, the end and anything in between. A frame is accepted only
if the stream is in sync, that is, if a frame is known to begin there, or if its content proves it.

    bytes --> [undetected] --a request is detected--> [client, broker]
                  `------ it begins like another protocol --> [other]

    in sync --a gap inside a frame of known size--> skip its rest --> in sync
      `------ a gap elsewhere, an invalid size --> out of sync --a proven frame--> in sync
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import i64

from ...primitives import DEFAULT_LIMITS, Limits
from ..frames.decoding import RawFrame, RequestHeads, in_flight_request, raw_request
from ..frames.detection import (
    HEADER,
    MIN_REQUEST,
    Confidence,
    Found,
    check_request,
    find_request,
    find_response,
    looks_like_request,
    scan_request,
    signature,
)
from ..frames.stream import Mark, Stream
from ..frames.truncated import partial_request
from ..rows import Row, Status
from .inference import Inference, walk_responses
from .pairing import HANDSHAKE, Item, Pairing, is_handshake_0

SIZE: Final = 4
MAX_HELD: Final = 1 << 20
"""Bytes held of a direction that is undetected or out of sync; older ones are given up."""

DIRECTIONS: Final = ("request", "response")


@final
class Conversation:
    """One connection between sides 0 and 1.

    client: the side that sends requests; None until detected. It may be given if it is known from a
    SYN or a port. in_sync: for each side, whether its first byte is the first byte of its stream.
    """

    def __init__(
        self,
        *,
        client: int | None = None,
        in_sync: tuple[bool, ...] = (False, False),
        known_kafka: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.client = client
        self.detected = known_kafka and client is not None
        self.other: str | None = None
        self.limits = limits
        self._streams = (Stream(in_sync[0]), Stream(in_sync[1]))
        self._pairing = Pairing(limits)
        self._inference = Inference(limits)
        self._walked = 0
        self._searched = [0, 0]
        self._retry_at = [0, 0]
        self._sasl_tokens = False
        self._heads = RequestHeads()

    # -- events in, rows out

    def feed(self, side: int, data: bytes, packet: int, time_ns: int) -> list[Row]:
        """Handle the next bytes of a side, which became contiguous with one packet."""
        return self._decoded(self.take(side, data, packet, time_ns))

    def gap(
        self, side: int, size: int, packet: int, time_ns: int, reason: str = "lost"
    ) -> list[Row]:
        """Handle a gap: `size` bytes of a side were sent and not captured."""
        return self._decoded(self.take_gap(side, size, packet, time_ns, reason))

    def finish(self) -> list[Row]:
        """Handle the end of the connection: buffered data is flushed as rows."""
        return self._decoded(self.end())

    def _decoded(self, items: list[Item]) -> list[Row]:
        return [item.decode(self.limits) if isinstance(item, RawFrame) else item for item in items]

    # -- events in, items out: bodies stay undecoded

    def take_single_frame(
        self, side: i64, data: bytes, packet: i64, time_ns: i64
    ) -> RawFrame | None:
        """Handle bytes that are exactly one frame, as `take` would, but faster. Returns None, and
        does nothing, if they may be anything else.
        """
        stream = self._streams[side]
        size: i64 = len(data) - SIZE
        if (
            size < MIN_REQUEST
            or not stream.at_frame_start
            or not (self.detected or self._is_first_request(side, data))
            or self._sasl_tokens
            or read_i32_be(data, 0) != size
            or size > self.limits.max_frame_bytes
            or self._pairing.has_waiting
        ):
            return None
        frame = data[SIZE:]
        if side == self.client:
            raw_frame = self._heads.read(frame, packet, time_ns)
            if raw_frame is None:
                return None
            self.detected = True
            assert raw_frame.request is not None
            self._pairing.add(raw_frame.request)
        else:
            request = self._pairing.oldest(read_i32_be(frame, 0))
            if request is None or request.api_key == HANDSHAKE:
                return None
            self._pairing.complete_oldest()
            raw_frame = RawFrame(False, frame, packet, time_ns, request, SIZE, "")
            self._inference.add_response(raw_frame, request)
        stream.position += size + SIZE
        return raw_frame

    def _is_first_request(self, side: i64, data: bytes) -> bool:
        """Whether these are the first bytes of the connection, and begin with a request."""
        return (
            side == self.client
            and self.other is None
            and not self._streams[1 - side].held
            and looks_like_request(data, 0, self.limits.max_frame_bytes)
        )

    def take(self, side: int, data: bytes, packet: int, time_ns: int) -> list[Item]:
        """Handle the next bytes of a side, which became contiguous with one packet."""
        stream = self._streams[side]
        stream.add(data, packet, time_ns)
        if self.other is not None:
            return self._give_up(side, stream.held, Status.OTHER_PROTOCOL, self.other)
        if self.detected:
            return self._advance(side) if stream.ready else []
        return self._detect()

    def take_gap(self, side: int, size: int, packet: int, time_ns: int, reason: str) -> list[Item]:
        """Handle a gap: `size` bytes of a side were sent and not captured."""
        rows: list[Item] = []
        if not self.detected and self.other is None:
            rows += self._detect(last=True)
        rows += self._lose_bytes(side, size)
        rows.append(Row(packet, time_ns, self._direction(side), size, Status.GAP, reason))
        return rows

    def end(self) -> list[Item]:
        """Handle the end of the connection: buffered data is flushed as rows."""
        rows: list[Item] = []
        first, second = self._streams
        if first.is_empty and second.is_empty and not self._pairing.has_waiting:
            return rows
        if not self.detected and self.other is None:
            rows += self._detect(last=True)
        for side in (0, 1):
            rows += self._flush(side)
        return rows + self._inference.infer_unpaired(self._pairing.finish())

    # -- protocol detection

    def _direction(self, side: int) -> str:
        return DIRECTIONS[0 if self.client is None or side == self.client else 1]

    def _detect(self, *, last: bool = False) -> list[Item]:
        """Detect the client; last: also if few bytes arrived since the last attempt."""
        for side in (0, 1) if self.client is None else (self.client,):
            stream = self._streams[side]
            end = stream.position + stream.held
            if not stream.held or (end < self._retry_at[side] and not last):
                continue
            self._retry_at[side] = end + _retry_bytes(stream.held)
            data = stream.peek()
            if self._sends_requests(side, data):
                return self._set_client(side)
            protocol = signature(data)
            if protocol is not None:
                return self._set_other(protocol)
            if self._sends_only_responses(side):
                self._streams[side].in_sync = True
                return self._set_client(1 - side)
        if sum(stream.held for stream in self._streams) > MAX_HELD:
            return self._set_other("not recognised")
        return []

    def _sends_requests(self, side: int, data: bytes) -> bool:
        limit, stream = self.limits.max_frame_bytes, self._streams[side]
        if stream.in_sync and self.client is not None:
            return looks_like_request(data, 0, limit)
        start = max(0, self._searched[side] - stream.position)
        found, resume = scan_request(data, limit, start)
        self._searched[side] = stream.position + resume
        if found is None:
            return False
        self._retry_at[side] = stream.position + _bytes_for_retry(data, found.at)
        return found.proven

    def _sends_only_responses(self, side: int) -> bool:
        """Whether a side sends responses, if the other side was not captured: one of its first
        frames can only be a certain response.
        """
        stream, other = self._streams[side], self._streams[1 - side]
        if other.position or other.held or side == self.client:
            return False
        start = max(0, self._walked - stream.position)
        walked = walk_responses(stream.peek(), start, self.limits)
        self._walked = stream.position + walked.end
        return walked.certain

    def _set_client(self, client: int) -> list[Item]:
        self.client = client
        self.detected = True
        rows = self._advance(client) + self._advance(1 - client)
        rows.sort(key=lambda row: row.packet)
        return rows

    def _set_other(self, protocol: str) -> list[Item]:
        self.other = protocol
        return [
            row
            for side in (0, 1)
            if self._streams[side].held
            for row in self._give_up(
                side, self._streams[side].held, Status.OTHER_PROTOCOL, protocol
            )
        ]

    # -- bytes to frames

    def _advance(self, side: int) -> list[Item]:
        stream = self._streams[side]
        rows: list[Item] = []
        while stream.held:
            if stream.skip:
                rows += self._skip(side)
            elif not stream.in_sync:
                if not self._resynchronise(side, rows):
                    break
            elif not self._frame(side, rows):
                break
        return rows

    def _skip(self, side: int) -> list[Item]:
        stream = self._streams[side]
        size = min(stream.skip, stream.held)
        stream.last = stream.mark(size)
        stream.take(size)
        stream.skip -= size
        stream.skipped += size
        return [] if stream.skip else self._skipped(side)

    def _skipped(self, side: int) -> list[Item]:
        """Report the captured bytes of a frame behind its gap."""
        stream = self._streams[side]
        size, stream.skipped = stream.skipped, 0
        if not size:
            return []
        mark = stream.last
        assert mark is not None
        reason = "rest of a frame with missing bytes"
        return [
            Row(mark.packet, mark.time_ns, self._direction(side), size, Status.UNPARSED, reason)
        ]

    def _frame(self, side: int, rows: list[Item]) -> bool:
        """Consume one frame of a side that is in sync; False if it is incomplete so far."""
        stream = self._streams[side]
        if stream.held < SIZE:
            stream.need = SIZE
            return False
        size = stream.size()
        least = SIZE if side != self.client or self._sasl_tokens else MIN_REQUEST
        if not least <= size <= self.limits.max_frame_bytes and not (
            self._sasl_tokens and size >= 0
        ):
            stream.in_sync = False
            return True
        if stream.held < SIZE + size:
            stream.need = SIZE + size
            return False
        mark = stream.mark(SIZE + size)
        frame = stream.take(SIZE + size)[SIZE:]
        rows += self._request(frame, mark) if side == self.client else self._response(frame, mark)
        return True

    def _resynchronise(self, side: int, rows: list[Item]) -> bool:
        """Resynchronise a side at a frame that its content proves; False: more bytes are needed."""
        stream = self._streams[side]
        data = stream.peek()
        if side == self.client:
            found = find_request(data, self.limits.max_frame_bytes)
        else:
            found = self._find_response(data)
        # without a candidate, a frame may begin in the last bytes
        at, proven = found or Found(max(0, len(data) - HEADER), False)
        if not proven and stream.held - at > MAX_HELD:
            at = stream.held - HEADER
        if at:
            rows += self._give_up(side, at, Status.UNPARSED, "out of sync")
        stream.in_sync = proven
        if not proven:
            is_frame = found is not None and (side == self.client or self._pairing.has_in_flight)
            held = stream.held
            stream.need = (
                _bytes_for_retry(stream.peek(), 0) if is_frame else held + _retry_bytes(held)
            )
        return proven

    def _find_response(self, data: bytes) -> Found | None:
        in_flight = self._pairing.in_flight()
        if not in_flight and self._sends_only_responses(1 - (self.client or 0)):
            return Found(0, True)
        if not in_flight and len(data) <= MAX_HELD:
            return Found(0, False)  # the request may still follow in the capture
        return find_response(data, in_flight, self.limits.max_frame_bytes)

    # -- frames to rows

    def _request(self, frame: bytes, mark: Mark) -> list[Item]:
        if self._sasl_tokens:
            framed = len(frame).to_bytes(SIZE, "big") + frame
            if check_request(framed, 0, len(frame)) is not Confidence.PROVEN:
                return [self._token(frame, mark, "request")]
            self._sasl_tokens = False
        raw_frame = raw_request(frame, mark, self.limits)
        responses = self._pairing.add_request(raw_frame.request)
        return [raw_frame, *self._inference.infer_unpaired(responses)] if responses else [raw_frame]

    def _response(self, frame: bytes, mark: Mark) -> list[Item]:
        if self._sasl_tokens:
            return [self._token(frame, mark, "response")]
        rows = self._inference.infer_unpaired(self._pairing.add_response(frame, mark))
        for row in rows:
            if is_handshake_0(row):
                decoded = row.decode(self.limits) if isinstance(row, RawFrame) else row
                self._sasl_tokens = getattr(decoded.message, "error_code", -1) == 0
        return rows

    def _token(self, frame: bytes, mark: Mark, direction: str) -> Row:
        return Row(mark.packet, mark.time_ns, direction, len(frame), Status.SASL_TOKEN, raw=frame)

    # -- missing bytes

    def _lose_bytes(self, side: int, size: int) -> list[Item]:
        """Handle `size` missing bytes of a side: inside a frame of known size, skip its rest; else
        the side is out of sync.
        """
        stream = self._streams[side]
        if stream.skip >= size:
            stream.skip -= size
            stream.position += size
            return [] if stream.skip else self._skipped(side)
        frame_size = self._size_of_partial(side) if self.detected else None
        rows = self._flush(side)
        stream.position += size
        if frame_size is not None and frame_size[1] >= size:
            stream.skip = frame_size[1] - size
        else:
            stream.skip = 0
            stream.in_sync = False
        return rows

    def _size_of_partial(self, side: int) -> tuple[int, int] | None:
        """Return the size of the incomplete frame at the start of the held bytes, and how many of
        its bytes are missing.
        """
        stream = self._streams[side]
        if not stream.in_sync or stream.held < SIZE or stream.skip:
            return None
        size = stream.size()
        return size, SIZE + size - stream.held

    def _flush(self, side: int) -> list[Item]:
        stream = self._streams[side]
        if not stream.held:
            return self._skipped(side)
        partial = self._size_of_partial(side) if self.detected else None
        if partial is None:
            status = Status.TRUNCATED if self.detected and stream.in_sync else Status.UNPARSED
            return self._give_up(side, stream.held, status, "truncated frame size")
        mark = stream.mark(stream.held)
        frame = stream.take(stream.held)[SIZE:]
        if side == self.client:
            row = partial_request(frame, partial[0], mark)
            return [
                row,
                *self._inference.infer_unpaired(self._pairing.add_request(in_flight_request(row))),
            ]
        return [self._pairing.partial_response(frame, partial[0], mark)]

    def _give_up(self, side: int, size: int, status: Status, reason: str) -> list[Item]:
        stream = self._streams[side]
        mark = stream.mark(size)
        raw = stream.take(size)
        if status is Status.OTHER_PROTOCOL:
            raw = b""
        return [
            Row(mark.packet, mark.time_ns, self._direction(side), size, status, reason, raw=raw)
        ]


def _retry_bytes(held: int) -> int:
    """Return how many more bytes to wait for before all held bytes are searched again: a share of
    them, so that all searches together are linear in the bytes.
    """
    return 1 + (held >> 4)


def _bytes_for_retry(data: bytes, at: int) -> int:
    """Return how many bytes to hold before a frame that may begin at `at` is checked again: half as
    many more of it, or all of it.
    """
    held = len(data)
    if held - at < SIZE:
        return held + 1
    end = at + SIZE + int(read_i32_be(data, at))
    wanted = held + 1 + ((held - at) >> 1)
    return min(wanted, end) if end > held else held + 1
