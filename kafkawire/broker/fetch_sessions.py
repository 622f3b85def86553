"""Incremental fetch sessions (KIP-227).

Requests and responses of an incremental session contain only the partitions that changed; an
unexpected epoch means that the two sides are out of step.

    session 0, epoch -1   no session             session n, epoch -1   close it, no session
    session *, epoch 0    a new session          session n, epoch e    what changed since e - 1
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ..messages.fetch_request import FetchRequest, FetchTopic
from ..messages.fetch_response import PartitionData
from ..protocol import ErrorCode
from ..replication.fetch_params import Target, targets_of

E = ErrorCode
NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
LAST_EPOCH: Final = 2**31 - 1
TOPIC_IDS_FROM: Final = 13
EVICTABLE_AFTER: Final = 120.0
"""Idle seconds after which a session may be evicted for another one."""
UNKNOWN: Final = -1


@dataclass(slots=True)
class Cached:
    """A partition of a session, and the last response to its client."""

    target: Target
    high_watermark: int = UNKNOWN
    log_start_offset: int = UNKNOWN

    def maybe_update(self, data: PartitionData, has_records: bool) -> bool:
        """Return whether the client must receive this response, and remember it."""
        changed = bool(
            has_records
            or data.error_code
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.diverging_epoch.epoch >= 0
        )
        self.high_watermark, self.log_start_offset = data.high_watermark, data.log_start_offset
        if data.error_code:
            self.high_watermark = UNKNOWN  # sent again when the error is over
        return changed


@dataclass(slots=True)
class Session:
    """The partitions that a client fetches from a broker. epoch: of its next request."""

    id: int
    by_id: bool
    used: float
    epoch: int = 1
    partitions: dict[tuple[str, bytes, int], Cached] = field(default_factory=dict)

    def update(self, request: FetchRequest) -> None:
        """Add and remove the partitions of a request."""
        for target in targets_of(request):
            cached = self.partitions.get(target.key)
            if cached is None:
                self.partitions[target.key] = Cached(target)
            else:
                cached.target = target
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self.partitions.pop((forgotten.topic, forgotten.topic_id, index), None)

    def advance(self) -> None:
        """Move to the next epoch; it wraps around to 1."""
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1

    def move_to_end(self, key: tuple[str, bytes, int]) -> None:
        """Move a partition to the end, so that others are read first next time."""
        cached = self.partitions.pop(key, None)
        if cached is not None:
            self.partitions[key] = cached


@dataclass(slots=True)
class FetchContext:
    """The partitions of a Fetch, its session resolved.

    session: None for a sessionless fetch. full: whether the response has all partitions.
    """

    session: Session | None
    full: bool
    targets: list[Target]

    def includes(self, target: Target, data: PartitionData, has_records: bool) -> bool:
        """Whether the response has a partition: it has changed, or the response has them all."""
        if self.session is None:
            return True
        cached = self.session.partitions.get(target.key)
        changed = cached is None or cached.maybe_update(data, has_records)
        if has_records:
            self.session.move_to_end(target.key)
        return changed or self.full


def requested(targets: Iterable[Target]) -> FetchRequest:
    """Return a request of some partitions, by topic."""
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for topic, topic_id, partition in targets:
        new = FetchTopic(topic=topic, topic_id=topic_id)
        topics.setdefault((topic, topic_id), new).partitions.append(partition)
    return FetchRequest(topics=list(topics.values()))


class Sessions:
    """The session cache of one broker, least recently used first.

    new_uuid: random bytes for ids. most_partitions: of one session.
    """

    def __init__(self, slots: int, new_uuid: Callable[[], bytes], most_partitions: int) -> None:
        self._slots = slots
        self._new_uuid = new_uuid
        self._most_partitions = most_partitions
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, request: FetchRequest, version: int, now: float) -> FetchContext | ErrorCode:
        """Return the partitions of a request, or the error of its session."""
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            session, requested = None, targets_of(request)
            if request.session_epoch == INITIAL_EPOCH and len(requested) <= self._most_partitions:
                session = self._open(version, now)
                if session is not None:
                    session.update(request)
            return FetchContext(session, True, requested)
        session = self._sessions.get(request.session_id)
        if session is None:
            return E.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return E.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != (version >= TOPIC_IDS_FROM):
            return E.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request)
        if len(session.partitions) > self._most_partitions:
            del self._sessions[session.id]
            return E.FETCH_SESSION_ID_NOT_FOUND  # the client continues with a full Fetch
        session.advance()
        session.used = now
        self._sessions.move_to_end(session.id)
        return FetchContext(
            session, False, [cached.target for cached in session.partitions.values()]
        )

    def _open(self, version: int, now: float) -> Session | None:
        if len(self._sessions) >= self._slots and not self._evict(now):
            return None  # a sessionless fetch
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = int.from_bytes(self._new_uuid()[:4], "big") & 0x7FFFFFFF
        session = Session(session_id, version >= TOPIC_IDS_FROM, now)
        self._sessions[session_id] = session
        return session

    def _evict(self, now: float) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.used < EVICTABLE_AFTER:
            return False
        del self._sessions[oldest.id]
        return True
