"""Replication quotas: leader.replication.throttled.rate, follower.replication.throttled.rate.

In-sync replicas are never throttled (KIP-73). What exceeds the rate is paid for by waiting.
"""

from __future__ import annotations


class ReplicationQuota:
    """Bytes of throttled replicas, against a rate in bytes per second; None for no limit."""

    def __init__(self, rate: float | None = None) -> None:
        self.rate = rate
        self._debt = 0.0
        self._since = float("-inf")

    def record(self, size: int, now: float) -> None:
        """Count bytes that were sent or received."""
        if self.rate is not None:
            self._debt = self._owed(now) + size
            self._since = now

    def is_exceeded(self, now: float) -> bool:
        """Return whether throttled replicas must wait."""
        return self.rate is not None and self._owed(now) > 0

    def paid_at(self, now: float) -> float:
        """Return when the quota is no longer exceeded; of a rate of 0, in a second."""
        if self.rate is None:
            return now
        return now + (self._owed(now) / self.rate if self.rate else 1.0)

    def _owed(self, now: float) -> float:
        if self.rate is None or not self._debt:
            return 0.0
        left = self._debt - (now - self._since) * self.rate
        return left if left > 1e-6 else 0.0
