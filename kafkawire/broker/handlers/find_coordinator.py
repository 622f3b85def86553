"""FindCoordinator: returns the coordinator of a group or transactional id.

v0   the first
v1   request +key_type; response +throttle_time_ms +error_message
v2   no new fields │ throttled after the response
v3   flexible
v4   request +coordinator_keys -key; response +coordinators -error_code -error_message
      -node_id -host -port
v5   no new fields │ TRANSACTION_ABORTABLE may be returned
v6   no new fields │ share groups (KIP-932)
"""

from __future__ import annotations

from re import fullmatch
from typing import Final

from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.coordinators import partition_for
from ..network.connection import Connection
from ..request import UNTIL_METADATA, Request, Work
from ..topics import NO_LEADER, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

E = ErrorCode
GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
TOPICS: Final = {
    GROUP: OFFSETS_TOPIC,
    TRANSACTION: TRANSACTIONS_TOPIC,
    SHARE: SHARE_STATE_TOPIC,
}
SHARE_KEY: Final = r"(?s:.+):[A-Za-z0-9_-]{22}:\d{1,9}"
"""The key of a share partition: group:topic id:partition."""
SHARE_FROM: Final = 6
SEVERAL_FROM: Final = 4
NOWHERE: Final = -1


def handle(
    broker: Broker,
    request: Request,
    body: FindCoordinatorRequest,
    _connection: Connection,
    now: float,
) -> FindCoordinatorResponse | Work[FindCoordinatorResponse]:
    """Return the coordinator of each key; creates the topic of coordinators if necessary."""
    broker.groups.start_expiration(now)
    response = _response(broker, request, body, now)
    if broker.topic_creation.is_creating(TOPICS.get(body.key_type, "")):
        return _when_created(broker, request, body, now)
    return response


def _when_created(
    broker: Broker, request: Request, body: FindCoordinatorRequest, now: float
) -> Work[FindCoordinatorResponse]:
    """Wait until the topic is created; Kafka lets the client retry."""
    while broker.topic_creation.is_creating(TOPICS[body.key_type]):
        if not (yield UNTIL_METADATA):
            break
    return _response(broker, request, body, now)


def _response(
    broker: Broker, request: Request, body: FindCoordinatorRequest, now: float
) -> FindCoordinatorResponse:
    if request.version >= SEVERAL_FROM:
        coordinators = [
            _find(broker, key, body.key_type, request.version, now) for key in body.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=coordinators)
    one = _find(broker, body.key, body.key_type, request.version, now)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _find(broker: Broker, key: str, key_type: int, version: int, now: float) -> Coordinator:
    creation = broker.topic_creation
    ensure = {
        GROUP: creation.ensure_offsets_topic,
        TRANSACTION: creation.ensure_transactions_topic,
        SHARE: creation.ensure_share_state_topic,
    }.get(key_type)
    if ensure is None or (key_type == SHARE and version < SHARE_FROM):
        return _unavailable(key, E.INVALID_REQUEST)
    if key == "" and key_type != GROUP:
        return _unavailable(key, E.INVALID_REQUEST)
    if key_type == SHARE and fullmatch(SHARE_KEY, key) is None:
        return _unavailable(key, E.INVALID_REQUEST)
    topic = ensure(now)
    if topic is None:
        return _unavailable(key, E.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader_id
    endpoint = None if leader == NO_LEADER else broker.metadata.endpoint(leader)
    if endpoint is None:
        return _unavailable(key, E.COORDINATOR_NOT_AVAILABLE)
    node_id, host, port, _ = endpoint
    return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")


def _unavailable(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NOWHERE,
        host="",
        port=NOWHERE,
        error_code=error,
        error_message=error.name,
    )


def error_response(
    body: FindCoordinatorRequest, error: ErrorCode, version: int = 0
) -> FindCoordinatorResponse:
    """Return a response with the error for each key; from v4 on there may be none."""
    if version >= SEVERAL_FROM or body.coordinator_keys:
        return FindCoordinatorResponse(
            coordinators=[_unavailable(key, error) for key in body.coordinator_keys]
        )
    return FindCoordinatorResponse(error_code=error, node_id=NOWHERE, port=NOWHERE)
