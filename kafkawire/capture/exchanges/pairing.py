"""Pairs responses with the in-flight requests of a connection, by correlation id, within bounds.

A response that overtakes older requests (`in_flight`) has a row in front of it that says so. A
response without a request waits for it (`waiting`): the capture may have the request later, or
behind a gap. Once a request has its response, those with lower correlation ids can no longer
follow.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be
from mypy_extensions import i64

from ..frames.decoding import InFlightRequest, Item, RawFrame, with_header
from ..frames.framing import Mark, partial_response, raw_response
from ..rows import Row, Status
from .in_flight import InFlightRequests, Total
from .waiting import WaitingResponse, WaitingResponses, correlation_id_of

PRODUCE: Final = 0
TRANSACTIONAL_SINCE: Final = 3
FLEXIBLE_SINCE: Final = 9
"""Versions of Produce: with a transactional id in front of acks, which is a compact string."""


@final
class Pairing:
    """The in-flight requests of a connection, and its responses without a request.

    total: the in-flight requests of all connections.
    """

    def __init__(self, total: Total[InFlightRequest]) -> None:
        self._total: Total[InFlightRequest] = total
        self._requests: InFlightRequests[InFlightRequest] = InFlightRequests(total)
        self._waiting: WaitingResponses | None = None
        self._lost_before: int = 0  # responses to requests up to this packet may be missing
        self._arrivals: i64 = 0
        self._completed: i64 = 0
        self._last_arrival: i64 = 0  # of the responses that have their request

    @property
    def has_waiting(self) -> bool:
        """Whether a response waits for its request."""
        return self._waiting is not None and len(self._waiting) > 0

    def oldest(self, correlation_id: int) -> InFlightRequest | None:
        """Return the oldest in-flight request, if it has that correlation id."""
        return self._requests.oldest(correlation_id)

    def add(self, request: InFlightRequest, size: i64, has_response: bool) -> None:
        """Add an in-flight request of `size` bytes, for which no response waits."""
        requests = self._requests
        answerable = has_response and request.packet > self._lost_before
        requests.add(request.correlation_id, size, request, answerable)
        if requests.given_up:
            requests.given_up.clear()
        if self._total.evicted:
            for each in self._total.take_evicted():
                each.given_up.clear()

    def complete_oldest(self, correlation_id: int) -> None:
        """Remove the oldest in-flight request, which has that id and its response."""
        self._arrivals += 1
        self._requests.complete(correlation_id)
        self._completed += 1
        self._last_arrival = self._arrivals

    @property
    def has_in_flight(self) -> bool:
        """Whether there is an in-flight request."""
        return len(self._requests) > 0

    def in_flight(self, correlation_id: int) -> InFlightRequest | None:
        """Return the in-flight request with a correlation id."""
        return self._requests.find(correlation_id)

    def lose_responses(self, packet: int) -> None:
        """Note that bytes of the broker's stream are missing, perhaps responses.

        packet: after which the next bytes were sent.
        """
        self._requests.lose_responses()
        self._lost_before = max(self._lost_before, packet)

    def add_request(
        self, request: InFlightRequest | None, size: int, has_response: bool
    ) -> list[Item]:
        """Add an in-flight request; return the response that waited for it.

        has_response: whether a response is expected.
        """
        if request is None:
            return []
        self.add(request, size, has_response)
        waiting = None if self._waiting is None else self._waiting.take(request.correlation_id)
        if waiting is None:
            return []
        paired, note = self._complete(waiting.frame, waiting.mark, waiting.arrival)
        assert paired is not None
        items = self._given_up(paired)
        if note is not None:
            items.append(note)
        items.append(raw_response(waiting.frame, waiting.mark, paired))
        return items

    def add_response(self, frame: bytes, mark: Mark) -> list[Item]:
        """Pair a response; return nothing yet if its request is missing."""
        self._arrivals += 1
        request, note = self._complete(frame, mark, self._arrivals)
        if request is not None:
            items = self._given_up(request)
            if note is not None:
                items.append(note)
            items.append(raw_response(frame, mark, request))
            return items
        if self._waiting is None:
            self._waiting = WaitingResponses()
        self._waiting.add(WaitingResponse(frame, mark, self._arrivals, self._completed))
        return [_unpaired(each) for each in self._waiting.take_surplus()]

    def partial_response(self, frame: bytes, size: int, mark: Mark) -> list[Item]:
        """Pair a truncated response of `size` bytes."""
        self._arrivals += 1
        request: InFlightRequest | None = None
        items: list[Item] = []
        if len(frame) >= 4:
            request, note = self._complete(frame, mark, self._arrivals)
            if note is not None:
                items.append(note)
        if request is None:
            self.lose_responses(mark.packet)
        items.append(partial_response(frame, size, mark, request))
        return items

    def finish(self) -> list[Item]:
        """End: give up the waiting responses, whose requests were not captured."""
        self._requests.finish()
        return [] if self._waiting is None else [_unpaired(e) for e in self._waiting.finish()]

    def _given_up(self, paired: InFlightRequest) -> list[Item]:
        """Give up the responses whose requests can no longer follow one that has its response."""
        waiting = self._waiting
        if waiting is None:
            return []
        passed = waiting.take_passed(paired.correlation_id, self._completed)
        return [_unpaired(each) for each in passed]

    def _complete(
        self, frame: bytes, mark: Mark, arrival: i64
    ) -> tuple[InFlightRequest | None, Row | None]:
        """Remove the request of a response; also return a row if the order was broken."""
        correlation_id = correlation_id_of(frame)
        requests = self._requests
        overtaken = requests.overtake(correlation_id)
        request = requests.complete(correlation_id)
        requests.given_up.clear()
        if request is None:
            return None, None
        self._completed += 1
        note: Row | None = None
        if overtaken is not None:
            older = f"before that to correlation id {overtaken.correlation_id}"
            note = _out_of_order(f"{older}, an older request", mark, request)
        elif arrival < self._last_arrival:
            note = _out_of_order("before those to older requests", mark, request)
        if arrival > self._last_arrival:
            self._last_arrival = arrival
        return request, note


def _out_of_order(text: str, mark: Mark, request: InFlightRequest) -> Row:
    """Make the row of no bytes in front of a response that came out of order."""
    error = f"response out of order: {text}"
    row = Row(mark.packet, mark.time_ns, "response", 0, Status.OUT_OF_ORDER, error)
    return with_header(row, request)._replace(
        request_packet=request.packet, request_time_ns=request.time_ns
    )


def _unpaired(waiting: WaitingResponse) -> Row:
    return Row(
        waiting.mark.packet,
        waiting.mark.time_ns,
        "response",
        len(waiting.frame),
        Status.UNPAIRED,
        "its request was not captured",
        correlation_id=waiting.correlation_id,
        raw=waiting.frame[4:],
    )


def has_response(frame: bytes, body: i64, request: InFlightRequest) -> bool:
    """Whether a request certainly expects a response: all but Produce with acks=0.

    body: where the body of the frame begins; -1 if that is not known.
    """
    if request.api_key != PRODUCE or not request.apis.is_kafka:
        return True
    if body < 0:
        return False
    position = body
    version = request.api_version
    if version >= FLEXIBLE_SINCE:
        length, shift, more = i64(0), i64(0), True
        while more:
            if position >= len(frame) or shift > 28:
                return False
            byte = i64(frame[position])
            length |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            more = byte > 0x7F
        position += length - 1 if length else 0
    elif version >= TRANSACTIONAL_SINCE:
        if position + 2 > len(frame):
            return False
        length = i64(read_i16_be(frame, position))
        position += 2 + (length if length > 0 else 0)
    return position + 2 <= len(frame) and read_i16_be(frame, position) != 0


def is_handshake_0(item: Item, handshake: int) -> bool:
    """Whether a response is to a SaslHandshake of version 0, which bare tokens follow.

    handshake: the API key of SaslHandshake.
    """
    if isinstance(item, RawFrame):
        request = item.request
        return request is not None and request.api_key == handshake and request.api_version == 0
    return item.api_key == handshake and item.api_version == 0
