"""The state of a group member: its identity, requests in flight and deadlines.

Only `_transition` changes the state, along `LEGAL`. A response counts while its request is the
current one. A member without a generation sends no heartbeats and has no session.
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
from . import requests as group_requests
from .member_states import LEGAL, HeartbeatDue, MemberEffect, MemberState, SessionExpired
from .polling import PolledMember
from .requests import NO_GENERATION, Identity

Effects: TypeAlias = list[MemberEffect]

REQUEST_KEY: Final = "membership"
"""The first part of the keys of the membership's requests."""


class GroupMember(PolledMember[ConsumerConfig]):
    """The data of a membership.

    owner: the consumer's name in the client. identity: the current member id, generation and
    instance id; commits carry it. joined_as: that of the last generation, also if it is lost.
    """

    def __init__(self, config: ConsumerConfig, *, owner: str) -> None:
        super().__init__(config)
        self.group_id = config.group_id or ""
        self.coordinator = Coordinator(CoordinatorKind.GROUP, self.group_id)
        self.state = MemberState.UNJOINED
        self.identity = Identity(group_instance_id=config.group_instance_id)
        self.joined_as = self.identity
        self._owner = owner
        self._serial = 0
        # the keys of requests whose responses still count
        self._current: dict[ApiKey, tuple[str, int]] = {}

    @property
    def in_group(self) -> bool:
        """Whether this member has a generation, as far as it knows."""
        return self.identity.generation_id != NO_GENERATION

    @property
    def unjoined(self) -> bool:
        """Whether the user is not in the group, and does not want to be."""
        return self.state is MemberState.UNJOINED

    @property
    def auto_commits(self) -> bool:
        """Whether offsets are committed every auto.commit.interval.ms now."""
        return self.state is MemberState.STABLE

    def on_metadata_changed(self, _now: float) -> Effects:
        """Do nothing: the topics of an assignment have names."""
        return []

    def _is_current(self, event: ResponseReceived | NoResponse) -> bool:
        """Whether the response is to the current request of its kind; ends that request."""
        if self._current.get(event.request.api) != event.request.key:
            return False
        del self._current[event.request.api]
        return True

    def _transition(self, state: MemberState) -> None:
        assert state in LEGAL[self.state], f"from {self.state.value} to {state.value}"
        self.state = state
        valid_in_all_states = (ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP)
        self._current = {
            api: key for api, key in self._current.items() if api in valid_in_all_states
        }

    def _reset_generation(self) -> None:
        self.identity = self.identity._replace(generation_id=NO_GENERATION)
        self._current.pop(ApiKey.HEARTBEAT, None)
        self._clear_deadlines(HeartbeatDue, SessionExpired)

    def _reset_member_id(self) -> None:
        self._reset_generation()
        self.identity = self.identity._replace(member_id="")

    def _request(self, api: ApiKey, body: Body, timeout_s: float) -> SendRequest:
        self._serial += 1
        key = self._current[api] = REQUEST_KEY, self._serial
        return SendRequest(self._owner, key, self.coordinator, api, body, timeout_s)

    def _reset_session_timer(self, now: float) -> None:
        self._deadlines[SessionExpired] = now + self.config.session_timeout_s

    def _leave_request(self, reason: str) -> Effects:
        """Return the LeaveGroup request; none for static members, which may come back (KIP-345)."""
        identity = self.identity
        if not identity.member_id or identity.group_instance_id is not None:
            return []
        body = group_requests.leave(self.group_id, identity, reason)
        return [self._request(ApiKey.LEAVE_GROUP, body, self.config.request_timeout_s)]
