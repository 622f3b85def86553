"""Quotas of users and clients, and of addresses that connect, as Kafka's ClientQuotaManager.

The most specific quota of a user and client id applies. What exceeds it is paid for by
waiting: the response says how long, and the connection is not served until then (KIP-219).

    bytes ─▶ rate over `quota.window.num` windows ─▶ above the quota? ─▶ throttle_time_ms
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ...metadata.client_quotas import (
    CONNECTION_CREATION,
    REQUEST,
    Quotas,
    Who,
    quota_of_address,
    quota_of_client,
)
from ..configs import Settings
from ..network.rates import Rate

MOST_RATES: Final = 10_000
"""Rates that are measured at a time; beyond, the least recently used are forgotten."""


class ClientQuotas:
    """The quotas of the metadata, and the rates of those who have one."""

    def __init__(self, settings: Settings) -> None:
        self._windows = settings.number("quota.window.num")
        self._seconds = settings.number("quota.window.size.seconds")
        self._quotas: Quotas = {}
        self._keys: frozenset[str] = frozenset()
        self._rates: OrderedDict[tuple[str, Who], Rate] = OrderedDict()

    def publish(self, quotas: Quotas) -> None:
        """Take over the quotas of an image."""
        self._quotas = {entity: dict(values) for entity, values in quotas.items()}
        self._keys = frozenset(key for values in quotas.values() for key in values)

    def limit(self, key: str) -> bool:
        """Whether anyone has a quota of a key."""
        return key in self._keys

    def record(self, key: str, user: str, client_id: str | None, size: float, now: float) -> int:
        """Count bytes; return for how many ms the client is throttled."""
        if key not in self._keys:
            return 0
        applying = quota_of_client(self._quotas, key, user, client_id or "")
        if applying is None:
            return 0
        who, quota = applying
        now_ms = int(now * 1000)
        rate = self._rate(key, who)
        rate.record(size, now_ms)
        return rate.throttle_ms(quota, now_ms)

    def record_time(self, user: str, client_id: str | None, seconds: float, now: float) -> int:
        """Count the time of threads in which requests were processed; at most a window is waited.

        A quota of 100 is the time of one thread.
        """
        throttle_ms = self.record(REQUEST, user, client_id, seconds * 100, now)
        return min(throttle_ms, self._seconds * 1000)

    def record_connection(self, address: str, now: float) -> int:
        """Count a connection that an address opens; return for how many ms it is throttled.

        One that is throttled is not counted; at most a window is waited (KIP-612).
        """
        quota = quota_of_address(self._quotas, address) if self._quotas else None
        if quota is None:
            return 0
        now_ms = int(now * 1000)
        rate = self._rate(CONNECTION_CREATION, (address, None))
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(quota, now_ms), self._seconds * 1000)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def unrecord(self, key: str, user: str, client_id: str | None, size: int, now: float) -> None:
        """Take back bytes that are not sent."""
        quota = quota_of_client(self._quotas, key, user, client_id or "")
        if quota is not None:
            self._rate(key, quota[0]).record(-size, int(now * 1000))

    def most(self, key: str, user: str, client_id: str | None) -> int | None:
        """Return how many bytes fit in all windows; None for any."""
        if key not in self._keys:
            return None
        quota = quota_of_client(self._quotas, key, user, client_id or "")
        return None if quota is None else int(quota[1] * (self._windows - 1) * self._seconds)

    def _rate(self, key: str, who: Who) -> Rate:
        rate = self._rates.get((key, who))
        if rate is None:
            rate = self._rates[key, who] = Rate(self._windows, self._seconds * 1000)
            if len(self._rates) > MOST_RATES:
                self._rates.popitem(last=False)
        self._rates.move_to_end((key, who))
        return rate
