"""Decides when to request metadata, and for which topics.

One request at a time; an update requested while one is in flight leads to another request,
since the response may be older.

    update due ──▶ (retry.backoff.ms) ──▶ in flight ──▶ response: fresh, until its age
       ▲ age, errors, new topics                             └─ no response: due, after a backoff
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...messages.api_key import ApiKey
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...primitives import Message
from ..requests import LEAST_LOADED, SendRequest
from .backoff import Backoff, Rng
from .negotiated_versions import ours

REFRESH: Final = "metadata"
NAMELESS_FROM: Final = 1
"""MetadataRequest: an empty list means no topics from this version on, all topics before."""
AUTO_CREATION_FROM: Final = 4


@dataclass(slots=True)
class RequestMetadata:
    """The Metadata request, for any version.

    topics: None for all; more may be added until it is built, so while a connection is made.
    """

    topics: frozenset[str] | None
    auto_create: bool
    built: bool = False

    def add(self, topics: frozenset[str] | None) -> None:
        """Request these topics, too."""
        if topics is None or self.topics is None:
            self.topics = None
        else:
            self.topics |= topics

    @property
    def lowest(self) -> int:
        if not self.auto_create and self.topics:
            return AUTO_CREATION_FROM
        return 0 if self.topics is None or self.topics else NAMELESS_FROM

    @property
    def highest(self) -> int:
        return ours(ApiKey.METADATA).highest

    def build(self, version: int) -> Message:
        self.built = True
        create = self.auto_create or version < AUTO_CREATION_FROM
        if self.topics is None:
            every: list[MetadataRequestTopic] | None = [] if version < NAMELESS_FROM else None
            return MetadataRequest(topics=every, allow_auto_topic_creation=create)
        rows = [MetadataRequestTopic(name=name) for name in sorted(self.topics)]
        return MetadataRequest(topics=rows, allow_auto_topic_creation=create)


class MetadataUpdater:
    """Schedules metadata requests for the topics of all owners together."""

    def __init__(
        self,
        owner: str,
        *,
        max_age_s: float,
        timeout_s: float,
        backoff: Backoff,
        auto_create: bool,
        rng: Rng,
    ) -> None:
        self._owner = owner
        self._max_age_s = max_age_s
        self._timeout_s = timeout_s
        self._backoff = backoff
        self._auto_create = auto_create
        self._rng = rng
        self._tracked: dict[str, frozenset[str] | None] = {}
        self._extra_topics: frozenset[str] = frozenset()
        self._in_flight: RequestMetadata | None = None
        self._failures = 0
        self._equivalent = 0
        self._not_before = 0.0
        self._due_at: float | None = 0.0
        self._urgent = False

    @property
    def topics(self) -> frozenset[str] | None:
        """Topics that any owner tracks; None: all."""
        if None in self._tracked.values():
            return None
        empty: frozenset[str] = frozenset()
        return empty.union(*(each for each in self._tracked.values() if each is not None))

    def track(self, owner: str, topics: frozenset[str] | None, known: frozenset[str]) -> None:
        """Track these topics for an owner; unknown topics are requested without backoff."""
        if self._tracked.get(owner, frozenset()) == topics:
            return
        self._tracked[owner] = topics
        if topics is None or not topics <= known:
            if self._in_flight is not None and not self._in_flight.built:
                self._in_flight.add(topics)
                return
            self._due_at = self._not_before = 0.0
            self._urgent = True
            self._equivalent = 0

    def request_update(self, topics: frozenset[str]) -> None:
        """Request an update as soon as the backoff allows."""
        self._extra_topics |= topics
        self._due_at = 0.0

    def next_deadline(self) -> float | None:
        if self._in_flight is not None or self._due_at is None:
            return None
        return max(self._due_at, self._not_before)

    def advance(self, now: float) -> list[SendRequest]:
        due = self._due_at
        if self._in_flight is not None or due is None or now < due or now < self._not_before:
            return []
        topics = self.topics
        if topics is not None:
            topics |= self._extra_topics
        self._extra_topics = frozenset()
        self._due_at, self._urgent = None, False
        self._in_flight = RequestMetadata(topics, self._auto_create)
        return [
            SendRequest(
                self._owner,
                REFRESH,
                LEAST_LOADED,
                ApiKey.METADATA,
                self._in_flight,
                self._timeout_s,
            )
        ]

    def on_response(self, now: float) -> frozenset[str] | None:
        """Handle a response; return the requested topics, None for all."""
        assert self._in_flight is not None
        request, self._in_flight = self._in_flight, None
        self._failures = 0
        if self._due_at is None:
            self._due_at = now + self._max_age_s
        return request.topics

    def on_update(self, changed: bool, now: float) -> None:
        """Take note whether a response was news: without, the backoff grows, as in Kafka."""
        self._equivalent = 0 if changed else self._equivalent + 1
        if not self._urgent:
            self._not_before = now + self._backoff.after(1 + self._equivalent, self._rng)

    def on_failure(self, now: float) -> None:
        """Handle a request without a usable response."""
        self._in_flight = None
        self._failures += 1
        self._not_before = now + self._backoff.after(self._failures, self._rng)
        self._due_at = 0.0
