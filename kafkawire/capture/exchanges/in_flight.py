"""Keeps the requests of connections that are in flight, within bounds.

Each request is completed or given up once, and each call takes constant time, spread over the
requests. Brokers respond in order, so a response leaves all older requests without one. If nothing
of the broker's stream is missing since these were sent, and they expect a response, the order is
broken: the older requests are overtaken: they stay in flight for some more responses.

    add --> queue --complete--> request; the older ones: given_up
              `--overtake--> overtaken --complete--> request
                                 `--more than MAX_LATE responses later--> given_up
"""

# over 300 lines: queue and overtaken requests of one connection, which each message passes

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar, final

from mypy_extensions import i64

from .waiting import MAX_LATE

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

Request = TypeVar("Request")


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
        index = self._index(key)
        if index >= 0:
            return self._queue[index].request
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
        index = self._index(key)
        if index >= 0:
            older = index - self._first
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
            index = self._first
            self.visited += count
            while index < len(queue):
                self._note(positions, queue[index].key, self._removed + index)
                index += 1
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
