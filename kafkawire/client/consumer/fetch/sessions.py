"""Incremental fetch sessions, one for each broker (KIP-227).

After each response both sides have the same session partitions. After an error the next
request is a full fetch.

    epoch 0           full fetch: all partitions; the response's session id opens a session
    epoch 1, 2, ...   incremental fetch: changed and forgotten partitions
    epoch -1          closes the session

    no response, unknown session, wrong epoch ─▶ full fetch, which also closes the old session
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
MAX_EPOCH: Final = 0x7FFF_FFFF
CONSUMER_REPLICA_ID: Final = -1
NO_ID: Final = bytes(16)
ISOLATION_VERSION: Final = 4
SESSION_VERSION: Final = 7
MAX_VERSION_BY_NAME: Final = 12
MAX_VERSION: Final = 18


class PartitionFetch(NamedTuple):
    """What to fetch of one partition; topic_id: 16 bytes, zero for none."""

    topic_id: bytes
    fetch_offset: int
    current_leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One request of a session.

    partitions: all partitions of the session. to_send: those that an incremental request lists.
    to_forget: those removed from the session, with topic ids.
    """

    session_id: int
    epoch: int
    partitions: Mapping[TopicPartition, PartitionFetch]
    to_send: Mapping[TopicPartition, PartitionFetch]
    to_forget: Mapping[TopicPartition, bytes]


class FetchSession:
    """The fetch session with one broker."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.by_id = False
        self._partitions: dict[TopicPartition, PartitionFetch] = {}

    def next(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> SessionRequest:
        """Return the next request; `on_response`, `on_error` or `on_no_response` must follow."""
        by_id = all(each.topic_id != NO_ID for each in wanted.values())
        if by_id != self.by_id:  # a session uses either topic ids or names
            self.on_no_response()
            self.by_id = by_id
        before, self._partitions = self._partitions, dict(wanted)
        if self.epoch == INITIAL_EPOCH:
            return SessionRequest(self.session_id, self.epoch, wanted, wanted, {})
        # a topic that was created again has another id: forget the old one, send the new one
        to_send = {each: data for each, data in wanted.items() if before.get(each) != data}
        to_forget = {
            each: data.topic_id
            for each, data in before.items()
            if each not in wanted or wanted[each].topic_id != data.topic_id
        }
        return SessionRequest(self.session_id, self.epoch, wanted, to_send, to_forget)

    def on_response(self, response: FetchResponse) -> None:
        """Handle a response without a session error."""
        if self.epoch == INITIAL_EPOCH or response.session_id != self.session_id:
            self.session_id = response.session_id
        if self.session_id == NO_SESSION:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def on_error(self, code: int) -> None:
        """Handle a session error."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH

    def on_no_response(self) -> None:
        """Handle a missing response: the broker may have advanced its epoch."""
        self.epoch = INITIAL_EPOCH

    def close(self) -> SessionRequest | None:
        """Return the request that closes the session; None without a session."""
        if self.session_id == NO_SESSION:
            return None
        return SessionRequest(self.session_id, FINAL_EPOCH, {}, {}, {})

    def name(self, topic_id: bytes) -> str | None:
        """Return the name of the session's topic with that id."""
        return next(
            (each.topic for each, data in self._partitions.items() if data.topic_id == topic_id),
            None,
        )


def fetch(config: ConsumerConfig, request: SessionRequest, *, by_id: bool) -> Body:
    """Build a Fetch request; versions without sessions list all partitions."""

    def make(version: int) -> Message:
        session = version >= SESSION_VERSION
        return FetchRequest(
            replica_id=CONSUMER_REPLICA_ID,
            max_wait_ms=round(config.fetch_max_wait_s * 1000) if request.partitions else 0,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation_level,
            session_id=request.session_id if session else NO_SESSION,
            session_epoch=request.epoch if session else FINAL_EPOCH,
            topics=_topics(config, request.to_send if session else request.partitions),
            forgotten_topics_data=_forgotten_topics(request) if session else [],
            rack_id=config.client_rack,
        )

    committed = config.isolation_level is IsolationLevel.READ_COMMITTED
    lowest = ISOLATION_VERSION if committed else 0
    return Varying(make, lowest, MAX_VERSION if by_id else MAX_VERSION_BY_NAME)


def _topics(
    config: ConsumerConfig, wanted: Mapping[TopicPartition, PartitionFetch]
) -> list[FetchTopic]:
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for each, data in wanted.items():
        topic = topics.setdefault(
            (each.topic, data.topic_id), FetchTopic(topic=each.topic, topic_id=data.topic_id)
        )
        topic.partitions.append(
            FetchPartition(
                partition=each.partition,
                current_leader_epoch=data.current_leader_epoch,
                fetch_offset=data.fetch_offset,
                partition_max_bytes=config.max_partition_fetch_bytes,
            )
        )
    return list(topics.values())


def _forgotten_topics(request: SessionRequest) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for each, topic_id in request.to_forget.items():
        topic = topics.setdefault(
            (each.topic, topic_id), ForgottenTopic(topic=each.topic, topic_id=topic_id)
        )
        topic.partitions.append(each.partition)
    return list(topics.values())
