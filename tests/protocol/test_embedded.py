"""Embedded payloads: where they are looked for, the consumer protocol, the JSON form."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from kafkawire.errors import DecodeError, UnknownApiKey, UnsupportedVersion
from kafkawire.messages import REGISTRY
from kafkawire.messages import consumer_group_member_metadata_value as member_record
from kafkawire.messages import consumer_protocol_subscription as subscription
from kafkawire.messages import describe_groups_response as describe
from kafkawire.messages import group_metadata_value as group_record
from kafkawire.messages.create_topics_request import CreateTopicsRequest
from kafkawire.primitives import Limits
from kafkawire.protocol.embedded import add_payloads, embedded_payloads
from kafkawire.protocol.json_form import to_json
from kafkawire.protocol.kinds import KINDS
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.payload_fields import PAYLOAD_FIELDS, USER_DATA
from kafkawire.protocol.versioned import decode_versioned, encode_versioned
from tests.protocol.embedded_vectors import (
    ASSIGNED,
    ORDERS,
    ORDERS_0,
    STICKY_V1,
    WORKER_V0,
    join_request,
    only,
)


def test_every_place_leads_to_a_bytes_field() -> None:
    for name, places in PAYLOAD_FIELDS.items():
        cls = REGISTRY.load(name)
        for place in places:
            here = cls
            for step in place.steps:
                row = next(row for row in here.__fields__ if row.attribute == step)
                element = row.type.removeprefix("[]")
                last = step == place.steps[-1]
                assert (row.type == "bytes") == last, (name, place.steps, step)
                if not last:
                    here = getattr(__import__(cls.__module__, fromlist=[element]), element)


def test_every_kind_a_place_names_can_be_read() -> None:
    named = {
        kind
        for places in PAYLOAD_FIELDS.values()
        for place in places
        for kind in place.kinds.values()
    }
    assert named | set(USER_DATA.values()) == set(KINDS)


def test_other_messages_hold_nothing() -> None:
    assert embedded_payloads(CreateTopicsRequest(), 7) == []


# -- the consumer protocol


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_subscription_in_a_join_request(version: int) -> None:
    payload = only(join_request(encode_versioned(ORDERS, version)), 5)
    assert payload == Payload(
        "protocols[0].metadata", "ConsumerProtocolSubscription", version, version, ORDERS
    )


def test_paths_count_members_and_groups() -> None:
    data = encode_versioned(ASSIGNED, 1)
    member = describe.DescribedGroupMember(member_assignment=data)
    message = describe.DescribeGroupsResponse(
        groups=[
            describe.DescribedGroup(protocol_type="consumer"),
            describe.DescribedGroup(
                protocol_type="consumer", members=[describe.DescribedGroupMember(), member]
            ),
        ]
    )
    payload = only(message, 6)
    assert payload.path == "groups[1].members[1].member_assignment"
    assert payload.value == ASSIGNED


def test_a_describe_response_asks_each_group_for_its_type() -> None:
    member = describe.DescribedGroupMember(member_metadata=WORKER_V0)
    message = describe.DescribeGroupsResponse(
        groups=[
            describe.DescribedGroup(protocol_type="connect", members=[member]),
            describe.DescribedGroup(protocol_type="sr", members=[member]),
        ]
    )
    assert [p.kind for p in embedded_payloads(message, 0)] == ["ConnectWorkerMetadata"]


def test_records_of_the_group_hold_the_same_payloads() -> None:
    old = group_record.GroupMetadataValue(
        protocol_type="consumer",
        protocol="sticky",
        members=[
            group_record.MemberMetadata(
                subscription=encode_versioned(
                    subscription.ConsumerProtocolSubscription(user_data=STICKY_V1), 0
                ),
                assignment=encode_versioned(ASSIGNED, 0),
            )
        ],
    )
    first, second = embedded_payloads(old, 3)
    assert first.inner is not None
    assert first.inner.kind == "StickyUserData"
    assert second.value == ASSIGNED
    new = member_record.ConsumerGroupMemberMetadataValue(
        classic_member_metadata=member_record.ClassicMemberMetadata(
            supported_protocols=[
                member_record.ClassicProtocol(name="range", metadata=encode_versioned(ORDERS, 3))
            ]
        )
    )
    assert only(new, 0).path == "classic_member_metadata.supported_protocols[0].metadata"
    assert embedded_payloads(member_record.ConsumerGroupMemberMetadataValue(), 0) == []


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    data = b"\0\x09" + ORDERS.encode(3) + b"new"
    payload = only(join_request(data), 9)
    assert (payload.version, payload.read_as) == (9, 3)
    assert isinstance(payload.value, subscription.ConsumerProtocolSubscription)
    assert payload.value.topics == ["orders"]
    assert payload.value.deviations is not None
    assert payload.value.deviations.trailing == b"new"
    shown = payload.to_json()
    assert (shown["version"], shown["readAs"], shown["deviations"]) == (9, 3, "3 trailing bytes")


def test_a_subscription_labelled_newer_than_it_is_reads_as_what_it_is() -> None:
    payload = only(join_request(b"\0\1" + ORDERS.encode(0)), 2)
    assert (payload.version, payload.read_as, payload.value) == (1, 0, ORDERS)
    left_over = only(join_request(b"\0\1" + ORDERS.encode(0) + b"x"), 2)
    assert left_over.value is None
    assert left_over.version == 1


@pytest.mark.parametrize(
    ("data", "version", "said"),
    [
        (b"\0", None, "ends inside the version (at byte 1)"),
        (b"\xff\xff" + ORDERS.encode(0), -1, "has versions 0-3, not -1"),
        (b"\0\0\0\0\0\1\0\6ord", 0, "ConsumerProtocolSubscription"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, version: int | None, said: str) -> None:
    payload = only(join_request(data), 9)
    assert (payload.version, payload.read_as, payload.value) == (version, None, None)
    assert payload.error is not None
    assert said in payload.error
    assert payload.to_json() == {
        "kind": "ConsumerProtocolSubscription",
        "version": version,
        "error": payload.error,
    }


def test_a_limit_holds_inside_payloads() -> None:
    many = subscription.ConsumerProtocolSubscription(topics=["t"] * 20)
    (payload,) = embedded_payloads(
        join_request(encode_versioned(many, 0)), 9, limits=Limits(max_elements=10)
    )
    assert payload.error is not None
    assert "max_elements" in payload.error


def test_truncated_subscription_of_the_newest_version() -> None:
    full = subscription.ConsumerProtocolSubscription(
        topics=["orders"],
        user_data=b"x",
        owned_partitions=[ORDERS_0],
        generation_id=3,
        rack_id="r",
    )
    data = encode_versioned(full, 3)
    ends = {len(encode_versioned(full, older)): older for older in (0, 1, 2)}
    for length in range(1, len(data)):
        payload = only(join_request(data[:length]), 9)
        assert payload.read_as == ends.get(length), length
        assert (payload.error is None) == (length in ends)


# -- the JSON form


def test_json_stands_beside_the_raw_field() -> None:
    ours = subscription.ConsumerProtocolSubscription(topics=["orders"], user_data=STICKY_V1)
    data = encode_versioned(ours, 1)
    message = join_request(data, name="sticky")
    made = to_json(message, 9)
    add_payloads(made, message, 9)
    protocol = made["protocols"][0]
    assert protocol["metadata"] == b64encode(data).decode()
    assert protocol["metadataDecoded"] == {
        "kind": "ConsumerProtocolSubscription",
        "version": 1,
        "value": {
            "topics": ["orders"],
            "userData": b64encode(STICKY_V1).decode(),
            "userDataDecoded": {
                "kind": "StickyUserData",
                "version": 1,
                "value": {
                    "previousAssignment": [{"topic": "orders", "partitions": [0]}],
                    "generation": 9,
                },
            },
            "ownedPartitions": [],
        },
    }
    json.dumps(made)


# -- by name


def test_versioned_helpers() -> None:
    data = encode_versioned(ORDERS, 2)
    assert data[:2] == b"\0\2"
    assert decode_versioned("ConsumerProtocolSubscription", data) == (2, ORDERS)
    with pytest.raises(UnknownApiKey):
        decode_versioned("FetchRequest", data)
    with pytest.raises(UnknownApiKey):
        encode_versioned(CreateTopicsRequest(), 7)
    with pytest.raises(UnsupportedVersion):
        encode_versioned(ORDERS, 4)
    with pytest.raises(DecodeError) as short:
        decode_versioned("ConsumerProtocolSubscription", data[:5])
    assert short.value.offset == 5
