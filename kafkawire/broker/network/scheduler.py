"""Schedules the requests of connections fairly, and pauses clients that send too much.

One call of the cluster does the work of one time slice, whichever client sent the requests. A
connection without queued requests is scheduled first; the others are scheduled round robin.

    received ─▶ front of the queue ─▶ slice: SLICE_REQUESTS, SLICE_BYTES, or SLICE_ELEMENTS of a
                                      large request ─▶ more? ─▶ back of the queue
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
    """The queue of connections with requests. sent: bytes sent to all clients so far."""

    def __init__(self, context: Context) -> None:
        self.sent = 0
        self._context = context
        self.queue: deque[Connection] = deque()
        self._touched: list[Connection] = []

    def received(self, connection: Connection) -> None:
        """Schedule a connection that received bytes, first in the queue if it was not queued."""
        if connection.queued:
            self._touched.append(connection)
        else:
            connection.queued = True
            self.queue.appendleft(connection)

    def resume(self, connection: Connection) -> None:
        """Schedule a connection behind those that are queued."""
        if not connection.queued:
            connection.queued = True
            self.queue.append(connection)

    def run(self, process: Process, now: float) -> None:
        """Process requests for one time slice; then pause or resume reading from clients."""
        requests, room = SLICE_REQUESTS, SLICE_BYTES
        queue, touched = self.queue, self._touched
        while queue and requests > 0 and room > 0:
            connection = queue.popleft()
            touched.append(connection)
            more = connection.has_work
            while more and requests > 0 and room > 0:
                sent = self.sent
                size = process(connection, now)
                requests = 0 if connection.working else requests - 1
                room -= size + self.sent - sent
                more = size > 0 and connection.has_work
            if more:
                queue.append(connection)  # its time slice is over, its requests may not be
                break
            connection.queued = False
        for connection in touched:
            if connection.paused is connection.may_read and not connection.closing:
                connection.paused = not connection.paused
                effect = PauseReading if connection.paused else ResumeReading
                self._context.emit(effect(connection.id))
        touched.clear()
