"""Decides what the polls of a consumer return: an error, records or columns.

Poll ─▶ begin ─▶ errors, fetch buffer ─▶ next: Raise | Deliver | DeliverColumns
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Final

from . import events
from .components import Components, Effects
from .failures import FetchFailed

ANY_NUMBER: Final = sys.maxsize
"""Records of a poll for columns without a limit."""


class Delivery:
    """The results of one consumer's polls. errors: what the next polls raise, in order."""

    def __init__(self, components: Components) -> None:
        self._buffer = components.fetcher.fetch_buffer
        self._default = components.config.max_poll_records
        self._max_records = self._default
        self._columns = False
        self.errors: deque[Exception] = deque()

    def begin(self, poll: events.Poll) -> None:
        """Begin a poll."""
        self._columns = poll.columns
        self._max_records = poll.max_records or (ANY_NUMBER if poll.columns else self._default)
        self._buffer.read_as(columns=poll.columns)

    def next(self) -> events.Raise | events.Deliver | events.DeliverColumns | None:
        """Return what completes the poll; None if there is nothing yet."""
        if self.errors:
            return events.Raise(self.errors.popleft())
        try:
            if self._columns:
                columns = self._buffer.take_columns(self._max_records)
                return None if columns is None else events.DeliverColumns(columns)
            records = self._buffer.take(self._max_records)
        except FetchFailed as error:
            return events.Raise(error)
        return events.Deliver(records) if records else None

    def return_records(self, event: events.ReturnRecords, _now: float) -> Effects:
        """Put records back that the user has not processed."""
        self._buffer.return_records(event.records)
        return []

    def return_columns(self, event: events.ReturnColumns, _now: float) -> Effects:
        """Put columns back that the user has not processed."""
        self._buffer.return_columns(event.columns)
        return []
