"""The passive machine: both directions of somebody else's connection in, rows out.

Law: it never assumes that it saw the beginning, the end, or everything in between; a frame is
believed where the stream is known to be in step, or where its content proves it.

    bytes --> [undecided] --a request is recognised--> [client, broker]
                  `------ it begins like another protocol --> [other]

    in step --a gap inside a frame of known size--> skip its rest --> in step
      `------ a gap elsewhere, a size that cannot be --> out of step --a proven frame--> in step
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import i64

from ...primitives import DEFAULT_LIMITS, Limits
from ..frames.decoding import RawFrame, RequestHeads, in_flight_request, raw_request
from ..frames.detection import (
    HEAD,
    LEAST_REQUEST,
    Found,
    Sight,
    find_request,
    find_response,
    judge_request,
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
"""Bytes held of a direction that is undecided or out of step, before the older ones are given up.
"""

DIRECTIONS: Final = ("request", "response")


@final
class Conversation:
    """One connection between sides 0 and 1.

    client: the side that asks; None until it is known. Giving it (a SYN was seen, a port says so)
    saves the search. in_step: whether each side's first byte is the first byte of its stream.
    """

    def __init__(
        self,
        *,
        client: int | None = None,
        in_step: tuple[bool, ...] = (False, False),
        known_kafka: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.client = client
        self.decided = known_kafka and client is not None
        self.other: str | None = None
        self.limits = limits
        self._streams = (Stream(in_step[0]), Stream(in_step[1]))
        self._pairing = Pairing(limits)
        self._inference = Inference(limits)
        self._walked = 0
        self._searched = [0, 0]
        self._again = [0, 0]
        self._tokens = False
        self._heads = RequestHeads()

    # -- events, and the rows that they lead to

    def feed(self, side: int, data: bytes, packet: int, time_ns: int) -> list[Row]:
        """Take the next bytes of a side, all brought by the arrival of one packet."""
        return self._opened(self.take(side, data, packet, time_ns))

    def gap(
        self, side: int, size: int, packet: int, time_ns: int, reason: str = "lost"
    ) -> list[Row]:
        """Take note that `size` bytes of a side were sent and are not in the capture."""
        return self._opened(self.lose(side, size, packet, time_ns, reason))

    def finish(self) -> list[Row]:
        """Take note that nothing more comes: what is still held goes out as what it is."""
        return self._opened(self.end())

    def _opened(self, items: list[Item]) -> list[Row]:
        return [item.open(self.limits) if isinstance(item, RawFrame) else item for item in items]

    # -- the same, and frames stay sealed: whoever asks for their rows may do that elsewhere

    def whole(self, side: i64, data: bytes, packet: i64, time_ns: i64) -> RawFrame | None:
        """Take bytes that are one frame, where that is all they can be: as `take` would, which is
        for everything else. None: nothing was taken.
        """
        stream = self._streams[side]
        size: i64 = len(data) - SIZE
        if (
            size < LEAST_REQUEST
            or not stream.at_a_frame
            or not (self.decided or self._begins(side, data))
            or self._tokens
            or read_i32_be(data, 0) != size
            or size > self.limits.max_frame_bytes
            or self._pairing.waits
        ):
            return None
        frame = data[SIZE:]
        if side == self.client:
            sealed = self._heads.seal(frame, packet, time_ns)
            if sealed is None:
                return None
            self.decided = True
            assert sealed.asked is not None
            self._pairing.ask(sealed.asked)
        else:
            asked = self._pairing.next(read_i32_be(frame, 0))
            if asked is None or asked.api_key == HANDSHAKE:
                return None
            self._pairing.answer()
            sealed = RawFrame(False, frame, packet, time_ns, asked, SIZE, "")
            self._inference.keep(sealed, asked)
        stream.position += size + SIZE
        return sealed

    def _begins(self, side: i64, data: bytes) -> bool:
        """Whether the first bytes of the client are the first of all, and a request's."""
        return (
            side == self.client
            and self.other is None
            and not self._streams[1 - side].held
            and looks_like_request(data, 0, self.limits.max_frame_bytes)
        )

    def take(self, side: int, data: bytes, packet: int, time_ns: int) -> list[Item]:
        """Take the next bytes of a side, all brought by the arrival of one packet."""
        stream = self._streams[side]
        stream.add(data, packet, time_ns)
        if self.other is not None:
            return self._give_up(side, stream.held, Status.OTHER_PROTOCOL, self.other)
        if self.decided:
            return self._advance(side) if stream.ready else []
        return self._decide()

    def lose(self, side: int, size: int, packet: int, time_ns: int, reason: str) -> list[Item]:
        """Take note that `size` bytes of a side were sent and are not in the capture."""
        rows: list[Item] = []
        if not self.decided and self.other is None:
            rows += self._decide(last=True)
        rows += self._break(side, size)
        rows.append(Row(packet, time_ns, self._direction(side), size, Status.GAP, reason))
        return rows

    def end(self) -> list[Item]:
        """Take note that nothing more comes: what is still held goes out as what it is."""
        rows: list[Item] = []
        first, second = self._streams
        if first.is_empty and second.is_empty and not self._pairing.waits:
            return rows
        if not self.decided and self.other is None:
            rows += self._decide(last=True)
        for side in (0, 1):
            rows += self._flush(side)
        return rows + self._inference.settle(self._pairing.finish())

    # -- who is who

    def _direction(self, side: int) -> str:
        return DIRECTIONS[0 if self.client is None or side == self.client else 1]

    def _decide(self, *, last: bool = False) -> list[Item]:
        """Look which side is the client; last: even where few bytes came since the last look."""
        for side in (0, 1) if self.client is None else (self.client,):
            stream = self._streams[side]
            end = stream.position + stream.held
            if not stream.held or (end < self._again[side] and not last):
                continue
            self._again[side] = end + _more(stream.held)
            data = stream.peek()
            if self._looks_like_client(side, data):
                return self._be_kafka(side)
            named = signature(data)
            if named is not None:
                return self._be_other(named)
            if self._is_broker_alone(side):
                self._streams[side].in_step = True
                return self._be_kafka(1 - side)
        if sum(stream.held for stream in self._streams) > MAX_HELD:
            return self._be_other("not recognised")
        return []

    def _looks_like_client(self, side: int, data: bytes) -> bool:
        limit, stream = self.limits.max_frame_bytes, self._streams[side]
        if stream.in_step and self.client is not None:
            return looks_like_request(data, 0, limit)
        start = max(0, self._searched[side] - stream.position)
        found, resume = scan_request(data, limit, start)
        self._searched[side] = stream.position + resume
        if found is None:
            return False
        self._again[side] = stream.position + _enough(data, found.at)
        return found.proven

    def _is_broker_alone(self, side: int) -> bool:
        """Whether a side, of a connection whose other side is not in the capture, sends responses:
        one of the frames that it begins with can be nothing else.
        """
        stream, other = self._streams[side], self._streams[1 - side]
        if other.position or other.held or side == self.client:
            return False
        start = max(0, self._walked - stream.position)
        walked = walk_responses(stream.peek(), start, self.limits)
        self._walked = stream.position + walked.end
        return walked.certain

    def _be_kafka(self, client: int) -> list[Item]:
        self.client = client
        self.decided = True
        rows = self._advance(client) + self._advance(1 - client)
        rows.sort(key=lambda row: row.packet)
        return rows

    def _be_other(self, named: str) -> list[Item]:
        self.other = named
        return [
            row
            for side in (0, 1)
            if self._streams[side].held
            for row in self._give_up(side, self._streams[side].held, Status.OTHER_PROTOCOL, named)
        ]

    # -- bytes into frames

    def _advance(self, side: int) -> list[Item]:
        stream = self._streams[side]
        rows: list[Item] = []
        while stream.held:
            if stream.skip:
                rows += self._skip(side)
            elif not stream.in_step:
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
        """Count what was captured of a frame behind the bytes that it lost."""
        stream = self._streams[side]
        size, stream.skipped = stream.skipped, 0
        if not size:
            return []
        mark = stream.last
        assert mark is not None
        reason = "of a frame that lost bytes before these"
        return [
            Row(mark.packet, mark.time_ns, self._direction(side), size, Status.UNPARSED, reason)
        ]

    def _frame(self, side: int, rows: list[Item]) -> bool:
        """Take one frame off a side that is in step; False where it is not all there yet."""
        stream = self._streams[side]
        if stream.held < SIZE:
            stream.need = SIZE
            return False
        size = stream.size()
        least = SIZE if side != self.client or self._tokens else LEAST_REQUEST
        if not least <= size <= self.limits.max_frame_bytes and not (self._tokens and size >= 0):
            stream.in_step = False
            return True
        if stream.held < SIZE + size:
            stream.need = SIZE + size
            return False
        mark = stream.mark(SIZE + size)
        frame = stream.take(SIZE + size)[SIZE:]
        rows += self._request(frame, mark) if side == self.client else self._response(frame, mark)
        return True

    def _resynchronise(self, side: int, rows: list[Item]) -> bool:
        """Bring a side back into step where its content proves how; False where more bytes are
        needed.
        """
        stream = self._streams[side]
        data = stream.peek()
        if side == self.client:
            found = find_request(data, self.limits.max_frame_bytes)
        else:
            found = self._find_response(data)
        # without a candidate, the last bytes may be the beginning of one
        at, proven = found or Found(max(0, len(data) - HEAD), False)
        if not proven and stream.held - at > MAX_HELD:
            at = stream.held - HEAD
        if at:
            rows += self._give_up(side, at, Status.UNPARSED, "out of step")
        stream.in_step = proven
        if not proven:
            is_frame = found is not None and (side == self.client or self._pairing.awaits)
            held = stream.held
            stream.need = _enough(stream.peek(), 0) if is_frame else held + _more(held)
        return proven

    def _find_response(self, data: bytes) -> Found | None:
        asked = self._pairing.awaited()
        if not asked and self._is_broker_alone(1 - (self.client or 0)):
            return Found(0, True)
        if not asked and len(data) <= MAX_HELD:
            return Found(0, False)  # the request may still come, from a tap that saw it late
        return find_response(data, asked, self.limits.max_frame_bytes)

    # -- frames into rows

    def _request(self, frame: bytes, mark: Mark) -> list[Item]:
        if self._tokens:
            framed = len(frame).to_bytes(SIZE, "big") + frame
            if judge_request(framed, 0, len(frame)) is not Sight.PROVEN:
                return [self._token(frame, mark, "request")]
            self._tokens = False
        sealed = raw_request(frame, mark, self.limits)
        waited = self._pairing.request(sealed.asked)
        return [sealed, *self._inference.settle(waited)] if waited else [sealed]

    def _response(self, frame: bytes, mark: Mark) -> list[Item]:
        if self._tokens:
            return [self._token(frame, mark, "response")]
        rows = self._inference.settle(self._pairing.response(frame, mark))
        for row in rows:
            if is_handshake_0(row):
                opened = row.open(self.limits) if isinstance(row, RawFrame) else row
                self._tokens = getattr(opened.message, "error_code", -1) == 0
        return rows

    def _token(self, frame: bytes, mark: Mark, direction: str) -> Row:
        return Row(mark.packet, mark.time_ns, direction, len(frame), Status.SASL_TOKEN, raw=frame)

    # -- what is lost

    def _break(self, side: int, size: int) -> list[Item]:
        """Lose `size` bytes of a side: inside a frame of known size its rest is skipped, else the
        side is out of step.
        """
        stream = self._streams[side]
        if stream.skip >= size:
            stream.skip -= size
            stream.position += size
            return [] if stream.skip else self._skipped(side)
        frame_size = self._size_of_partial(side) if self.decided else None
        rows = self._flush(side)
        stream.position += size
        if frame_size is not None and frame_size[1] >= size:
            stream.skip = frame_size[1] - size
        else:
            stream.skip = 0
            stream.in_step = False
        return rows

    def _size_of_partial(self, side: int) -> tuple[int, int] | None:
        """Tell the size of the frame that is partly held, and how many bytes of it are still to
        come.
        """
        stream = self._streams[side]
        if not stream.in_step or stream.held < SIZE or stream.skip:
            return None
        size = stream.size()
        return size, SIZE + size - stream.held

    def _flush(self, side: int) -> list[Item]:
        stream = self._streams[side]
        if not stream.held:
            return self._skipped(side)
        partial = self._size_of_partial(side) if self.decided else None
        if partial is None:
            status = Status.TRUNCATED if self.decided and stream.in_step else Status.UNPARSED
            return self._give_up(side, stream.held, status, "the capture ends inside a size")
        mark = stream.mark(stream.held)
        frame = stream.take(stream.held)[SIZE:]
        if side == self.client:
            row = partial_request(frame, partial[0], mark)
            return [row, *self._inference.settle(self._pairing.request(in_flight_request(row)))]
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


def _more(held: int) -> int:
    """Say how many bytes must come before it is worth looking again at all that is held: a share of
    them, so that all looks together are linear in the bytes.
    """
    return 1 + (held >> 4)


def _enough(data: bytes, at: int) -> int:
    """Say how many bytes must be held before a frame that may begin at `at` is judged again: half
    as many more of it, or all of it.
    """
    held = len(data)
    if held - at < SIZE:
        return held + 1
    end = at + SIZE + int(read_i32_be(data, at))
    wanted = held + 1 + ((held - at) >> 1)
    return min(wanted, end) if end > held else held + 1
