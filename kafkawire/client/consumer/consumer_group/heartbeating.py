"""A member that its heartbeats alone keep in the group: of a consumer group, of a share group.

After a failure it sends the next heartbeat once the backoff is over.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ....messages.api_key import ApiKey
from ...network.backoff import Backoff, Rng
from ...requests import Body, Coordinator, CoordinatorKind, ForgetCoordinator, SendRequest
from ..failures import ConsumerError
from ..group.member import REQUEST_KEY
from ..group.member_states import HeartbeatDue
from ..group.polling import Effects, PolledConfig, PolledMember


class HeartbeatingConfig(PolledConfig, Protocol):
    """The configuration of a member that sends heartbeats."""

    @property
    def request_timeout_s(self) -> float: ...

    @property
    def retry_backoff_s(self) -> float: ...

    @property
    def retry_backoff_max_s(self) -> float: ...


ConfigT = TypeVar("ConfigT", bound=HeartbeatingConfig)


class HeartbeatingMember(PolledMember[ConfigT]):
    """The requests of a member, and how it retries them.

    owner: the client's machine that its requests are of. rng: numbers in [0, 1), for backoff.
    """

    api: ApiKey
    """The API key of its heartbeats."""

    def __init__(self, config: ConfigT, group_id: str, *, owner: str, rng: Rng) -> None:
        super().__init__(config)
        self.group_id = group_id
        self.coordinator = Coordinator(CoordinatorKind.GROUP, group_id)
        self.error: ConsumerError | None = None
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._serial = 0
        self._failures = 0

    def _request(self, body: Body) -> SendRequest:
        self._serial += 1
        return SendRequest(
            self._owner,
            (REQUEST_KEY, self._serial),
            self.coordinator,
            self.api,
            body,
            self.config.request_timeout_s,
        )

    def _retry(self, _event: Any, now: float) -> Effects:
        self._failures += 1
        self._deadlines[HeartbeatDue] = now + self._backoff.after(self._failures, self._rng)
        return []

    def _find_coordinator(self, event: Any, now: float) -> Effects:
        return [ForgetCoordinator(self.coordinator), *self._retry(event, now)]
