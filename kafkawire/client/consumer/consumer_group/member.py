"""The state of a member of a group with `group.protocol=consumer`.

Only `_transition` changes the state, along `LEGAL`. One heartbeat is in flight at a time. A
member without an epoch sends none but those that join and leave.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ....messages.api_key import ApiKey
from ...cluster import ClusterView
from ...member_id import new_member_id
from ...network.backoff import Rng
from ..configuration import ConsumerConfig
from ..group.member import REQUEST_KEY
from ..group.member_states import HeartbeatDue, PartitionsLost, PollExpired
from ..group.requests import NO_GENERATION, Identity
from ..partitions import TopicPartition
from ..subscription import Subscription
from .heartbeating import HeartbeatingMember
from .heartbeats import MemberFields, leave
from .member_states import LEGAL, MemberEffect, MemberEpochChanged, MemberState
from .target import Resolved, Target

Effects: TypeAlias = list[MemberEffect]
Key: TypeAlias = tuple[str, int]

S = MemberState

NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
NO_TARGET: Final = Target(frozenset())


class ConsumerGroupMember(HeartbeatingMember[ConsumerConfig]):
    """The data of a membership.

    subscription: what the user wants to read. owner: the consumer's name in the client.
    identity: the member epoch (as `generation_id`), member id and instance id; commits carry it.
    joined_as: that of the last epoch, also if it is lost. rng: numbers in [0, 1).
    """

    api = ApiKey.CONSUMER_GROUP_HEARTBEAT

    def __init__(
        self,
        config: ConsumerConfig,
        view: ClusterView,
        subscription: Subscription,
        *,
        owner: str,
        rng: Rng,
    ) -> None:
        super().__init__(config, config.group_id or "", owner=owner, rng=rng)
        self.state = S.UNJOINED
        self.joined_as = Identity(group_instance_id=config.group_instance_id)
        self.identity = self.joined_as._replace(member_id=new_member_id(rng))
        self.reason = ""
        self._view = view
        self._subscription = subscription
        self._in_flight: tuple[Key, MemberFields] | None = None
        self._leaving: Key | None = None
        self._id_from_coordinator = False
        self._confirmed: MemberFields | None = None
        self._target = NO_TARGET
        self._topic_ids: dict[str, bytes] = {}
        self._owned: frozenset[TopicPartition] | None = None  # None until the first assignment
        self._reconciling = False
        self._registered = False  # the coordinator may have this member
        self._release_deadline: float | None = None

    @property
    def in_group(self) -> bool:
        """Whether this member has an epoch, as far as it knows."""
        return self.identity.generation_id != NO_GENERATION

    @property
    def unjoined(self) -> bool:
        """Whether the user is not in the group, and does not want to be."""
        return self.state is S.UNJOINED

    @property
    def auto_commits(self) -> bool:
        """Whether offsets are committed every auto.commit.interval.ms now."""
        return self.in_group

    def _fields(self) -> MemberFields:
        owned = self._owned or NO_PARTITIONS
        return MemberFields(
            round(self.config.max_poll_interval_s * 1000),
            self.config.client_rack or None,
            sorted(self._subscription.topics),
            self._subscription.broker_pattern,
            self.config.group_remote_assignor,
            frozenset((self._topic_ids[each.topic], each.partition) for each in owned),
        )

    def _resolve(self) -> Resolved:
        resolved = self._target.resolve(self._view)
        used = resolved.topic_ids.keys() | {each.topic for each in self._owned or ()}
        all_ids = {**self._topic_ids, **resolved.topic_ids}
        self._topic_ids = {name: topic_id for name, topic_id in all_ids.items() if name in used}
        return resolved

    def _leave_request(self) -> Effects:
        body = leave(self.group_id, self.identity, id_from_coordinator=self._id_from_coordinator)
        request = self._request(body)
        self._leaving = REQUEST_KEY, self._serial
        return [request]

    def _lose(self, reason: str) -> Effects:
        """Forget the assignment and the epoch; the partitions are lost."""
        return [*self._reset(), PartitionsLost(reason)]

    def _reset(self) -> Effects:
        was_in_group = self.in_group
        self.identity = self.identity._replace(generation_id=NO_GENERATION)
        self._in_flight = self._confirmed = self._owned = None
        self._target, self._topic_ids = NO_TARGET, {}
        self._reconciling = False
        self._clear_deadlines(HeartbeatDue, PollExpired)
        return [MemberEpochChanged(Identity())] if was_in_group else []

    def _enter(self, state: MemberState) -> None:
        if state is not self.state:
            self._transition(state)

    def _transition(self, state: MemberState) -> None:
        assert state in LEGAL[self.state], f"from {self.state.value} to {state.value}"
        self.state = state
