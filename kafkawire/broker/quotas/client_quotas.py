"""Quotas of users and clients on what they produce and consume, as Kafka's ClientQuotaManager.

The most specific quota of a user and client id applies. What exceeds it is paid for by
waiting: the response says how long, and the connection is not served until then (KIP-219).

    bytes ─▶ rate over `quota.window.num` windows ─▶ above the quota? ─▶ throttle_time_ms
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ...metadata import QuotaEntity
from ..configs import Settings

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
MOST_RATES: Final = 10_000
"""Rates that are measured at a time; beyond, the least recently used are forgotten."""
Who = tuple[str | None, str | None]
"""(user, client id): whose bytes are counted together."""


@dataclass(slots=True)
class Sample:
    """The bytes of one window; times in ms."""

    start: int
    last: int
    total: float = 0.0


class Rate:
    """Bytes per second, over some windows of the past; as Kafka's `Rate`. Times in ms."""

    def __init__(self, windows: int, width: int) -> None:
        self._windows = windows
        self._width = width
        self._samples: deque[Sample] = deque(maxlen=windows + 1)

    def record(self, size: float, now: int) -> None:
        """Count bytes; those of a response that is not sent are counted again as negative."""
        if not self._samples or now - self._samples[-1].start >= self._width:
            self._samples.append(Sample(now, now))
        sample = self._samples[-1]
        sample.last, sample.total = now, sample.total + size

    def throttle_ms(self, quota: float, now: int) -> int:
        """Return for how long a client has to wait until its rate is the quota again."""
        samples = self._samples
        while samples and now - samples[0].last >= self._windows * self._width:
            samples.popleft()
        window = self._window(now - samples[0].start if samples else 0)
        rate = sum(each.total for each in samples) / window * 1000
        return round((rate - quota) / quota * window) if rate > quota else 0

    def _window(self, elapsed: int) -> int:
        """Return what to divide by: at least all windows but one, so that requests may be large."""
        missing = self._windows - 1 - elapsed // self._width
        return max(elapsed + max(missing, 0) * self._width, self._width)


class ClientQuotas:
    """The quotas of the metadata, and the rates of those who have one."""

    def __init__(self, settings: Settings) -> None:
        self._windows = settings.number("quota.window.num")
        self._seconds = settings.number("quota.window.size.seconds")
        self._quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
        self._rates: OrderedDict[tuple[str, Who], Rate] = OrderedDict()

    def publish(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take over the quotas of an image."""
        self._quotas = {entity: dict(values) for entity, values in quotas.items()}

    def record(self, key: str, user: str, client_id: str | None, size: int, now: float) -> int:
        """Count bytes; return for how many ms the client is throttled."""
        found = self._find(key, user, client_id or "") if self._quotas else None
        if found is None:
            return 0
        who, quota = found
        at = int(now * 1000)
        rate = self._rate(key, who)
        rate.record(size, at)
        return rate.throttle_ms(quota, at)

    def unrecord(self, key: str, user: str, client_id: str | None, size: int, now: float) -> None:
        """Take back bytes that are not sent."""
        quota = self._find(key, user, client_id or "")
        if quota is not None:
            self._rate(key, quota[0]).record(-size, int(now * 1000))

    def most(self, key: str, user: str, client_id: str | None) -> int | None:
        """Return how many bytes fit in all windows; None for any."""
        quota = self._find(key, user, client_id or "") if self._quotas else None
        return None if quota is None else int(quota[1] * (self._windows - 1) * self._seconds)

    def _rate(self, key: str, who: Who) -> Rate:
        rate = self._rates.get((key, who))
        if rate is None:
            rate = self._rates[key, who] = Rate(self._windows, self._seconds * 1000)
            if len(self._rates) > MOST_RATES:
                self._rates.popitem(last=False)
        self._rates.move_to_end((key, who))
        return rate

    def _find(self, key: str, user: str, client_id: str) -> tuple[Who, float] | None:
        """Return the quota that applies, and whose bytes count."""
        for entity, who in _entities(user, client_id):
            quota = self._quotas.get(entity, {}).get(key)
            if quota is not None:
                return who, quota
        return None


def _entities(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Who]]:
    """Yield what a quota may be of, the most specific first: a name of None is the default."""
    for name in (user, None):
        for client in (client_id, None):
            yield frozenset({("user", name), ("client-id", client)}), (user, client_id)
        yield frozenset({("user", name)}), (user, None)
    for client in (client_id, None):
        yield frozenset({("client-id", client)}), (None, client_id)
