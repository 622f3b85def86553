"""Pairs responses with in-flight requests by correlation id, within bounds.

Each request is completed or given up once, and each call takes constant time, spread over the
requests. Brokers respond in order, so a response leaves all older requests without one. If nothing
of the broker's stream is missing since these were sent, and they expect a response, the order is
broken: a row says so, in front of the response, and the older requests are overtaken: they stay in
flight for some more responses. A response without a request waits for it (`waiting`): the capture
may have the request later, or behind a gap. Once a request has its response, those with lower
correlation ids can no longer follow.

    add --> queue --complete--> request; the older ones: given_up
              `--overtake--> overtaken --complete--> request
                                 `--more than MAX_LATE responses later--> given_up
"""

# over 300 lines: what every message passes, and what other pairs of messages are found with

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar, final

from librt.strings import read_i16_be
from mypy_extensions import i64

from ..frames.decoding import InFlightRequest, Item, RawFrame, with_header
from ..frames.framing import Mark, partial_response, raw_response
from ..rows import Row, Status
from .waiting import MAX_LATE, WaitingResponse, WaitingResponses, correlation_id_of

MAX_IN_FLIGHT: Final = 1 << 12
"""In-flight requests of a connection at most; the oldest are given up."""

MAX_IN_FLIGHT_BYTES: Final = 1 << 23
"""Bytes of such requests, if there are several."""

MAX_TOTAL: Final = 1 << 16
MAX_TOTAL_BYTES: Final = 1 << 28
"""In-flight requests of all connections at most, and their bytes; the oldest are given up."""

MAX_COMPLETE: Final = 16
"""Completed requests that are kept at most in the list, unless as many are in flight."""

IN_QUEUE: Final = -1
"""The age of a request that was not overtaken."""

PRODUCE: Final = 0
TRANSACTIONAL_SINCE: Final = 3
FLEXIBLE_SINCE: Final = 9
"""Versions of Produce: with a transactional id in front of acks, which is a compact string."""

Request = TypeVar("Request")


def exchange_key(packet: int, correlation_id: int | None) -> int:
    """Return the key of the request that a packet completes, unlike that of any other packet."""
    if correlation_id is None:
        return packet << 33 | 1 << 32
    return packet << 33 | correlation_id & 0xFFFFFFFF


@final
class Entry(Generic[Request]):
    """An in-flight request.

    answerable: whether a response is expected. since: the number of responses when it was
    overtaken. is_open: whether it is still in flight.
    """

    def __init__(
        self,
        owner: InFlightRequests[Request] | None,
        key: int,
        size: int,
        request: Request,
        answerable: bool,
    ) -> None:
        self.owner: InFlightRequests[Request] | None = owner
        self.key: int = key
        self.size: int = size
        self.request: Request = request
        self.answerable: bool = answerable
        self.since: int = 0
        self.is_open: bool = True


@final
class Total(Generic[Request]):
    """The in-flight requests of all connections of a process, in order.

    evicted: the connections whose requests were given up for those of others, until taken.
    """

    def __init__(self) -> None:
        self.evicted: list[InFlightRequests[Request]] = []
        self._order: deque[Entry[Request]] = deque()  # also some that are no longer in flight
        self._count: i64 = 0
        self._bytes: i64 = 0

    def add(self, entry: Entry[Request]) -> None:
        """Add a request; give up the oldest, beyond the limits."""
        self._order.append(entry)
        self._count += 1
        self._bytes += entry.size
        while len(self._order) > 1 and (self._count > MAX_TOTAL or self._bytes > MAX_TOTAL_BYTES):
            oldest = self._order.popleft()
            if oldest.is_open and oldest.owner is not None:
                oldest.owner.give_up_oldest()
                self.evicted.append(oldest.owner)

    def remove(self, entry: Entry[Request]) -> None:
        """Note that a request is no longer in flight."""
        entry.is_open = False
        self._count -= 1
        self._bytes -= entry.size
        if len(self._order) > 2 * self._count + MAX_COMPLETE:
            self._order = deque([each for each in self._order if each.is_open])

    def take_evicted(self) -> list[InFlightRequests[Request]]:
        """Return the connections whose requests were given up for others, once."""
        evicted, self.evicted = self.evicted, []
        return evicted


