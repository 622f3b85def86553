"""ShareFetch: a member of a share group acquires records, and acknowledges earlier ones (KIP-932).

v0   the first; flexible │ early access in 4.0, not served
v1   request +max_records +batch_size -partition_max_bytes; response
      +acquisition_lock_timeout_ms
v2   request +share_acquire_mode +is_renew_ack
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...messages.share_fetch_request import ShareFetchRequest
from ...messages.share_fetch_response import (
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request
from ..share.acknowledging import Errors, checked
from ..share.fetching import Amount, Data, Waiting, failed
from ..share.leaders import name_leaders
from ..share.sessions import FINAL_EPOCH, INITIAL_EPOCH, Member, ShareSession
from ..share.shares import Acknowledgements

E = ErrorCode
STRICT: Final = 1
MAX_BYTES: Final = "fetch.max.bytes"
"""The acquire mode in which a request gets no more records than it wants (KIP-1206)."""


def handle(
    broker: Broker,
    request: Request,
    body: ShareFetchRequest,
    connection: Connection,
    now: float,
) -> ShareFetchResponse | Outcome:
    """Acknowledge records, then acquire others: now, or when some are available."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    invalid = _invalid(body)
    if invalid is not None:
        return _refused(E.INVALID_REQUEST, invalid)
    member = Member(body.group_id or "", body.member_id or "")
    wanted = {
        TopicIdPartition(topic.topic_id, each.partition_index): checked(
            each.acknowledgement_batches, body.is_renew_ack
        )
        for topic in body.topics
        for each in topic.partitions
        if each.acknowledgement_batches
    }
    session = _session(broker, body, member, bool(wanted), connection, now)
    if isinstance(session, ErrorCode):
        return _refused(session, session.name)
    unreadable = _unreadable(broker, request, (*session.partitions, *wanted))
    acknowledgements: Acknowledgements = {
        key: batches for key, batches in wanted.items() if key not in unreadable
    }
    response = Responding(broker, request, body, session, unreadable)
    broker.shares.acknowledge(member, acknowledgements, response.acknowledged, now)
    return DELAYED


def _unreadable(
    broker: Broker, request: Request, keys: Iterable[TopicIdPartition]
) -> frozenset[TopicIdPartition]:
    """Return the partitions that the client may not read."""
    if broker.authorizer is None:
        return frozenset()
    from ..guards.fetches import readable  # imported only with an authorizer

    return frozenset(readable(broker, request, keys, lambda key: ("", key.topic_id))[1])


def _invalid(body: ShareFetchRequest) -> str | None:
    """Return why a request is not valid."""
    if not body.group_id or not body.member_id:
        return "GroupId and MemberId can't be empty."
    if body.share_session_epoch < FINAL_EPOCH:
        return "ShareSessionEpoch is invalid."
    wanted = (
        ("maxBytes", body.max_bytes),
        ("minBytes", body.min_bytes),
        ("maxRecords", body.max_records),
        ("maxWaitMs", body.max_wait_ms),
    )
    unexpected = [name for name, value in wanted if value and body.is_renew_ack]
    if unexpected:
        return f"{', '.join(unexpected)} must be set to 0 if isRenewAck is true."
    return None


def _session(
    broker: Broker,
    body: ShareFetchRequest,
    member: Member,
    acknowledges: bool,
    connection: Connection,
    now: float,
) -> ShareSession | ErrorCode:
    """Return the session of a request, with its partitions."""
    shares, epoch = broker.shares, body.share_session_epoch
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            return E.INVALID_REQUEST
        session = shares.open(member, connection.id, now)
    else:
        session = shares.sessions.find(member, epoch, connection.id)
    if isinstance(session, ErrorCode) or epoch == FINAL_EPOCH:
        return session
    error = shares.sessions.update(
        session,
        (
            TopicIdPartition(topic.topic_id, each.partition_index)
            for topic in body.topics
            for each in topic.partitions
        ),
        (
            TopicIdPartition(topic.topic_id, index)
            for topic in body.forgotten_topics_data
            for index in topic.partitions
        ),
    )
    return error or session


