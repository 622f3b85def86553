"""Questions about partitions, asked of whoever leads them.

Law: a question ends once, when every partition of it is answered or has failed for good, or its
time is up; what is only late (no leader, a new leader, no answer) is asked again with a new picture
of the cluster.

    AskLeaders(key, topic, {partition: what}) ─▶ a request to each leader ─▶ LeadersAnswered
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode
from ...network.backoff import Backoff, Rng
from ...network.cluster import ClusterView
from ...network.metadata import with_cause
from ...requests import (
    Body,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
)
from ..configuration import ConsumerConfig
from ..failures import ConsumerError, LookupFailed, RequestTimedOut
from ..partitions import NO_EPOCH, TopicPartition

Effects: TypeAlias = list[object]

PART: Final = "leaders"


class Late(Enum):
    """Not an answer yet."""

    ASK_AGAIN = "ask again"


@dataclass(frozen=True, slots=True)
class Point:
    """What is asked of one partition: an offset, time or epoch, and who we think leads it."""

    wanted: int
    current_leader_epoch: int


Answer: TypeAlias = object
"""What a subject makes of a leader's answer; or a ConsumerError, or Late."""


class Subject(Protocol):
    """What leaders can be asked about."""

    @property
    def api(self) -> ApiKey: ...

    def body(self, points: Mapping[TopicPartition, Point]) -> Body:
        """Make the request to one leader."""
        ...

    def read(self, event: ResponseReceived) -> Iterable[tuple[TopicPartition, Answer]]:
        """Read the leader's answer."""
        ...

    def unsupported(self, partition: TopicPartition) -> Answer:
        """Say what to make of a broker that has no such request."""
        ...


@dataclass(frozen=True, slots=True)
class RequestFromLeaders:
    """wanted: what the subject asks of each partition. deadline: when to give up, in the machine's
    time; None is never.
    """

    key: Hashable
    subject: Subject
    wanted: Mapping[TopicPartition, int]
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class LeadersResponded:
    """found: what the subject made of the answers. failed: why, where there is none."""

    key: Hashable
    found: Mapping[TopicPartition, Answer]
    failed: Mapping[TopicPartition, ConsumerError]


def verdict(code: int, partition: TopicPartition, what: str) -> ConsumerError | Late:
    """Say whether an error passes by itself."""
    if code in list(ErrorCode) and ErrorCode(code).retriable:
        return Late.ASK_AGAIN
    return LookupFailed(what, code, [partition])


@dataclass(slots=True)
class _Open:
    """A question at work; left: what is not answered; asked: partition -> the request it is in."""

    event: RequestFromLeaders
    left: dict[TopicPartition, int]
    found: dict[TopicPartition, Answer] = field(default_factory=dict)
    failed: dict[TopicPartition, ConsumerError] = field(default_factory=dict)
    asked: dict[TopicPartition, int] = field(default_factory=dict)


