"""The state machine of a captured connection: bytes of both directions in, rows out.

The capture may lack the beginning, the end and anything in between. A frame is accepted only
if the stream is in sync, that is, if a frame is known to begin there, or if its content proves it.

    bytes --> [undetected] --a request is detected--> [client, broker]
                  `------ it begins like another protocol --> [other]

    in sync --a gap inside a frame of known size--> skip its rest --> in sync
      `------ a gap elsewhere, an invalid size --> out of sync --a proven frame--> in sync
                                                      `--a gap in a frame that its header names-->
"""

# over 300 lines: one state machine over both directions

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import i64, mypyc_attr

from ...primitives import DEFAULT_LIMITS, Limits
from ..frames.apis import KAFKA_APIS, Apis
from ..frames.decoding import InFlightRequest, Item, RawFrame
from ..frames.detection import (
    MIN_REQUEST,
    Confidence,
    Found,
    check_request,
    find_request,
    find_response,
    looks_like_request,
    names_client,
)
from ..frames.framing import (
    Mark,
    RequestHeads,
    Stream,
    in_flight_request,
    partial_request,
    raw_request,
)
from ..proxy.layer import Begun
from ..rows import Row, Status
from ..tcp.connection import Run
from ..tcp.events import Closed, Conflict, Event, Gap
from ..tls.outputs import Negotiated, Unsynchronised
from .client_detection import MAX_HELD, ClientDetection, bytes_for_retry, retry_bytes
from .in_flight import Total
from .inference import Inference
from .pairing import Pairing, has_response, is_handshake_0

SIZE: Final = 4
DIRECTIONS: Final = ("request", "response")


@final
@mypyc_attr(acyclic=True)
class Frame:
    """A frame of a side, without its size, of a connection in order (`frames.in_order`)."""

    def __init__(self, side: i64, data: bytes, packet: i64, time_ns: i64) -> None:
        self.side: i64 = side
        self.data: bytes = data
        self.packet: i64 = packet
        self.time_ns: i64 = time_ns


