"""The request to a coordinator that is in flight or waits for its retry: one at a time."""

from __future__ import annotations

from .requests import Operation


class CurrentOperation:
    """operation: None between operations. failures: how often it has failed. Times in seconds."""

    def __init__(self) -> None:
        self.operation: Operation | None = None
        self.in_flight = False
        self.failures = 0
        self._retry_at = 0.0

    def next_deadline(self) -> float | None:
        """Return when the operation is to be sent; None if nothing is."""
        return None if self.operation is None or self.in_flight else self._retry_at

    def take_due(self, now: float) -> Operation | None:
        """Return the operation if it is to be sent now; it is in flight then."""
        deadline = self.next_deadline()
        if deadline is None or now < deadline:
            return None
        self.in_flight = True
        return self.operation

    def retry_at(self, when: float) -> None:
        """Send the operation again, at a time."""
        self.failures += 1
        self._retry_at = when

    def succeed(self) -> None:
        """End the operation; the next one has no backoff."""
        self.operation, self.failures, self._retry_at = None, 0, 0.0

    def drop_unless_in_flight(self) -> None:
        """Give up an operation that waits for its retry."""
        if not self.in_flight:
            self.operation = None
