"""Keeps the sessions of brokers: who sent a heartbeat when, and what it has read.

This is known to the active controller only; a new one grants every broker a new session.
Brokers are in order of their last contact, so that the next one to expire is the first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

NOTHING_READ = -1


class Sessions:
    """Sessions of registered brokers, fenced or not.

    timeout: seconds without a heartbeat until a session expires.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._contact: OrderedDict[int, float] = OrderedDict()
        self._read: dict[int, int] = {}
        self._shutdown_from: dict[int, int] = {}

    def touch(self, broker_id: int, now: float, metadata_offset: int = NOTHING_READ) -> None:
        """Begin or renew a session. metadata_offset: the last that the broker has read."""
        self._contact[broker_id] = now
        self._contact.move_to_end(broker_id)
        self._read[broker_id] = metadata_offset

    def remove(self, broker_id: int) -> None:
        """End a session."""
        self._contact.pop(broker_id, None)
        self._read.pop(broker_id, None)
        self._shutdown_from.pop(broker_id, None)

    def is_live(self, broker_id: int, now: float) -> bool:
        """Return whether a session has not expired."""
        contact = self._contact.get(broker_id)
        return contact is not None and now < contact + self.timeout

    def next_deadline(self) -> float | None:
        """Return when the first session expires."""
        for contact in self._contact.values():
            return contact + self.timeout
        return None

    def pop_expired(self, now: float) -> int | None:
        """End the oldest session that has expired, and return its broker."""
        broker_id = next(iter(self._contact), None)
        if broker_id is None or self.is_live(broker_id, now):
            return None
        self.remove(broker_id)
        return broker_id

    def start_shutdown(self, broker_id: int, offset: int) -> None:
        """Note the offset that the active brokers must have read before a broker may stop.

        A controller that was elected meanwhile notes it at the next heartbeat.
        """
        self._shutdown_from.setdefault(broker_id, offset)

    def may_stop(self, broker_id: int, active: Iterable[int]) -> bool:
        """Return whether all active brokers know that the broker leads nothing."""
        offset = self._shutdown_from[broker_id]
        return all(self._read.get(each, NOTHING_READ) >= offset for each in active)