class LeaderRequests:
    """All open questions of one consumer."""

    def __init__(self, config: ConsumerConfig, view: ClusterView, *, owner: str, rng: Rng) -> None:
        self._config = config
        self._view = view
        self._owner = owner
        self._rng = rng
        self._backoff = Backoff(config.retry_backoff_s, config.retry_backoff_max_s)
        self._open: dict[Hashable, _Open] = {}
        self._failures = 0
        self._serial = 0
        self._retry_at: float | None = None
        self._leaderless = False  # whether that is all we wait for

    def handle(self, event: object, now: float) -> Effects:
        """Take an AskLeaders, an answer, or MetadataChanged."""
        match event:
            case RequestFromLeaders():
                self._open[event.key] = _Open(event, dict(event.wanted))
            case ResponseReceived():
                return self._answered(event, now)
            case NoResponse():
                return self._unanswered(event, now)
            case MetadataChanged() if self._leaderless and self._any_led():
                self._retry_at = None
        return self._go_on(now)

    def forget(self, key: Hashable) -> None:
        """Give up a question that nobody waits for any more."""
        self._open.pop(key, None)

    def next_deadline(self) -> float | None:
        times = [each.event.deadline for each in self._open.values()]
        return min((at for at in [*times, self._retry_at] if at is not None), default=None)

    def advance(self, now: float) -> Effects:
        effects: Effects = []
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            effects += self._go_on(now)
        for each in list(self._open.values()):
            deadline = each.event.deadline
            if deadline is not None and deadline <= now:
                why = with_cause("no leader answered in time", self._view.last_error)
                late = RequestTimedOut(why, partitions=each.left)
                each.failed |= dict.fromkeys(each.left, late)
                each.left.clear()
                effects += self._close(each)
        return effects

    def _go_on(self, now: float) -> Effects:
        effects: Effects = []
        for each in list(self._open.values()):
            effects += self._send(each, now) if each.left else self._close(each)
        return effects

    def _send(self, open: _Open, now: float) -> Effects:
        """Ask the leaders of all partitions that are in no request."""
        if self._retry_at is not None:
            return []
        by_leader: dict[int, list[TopicPartition]] = {}
        leaderless: set[str] = set()
        for each in open.left.keys() - open.asked.keys():
            known = self._view.partition(*each)
            if known is None or known.leader < 0:
                leaderless.add(each.topic)
            else:
                by_leader.setdefault(known.leader, []).append(each)
        effects: Effects = [
            self._ask(open, leader, partitions) for leader, partitions in sorted(by_leader.items())
        ]
        if not leaderless:
            return effects
        self._leaderless = True
        return effects + self._later(frozenset(leaderless), now)

    def _later(self, topics: frozenset[str], now: float) -> Effects:
        """Come back after a while, with a new picture of these topics."""
        self._failures += 1
        if self._retry_at is None:
            self._retry_at = now + self._backoff.after(self._failures, self._rng)
        return [RequestMetadataUpdate(topics)]

    def _any_led(self) -> bool:
        """Whether a leader is known by now of something that is in no request."""
        return any(
            (known := self._view.partition(*each)) is not None and known.leader >= 0
            for open in self._open.values()
            for each in open.left.keys() - open.asked.keys()
        )

    def _ask(self, open: _Open, leader: int, partitions: list[TopicPartition]) -> SendRequest:
        self._serial += 1
        open.asked |= dict.fromkeys(partitions, self._serial)
        points = {each: Point(open.left[each], self._epoch(each)) for each in partitions}
        subject = open.event.subject
        key = PART, self._serial, open.event.key
        timeout = self._config.request_timeout_s
        return SendRequest(self._owner, key, leader, subject.api, subject.body(points), timeout)

    def _epoch(self, partition: TopicPartition) -> int:
        known = self._view.partition(*partition)
        return NO_EPOCH if known is None else known.leader_epoch

    def _answered(self, event: ResponseReceived, now: float) -> Effects:
        open, asked = self._of(event)
        if open is None:
            return []
        for partition, answer in open.event.subject.read(event):
            if partition in asked:
                self._settle(open, partition, answer)
        # what a broker passes over is asked again too
        late = {partition.topic for partition in asked & open.left.keys()}
        if late:
            self._leaderless = False
            return self._later(frozenset(late), now)
        self._failures = 0
        return self._go_on(now)

    def _unanswered(self, event: NoResponse, now: float) -> Effects:
        open, asked = self._of(event)
        if open is None:
            return []
        if event.retriable:
            self._leaderless = False
            return self._later(frozenset(each.topic for each in asked), now)
        why = f"{event.request.api.name}: {event.reason.value} {event.detail}".rstrip()
        for each in asked:
            answer: Answer = LookupFailed(why, event.code, [each])
            if event.reason is Reason.NO_VERSION:
                answer = open.event.subject.unsupported(each)
            self._settle(open, each, answer)
        return self._go_on(now)

    def _of(self, event: ResponseReceived | NoResponse) -> tuple[_Open | None, set[TopicPartition]]:
        """Find what was asked; it may be asked again from here on."""
        assert isinstance(event.request.key, tuple)
        _, serial, key = event.request.key
        open = self._open.get(key)
        if open is None:
            return None, set()
        asked = {each for each, number in open.asked.items() if number == serial}
        for each in asked:
            del open.asked[each]
        return open if asked else None, asked

    def _settle(self, open: _Open, partition: TopicPartition, answer: Answer) -> None:
        if answer is Late.ASK_AGAIN or partition not in open.left:
            return
        if isinstance(answer, ConsumerError):
            open.failed[partition] = answer
        else:
            open.found[partition] = answer
        del open.left[partition]

    def _close(self, open: _Open) -> Effects:
        if self._open.get(open.event.key) is not open:
            return []
        del self._open[open.event.key]
        return [LeadersResponded(open.event.key, open.found, open.failed)]
