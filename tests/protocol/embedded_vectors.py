"""Payloads written by hand from their layouts, and messages to carry them."""

from __future__ import annotations

import struct

from kafkawire.messages import consumer_protocol_assignment as assignment
from kafkawire.messages import consumer_protocol_subscription as subscription
from kafkawire.messages import join_group_request as join
from kafkawire.primitives import Message
from kafkawire.protocol.embedded import embedded_payloads
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.versioned import encode_versioned

ORDERS = subscription.ConsumerProtocolSubscription(topics=["orders"])
ORDERS_0 = subscription.TopicPartition(topic="orders", partitions=[0])
ASSIGNED = assignment.ConsumerProtocolAssignment(
    assigned_partitions=[assignment.TopicPartition(topic="orders", partitions=[0, 1])]
)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


CONNECTORS = (
    struct.pack(">i", 1) + text("sink") + struct.pack(">iii", 2, -1, 0)
)  # the connector itself and its task 0
ASSIGNMENT_HEAD = struct.pack(">h", 0) + text("worker-1") + text("http://a:8083/")
CONNECT_ASSIGNMENT_V0 = b"\0\0" + ASSIGNMENT_HEAD + struct.pack(">q", 7) + CONNECTORS
CONNECT_ASSIGNMENT_V1 = (
    b"\0\1"
    + ASSIGNMENT_HEAD
    + struct.pack(">q", 7)
    + CONNECTORS
    + struct.pack(">i", -1)
    + struct.pack(">i", 300_000)
)
WORKER_V0 = b"\0\0" + text("http://a:8083/") + struct.pack(">q", 7)
WORKER_V1 = (
    b"\0\1"
    + text("http://a:8083/")
    + struct.pack(">q", 7)
    + struct.pack(">i", len(CONNECT_ASSIGNMENT_V1))
    + CONNECT_ASSIGNMENT_V1
)
STICKY_V0 = struct.pack(">i", 1) + text("orders") + struct.pack(">ii", 1, 0)
STICKY_V1 = STICKY_V0 + struct.pack(">i", 9)


def join_request(metadata: bytes, protocol_type: str = "consumer", name: str = "range") -> Message:
    return join.JoinGroupRequest(
        protocol_type=protocol_type,
        protocols=[join.JoinGroupRequestProtocol(name=name, metadata=metadata)],
    )


def only(message: Message, version: int) -> Payload:
    (payload,) = embedded_payloads(message, version)
    return payload


def subscribe(user_data: bytes | None, name: str, version: int = 1) -> Payload:
    ours = subscription.ConsumerProtocolSubscription(topics=["orders"], user_data=user_data)
    return only(join_request(encode_versioned(ours, version), name=name), 9)
