"""Walks over responses, and prepares a broker for requests.

The broker gets topics, groups and ids that later requests refer to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kafkawire import ErrorCode, Message, Structure
from kafkawire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from kafkawire.messages.create_topics_request import CreateTopicsRequest
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.join_group_request import JoinGroupRequest
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.protocol import encode_versioned

from .broker import Broker
from .requests import Known, filled
from .wire import Wire

TIMEOUT_SECONDS: Final = 100.0
TOPIC: Final = "surface"
GROUP: Final = 0
TRANSACTION: Final = 1

BEFORE_SASL: Final = frozenset({"SaslHandshakeRequest"})
DURING_SASL: Final = frozenset({"SaslAuthenticateRequest"})

TRANSIENT: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Transient errors of a broker that creates its internal topics and loads metadata."""


def structures(structure: Structure) -> Iterator[Structure]:
    """Walk a message and every structure in it."""
    yield structure
    for attribute in structure.__match_args__:
        value = getattr(structure, attribute)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Structure):
                yield from structures(inner)


def errors(message: Message) -> set[ErrorCode]:
    """Collect the error codes of a response, other than NONE."""
    codes = {getattr(one, "error_code", 0) for one in structures(message)}
    return {ErrorCode(code) for code in codes} - {ErrorCode.NONE}


def opened(broker: Broker, message: str, known: Known) -> Wire:
    """Connect for a request: authenticated, unless the request is part of authentication."""
    wire = Wire(broker.sasl_port)
    if message not in BEFORE_SASL:
        wire.send(filled("SaslHandshakeRequest", 1, known), 1)
        if message not in DURING_SASL:
            request = filled("SaslAuthenticateRequest", 2, known)
            assert wire.exchange(request, 2, SaslAuthenticateResponse).error_code == ErrorCode.NONE
    return wire


def insist(
    wire: Wire, request: Message, version: int, transient: frozenset[ErrorCode] = TRANSIENT
) -> Message:
    """Send a request until the response has no transient error; AssertionError for another one."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        body = wire.send(request, version).frame.body
        found = errors(body)
        if not found:
            return body
        assert found <= transient, (request, body)
        assert time.monotonic() < deadline, (request, body)
        time.sleep(0.1)


def prepare(broker: Broker) -> Known:
    """Create a topic with records, a group of each kind and a transactional id."""
    known = Known(TOPIC)
    with opened(broker, "", known) as wire:

        def exchange(name: str, version: int) -> Message:
            return insist(wire, filled(name, version, known), version)

        create = filled("CreateTopicsRequest", 7, known)
        assert isinstance(create, CreateTopicsRequest)
        create.topics[0].name = TOPIC
        insist(wire, create, 7)
        metadata = exchange("MetadataRequest", 12)
        assert isinstance(metadata, MetadataResponse)
        known = replace(known, topic_id=metadata.topics[0].topic_id)
        exchange("ProduceRequest", 13)
        for key_type in (GROUP, TRANSACTION):
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[TOPIC])
            insist(wire, find, 6)
        for group in ("Consumer", "Share", "Streams"):
            exchange(f"{group}GroupHeartbeatRequest", 1 if group != "Streams" else 0)
        # the group's share partitions are initialised after its first heartbeat
        read = filled("ReadShareGroupStateRequest", 0, known)
        insist(wire, read, 0, TRANSIENT | {ErrorCode.INVALID_REQUEST})
        exchange("OffsetCommitRequest", 10)
        join(wire, known)
        initialise = filled("InitProducerIdRequest", 5, known)
        assert isinstance(initialise, InitProducerIdRequest)
        initialise.transactional_id = known.transactional_id
        initialised = insist(wire, initialise, 5)
        assert isinstance(initialised, InitProducerIdResponse)
    return replace(known, producer_id=initialised.producer_id)


def join(wire: Wire, known: Known) -> None:
    """Make a static member, the only one of the classic group, which is stable."""
    request = filled("JoinGroupRequest", 9, known)
    assert isinstance(request, JoinGroupRequest)
    request.group_id = known.group_of("")
    joined = insist(wire, request, 9)
    assert isinstance(joined, JoinGroupResponse)
    assigned = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=known.topic, partitions=[0])]
    )
    assignment = SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=encode_versioned(assigned, 3)
    )
    sync = SyncGroupRequest(
        group_id=request.group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignments=[assignment],
    )
    insist(wire, sync, 5)