@final
class Conversation:
    """One connection between sides 0 and 1.

    client: the side that sends requests; None until detected. It may be given if it is known from a
    SYN or a port. in_sync: for each side, whether its first byte is the first byte of its stream.
    apis: those of the package whose messages it has. total: the in-flight requests of all
    connections.
    """

    def __init__(
        self,
        *,
        client: int | None = None,
        in_sync: tuple[bool, ...] = (False, False),
        known_kafka: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        apis: Apis = KAFKA_APIS,
        total: Total[InFlightRequest] | None = None,
    ) -> None:
        self.client = client
        self.detected = known_kafka and client is not None
        self.other: str | None = None
        self.limits = limits
        self._apis = apis
        self._handshake: i64 = apis.sasl_handshake
        self._streams = (Stream(in_sync[0]), Stream(in_sync[1]))
        self._pairing = Pairing(Total() if total is None else total)
        self._inference = Inference(limits, apis)
        # created when first needed: most connections begin with a request of the known client
        self._detection: ClientDetection | None = None
        self._sasl_tokens = False
        self._heads = RequestHeads(apis)

    @property
    def is_fresh(self) -> bool:
        """Whether no bytes were handled so far."""
        return all(not (each.position or each.held or each.skip) for each in self._streams)

    @property
    def is_in_order(self) -> bool:
        """Whether both sides are in sync, and all their bytes are frames of messages."""
        first, second = self._streams
        return self.detected and not self._sasl_tokens and first.is_in_order and second.is_in_order

    @property
    def streams(self) -> tuple[Stream, Stream]:
        """The bytes of side 0 and side 1 that are not frames yet."""
        return self._streams

    # -- events in, items out: bodies stay undecoded

    def handle(self, event: Event | Frame | Begun | Negotiated | Unsynchronised) -> list[Item]:
        """Handle an event of the connection. Most runs are one frame: `_single_frame`."""
        if isinstance(event, Run):
            side, data, packet, time_ns = event.side, event.data, event.packet, event.time_ns
            frame = self._single_frame(side, data, packet, time_ns)
            return self._take(side, data, packet, time_ns) if frame is None else [frame]
        if isinstance(event, Frame):
            return self._frame_of(event.side, event.data, event.packet, event.time_ns)
        if isinstance(event, Gap):
            return self._take_gap(event)
        if isinstance(event, Closed):
            return self._end()
        if isinstance(event, Unsynchronised):
            return self._lose_sync(event.side)
        if isinstance(event, Begun | Negotiated):
            self._begin(event.client, event.sides if isinstance(event, Begun) else (0, 1))
            return []
        if isinstance(event, Conflict):
            reason = "retransmission with different bytes; the first ones are kept"
            status = Status.CONFLICT
        else:
            reason, status = event.reason.value, Status.DISCARDED
        direction = DIRECTIONS[0 if event.side == (self.client or 0) else 1]
        return [Row(event.packet, event.time_ns, direction, event.length, status, reason)]

    def _frame_of(self, side: i64, frame: bytes, packet: i64, time_ns: i64) -> list[Item]:
        """Handle a frame of a side (without its size), taken from its bytes elsewhere."""
        raw_frame = self._ordinary_frame(side, frame, packet, time_ns)
        if raw_frame is not None:
            return [raw_frame]
        mark = Mark(0, packet, time_ns)
        return self._request(frame, mark) if side == self.client else self._response(frame, mark)

    def _stream(self, side: i64) -> Stream:
        """Return the stream of a side."""
        return self._streams[0] if side == 0 else self._streams[1]

    def _single_frame(self, side: i64, data: bytes, packet: i64, time_ns: i64) -> RawFrame | None:
        """Handle the bytes of a run as `_take` would, but faster, if they are exactly one frame.

        Returns None, and does nothing, if they may be anything else.
        """
        stream = self._stream(side)
        size: i64 = len(data) - SIZE
        if (
            size < MIN_REQUEST
            or not stream.at_frame_start
            or not (self.detected or self._is_first_request(side, data))
            or read_i32_be(data, 0) != size
            or size > self.limits.max_frame_bytes
        ):
            return None
        raw_frame = self._ordinary_frame(side, data[SIZE:], packet, time_ns)
        if raw_frame is not None:
            stream.position += size + SIZE
        return raw_frame

    def _ordinary_frame(
        self, side: i64, frame: bytes, packet: i64, time_ns: i64
    ) -> RawFrame | None:
        """Handle a frame as `_request` and `_response` would, but faster.

        Returns None, and does nothing, if it may be anything but a request with an ordinary header,
        or the response to the oldest request.
        """
        if self._sasl_tokens or self._pairing.has_waiting:
            return None
        if side == self.client:
            raw_frame = self._heads.read(frame, packet, time_ns)
            if raw_frame is None:
                return None
            self.detected = True
            request = raw_frame.request
            assert request is not None
            answerable = has_response(frame, raw_frame.body, request)
            self._pairing.add(request, len(frame), answerable)
        else:
            request = self._pairing.oldest(read_i32_be(frame, 0))
            if request is None or request.api_key == self._handshake:
                return None
            self._pairing.complete_oldest(request.correlation_id)
            raw_frame = RawFrame(False, frame, packet, time_ns, request, SIZE, "")
            self._inference.add_response(raw_frame, request)
        return raw_frame

    def _is_first_request(self, side: i64, data: bytes) -> bool:
        """Whether these are the first bytes of the connection, and begin with a request."""
        return (
            side == self.client
            and self.other is None
            and not self._stream(1 - side).held
            and looks_like_request(data, 0, self.limits.max_frame_bytes, self._apis)
            and not (self._apis.is_kafka and read_i32_be(data, SIZE) == 0)  # or ZooKeeper's
        )

    def _take(self, side: int, data: bytes, packet: int, time_ns: int) -> list[Item]:
        """Handle the next bytes of a side, which became contiguous with one packet."""
        stream = self._stream(side)
        stream.add(data, packet, time_ns)
        if self.other is not None:
            return self._give_up(side, stream.held, Status.OTHER_PROTOCOL, self.other)
        if self.detected:
            return self._advance(side) if stream.ready else []
        return self._detect()

    def _take_gap(self, gap: Gap) -> list[Item]:
        rows: list[Item] = []
        if not self.detected and self.other is None:
            rows += self._detect(last=True)
        rows += self._lose_bytes(gap.side, gap.length, gap.packet)
        direction = self._direction(gap.side)
        rows.append(Row(gap.packet, gap.time_ns, direction, gap.length, Status.GAP, gap.reason))
        return rows

    def _end(self) -> list[Item]:
        """Handle the end of the connection: buffered data is flushed as rows."""
        rows: list[Item] = []
        first, second = self._streams
        if first.is_empty and second.is_empty and not self._pairing.has_waiting:
            self._pairing.finish()
            return rows
        if not self.detected and self.other is None:
            rows += self._detect(last=True)
        for side in (0, 1):
            rows += self._flush(side)
        return rows + self._inference.infer_unpaired(self._pairing.finish())

    # -- protocol detection

    def _begin(self, client: int, sides: tuple[int, ...]) -> None:
        """Begin with the first bytes of streams; client: the side that is it if not known."""
        if self.client is None:
            self.client = client
        for side in sides:
            self._streams[side].in_sync = True

    def _direction(self, side: int) -> str:
        return DIRECTIONS[0 if self.client is None or side == self.client else 1]

    def _detect(self, *, last: bool = False) -> list[Item]:
        """Detect the client; last: also if few bytes arrived since the last attempt."""
        detected = self._searches().detect(self.client, last=last)
        if detected.client is not None:
            return self._set_client(detected.client, detected.tokens)
        if detected.protocol is not None:
            return self._set_other(detected.protocol)
        return []

    def _searches(self) -> ClientDetection:
        if self._detection is None:
            self._detection = ClientDetection(self._streams, self.limits, self._apis)
        return self._detection

    def _set_client(self, client: int, tokens: bool) -> list[Item]:
        self.client = client
        self.detected = True
        self._sasl_tokens = tokens
        # tokens of the broker are before the first request, which ends the exchange of tokens
        first = 1 - client if tokens else client
        rows = self._advance(first) + self._advance(1 - first)
        rows.sort(key=complete_at)
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
        stream = self._stream(side)
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
        stream = self._stream(side)
        stream.skip_held()
        return [] if stream.skip else self._skipped(side)

    def _skipped(self, side: int) -> list[Item]:
        """Report the captured bytes of a frame behind its gap."""
        stream = self._stream(side)
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
        stream = self._stream(side)
        if stream.held < SIZE:
            stream.need = SIZE
            return False
        size = stream.size()
        least = SIZE if side != self.client or self._sasl_tokens else MIN_REQUEST
        if not least <= size <= self.limits.max_frame_bytes and not (
            self._sasl_tokens and size >= 0
        ):
            stream.in_sync = False
            self._lose_responses(side, stream.mark(1).packet)
            return True
        if stream.held < SIZE + size:
            stream.need = SIZE + size
            return False
        mark = stream.mark(SIZE + size)
        frame = stream.take_frame(size)
        raw_frame = self._ordinary_frame(side, frame, mark.packet, mark.time_ns)
        if raw_frame is not None:
            rows.append(raw_frame)
        elif side == self.client:
            rows += self._request(frame, mark)
        else:
            rows += self._response(frame, mark)
        return True

    def _resynchronise(self, side: int, rows: list[Item]) -> bool:
        """Resynchronise a side at a frame that its content proves; False: more bytes are needed."""
        stream = self._stream(side)
        data = stream.peek()
        if side == self.client:
            candidate = find_request(data, self.limits.max_frame_bytes, self._apis)
        else:
            candidate = self._find_response(data)
        # without a candidate, a frame may begin in the last bytes
        head: i64 = self._apis.head_bytes
        position, proven = candidate or Found(max(0, len(data) - head), False)
        if not proven and stream.held - position > MAX_HELD:
            position = stream.held - head
        if position:
            rows += self._give_up(side, position, Status.UNPARSED, "out of sync")
        stream.in_sync = proven
        self._lose_responses(side, stream.mark(1).packet if stream.held else 0)
        if not proven:
            is_frame = candidate is not None and (
                side == self.client or self._pairing.has_in_flight
            )
            held = stream.held
            stream.need = (
                bytes_for_retry(stream.peek(), 0) if is_frame else held + retry_bytes(held)
            )
        return proven

    def _find_response(self, data: bytes) -> Found | None:
        has_in_flight = self._pairing.has_in_flight
        client = self.client or 0
        if not has_in_flight and self._searches().sends_only_responses(1 - client, client):
            return Found(0, True)
        if not has_in_flight and len(data) <= MAX_HELD:
            return Found(0, False)  # the request may still follow in the capture
        return find_response(data, self._pairing.in_flight, self.limits.max_frame_bytes, self._apis)

    # -- frames to rows

    def _request(self, frame: bytes, mark: Mark) -> list[Item]:
        if self._sasl_tokens:
            framed = len(frame).to_bytes(SIZE, "big") + frame
            if check_request(framed, 0, len(frame), apis=self._apis) is not Confidence.PROVEN:
                return [self._token(frame, mark, "request")]
            self._sasl_tokens = False
        raw_frame = raw_request(frame, mark, self.limits, self._apis)
        request = raw_frame.request
        answerable = request is not None and has_response(frame, raw_frame.body, request)
        responses = self._pairing.add_request(request, len(frame), answerable)
        return [raw_frame, *self._inference.infer_unpaired(responses)] if responses else [raw_frame]

    def _response(self, frame: bytes, mark: Mark) -> list[Item]:
        if self._sasl_tokens:
            return [self._token(frame, mark, "response")]
        rows = self._inference.infer_unpaired(self._pairing.add_response(frame, mark))
        for row in rows:
            if is_handshake_0(row, self._apis.sasl_handshake):
                decoded = row.decode(self.limits) if isinstance(row, RawFrame) else row
                self._sasl_tokens = getattr(decoded.message, "error_code", -1) == 0
        return rows

    def _token(self, frame: bytes, mark: Mark, direction: str) -> Row:
        return Row(mark.packet, mark.time_ns, direction, len(frame), Status.SASL_TOKEN, raw=frame)

    # -- missing bytes

    def _lose_bytes(self, side: int, size: int, packet: int) -> list[Item]:
        """Handle `size` missing bytes of a side, known to be missing after a packet.

        Inside a frame of known size, its rest is skipped; elsewhere the side is out of sync.
        """
        stream = self._stream(side)
        if stream.skip >= size:
            stream.skip -= size
            stream.position += size
            return [] if stream.skip else self._skipped(side)
        if self.detected and not stream.in_sync and stream.held:
            stream.in_sync = self._begins_frame(side, stream.peek())
        frame_size = stream.partial_frame() if self.detected else None
        rows = self._flush(side)
        stream.position += size
        if frame_size is not None and frame_size[1] >= size:
            stream.skip = frame_size[1] - size
        else:
            stream.skip = 0
            stream.in_sync = False
            self._lose_responses(side, packet)
        return rows

    def _begins_frame(self, side: int, data: bytes) -> bool:
        """Whether bytes of a side that is out of sync are the start of a frame, by its header.

        The rest is missing, so that the body cannot prove it: the client id of a request, or the
        correlation id of a request in flight.
        """
        if side == self.client:
            return names_client(data, self.limits.max_frame_bytes, self._apis)
        if not self._pairing.has_in_flight:
            return False
        candidate = find_response(
            data, self._pairing.in_flight, self.limits.max_frame_bytes, self._apis
        )
        return candidate is not None and candidate.at == 0

    def _lose_responses(self, side: int, packet: int) -> None:
        """Handle missing frames of a side. packet: after which it goes on."""
        if side != self.client:
            self._pairing.lose_responses(packet)

    def _lose_sync(self, side: int) -> list[Item]:
        """Handle an unknown number of missing bytes of a side."""
        rows: list[Item] = []
        if not self.detected and self.other is None:
            rows += self._detect(last=True)
        rows += self._flush(side)
        stream = self._streams[side]
        stream.skip = 0
        stream.in_sync = False
        self._lose_responses(side, 0)
        return rows

    def _flush(self, side: int) -> list[Item]:
        stream = self._stream(side)
        if not stream.held:
            return self._skipped(side)
        partial = stream.partial_frame() if self.detected else None
        if partial is None:
            status = Status.TRUNCATED if self.detected and stream.in_sync else Status.UNPARSED
            reason = "truncated frame size" if status is Status.TRUNCATED else "out of sync"
            return self._give_up(side, stream.held, status, reason)
        mark = stream.mark(stream.held)
        frame = stream.take(stream.held)[SIZE:]
        if side == self.client:
            row = partial_request(frame, partial[0], mark, self._apis)
            request = in_flight_request(row, self._apis)
            answerable = request is not None and has_response(frame, -1, request)
            responses = self._pairing.add_request(request, partial[0], answerable)
            return [row, *self._inference.infer_unpaired(responses)]
        return self._pairing.partial_response(frame, partial[0], mark)

    def _give_up(self, side: int, size: int, status: Status, reason: str) -> list[Item]:
        stream = self._stream(side)
        mark = stream.mark(size)
        raw = stream.take(size)
        if status is Status.OTHER_PROTOCOL:
            raw = b""
        return [
            Row(mark.packet, mark.time_ns, self._direction(side), size, status, reason, raw=raw)
        ]


def complete_at(item: Item) -> int:
    """Return the packet with which an item is complete: of a response, not before its request."""
    if isinstance(item, RawFrame):
        request = None if item.is_request else item.request
        return item.packet if request is None else max(item.packet, request.packet)
    return max(item.packet, item.request_packet or 0)
