"""Sends requests for the state of share partitions to their coordinators, as Kafka's Persister.

Invariant: the requests of a broker for one share partition follow each other, so none overtakes a
state that is older. A coordinator that is not there yet is tried again.

    share partitions, share groups ─▶ Persister ─┬─▶ ShareCoordinators of this broker
                                                 └─▶ other brokers
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from ...messages import delete_share_group_state_request as delete_request
from ...messages import initialize_share_group_state_request as initialize_request
from ...messages import read_share_group_state_summary_request as summary_request
from ...primitives import Message, Structure
from ...protocol import ErrorCode
from ..context import Context
from ..events import PersistDue
from ..forwarding.topic_creation import TopicCreation
from ..machines import Machines
from ..topics import NO_LEADER
from .coordinators import ShareCoordinators, Then, coordinator_key
from .requests import failed, request_of
from .state import ShareKey

E = ErrorCode
RETRIABLE: Final = frozenset(
    {
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NETWORK_EXCEPTION,
        E.NOT_COORDINATOR,
    }
)
BACKOFF: Final = 0.1
MAX_BACKOFF: Final = 1.0
LIMIT: Final = 15.0
"""Seconds after which a request fails whose coordinator is not there."""


@dataclass(slots=True)
class Pending:
    """A request. attempts: how often it was sent. until: when it fails."""

    number: int
    key: ShareKey
    data: Structure
    then: Then
    until: float
    attempts: int = 0


class Persister:
    """The requests of a broker."""

    def __init__(
        self,
        node_id: int,
        coordinators: ShareCoordinators,
        machines: Machines,
        context: Context,
        creation: TopicCreation,
    ) -> None:
        self._node_id = node_id
        self._coordinators = coordinators
        self._machines = machines
        self._context = context
        self._creation = creation
        self._queues: dict[ShareKey, deque[Pending]] = {}
        """Share partition -> its requests; the first one is in flight."""
        self._sent: dict[int, Pending] = {}
        """Token of a request -> what it is for."""
        self._backing_off: dict[int, Pending] = {}
        self._count = 0

    def submit(self, key: ShareKey, data: Structure, then: Then, now: float) -> None:
        """Send a request for one share partition; `then` gets its result.

        data: the partition in the request.
        """
        self._count += 1
        pending = Pending(self._count, key, data, then, now + LIMIT)
        queue = self._queues.setdefault(key, deque())
        queue.append(pending)
        if len(queue) == 1:
            self._send(pending, now)

    def initialize(
        self,
        group_id: str,
        partition: tuple[bytes, int],
        state_epoch: int,
        start_offset: int,
        then: Then,
        now: float,
    ) -> None:
        """Set up the state of a share partition. start_offset: -1 leaves it open."""
        data = initialize_request.PartitionData(
            partition=partition[1], state_epoch=state_epoch, start_offset=start_offset
        )
        self.submit(ShareKey(group_id, *partition), data, then, now)

    def delete(self, group_id: str, partition: tuple[bytes, int], then: Then, now: float) -> None:
        """Delete the state of a share partition."""
        data = delete_request.PartitionData(partition=partition[1])
        self.submit(ShareKey(group_id, *partition), data, then, now)

    def summarize(
        self, group_id: str, partition: tuple[bytes, int], then: Then, now: float
    ) -> None:
        """Read the start offset of a share partition."""
        data = summary_request.PartitionData(partition=partition[1], leader_epoch=0)
        self.submit(ShareKey(group_id, *partition), data, then, now)

    def _send(self, pending: Pending, now: float) -> None:
        pending.attempts += 1
        if self._creation.ensure_share_state_topic(now) is None:
            self._failed(pending, E.COORDINATOR_NOT_AVAILABLE, now)
            return
        _, leader = self._coordinators.leader_of(coordinator_key(pending.key))
        if leader == self._node_id:

            def handled(result: Structure, now: float) -> None:
                self._result(pending, result, now)

            self._coordinators.submit(pending.key, pending.data, handled, now)
            return
        token = None
        if leader != NO_LEADER:
            body, version = request_of(pending.key, pending.data)
            token = self._machines.send(leader, version, body)
        if token is None:
            self._failed(pending, E.COORDINATOR_NOT_AVAILABLE, now)
        else:
            self._sent[token] = pending

    def arrived(self, token: int, body: Message | None, now: float) -> bool:
        """Handle a response; return whether it was for this."""
        pending = self._sent.pop(token, None)
        if pending is None:
            return False
        result = None if body is None else _first(body)
        if result is None:
            self._failed(pending, E.NETWORK_EXCEPTION, now)
        else:
            self._result(pending, result, now)
        return True

    def _failed(self, pending: Pending, error: ErrorCode, now: float) -> None:
        self._result(pending, failed(pending.key, pending.data, error), now)

    def _result(self, pending: Pending, result: Any, now: float) -> None:
        if result.error_code in RETRIABLE and now < pending.until:
            self._backing_off[pending.number] = pending
            backoff = min(MAX_BACKOFF, BACKOFF * 2 ** (pending.attempts - 1))
            self._context.deadlines.set(PersistDue(pending.number), now + backoff)
            return
        queue = self._queues[pending.key]
        queue.popleft()
        following = queue[0] if queue else None
        if following is None:
            del self._queues[pending.key]
        pending.then(result, now)
        if following is not None:
            self._send(following, now)

    def due(self, due: PersistDue, now: float) -> None:
        """Send a request again."""
        self._send(self._backing_off.pop(due.number), now)


def _first(body: Any) -> Structure | None:
    """Return the result of the only share partition of a response."""
    for topic in body.results:
        for result in topic.partitions:
            first: Structure = result
            return first
    return None
