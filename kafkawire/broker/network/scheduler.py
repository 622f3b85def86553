"""Schedules the requests of connections fairly, and pauses clients that send too much.

One call of the cluster does the work of one time slice. An event processes requests only of
connections that became ready by it; the others are scheduled round robin, when a shell has polled
its sockets. So the work between two polls grows with the clients that sent something, not with
what others have queued.

    received, resumed ─▶ `ready` ─▶ slice: SLICE_REQUESTS, SLICE_BYTES, or SLICE_ELEMENTS of a
                                    large request ─▶ more? ─▶ back of `backlog`
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..bounds import SLICE_BYTES, SLICE_REQUESTS
from ..context import Context
from ..effects import PauseReading, ResumeReading
from .connection import Connection

Process = Callable[[Connection, float], int]
"""(connection, now) -> size of the request that was processed, or a part of it; 0 for none."""


class RequestScheduler:
    """The queues of connections with requests.

    sent: bytes sent to all clients so far. ready: had no time slice yet; backlog: those whose
    slice was over before their requests were.
    """

    def __init__(self, context: Context) -> None:
        self.sent = 0
        self._context = context
        self.ready: deque[Connection] = deque()
        self.backlog: deque[Connection] = deque()
        self.queues = self.ready, self.backlog
        self._touched: list[Connection] = []

    def received(self, connection: Connection) -> None:
        """Schedule a connection that received bytes."""
        if connection.queued:
            self._touched.append(connection)
        else:
            connection.queued = True
            self.ready.append(connection)

    def resume(self, connection: Connection) -> None:
        """Schedule a connection, before those of the backlog."""
        if not connection.queued:
            connection.queued = True
            self.ready.append(connection)

    def run(self, process: Process, now: float, *, with_backlog: bool) -> None:
        """Process requests for one time slice; then pause or resume reading from clients.

        with_backlog: also those of the backlog, after those that are ready.
        """
        requests, room = SLICE_REQUESTS, SLICE_BYTES
        ready, backlog, touched = self.ready, self.backlog, self._touched
        while (ready or (with_backlog and backlog)) and requests > 0 and room > 0:
            connection = ready.popleft() if ready else backlog.popleft()
            more = connection.has_work
            while more and requests > 0 and room > 0:
                sent = self.sent
                size = process(connection, now)
                requests = 0 if connection.working else requests - 1
                room -= size + self.sent - sent
                if not (size and (connection.buffer or connection.working)):
                    more = False
                    break
                more = connection.has_work
            if connection.buffer or connection.paused:
                touched.append(connection)  # others are read from, and may be
            if more:
                backlog.append(connection)  # its time slice is over, its requests may not be
                break
            connection.queued = False
        if ready:
            backlog.extend(ready)
            ready.clear()
        for connection in touched:
            if connection.paused is connection.may_read and not connection.closing:
                connection.paused = not connection.paused
                effect = PauseReading if connection.paused else ResumeReading
                self._context.emit(effect(connection.id))
        touched.clear()
