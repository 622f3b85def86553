"""ShareAcknowledge: a member of a share group acknowledges records (KIP-932).

v0   the first; flexible │ early access in 4.0, not served
v1   no new fields
v2   request +is_renew_ack; response +acquisition_lock_timeout_ms
"""

from __future__ import annotations

from ...messages.share_acknowledge_request import ShareAcknowledgeRequest
from ...messages.share_acknowledge_response import (
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request
from ..share.acknowledging import Errors, checked
from ..share.leaders import name_leaders
from ..share.sessions import FINAL_EPOCH, Member

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: ShareAcknowledgeRequest,
    connection: Connection,
    now: float,
) -> ShareAcknowledgeResponse | Outcome:
    """Acknowledge records; the session may end then."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    if not body.group_id or not body.member_id:
        return _refused(E.INVALID_REQUEST, "GroupId and MemberId can't be empty.")
    member, epoch = Member(body.group_id, body.member_id), body.share_session_epoch
    session = broker.shares.sessions.find(member, epoch, connection.id)
    if isinstance(session, ErrorCode):
        return _refused(session, session.name)
    ending = session

    def acknowledged(errors: Errors, now: float) -> None:
        if epoch != FINAL_EPOCH:
            respond(errors, now)
        else:
            broker.shares.close(ending, lambda _errors, now: respond(errors, now), now)

    def respond(errors: Errors, now: float) -> None:
        broker.channel.respond(request.reply_to, _response(broker, member, errors), now)

    acknowledgements = {
        TopicIdPartition(topic.topic_id, each.partition_index): checked(
            each.acknowledgement_batches, body.is_renew_ack
        )
        for topic in body.topics
        for each in topic.partitions
    }
    broker.shares.acknowledge(member, acknowledgements, acknowledged, now)
    return DELAYED


def _response(broker: Broker, member: Member, errors: Errors) -> ShareAcknowledgeResponse:
    partitions = {
        key: PartitionData(
            partition_index=key.partition,
            error_code=error,
            error_message=error.name if error else None,
        )
        for key, error in errors.items()
    }
    topics: dict[bytes, list[PartitionData]] = {}
    for key, each in partitions.items():
        topics.setdefault(key.topic_id, []).append(each)
    config = broker.shares.config(member.group_id)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=int(config.lock_duration * 1000),
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=each)
            for topic_id, each in topics.items()
        ],
        node_endpoints=name_leaders(broker.metadata, partitions.items(), NodeEndpoint),
    )


def _refused(error: ErrorCode, message: str) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=error, error_message=message)


def error_response(_body: ShareAcknowledgeRequest, error: ErrorCode) -> ShareAcknowledgeResponse:
    """Return a response with the error."""
    return ShareAcknowledgeResponse(error_code=error)
