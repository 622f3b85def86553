"""A member's place in its group: who it is there, what it asked, what is due.

Law: the state changes by `_become` alone, along `LEGAL`; an answer counts while its question is
ours; who is in no generation has no heartbeat and no session to keep.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ....messages.api_key import ApiKey
from ...requests import (
    Body,
    Coordinator,
    CoordinatorKind,
    NoResponse,
    ResponseReceived,
    SendRequest,
)
from ..configuration import ConsumerConfig
from . import requests as say
from .member_states import LEGAL, HeartbeatDue, MemberState, SessionExpired
from .requests import NO_GENERATION, Identity

Effects: TypeAlias = list[object]

PART: Final = "membership"
"""The first half of the keys of our requests."""


class GroupMember:
    """What a membership stands on.

    owner: the machine's name towards the network. identity: who we are in the group now; what a
    commit must say.
    """

    def __init__(self, config: ConsumerConfig, *, owner: str) -> None:
        self.config = config
        self.group_id = config.group_id or ""
        self.coordinator = Coordinator(CoordinatorKind.GROUP, self.group_id)
        self.state = MemberState.UNJOINED
        self.identity = Identity(group_instance_id=config.group_instance_id)
        self._owner = owner
        self._serial = 0
        # the requests whose answers still count
        self._current: dict[ApiKey, tuple[str, int]] = {}
        self._deadlines: dict[type, float] = {}

    @property
    def in_group(self) -> bool:
        """Whether the coordinator knows us in a generation, as far as we know."""
        return self.identity.generation_id != NO_GENERATION

    def next_deadline(self) -> float | None:
        return min(self._deadlines.values(), default=None)

    def _counts(self, event: ResponseReceived | NoResponse) -> bool:
        """Whether the answer is to a question that is still ours; it is no longer, then."""
        if self._current.get(event.request.api) != event.request.key:
            return False
        del self._current[event.request.api]
        return True

    def _become(self, state: MemberState) -> None:
        assert state in LEGAL[self.state], f"from {self.state.value} to {state.value}"
        self.state = state
        kept = (ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP)  # these answers count in every state
        self._current = {api: n for api, n in self._current.items() if api in kept}

    def _lose_generation(self) -> None:
        self.identity = self.identity._replace(generation_id=NO_GENERATION)
        self._current.pop(ApiKey.HEARTBEAT, None)
        self._drop(HeartbeatDue, SessionExpired)

    def _lose_name(self) -> None:
        self._lose_generation()
        self.identity = self.identity._replace(member_id="")

    def _drop(self, *deadlines: type) -> None:
        for each in deadlines:
            self._deadlines.pop(each, None)

    def _ask(self, api: ApiKey, body: Body, timeout_s: float) -> SendRequest:
        self._serial += 1
        key = self._current[api] = PART, self._serial
        return SendRequest(self._owner, key, self.coordinator, api, body, timeout_s)

    def _alive(self, now: float) -> None:
        self._deadlines[SessionExpired] = now + self.config.session_timeout_s

    def _farewell(self, reason: str) -> Effects:
        """Say that we leave; a static member says nothing, as it means to be back (KIP-345)."""
        me = self.identity
        if not me.member_id or me.group_instance_id is not None:
            return []
        body = say.leave(self.group_id, me, reason)
        return [self._ask(ApiKey.LEAVE_GROUP, body, self.config.request_timeout_s)]
