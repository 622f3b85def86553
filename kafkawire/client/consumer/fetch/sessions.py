"""Incremental fetch sessions, one for each broker (KIP-227).

Law: after each answer both sides agree on what the session holds; where that is in doubt, the next
request says everything anew.

    epoch 0           everything; the answer's session id, if any, opens a session
    epoch 1, 2, ...   what changed since, and what is forgotten
    epoch -1          the end of the session

    request lost, session unknown, wrong epoch ─▶ everything anew, the old session closed with it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ....messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ....messages.fetch_response import FetchResponse
from ....primitives import Message
from ....protocol.error_code import ErrorCode
from ...requests import Body, Varying
from ..configuration import ConsumerConfig, IsolationLevel
from ..partitions import NO_EPOCH, TopicPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 0x7FFF_FFFF
CONSUMER: Final = -1
NO_ID: Final = bytes(16)
SINCE_ISOLATION: Final = 4
SINCE_SESSIONS: Final = 7
NEWEST_BY_NAME: Final = 12
NEWEST: Final = 18


class Wanted(NamedTuple):
    """What is asked of one partition; topic_id: 16 bytes, zero for none."""

    topic_id: bytes
    fetch_offset: int
    current_leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One request of a session.

    everything: all that the session is about; changed: what an incremental request says;
    forgotten: what it leaves out from now on, with topic ids.
    """

    session_id: int
    epoch: int
    everything: Mapping[TopicPartition, Wanted]
    changed: Mapping[TopicPartition, Wanted]
    forgotten: Mapping[TopicPartition, bytes]


class FetchSession:
    """What one broker and we agree on."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.by_id = False
        self._agreed: dict[TopicPartition, Wanted] = {}

    def next(self, wanted: Mapping[TopicPartition, Wanted]) -> SessionRequest:
        """Say what to send for these partitions; `accepted`, `refused` or `lost` must follow."""
        by_id = all(each.topic_id != NO_ID for each in wanted.values())
        if by_id != self.by_id:  # topics have ids, or names, for a whole session
            self.lost()
            self.by_id = by_id
        before, self._agreed = self._agreed, dict(wanted)
        if self.epoch == INITIAL_EPOCH:
            return SessionRequest(self.session_id, self.epoch, wanted, wanted, {})
        # a topic that was made anew has another id: the old one is forgotten, the new one added
        changed = {each: what for each, what in wanted.items() if before.get(each) != what}
        forgotten = {
            each: what.topic_id
            for each, what in before.items()
            if each not in wanted or wanted[each].topic_id != what.topic_id
        }
        return SessionRequest(self.session_id, self.epoch, wanted, changed, forgotten)

    def accepted(self, response: FetchResponse) -> None:
        """Take in an answer without an error of the session."""
        if self.epoch == INITIAL_EPOCH or response.session_id != self.session_id:
            self.session_id = response.session_id
        if self.session_id == NO_SESSION:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1

    def refused(self, code: int) -> None:
        """Take in an error of the session."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH

    def lost(self) -> None:
        """Take in that an answer did not come: the broker may have moved on, or not."""
        self.epoch = INITIAL_EPOCH

    def close(self) -> SessionRequest | None:
        """Say what ends the session; None if there is none."""
        if self.session_id == NO_SESSION:
            return None
        return SessionRequest(self.session_id, FINAL_EPOCH, {}, {}, {})

    def name(self, topic_id: bytes) -> str | None:
        """Say which topic of the session has that id."""
        return next(
            (each.topic for each, what in self._agreed.items() if what.topic_id == topic_id), None
        )


def fetch(config: ConsumerConfig, request: SessionRequest, *, by_id: bool) -> Body:
    """Make the request; before sessions, everything is said every time."""

    def make(version: int) -> Message:
        session = version >= SINCE_SESSIONS
        return FetchRequest(
            replica_id=CONSUMER,
            max_wait_ms=round(config.fetch_max_wait_s * 1000) if request.everything else 0,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation_level,
            session_id=request.session_id if session else NO_SESSION,
            session_epoch=request.epoch if session else FINAL_EPOCH,
            topics=_topics(config, request.changed if session else request.everything),
            forgotten_topics_data=_forgotten(request) if session else [],
            rack_id=config.client_rack,
        )

    committed = config.isolation_level is IsolationLevel.READ_COMMITTED
    lowest = SINCE_ISOLATION if committed else 0
    return Varying(make, lowest, NEWEST if by_id else NEWEST_BY_NAME)


def _topics(config: ConsumerConfig, wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for each, what in wanted.items():
        topic = topics.setdefault(
            (each.topic, what.topic_id), FetchTopic(topic=each.topic, topic_id=what.topic_id)
        )
        topic.partitions.append(
            FetchPartition(
                partition=each.partition,
                current_leader_epoch=what.current_leader_epoch,
                fetch_offset=what.fetch_offset,
                partition_max_bytes=config.max_partition_fetch_bytes,
            )
        )
    return list(topics.values())


def _forgotten(request: SessionRequest) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for each, topic_id in request.forgotten.items():
        topic = topics.setdefault(
            (each.topic, topic_id), ForgottenTopic(topic=each.topic, topic_id=topic_id)
        )
        topic.partitions.append(each.partition)
    return list(topics.values())
