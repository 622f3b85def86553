"""The components of a consumer.

Law: created once, together; each is a machine or a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from ..cluster import ClusterView
from ..network.backoff import Rng
from ..requests import NoResponse, ResponseReceived
from .configuration import ConsumerConfig
from .events import ConsumerEffect
from .fetch import fetcher
from .group import member as member
from .group import membership
from .group.member_states import MemberEffect
from .offsets import committed, committing
from .offsets import leader_requests as leaders
from .offsets.lookups import OffsetsByTime
from .offsets.positions import Positions, PositionsEffect
from .subscription import Subscription

ComponentEffect = (
    MemberEffect
    | PositionsEffect
    | leaders.LeadersEffect
    | committed.CommittedEffect
    | committing.CommittingEffect
    | fetcher.FetcherEffect
)
Effect = ConsumerEffect | ComponentEffect
"""Effects for the network and the user, and those between components."""
Effects: TypeAlias = Sequence[Effect]


class Component(Protocol):
    """A machine that sends requests."""

    def handle(self, event: ResponseReceived | NoResponse, now: float) -> Effects: ...

    def next_deadline(self) -> float | None: ...

    def advance(self, now: float) -> Effects: ...


@dataclass(frozen=True, slots=True)
class Components:
    """The components of one consumer. view: the metadata of the cluster."""

    config: ConsumerConfig
    view: ClusterView
    subscription: Subscription
    offsets: OffsetsByTime
    positions: Positions
    membership: membership.Membership
    leaders: leaders.LeaderRequests
    committed: committed.CommittedOffsets
    committing: committing.Committing
    fetcher: fetcher.Fetcher

    @classmethod
    def make(
        cls,
        config: ConsumerConfig,
        view: ClusterView,
        *,
        rng: Rng,
        clock_ms: Callable[[], int],
        owner: str,
    ) -> Self:
        """Create the components; rng, clock_ms, owner: as for `Consumer`."""
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
            membership.Membership(config, owner=owner, rng=rng),
            leaders.LeaderRequests(config, view, owner=owner, rng=rng),
            committed.CommittedOffsets(config, owner=owner, rng=rng),
            committing.Committing(config, owner=owner, rng=rng),
            fetcher.Fetcher(config, view, positions, owner=owner, rng=rng),
        )

    @property
    def machines(self) -> dict[str, Component]:
        """The machines that send requests, by the first part of their request keys."""
        return {
            member.REQUEST_KEY: self.membership,
            leaders.REQUEST_KEY: self.leaders,
            committed.REQUEST_KEY: self.committed,
            committing.REQUEST_KEY: self.committing,
            fetcher.REQUEST_KEY: self.fetcher,
        }
