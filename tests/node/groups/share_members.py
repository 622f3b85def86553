"""The members of a share group: they fetch, and acknowledge what they got."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from kafkawire.broker.share.states import AcknowledgeType
from kafkawire.messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import Violation, values
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

from ..workload import MAIN
from . import members
from .exchanges import Exchanges
from .members import LEFT, Counts, Member
from .share_checker import Acknowledgement, Delivery, ShareChecker

E, A = ErrorCode, AcknowledgeType
GROUP: Final = "sharing"
FETCH_VERSION: Final = 2
FETCH_EVERY: Final = (0.05, 0.4)
MAX_WAIT_MS: Final = 200
KINDS: Final = {A.ACCEPT: 12, A.RELEASE: 3, A.REJECT: 1, None: 2}
"""What a member does with records -> its weight; None: nothing, until their lock ends."""

LATE: Final = 1.8
"""Seconds after which a slow member acknowledges: the lock may have ended."""


class Cluster(members.Cluster, Protocol):
    """What members of share groups need of the simulation, besides."""

    def share_start(self, node: int, key: TopicIdPartition) -> int | None:
        """Return the start offset of a share partition that a node has loaded."""


@dataclass
class ShareGroup:
    """What the members have in common. kinds: what they do with records -> its weight.

    late: the part of records that they acknowledge late. fetches: number of requests of all.
    """

    cluster: Cluster
    checker: ShareChecker
    counts: Counts = field(default_factory=Counts)
    kinds: dict[AcknowledgeType | None, int] = field(default_factory=lambda: dict(KINDS))
    late: float = 0.1
    fetches: int = 0


@dataclass
class Session:
    """The share session of a member at a node. epoch: of the next request."""

    exchanges: Exchanges
    epoch: int = 0
    partitions: set[TopicIdPartition] = field(default_factory=set)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    is_busy: bool = False

    def add(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """Acknowledge these with the next request."""
        self.acknowledgements += acknowledgements


class Fetch(NamedTuple):
    """A request. since: when it was sent."""

    delivery: Delivery
    session: Session
    acknowledgements: list[Acknowledgement]
    since: float


class ShareMember(Member):
    """A member of a share group; it has a session at each leader of its partitions."""

    group_id, version = GROUP, 1

    def __init__(self, group: ShareGroup, member_id: str) -> None:
        super().__init__(group.cluster, group.counts, member_id)
        self.group = group
        self._sessions: dict[int, Session] = {}
        self.heartbeat()
        self._fetch_all()

    # -- membership

    def heartbeat_request(self, epoch: int) -> Message:
        """Make a heartbeat."""
        return ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=[MAIN] if self.is_full and epoch != LEFT else None,
        )

    def assign(self, partitions: set[TopicIdPartition]) -> None:
        """Fetch these from now on."""
        self.partitions = partitions

    def lose(self) -> None:
        """Fetch nothing."""
        self.partitions = set()

    def leave(self, *, orderly: bool) -> None:
        """Go; if orderly, the coordinator and the leaders get to know."""
        super().leave(orderly=orderly)
        for session in self._sessions.values():
            exchanges = session.exchanges
            if orderly and exchanges.is_open and session.epoch and not session.is_busy:
                self._close(exchanges)
            else:
                exchanges.close()

    def _close(self, exchanges: Exchanges) -> None:
        last = ShareFetchRequest(group_id=GROUP, member_id=self.member_id, share_session_epoch=LEFT)
        exchanges.send(FETCH_VERSION, last, lambda _: exchanges.close())

    # -- records

    def _fetch_all(self) -> None:
        image, live = self.cluster.image(), self.cluster.live()
        wanted: dict[int, set[TopicIdPartition]] = {node: set() for node in self._sessions}
        for key in sorted(self.partitions):
            partition = None if image is None else image.partition(key)
            if partition is not None and partition.leader in live:
                wanted.setdefault(partition.leader, set()).add(key)
        for node, keys in wanted.items():
            self._fetch(node, keys)
        self.later(self.cluster.rng.uniform(*FETCH_EVERY), self._fetch_all)

    def _fetch(self, node: int, keys: set[TopicIdPartition]) -> None:
        session = self._sessions.get(node)
        if session is not None and session.is_busy:
            return
        if session is None or not session.exchanges.is_open:
            self._sessions.pop(node, None)
            if not keys:
                return
            session = self._sessions[node] = Session(self.cluster.connect(node))
        acknowledgements, session.acknowledgements = sorted(session.acknowledgements), []
        self.group.checker.acknowledges(acknowledgements)
        request = self._request(session, keys, acknowledgements)
        session.partitions, session.is_busy = keys, True
        self.group.fetches += 1
        delivery = Delivery(self.member_id, self.group.fetches)
        fetch = Fetch(delivery, session, acknowledgements, self.cluster.now)
        session.exchanges.send(
            FETCH_VERSION,
            request,
            lambda body: self._fetched(fetch, body),
            observer=lambda body: self._sent(fetch, body),
        )

    def _request(
        self,
        session: Session,
        keys: set[TopicIdPartition],
        acknowledgements: Iterable[Acknowledgement],
    ) -> ShareFetchRequest:
        topics: dict[bytes, dict[int, FetchPartition]] = {}

        def partition(key: TopicIdPartition) -> FetchPartition:
            of_topic = topics.setdefault(key.topic_id, {})
            return of_topic.setdefault(key.partition, FetchPartition(partition_index=key.partition))

        for key in sorted(keys - session.partitions):
            partition(key)
        gone = session.partitions - keys
        for key, offset, kind, _ in acknowledgements:
            gone |= {key} - keys  # the acknowledgement adds it to the session again
            partition(key).acknowledgement_batches.append(
                AcknowledgementBatch(
                    first_offset=offset, last_offset=offset, acknowledge_types=[kind]
                )
            )
        return ShareFetchRequest(
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self.cluster.rng.choice((1, 4, 500)),
            batch_size=500,
            share_acquire_mode=self.cluster.rng.choice((0, 1)),
            topics=[
                FetchTopic(topic_id=topic_id, partitions=list(of_topic.values()))
                for topic_id, of_topic in topics.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=key.topic_id, partitions=[key.partition])
                for key in sorted(gone)
            ],
        )

    def _sent(self, fetch: Fetch, body: Any) -> None:
        """Take note of a response that a broker sends."""
        node, checker = fetch.session.exchanges.server, self.group.checker
        errors = {key: E(data.acknowledge_error_code) for key, data in partitions_of(body)}
        for each in fetch.acknowledgements:
            if not body.error_code and not errors.get(each.key, E.NETWORK_EXCEPTION):
                start = self.group.cluster.share_start(node, each.key)
                checker.acknowledged(each, node, start, self.cluster.now)
        for key, data in partitions_of(body):
            for count, offsets in acquired_of(data):
                for offset in offsets:
                    checker.sent((key, offset), count, node, fetch.delivery)

    def _fetched(self, fetch: Fetch, body: Any) -> None:
        """Count what is acknowledged; decide what becomes of what is acquired."""
        session = fetch.session
        session.is_busy = False
        error = E.NETWORK_EXCEPTION if body is None else E(body.error_code)
        self.counts.add(f"share fetch {error.name}")
        if error is E.UNSUPPORTED_VERSION:
            raise Violation(f"{self.member_id}: the cluster has no share groups")
        if error is not E.NONE:
            session.exchanges.close()
            return
        session.epoch += 1
        errors: dict[TopicIdPartition, ErrorCode] = {}
        for key, data in partitions_of(body):
            errors[key] = E(data.acknowledge_error_code)
            self._acquired(fetch, key, data)
        for each in fetch.acknowledgements:
            error = errors.get(each.key, E.NETWORK_EXCEPTION)
            self.counts.add(f"{each.kind.name.lower()} {error.name}")
        if not self.running:
            session.exchanges.close()

    def _acquired(self, fetch: Fetch, key: TopicIdPartition, data: Any) -> None:
        kinds = self.group.kinds
        for _, offsets in acquired_of(data):
            self.group.checker.received(key, offsets, fetch.since)
            [kind] = self.cluster.rng.choices(list(kinds), list(kinds.values()))
            if kind is None:
                continue
            acknowledgements = [
                Acknowledgement(key, offset, kind, fetch.delivery) for offset in offsets
            ]
            is_late = self.cluster.rng.random() < self.group.late
            ready = partial(fetch.session.add, acknowledgements)
            self.later(LATE if is_late else 0.0, ready)


def partitions_of(body: Any) -> list[tuple[TopicIdPartition, Any]]:
    """Return the partitions of a ShareFetch response."""
    return [
        (TopicIdPartition(topic.topic_id, data.partition_index), data)
        for topic in body.responses
        for data in topic.partitions
    ]


def acquired_of(data: Any) -> list[tuple[int, list[int]]]:
    """Return the delivery counts and offsets of the records that a partition delivers."""
    offsets = [offset for offset, _ in values(data.records or b"")]
    return [
        (
            each.delivery_count,
            [offset for offset in offsets if each.first_offset <= offset <= each.last_offset],
        )
        for each in data.acquired_records
    ]
