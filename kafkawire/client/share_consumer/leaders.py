"""Fetches from the leaders of the assigned partitions, and acknowledges to them.

Each broker has one request in flight. Acknowledgements go with the next ShareFetch if that is
for their partitions, else in a ShareAcknowledge, and only in a session that is open.

    assigned partitions, by leader ─▶ ShareFetch ─▶ acquired records
    acknowledgements ─▶ ShareFetch, ShareAcknowledge ─▶ in effect, or failed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from ...messages.api_key import ApiKey
from ...protocol.error_code import ErrorCode
from ..cluster import ClusterView
from ..network.backoff import Rng
from ..requests import (
    Body,
    NoResponse,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
)
from .acknowledgements import Acknowledgements, SharePartition, ended
from .configuration import ShareConsumerConfig
from .leader import InFlight, Leader, LeaderEffect, LeaderTable
from .leader_responses import LeaderResponses
from .requests import share_acknowledge, share_fetch

Effects: TypeAlias = list[LeaderEffect]

REQUEST_KEY: Final = "leaders"
NO_NODE: Final = -1
NO_SESSION: Final = "the share session with the leader was lost"
CLOSING: Final = "the share session is being closed"
NOT_IN_TIME: Final = "the acknowledgement was not sent in time"


class Leaders:
    """The leaders of one share consumer.

    assignment: the partitions to fetch from. closing: whether to close all sessions.
    """

    def __init__(
        self,
        config: ShareConsumerConfig,
        view: ClusterView,
        member_id: str,
        *,
        owner: str,
        rng: Rng,
    ) -> None:
        self.assignment: frozenset[SharePartition] = frozenset()
        self.closing = False
        self._config = config
        self._view = view
        self._member_id = member_id
        self._owner = owner
        self._table = LeaderTable(config, rng)
        self._responses = LeaderResponses(config, self._table)
        self._serial = 0
        self._due: float | None = None

    @property
    def lock_timeout_s(self) -> float | None:
        """How long an acquisition lock holds; None before a broker said so."""
        return self._table.lock_timeout_s

    @property
    def settled(self) -> bool:
        """Whether all sessions are closed, and all acknowledgements have ended."""
        return all(leader.settled for leader in self._table.leaders.values())

    # -- the contract

    def acknowledge(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        """Send acknowledgements with the next requests."""
        for each in acknowledgements:
            self._table.leader(each.node).pending.append(each)

    def handle(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle how a request ended."""
        return self._responses.handle(event, now)

    def on_metadata_changed(self) -> None:
        """Fetch partitions again whose leader may be another now."""
        self._table.release_all()

    def next_deadline(self) -> float | None:
        return self._due

    def advance(self, now: float) -> Effects:
        """End acknowledgements that were not sent in time; `send` does the rest."""
        self._due = None
        effects: Effects = []
        for leader in self._table.leaders.values():
            late = [each for each in leader.pending if each.deadline <= now]
            leader.pending = [each for each in leader.pending if each.deadline > now]
            effects += [ended(each, NOT_IN_TIME, ErrorCode.REQUEST_TIMED_OUT) for each in late]
        return effects

    # -- requests

    def send(self, now: float, *, max_records: int | None) -> Effects:
        """Send what can be sent. max_records: to fetch; None to only acknowledge."""
        effects: Effects = []
        wanted: dict[int, set[SharePartition]] = {}
        if max_records is not None and not self.closing:
            wanted = self._wanted(effects, now)
        for node in sorted(wanted.keys() | self._table.leaders.keys()):
            leader = self._table.leader(node)
            partitions = frozenset(wanted.get(node, ()))
            if leader.in_flight is not None:
                continue
            if leader.pending and not leader.session.is_open:
                pending, leader.pending = leader.pending, []
                code = ErrorCode.SHARE_SESSION_NOT_FOUND
                effects += [ended(each, NO_SESSION, code) for each in pending]
            if self.closing:
                if leader.session.is_open:
                    effects += self._send_close(node, leader, now)
            elif leader.retry_at > now:
                continue
            elif leader.pending and not _fits(leader, partitions):
                acknowledgements = leader.take_pending()
                effects.append(self._send_acknowledge(node, leader, acknowledgements, now))
            elif partitions and max_records is not None:
                effects.append(self._send_fetch(node, leader, partitions, max_records, now))
        self._set_deadline(wanted, max_records is not None, now)
        return effects

    def _wanted(self, effects: Effects, now: float) -> dict[int, set[SharePartition]]:
        """Return the partitions to fetch, by leader; request metadata for those without one."""
        wanted: dict[int, set[SharePartition]] = {}
        leaderless: set[str] = set()
        for each in self.assignment:
            if self._table.held_until(each) > now:
                continue
            partition = self._view.partition(each.topic, each.partition)
            node = NO_NODE if partition is None else partition.leader
            if node == NO_NODE:
                leaderless.add(each.topic)
                self._table.hold(each, now)
            else:
                wanted.setdefault(node, set()).add(each)
        if leaderless:
            effects.append(RequestMetadataUpdate(frozenset(leaderless)))
        return wanted

    def _set_deadline(
        self, wanted: dict[int, set[SharePartition]], fetching: bool, now: float
    ) -> None:
        """Set when `send` may have more to do without an event."""
        waits: list[float] = []
        for node, leader in self._table.leaders.items():
            waits += [each.deadline for each in leader.pending]
            if leader.pending or wanted.get(node):
                waits.append(leader.retry_at)
        if fetching:
            waits += [self._table.held_until(each) for each in self.assignment]
        self._due = min((each for each in waits if each > now), default=None)

    def _send_fetch(
        self,
        node: int,
        leader: Leader,
        partitions: frozenset[SharePartition],
        max_records: int,
        now: float,
    ) -> SendRequest:
        acknowledgements = leader.take_pending()
        change = leader.session.next_fetch(
            partitions, (each.partition for each in acknowledgements)
        )
        body = share_fetch(self._config, self._member_id, change, acknowledgements, max_records)
        sent = InFlight(self._next(), ApiKey.SHARE_FETCH, acknowledgements, partitions, now)
        return self._request(node, leader, sent, body)

    def _send_acknowledge(
        self, node: int, leader: Leader, acknowledgements: tuple[Acknowledgements, ...], now: float
    ) -> SendRequest:
        epoch = leader.session.epoch
        body = share_acknowledge(self._config, self._member_id, epoch, acknowledgements)
        nothing: frozenset[SharePartition] = frozenset()
        sent = InFlight(self._next(), ApiKey.SHARE_ACKNOWLEDGE, acknowledgements, nothing, now)
        return self._request(node, leader, sent, body)

    def _send_close(self, node: int, leader: Leader, now: float) -> Effects:
        """Close a session with its acknowledgements; the broker releases what is left."""
        acknowledgements = tuple(each for each in leader.pending if not each.renews)
        code = ErrorCode.SHARE_SESSION_NOT_FOUND
        renewals: Effects = [ended(each, CLOSING, code) for each in leader.pending if each.renews]
        leader.pending = []
        epoch = leader.session.close()
        body = share_acknowledge(self._config, self._member_id, epoch, acknowledgements)
        nothing: frozenset[SharePartition] = frozenset()
        sent = InFlight(self._next(), ApiKey.SHARE_ACKNOWLEDGE, acknowledgements, nothing, now)
        return [*renewals, self._request(node, leader, sent, body)]

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _request(self, node: int, leader: Leader, sent: InFlight, body: Body) -> SendRequest:
        leader.in_flight = sent
        key = REQUEST_KEY, sent.serial
        timeout_s = self._config.request_timeout_s
        return SendRequest(self._owner, key, node, sent.api, body, timeout_s)


def _fits(leader: Leader, partitions: frozenset[SharePartition]) -> bool:
    """Whether a fetch of these partitions can have all acknowledgements to send."""
    return all(each.partition in partitions and not each.renews for each in leader.pending)
