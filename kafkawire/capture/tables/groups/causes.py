"""Finds the request that caused a rebalance.

The cause is the earliest request that can have started the rebalance and was not rejected,
whichever member notices the rebalance first, and whenever the response comes (a JoinGroup waits for
the others to rejoin). If no such request is in the capture, the cause is unknown.

    request that may start one --sent--> pending --response--> settled --stable--> dropped
                                            `--rejected, or changed nothing--> dropped
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from ...exchanges.exchanges import Exchange
from ...rows import Located
from ..extraction.group_event import REBALANCE_STARTED, GroupEvent

Key = tuple[int, int, int | None]
"""Connection, packet and correlation id of a request."""

NOT_CAPTURED: Final = "the cause is not in the capture"


class Cause(NamedTuple):
    """A request that may start a rebalance, without its body.

    reason: for people. certain: whether the broker starts one if it accepts the request; False if
    that depends on what the capture may not show (such as a rejoin that changes nothing).
    """

    exchange: Exchange
    reason: str
    member_id: str | None
    group_instance_id: str | None
    certain: bool

    @property
    def sent(self) -> tuple[int, int]:
        """When it was sent: nanoseconds, then the packet."""
        return self.exchange.main_row.time_ns, self.exchange.main_row.packet


def cause_of(
    item: Located, reason: str, member_id: str | None, instance: str | None, certain: bool
) -> Cause:
    """Make a cause of a request, without its body to save memory."""
    row = item.row._replace(message=None, raw=b"")
    exchange = Exchange(item.connection or 0, item.client or "", item.broker or "", row, None)
    return Cause(exchange, reason, member_id, instance, certain)


class Causes:
    """The requests that may start the next rebalance of a group.

    Memory: one request without its body per in-flight request, and one more.
    """

    def __init__(self) -> None:
        self._certain: OrderedDict[Key, Cause] = OrderedDict()
        self._possible: OrderedDict[Key, Cause] = OrderedDict()
        self._settled: Cause | None = None
        self._settled_ns = 0

    def sent(self, cause: Cause) -> None:
        """Add a request that may start a rebalance, when it is sent."""
        pending = self._certain if cause.certain else self._possible
        pending[_key(cause.exchange)] = cause

    def rejected(self, exchange: Exchange) -> None:
        """Drop a request: the broker rejected it, or it changed nothing."""
        self._take(exchange)

    def settle(self, exchange: Exchange) -> None:
        """Note that a request was accepted, or has no response: its effect shows later."""
        cause = self._take(exchange)
        if cause is None:
            return
        if self._settled is None or cause.sent < self._settled.sent:
            self._settled = cause
        row = exchange.response or exchange.main_row
        self._settled_ns = max(self._settled_ns, row.time_ns)

    def stable(self, sent_ns: int) -> None:
        """Note that the group was stable for a request sent at that time.

        Requests settled before it started no rebalance.
        """
        if self._settled is not None and sent_ns > self._settled_ns:
            self._drop_settled()

    def ended(self, before_ns: int) -> None:
        """Note that a rebalance has ended: requests sent before that time were part of it."""
        for pending in (self._certain, self._possible):
            while pending and next(iter(pending.values())).sent[0] < before_ns:
                pending.popitem(last=False)
        self._drop_settled()

    def first(self, *, settled: bool = True) -> Cause | None:
        """Find the most likely cause of a rebalance that is noticed now.

        settled: whether to consider requests that have a response.
        """
        candidates = [next(iter(one.values())) for one in (self._certain, self._possible) if one]
        if settled and self._settled is not None:
            candidates.append(self._settled)
        candidates = [one for one in candidates if one.certain] or candidates
        return min(candidates, key=lambda one: one.sent, default=None)

    def _take(self, exchange: Exchange) -> Cause | None:
        key = _key(exchange)
        return self._certain.pop(key, None) or self._possible.pop(key, None)

    def _drop_settled(self) -> None:
        self._settled, self._settled_ns = None, 0


def _key(exchange: Exchange) -> Key:
    header = exchange.main_row
    return exchange.connection, header.packet, header.correlation_id


def started(cause: Cause, shown: GroupEvent) -> GroupEvent:
    """Make the event that starts a rebalance. shown: the event that shows the rebalance."""
    return shown._replace(
        exchange=cause.exchange,
        row=cause.exchange.main_row,
        type=REBALANCE_STARTED,
        member_id=cause.member_id,
        client_id=cause.exchange.main_row.client_id,
        group_instance_id=cause.group_instance_id,
        reason=cause.reason,
        assignor=None,
        members=None,
        error_code=None,
        noticed_ns=shown.row.time_ns,
    )


def started_unseen(shown: GroupEvent, reason: str = NOT_CAPTURED) -> GroupEvent:
    """Make the event that starts a rebalance whose cause is not a captured request."""
    return shown._replace(
        type=REBALANCE_STARTED,
        member_id=None,
        client_id=None,
        group_instance_id=None,
        reason=reason,
        assignor=None,
        members=None,
        error_code=None,
        noticed_ns=shown.row.time_ns,
    )
