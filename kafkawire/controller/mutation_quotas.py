"""Quotas on the partitions that clients create and delete (KIP-599): a token bucket for each.

A bucket fills at the quota, up to `controller.quota.window.num` windows of it. Changes are made
while it has tokens, also those that cost more than it has: the next ones wait until it has paid.

    partitions ─▶ tokens left below 0? ─┬─ strict: THROTTLING_QUOTA_EXCEEDED, nothing is charged
                                        └─ permissive: made; throttle_time_ms
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from ..metadata.client_quotas import CONTROLLER_MUTATION, Quotas, Who, quota_of_client

MOST_BUCKETS: Final = 10_000
"""Buckets that are kept at a time; beyond, the least recently used are forgotten."""


class TokenBucket:
    """Tokens of a client; as Kafka's `TokenBucket`. Times in ms."""

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._updated = 0

    def refill(self, quota: float, burst: float, now: int) -> float:
        """Add the tokens of the time that has passed; return how many there are."""
        if self._tokens is None:
            self._tokens = burst
        self._tokens = min(burst, self._tokens + quota * (now - self._updated) / 1000)
        self._updated = now
        return self._tokens

    def take(self, count: int) -> None:
        """Take tokens, also more than there are."""
        assert self._tokens is not None
        self._tokens -= count


class MutationQuota(Protocol):
    """What one request is charged."""

    def charge(self, partitions: int) -> bool:
        """Charge for partitions; return whether they may be created or deleted."""

    @property
    def throttle_ms(self) -> int:
        """For how long the client is throttled."""


class Unbounded:
    """No quota."""

    throttle_ms = 0

    def charge(self, _partitions: int) -> bool:
        """Charge nothing."""
        return True


UNBOUNDED: Final = Unbounded()


class ClientMutationQuota:
    """The quota of the client of a request. strict: whether its version has an error for it."""

    def __init__(self, bucket: TokenBucket, quota: float, burst: float, strict: bool, now: int):
        self._bucket = bucket
        self._quota = quota
        self._burst = burst
        self._strict = strict
        self._now = now
        self.throttle_ms = 0

    def charge(self, partitions: int) -> bool:
        """Charge for partitions; not where the quota is exceeded and strict."""
        tokens = self._bucket.refill(self._quota, self._burst, self._now)
        if self._strict and tokens < 0:
            self._throttle(tokens)
            return False
        self._bucket.take(partitions)
        if not self._strict and tokens < partitions:
            self._throttle(tokens - partitions)
        return True

    def _throttle(self, tokens: float) -> None:
        self.throttle_ms = round(-tokens / self._quota * 1000)


class MutationQuotas:
    """The buckets of clients, by whose quota it is.

    setting: returns the value of a key of brokers.
    """

    def __init__(self, setting: Callable[[str], str]) -> None:
        self._setting = setting
        self._buckets: OrderedDict[Who, TokenBucket] = OrderedDict()

    def of_client(
        self, quotas: Quotas, user: str, client_id: str | None, strict: bool, now: float
    ) -> MutationQuota:
        """Return the quota of a request's client."""
        quota = quota_of_client(quotas, CONTROLLER_MUTATION, user, client_id or "")
        if quota is None:
            return UNBOUNDED
        who, rate = quota
        windows = int(self._setting("controller.quota.window.num"))
        seconds = int(self._setting("controller.quota.window.size.seconds"))
        burst = windows * seconds * rate
        return ClientMutationQuota(self._bucket(who), rate, burst, strict, int(now * 1000))

    def _bucket(self, who: Who) -> TokenBucket:
        bucket = self._buckets.get(who)
        if bucket is None:
            bucket = self._buckets[who] = TokenBucket()
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(who)
        return bucket