@final
class InFlightRequests(Generic[Request]):
    """The in-flight requests of one connection, by key; the key of several may be the same.

    total: those of all connections. connection: its number.
    given_up: the requests that were given up and not taken. visited: the requests that calls
    looked at, besides the oldest.
    """

    def __init__(self, total: Total[Request], connection: int = 0) -> None:
        self.connection: int = connection
        self.given_up: list[Request] = []
        self._total: Total[Request] = total
        self.visited: i64 = 0
        # a list whose first entries may be complete: quicker than a deque when compiled
        self._queue: list[Entry[Request]] = []
        self._first: i64 = 0
        self._removed: i64 = 0  # entries before the first one of the list
        self._lost: i64 = 0  # the entries before this one may have lost their responses
        # key -> positions in the queue, counted from the first request of the connection; made
        # when it is first needed, and dropped when the queue is empty
        self._positions: dict[int, deque[int]] | None = None
        self._overtaken: deque[Entry[Request]] = deque()
        self._late: dict[int, Entry[Request]] = {}
        self._bytes: i64 = 0
        self._responses: i64 = 0

    def __len__(self) -> int:
        return len(self._queue) - self._first + len(self._late)

    def oldest(self, key: int) -> Request | None:
        """Return the oldest request that was not overtaken, if it has that key."""
        if self._first < len(self._queue):
            entry = self._queue[self._first]
            if entry.key == key:
                return entry.request
        return None

    def find(self, key: int) -> Request | None:
        """Return the oldest request with a key; rather one that was not overtaken."""
        at = self._index(key)
        if at >= 0:
            return self._queue[at].request
        late = self._late.get(key)
        return None if late is None else late.request

    def add(self, key: int, size: int, request: Request, answerable: bool = True) -> None:
        """Add a request of `size` bytes; a request with its key that was overtaken is given up.

        answerable: whether a response is expected.
        """
        if self._late:
            late = self._late.get(key)
            if late is not None:
                self._give_up_late(late)
        queue = self._queue
        if self._first == len(queue):
            self._removed += self._first
            queue.clear()
            self._first = 0
            self._positions = None
        if self._positions is not None:
            self._note(self._positions, key, self._removed + len(queue))
        entry = Entry(self, key, size, request, answerable)
        queue.append(entry)
        self._bytes += size
        while len(self) > MAX_IN_FLIGHT or (self._bytes > MAX_IN_FLIGHT_BYTES and len(self) > 1):
            self.give_up_oldest()
        self._total.add(entry)

    def complete(self, key: int) -> Request | None:
        """Remove the oldest request with a key, which has its response, and return it.

        Older requests that were not overtaken are given up.
        """
        at = self._index(key)
        if at >= 0:
            older = at - self._first
            self.visited += older
            while older:
                self._give_up(self._remove_first())
                older -= 1
            entry = self._remove_first()
            self._total.remove(entry)
            request = entry.request
        else:
            late = self._late.pop(key, None)
            if late is None:
                return None
            self._total.remove(late)
            self._bytes -= late.size
            request = late.request
        self._responses += 1
        if self._overtaken:
            self._expire()
        return request

    def overtake(self, key: int) -> Request | None:
        """Let the next response, to the request with a key, overtake those to older requests.

        Requests whose response is not expected, or may be lost, are given up. Returns the oldest of
        the others.
        """
        oldest: Request | None = None
        older = self._index(key) - self._first
        while older > 0:
            older -= 1
            self.visited += 1
            is_lost = self._removed + self._first < self._lost
            entry = self._remove_first()
            if is_lost or not entry.answerable:
                self._give_up(entry)
                continue
            self._add_overtaken(entry, self._responses)
            if oldest is None:
                oldest = entry.request
        return oldest

    def lose_responses(self) -> None:
        """Note that responses to the requests so far may be missing."""
        self._lost = self._removed + len(self._queue)

    def finish(self) -> list[Request]:
        """Remove and return all requests, the oldest first."""
        requests = [request for request, _ in self.requests()]
        for entry in self._overtaken:
            if entry.is_open:
                self._total.remove(entry)
        for entry in self._queue[self._first :]:
            self._total.remove(entry)
        self._removed += len(self._queue)
        self._queue.clear()
        self._overtaken.clear()
        self._late.clear()
        self._first = 0
        self._positions = None
        self._bytes = 0
        return requests

    def take_given_up(self) -> list[Request]:
        """Return the requests that were given up, once."""
        given_up, self.given_up = self.given_up, []
        return given_up

    def requests(self) -> list[tuple[Request, int]]:
        """Return the requests, and how many responses ago each was overtaken, or IN_QUEUE."""
        late = [(e.request, self._responses - e.since) for e in self._overtaken if e.is_open]
        return late + [(entry.request, IN_QUEUE) for entry in self._queue[self._first :]]

    def restore(self, key: int, size: int, request: Request, age: int) -> None:
        """Add a request as `requests` returned it; those before it are restored."""
        if age == IN_QUEUE:
            self.add(key, size, request)
            return
        entry = Entry(self, key, size, request, True)
        self._add_overtaken(entry, self._responses - age)
        self._total.add(entry)

    def _index(self, key: int) -> i64:
        """Return the index of the oldest request of the queue with a key; -1 if it has none."""
        queue = self._queue
        count = len(queue) - self._first
        if count and queue[self._first].key == key:
            return self._first
        if count < 2:
            return -1
        positions = self._positions
        if positions is None:
            positions = self._positions = {}
            at = self._first
            self.visited += count
            while at < len(queue):
                self._note(positions, queue[at].key, self._removed + at)
                at += 1
        of_key = positions.get(key)
        return -1 if of_key is None else i64(of_key[0] - self._removed)

    def _note(self, positions: dict[int, deque[int]], key: int, position: int) -> None:
        of_key = positions.get(key)
        if of_key is None:
            positions[key] = deque((position,))
        else:
            of_key.append(position)

    def _remove_first(self) -> Entry[Request]:
        """Remove the oldest request of the queue; each is moved a bounded number of times."""
        queue = self._queue
        entry = queue[self._first]
        positions = self._positions
        if positions is not None:
            of_key = positions[entry.key]
            of_key.popleft()
            if not of_key:
                del positions[entry.key]
        self._bytes -= entry.size
        self._first += 1
        if self._first > MAX_COMPLETE and 2 * self._first > len(queue):
            self._removed += self._first
            del queue[: self._first]
            self._first = 0
        return entry

    # -- overtaken requests

    def _add_overtaken(self, entry: Entry[Request], since: int) -> None:
        before = self._late.get(entry.key)
        if before is not None:
            self._give_up_late(before)
        entry.since = since
        self._bytes += entry.size
        self._overtaken.append(entry)
        self._late[entry.key] = entry

    def _give_up(self, entry: Entry[Request]) -> None:
        self._total.remove(entry)
        self.given_up.append(entry.request)

    def _give_up_late(self, entry: Entry[Request]) -> None:
        del self._late[entry.key]
        self._bytes -= entry.size
        self._give_up(entry)

    def give_up_oldest(self) -> None:
        """Give up the oldest request, of which there is one."""
        overtaken = self._overtaken
        while overtaken:
            entry = overtaken.popleft()
            if entry.is_open:
                self._give_up_late(entry)
                return
        self._give_up(self._remove_first())

    def _expire(self) -> None:
        overtaken = self._overtaken
        while overtaken:
            self.visited += 1
            entry = overtaken[0]
            if entry.is_open:
                if self._responses - entry.since <= MAX_LATE:
                    return
                self._give_up_late(entry)
            overtaken.popleft()


# -- the messages of a connection


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
    at = body
    version = request.api_version
    if version >= FLEXIBLE_SINCE:
        length, shift, more = i64(0), i64(0), True
        while more:
            if at >= len(frame) or shift > 28:
                return False
            byte = i64(frame[at])
            length |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            more = byte > 0x7F
        at += length - 1 if length else 0
    elif version >= TRANSACTIONAL_SINCE:
        if at + 2 > len(frame):
            return False
        length = i64(read_i16_be(frame, at))
        at += 2 + (length if length > 0 else 0)
    return at + 2 <= len(frame) and read_i16_be(frame, at) != 0


def is_handshake_0(item: Item, handshake: int) -> bool:
    """Whether a response is to a SaslHandshake of version 0, which bare tokens follow.

    handshake: the API key of SaslHandshake.
    """
    if isinstance(item, RawFrame):
        request = item.request
        return request is not None and request.api_key == handshake and request.api_version == 0
    return item.api_key == handshake and item.api_version == 0
