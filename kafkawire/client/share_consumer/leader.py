"""What a share consumer has of each leader: session, request in flight, acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ...messages.api_key import ApiKey
from ..consumer.failures import FetchFailed
from ..network.backoff import Backoff, Rng
from ..requests import RequestMetadataUpdate, SendRequest, UpdateLeader
from .acknowledgements import (
    AcknowledgementRange,
    Acknowledgements,
    AcknowledgementsEnded,
    SharePartition,
)
from .configuration import ShareConsumerConfig
from .records import Item
from .sessions import ShareSession

# Effects, beside requests.


@dataclass(frozen=True, slots=True)
class RecordsAcquired:
    """Records of a response, and errors in their place; ranges: offsets to acknowledge at once.

    lock_deadline: when the acquisition locks expire at the earliest; None: unknown.
    """

    node: int
    partition: SharePartition
    items: list[Item]
    ranges: tuple[AcknowledgementRange, ...]
    lock_deadline: float | None


@dataclass(frozen=True, slots=True)
class SessionLost:
    """The share session with a broker is lost, which may have released what was acquired in it."""

    node: int


@dataclass(frozen=True, slots=True)
class FetchRefused:
    """An error for the user."""

    error: FetchFailed


@dataclass(frozen=True, slots=True)
class FetchWarning:
    """An error that is retried."""

    error: FetchFailed


LeaderEffect = (
    SendRequest
    | RequestMetadataUpdate
    | UpdateLeader
    | RecordsAcquired
    | AcknowledgementsEnded
    | SessionLost
    | FetchRefused
    | FetchWarning
)

# State.

EARLY_RESPONSES: Final = 10
"""Responses without records, and without the wait of a fetch, after which a broker is paced."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A request in flight. partitions: of the session, in a ShareFetch."""

    serial: int
    api: ApiKey
    acknowledgements: tuple[Acknowledgements, ...]
    partitions: frozenset[SharePartition]
    sent_at: float


@dataclass(slots=True)
class Leader:
    """One leader. pending: acknowledgements to send. retry_at: when a request may be sent again.

    early: responses in a row without records, sooner than fetch.max.wait.ms.
    """

    session: ShareSession = field(default_factory=ShareSession)
    in_flight: InFlight | None = None
    pending: list[Acknowledgements] = field(default_factory=list)
    failures: int = 0
    retry_at: float = 0.0
    early: int = 0

    @property
    def settled(self) -> bool:
        """Whether nothing is in flight or to be sent, and no session is open."""
        return self.in_flight is None and not self.pending and not self.session.is_open

    def take_pending(self) -> tuple[Acknowledgements, ...]:
        """Return what the next request acknowledges: renewals have a request of their own."""
        plain = tuple(each for each in self.pending if not each.renews)
        taken = plain or tuple(self.pending)
        self.pending = [each for each in self.pending if each not in taken]
        return taken


@dataclass(slots=True)
class _Hold:
    """A partition that is not fetched until then, after so many failures in a row."""

    failures: int = 0
    until: float = 0.0


class LeaderTable:
    """The leaders of one share consumer. rng: returns random numbers in [0, 1), for backoff.

    lock_timeout_s: how long an acquisition lock holds; None before a broker said so.
    """

    def __init__(self, config: ShareConsumerConfig, rng: Rng) -> None:
        self.leaders: dict[int, Leader] = {}
        self.lock_timeout_s: float | None = None
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._rng = rng
        self._holds: dict[SharePartition, _Hold] = {}

    def leader(self, node: int) -> Leader:
        """Return the leader with that id."""
        return self.leaders.setdefault(node, Leader())

    def back_off(self, leader: Leader, now: float) -> None:
        """Send a leader nothing for a while, longer after each failure in a row."""
        leader.failures += 1
        leader.retry_at = now + self._backoff.after(leader.failures, self._rng)

    def pace(self, leader: Leader, now: float) -> None:
        """Slow down for a broker that keeps responding without records and without waiting."""
        leader.early += 1
        extra = leader.early - EARLY_RESPONSES
        leader.retry_at = max(leader.retry_at, now + self._backoff.after(extra, self._rng))

    def hold(self, partition: SharePartition, now: float) -> int:
        """Do not fetch a partition for a while; return the number of failures in a row."""
        hold = self._holds.setdefault(partition, _Hold())
        hold.failures += 1
        hold.until = now + self._backoff.after(hold.failures, self._rng)
        return hold.failures

    def held_until(self, partition: SharePartition) -> float:
        """Return until when a partition is not fetched."""
        hold = self._holds.get(partition)
        return 0.0 if hold is None else hold.until

    def release(self, partition: SharePartition) -> None:
        """End the hold of a partition, and its count of failures."""
        self._holds.pop(partition, None)

    def release_all(self) -> None:
        """Fetch all partitions again now: their leaders may have changed."""
        for hold in self._holds.values():
            hold.until = 0.0
