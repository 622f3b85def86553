"""Embedded payloads: what is encoded is decoded again, and no bytes at all raise."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.messages import consumer_protocol_assignment as assignment
from kafkawire.messages import consumer_protocol_subscription as subscription
from kafkawire.messages import describe_groups_response as describe
from kafkawire.messages.default_principal_data import DefaultPrincipalData
from kafkawire.messages.envelope_request import EnvelopeRequest
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import Message
from kafkawire.protocol.connect import ConnectAssignment, ConnectorAssignment, ConnectWorkerMetadata
from kafkawire.protocol.embedded import add_payloads, embedded_payloads
from kafkawire.protocol.json_form import to_json
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.payload_fields import USER_DATA
from kafkawire.protocol.sticky import (
    CooperativeStickyUserData,
    StickyTopicPartitions,
    StickyUserData,
)
from kafkawire.protocol.versioned import decode_versioned, encode_versioned

untimed = settings(deadline=None)  # the first failure imports the codec that finds its place

text = st.text(max_size=8)
int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
small = st.binary(max_size=12)
numbers = st.lists(int32, max_size=3)
connectors = st.lists(st.builds(ConnectorAssignment, connector=text, tasks=numbers), max_size=3)
held = st.lists(st.builds(StickyTopicPartitions, topic=text, partitions=numbers), max_size=3)

VERSIONED = st.one_of(
    st.tuples(
        st.builds(
            subscription.ConsumerProtocolSubscription,
            topics=st.lists(text, max_size=3),
            user_data=st.none() | small,
            owned_partitions=st.lists(
                st.builds(subscription.TopicPartition, topic=text, partitions=numbers), max_size=3
            ),
            generation_id=int32,
            rack_id=st.none() | text,
        ),
        st.just(3),
    ),
    st.tuples(
        st.builds(
            assignment.ConsumerProtocolAssignment,
            assigned_partitions=st.lists(
                st.builds(assignment.TopicPartition, topic=text, partitions=numbers), max_size=3
            ),
            user_data=st.none() | small,
        ),
        st.integers(0, 3),
    ),
    st.tuples(
        st.builds(DefaultPrincipalData, type=text, name=text, token_authenticated=st.booleans()),
        st.just(0),
    ),
    st.tuples(st.builds(ConnectWorkerMetadata, url=text, config_offset=int64), st.just(0)),
    st.tuples(
        st.builds(
            ConnectWorkerMetadata, url=text, config_offset=int64, allocation=st.none() | small
        ),
        st.integers(1, 2),
    ),
    st.tuples(
        st.builds(
            ConnectAssignment,
            error=int16,
            leader=text,
            leader_url=text,
            config_offset=int64,
            assignment=connectors,
        ),
        st.just(0),
    ),
    st.tuples(
        st.builds(
            ConnectAssignment,
            error=int16,
            leader=text,
            leader_url=text,
            config_offset=int64,
            assignment=st.none() | connectors,
            revoked=st.none() | connectors,
            delay=int32,
        ),
        st.integers(1, 2),
    ),
)

USER = st.one_of(
    st.tuples(st.builds(StickyUserData, previous_assignment=held), st.just(0)),
    st.tuples(st.builds(StickyUserData, previous_assignment=held, generation=int32), st.just(1)),
)


@untimed
@given(VERSIONED)
def test_versioned_payloads_come_back(case: tuple[Message, int]) -> None:
    message, version = case
    data = encode_versioned(message, version)
    assert decode_versioned(type(message).__name__, data) == (version, message)


@untimed
@given(VERSIONED, st.binary(min_size=1, max_size=9))
def test_bytes_left_over_are_kept(case: tuple[Message, int], trailing: bytes) -> None:
    message, version = case
    data = encode_versioned(message, version)
    _, again = decode_versioned(type(message).__name__, data + trailing)
    assert again == message
    assert again.deviations is not None
    assert again.deviations.trailing == trailing
    assert again.encode(version, lenient=True) == data[2:] + trailing


@untimed
@given(USER)
def test_sticky_user_data_comes_back(case: tuple[StickyUserData, int]) -> None:
    value, version = case
    inner = _user_data("sticky", value.encode(version))
    assert (inner.version, inner.value) == (version, value)


@untimed
@given(int32)
def test_the_generation_comes_back(generation: int) -> None:
    value = CooperativeStickyUserData(generation=generation)
    assert _user_data("cooperative-sticky", value.encode(0)).value == value


def _user_data(protocol: str, data: bytes) -> Payload:
    metadata = encode_versioned(subscription.ConsumerProtocolSubscription(user_data=data), 0)
    (payload,) = embedded_payloads(_described("consumer", protocol, metadata, b""), 6)
    assert payload.inner is not None
    return payload.inner


def _described(protocol_type: str, protocol: str, metadata: bytes, assigned: bytes) -> Message:
    member = describe.DescribedGroupMember(member_metadata=metadata, member_assignment=assigned)
    return describe.DescribeGroupsResponse(
        groups=[
            describe.DescribedGroup(
                protocol_type=protocol_type, protocol_data=protocol, members=[member]
            )
        ]
    )


PREFIXED = st.binary(max_size=40) | st.builds(
    lambda version, rest: bytes([0, version]) + rest, st.integers(0, 4), st.binary(max_size=40)
)


@untimed
@given(st.sampled_from(["consumer", "connect", ""]), st.sampled_from(sorted(USER_DATA)), PREFIXED)
def test_no_bytes_raise(protocol_type: str, protocol: str, data: bytes) -> None:
    by_name = encode_versioned(subscription.ConsumerProtocolSubscription(user_data=data), 0)
    cases: list[tuple[Message, int]] = [
        (_described(protocol_type, protocol, data, data), 6),
        (_described("consumer", protocol, by_name, b""), 6),
        (SyncGroupResponse(assignment=data), 0),
        (EnvelopeRequest(request_data=data, request_principal=data), 0),
    ]
    for message, version in cases:
        made = to_json(message, version)
        add_payloads(made, message, version)
        json.dumps(made)
        for payload in embedded_payloads(message, version):
            assert (payload.value is None) == (payload.error is not None)


@untimed
@given(VERSIONED, st.data())
def test_a_flipped_byte_is_an_error_or_another_payload(
    case: tuple[Message, int], data: st.DataObject
) -> None:
    message, version = case
    raw = bytearray(encode_versioned(message, version))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    name = type(message).__name__
    kind = "connect" if name.startswith("Connect") else "consumer"
    flipped = bytes(raw)
    holders = [
        (_described(kind, "range", flipped, flipped), 6),
        (EnvelopeRequest(request_principal=flipped), 0),
    ]
    for holder, holder_version in holders:
        for payload in embedded_payloads(holder, holder_version):
            assert (payload.value is None) == (payload.error is not None)
