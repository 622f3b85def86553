"""The parts of a consumer, as those that put them to use know them.

Law: made once, together; each is a machine or a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from ..network.backoff import Lot
from ..network.cluster import ClusterView
from ..requests import Answered, Unanswered
from .configuration import ConsumerConfig
from .fetch import fetcher
from .group import member as seat
from .group import membership
from .offsets import committed, committing
from .offsets import leader_requests as leaders
from .offsets.lookups import OffsetsByTime
from .offsets.positions import Positions
from .subscription import Subscription

Effects: TypeAlias = list[object]


class Part(Protocol):
    """A machine that asks the network."""

    def handle(self, event: Answered | Unanswered, now: float) -> Effects: ...

    def next_deadline(self) -> float | None: ...

    def advance(self, now: float) -> Effects: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that one consumer consists of; view: what is known of the cluster."""

    config: ConsumerConfig
    view: ClusterView
    subscription: Subscription
    offsets: OffsetsByTime
    positions: Positions
    membership: membership.Membership
    leaders: leaders.Leaders
    committed: committed.CommittedOffsets
    committing: committing.Committing
    fetcher: fetcher.Fetcher

    @classmethod
    def make(
        cls,
        config: ConsumerConfig,
        view: ClusterView,
        *,
        lot: Lot,
        clock_ms: Callable[[], int],
        owner: str,
    ) -> Self:
        """Make them; lot, clock_ms, owner: as of `Consumer`."""
        offsets = OffsetsByTime(config.isolation_level, round(config.request_timeout_s * 1000))
        positions = Positions(
            view,
            policy=config.auto_offset_reset,
            in_group=config.group_id is not None,
            offsets=offsets,
            clock_ms=clock_ms,
        )
        return cls(
            config,
            view,
            Subscription(),
            offsets,
            positions,
            membership.Membership(config, owner=owner, lot=lot),
            leaders.Leaders(config, view, owner=owner, lot=lot),
            committed.CommittedOffsets(config, owner=owner, lot=lot),
            committing.Committing(config, owner=owner, lot=lot),
            fetcher.Fetcher(config, view, positions, owner=owner, lot=lot),
        )

    @property
    def machines(self) -> dict[str, Part]:
        """Those that ask the network, by the first half of the keys of what they ask."""
        return {
            seat.PART: self.membership,
            leaders.PART: self.leaders,
            committed.PART: self.committed,
            committing.PART: self.committing,
            fetcher.PART: self.fetcher,
        }