class Responding:
    """A request on its way to its response: first it acknowledges, then it acquires."""

    def __init__(
        self,
        broker: Broker,
        request: Request,
        body: ShareFetchRequest,
        session: ShareSession,
        unreadable: frozenset[TopicIdPartition],
    ) -> None:
        self._broker = broker
        self._request = request
        self._body = body
        self._session = session
        self._unreadable = unreadable
        self._quota = broker.throttling.most_fetched(request)
        self._acknowledged: Mapping[TopicIdPartition, ErrorCode] = {}

    def acknowledged(self, errors: Errors, now: float) -> None:
        """Go on when what was acknowledged is stored."""
        refused = {
            TopicIdPartition(topic.topic_id, each.partition_index): E.TOPIC_AUTHORIZATION_FAILED
            for topic in self._body.topics
            for each in topic.partitions
            if each.acknowledgement_batches
        }
        self._acknowledged = dict(errors) | {
            key: error for key, error in refused.items() if key in self._unreadable
        }
        body, shares = self._body, self._broker.shares
        if body.share_session_epoch == FINAL_EPOCH:
            shares.close(self._session, lambda _errors, now: self._respond({}, now), now)
        elif body.is_renew_ack:
            self._respond({}, now)
        else:
            waits = not self._unreadable.issuperset(self._session.partitions)
            limit = self._broker.settings.number(MAX_BYTES)
            most = min(body.max_bytes, limit, limit if self._quota is None else self._quota)
            amount = Amount(
                body.max_wait_ms / 1000 if waits else 0.0,
                min(body.min_bytes, most),
                most,
                body.max_records,
                max(1, body.batch_size),
                body.share_acquire_mode == STRICT,
            )
            waiting = Waiting(
                self._request.reply_to,
                self._session,
                amount,
                self._fetched,
                unreadable=self._unreadable,
            )
            shares.fetch(waiting, now)

    def _fetched(self, data: Data, now: float) -> None:
        """Respond with the partitions that have records or errors, or are new in the session."""
        partitions = self._session.partitions
        for key in self._unreadable.intersection(partitions):
            data[key] = failed(key, E.TOPIC_AUTHORIZATION_FAILED)
        for key, was_sent in partitions.items():
            if not was_sent and key not in data:
                data[key] = PartitionData(partition_index=key.partition, records=b"")
        self._respond(data, now)

    def _respond(self, data: Data, now: float) -> None:
        """Respond with what was fetched and acknowledged.

        A client that exceeds its quota gets only errors of what it acknowledged. As in Kafka, it
        has acquired the records that it does not get, until their locks expire.
        """
        throttle_ms = self._throttle_ms(data, now)
        if throttle_ms:
            data = {}
        partitions = self._session.partitions
        partitions.update(dict.fromkeys(partitions.keys() & data.keys(), True))
        for key, error in self._acknowledged.items():
            of = data.setdefault(key, PartitionData(partition_index=key.partition, records=b""))
            of.acknowledge_error_code = error
            of.acknowledge_error_message = error.name if error else None
        config = self._broker.shares.config(self._session.member.group_id)
        response = ShareFetchResponse(
            throttle_time_ms=throttle_ms,
            acquisition_lock_timeout_ms=int(config.lock_duration * 1000),
            responses=_by_topic(data),
            node_endpoints=name_leaders(self._broker.metadata, data.items(), NodeEndpoint),
        )
        self._broker.channel.respond(self._request.reply_to, response, now)

    def _throttle_ms(self, data: Data, now: float) -> int:
        """Count what was fetched against the quota of the client."""
        if self._quota is None:
            return 0
        response = ShareFetchResponse(responses=_by_topic(data))
        return self._broker.throttling.share_fetched(self._request, response, now)


def _by_topic(data: Data) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, list[PartitionData]] = {}
    for key, each in data.items():
        topics.setdefault(key.topic_id, []).append(each)
    return [
        ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in topics.items()
    ]


def _refused(error: ErrorCode, message: str) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=error, error_message=message)


def error_response(_body: ShareFetchRequest, error: ErrorCode) -> ShareFetchResponse:
    """Return a response with the error."""
    return ShareFetchResponse(error_code=error)
