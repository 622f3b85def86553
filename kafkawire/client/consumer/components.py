"""The components of a consumer.

Created once, together; each is a machine or a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, Self, TypeAlias

from ..cluster import ClusterView
from ..network.backoff import Rng
from ..requests import NoResponse, ResponseReceived
from .configuration import ConsumerConfig, GroupProtocol
from .consumer_group.member_states import MemberEffect as ConsumerGroupEffect
from .consumer_group.membership import ConsumerGroupMembership
from .events import ConsumerEffect
from .fetch import fetcher
from .group import member as member
from .group import membership
from .group.member_states import MemberEffect
from .group.requests import Identity
from .offsets import committed, committing
from .offsets import leader_requests as leaders
from .offsets.lookups import OffsetsByTime
from .offsets.positions import Positions, PositionsEffect
from .subscription import Subscription

ComponentEffect = (
    MemberEffect
    | ConsumerGroupEffect
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


class GroupMembership(Protocol):
    """The member of a group, whatever the protocol of the group.

    state: its own states. identity, joined_as: as in `group.member.GroupMember`. Events are those
    of its `member_states`.
    """

    joined_as: Identity
    identity: Identity

    @property
    def state(self) -> Enum: ...

    @property
    def in_group(self) -> bool: ...

    @property
    def unjoined(self) -> bool: ...

    @property
    def auto_commits(self) -> bool: ...

    def handle(self, event: Any, now: float) -> Effects: ...

    def next_deadline(self) -> float | None: ...

    def advance(self, now: float) -> Effects: ...

    def on_commit_error(self, code: int, sent_as: Identity, now: float) -> Effects: ...

    def on_metadata_changed(self, now: float) -> Effects: ...


@dataclass(frozen=True, slots=True)
class Components:
    """The components of one consumer. view: the metadata of the cluster."""

    config: ConsumerConfig
    view: ClusterView
    subscription: Subscription
    offsets: OffsetsByTime
    positions: Positions
    membership: GroupMembership
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
        subscription = Subscription()
        member_of_group: GroupMembership
        if config.group_protocol is GroupProtocol.CONSUMER:
            member_of_group = ConsumerGroupMembership(
                config, view, subscription, owner=owner, rng=rng
            )
        else:
            member_of_group = membership.Membership(config, owner=owner, rng=rng)
        return cls(
            config,
            view,
            subscription,
            offsets,
            positions,
            member_of_group,
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
