"""Payloads of real clients: librdkafka, kafka-python, aiokafka, KafkaJS, kafka-go, franz-go."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kafkawire.messages import consumer_protocol_subscription as subscription
from kafkawire.messages import describe_groups_response as describe
from kafkawire.messages import join_group_request as join
from kafkawire.messages import join_group_response as joined
from kafkawire.messages import sync_group_request as sync
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import Message
from kafkawire.protocol.embedded import embedded_payloads
from kafkawire.protocol.payload import Payload
from kafkawire.protocol.sticky import CooperativeStickyUserData
from kafkawire.protocol.versioned import decode_versioned
from tests.conftest import FIXTURES
from tests.recordings import THIRD_PARTY, third_party, unchanged


class Sent(NamedTuple):
    """A message of a group as it was captured, and the raw payloads that it carries."""

    recording: str
    message: Message
    version: int
    raw: list[bytes]


def _rows() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in [*unchanged("*.kmsg.jsonl.gz"), *third_party("public", "*.kmsg.jsonl.gz")]:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield path.name.removesuffix(".kmsg.jsonl.gz"), json.loads(line)


def _join_request(body: dict[str, Any]) -> Message:
    return join.JoinGroupRequest(
        protocol_type=body["ProtocolType"],
        protocols=[
            join.JoinGroupRequestProtocol(name=each["Name"], metadata=b64decode(each["Metadata"]))
            for each in body["Protocols"] or []
        ],
    )


def _join_response(body: dict[str, Any]) -> Message:
    return joined.JoinGroupResponse(
        protocol_type=body["ProtocolType"],
        protocol_name=body["Protocol"],
        members=[
            joined.JoinGroupResponseMember(metadata=b64decode(each["ProtocolMetadata"]))
            for each in body["Members"] or []
        ],
    )


def _sync_request(body: dict[str, Any]) -> Message:
    return sync.SyncGroupRequest(
        protocol_type=body["ProtocolType"],
        protocol_name=body["Protocol"],
        assignments=[
            sync.SyncGroupRequestAssignment(assignment=b64decode(each["MemberAssignment"]))
            for each in body["GroupAssignment"] or []
        ],
    )


def _sync_response(body: dict[str, Any]) -> Message:
    return SyncGroupResponse(
        protocol_type=body["ProtocolType"],
        protocol_name=body["Protocol"],
        assignment=b64decode(body["MemberAssignment"] or ""),
    )


def _describe_response(body: dict[str, Any]) -> Message:
    return describe.DescribeGroupsResponse(
        groups=[
            describe.DescribedGroup(
                protocol_type=group["ProtocolType"],
                protocol_data=group["Protocol"],
                members=[
                    describe.DescribedGroupMember(
                        member_metadata=b64decode(each["ProtocolMetadata"] or ""),
                        member_assignment=b64decode(each["MemberAssignment"] or ""),
                    )
                    for each in group["Members"] or []
                ],
            )
            for group in body["Groups"] or []
        ]
    )


BUILD = {
    (11, "req"): _join_request,
    (11, "resp"): _join_response,
    (14, "req"): _sync_request,
    (14, "resp"): _sync_response,
    (15, "resp"): _describe_response,
}
RAW = ("Metadata", "ProtocolMetadata", "MemberAssignment")


def _raw(body: Any) -> list[bytes]:
    if isinstance(body, list):
        return [data for each in body for data in _raw(each)]
    if not isinstance(body, dict):
        return []
    return [
        data
        for name, value in body.items()
        for data in ([b64decode(value)] if name in RAW and value else _raw(value))
    ]


def _sent() -> Iterator[Sent]:
    for recording, row in _rows():
        build = BUILD.get((row.get("api_key", -1), row["dir"]))
        if build is not None:
            body = row["body"]
            yield Sent(recording, build(body), row["api_version"], _raw(body))


@pytest.fixture(scope="module")
def sent() -> list[Sent]:
    return list(_sent())


def _from_a_client(each: Sent) -> bool:
    """Whether the values are a client's own: the sweeps send every API with made-up ones."""
    return not each.recording.startswith("fg-sweep")


def test_every_payload_that_was_sent_decodes_and_encodes_to_the_same_bytes(
    sent: list[Sent],
) -> None:
    count = 0
    for each in filter(_from_a_client, sent):
        payloads = embedded_payloads(each.message, each.version)
        assert [p.error for p in payloads] == [None] * len(each.raw), each
        for payload, raw in zip(payloads, each.raw, strict=True):
            assert isinstance(payload.value, Message)
            assert payload.value.deviations is None
            assert payload.version == int.from_bytes(raw[:2], "big")
            assert payload.read_as is not None
            assert raw[2:] == payload.value.encode(payload.read_as)
            json.dumps(payload.to_json())
            count += 1
    assert count > 0


def test_every_client_is_there(sent: list[Sent]) -> None:
    kinds = Counter(
        (each.recording, payload.kind, payload.version, payload.read_as)
        for each in sent
        for payload in embedded_payloads(each.message, each.version)
    )
    subscribed, assigned = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
    expected = [
        ("ck-group-range", subscribed, 3, 3),
        ("kcat-kf", subscribed, 1, 1),
        ("kp22-all", subscribed, 0, 0),
        ("aio-all", subscribed, 0, 0),
        ("kjs-all", subscribed, 0, 0),
        ("kafkago-kf", subscribed, 1, 0),
        ("kafkago-kf", assigned, 1, 1),
        ("fg-max-v3.7", subscribed, 3, 3),
    ]
    assert [kind for kind in expected if not kinds[kind]] == []


def test_franz_go_writes_four_bytes_of_user_data(sent: list[Sent]) -> None:
    inner = [
        payload.inner
        for each in sent
        if each.recording.startswith("fg-max")
        for payload in embedded_payloads(each.message, each.version)
        if payload.kind == "ConsumerProtocolSubscription"
    ]
    assert len(inner) >= 12
    for payload in inner:
        assert isinstance(payload, Payload)
        assert payload.value == CooperativeStickyUserData(generation=0)


def test_made_up_values_are_taken_for_nothing(sent: list[Sent]) -> None:
    made_up = [each for each in sent if not _from_a_client(each) and any(each.raw)]
    assert len(made_up) >= 12
    for each in made_up:
        assert embedded_payloads(each.message, each.version) == [], each


def _fixture_rows(name: str) -> dict[str, dict[str, Any]]:
    path = THIRD_PARTY / "bytes" / name
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["path"]: row for row in rows}


@pytest.mark.third_party
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("describeGroups/fixtures/v1_memberMetadata.json", "ConsumerProtocolSubscription"),
        ("joinGroup/fixtures/v1_assignerMetadata.json", "ConsumerProtocolSubscription"),
        ("joinGroup/fixtures/v2_assignerMetadata.json", "ConsumerProtocolSubscription"),
        ("describeGroups/fixtures/v1_memberAssignment.json", "ConsumerProtocolAssignment"),
        ("syncGroup/fixtures/v1_memberAssignment.json", "ConsumerProtocolAssignment"),
    ],
)
def test_payloads_of_old_kafkajs(path: str, kind: str) -> None:
    row = _fixture_rows("kafkajs-fixtures.jsonl")[f"src/protocol/requests/{path}"]
    version, message = decode_versioned(kind, bytes.fromhex(row["hex"]))
    assert version == 1
    assert message.deviations is None
    if isinstance(message, subscription.ConsumerProtocolSubscription):
        assert message.topics[0].startswith("test-topic-")


@pytest.mark.third_party
@pytest.mark.parametrize(("version", "recognised"), [(0, False), (1, True), (2, True), (3, True)])
def test_sync_responses_of_old_kafkajs(version: int, recognised: bool) -> None:
    rows = _fixture_rows("kafkajs-fixtures.jsonl")
    row = rows[f"src/protocol/requests/syncGroup/fixtures/v{version}_response.json"]
    message = SyncGroupResponse.decode(bytes.fromhex(row["hex"]), version)
    assert bool(message.assignment)
    # at version 0 its authors recorded JSON of their own in place of an assignment
    assert [p.error for p in embedded_payloads(message, version)] == [None] * recognised


def test_kafkas_own_vectors() -> None:
    names = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "DefaultPrincipalData")
    count = 0
    with gzip.open(FIXTURES / "golden" / "messages.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["message"] not in names:
                continue
            data = row["version"].to_bytes(2, "big") + bytes.fromhex(row["hex"])
            version, message = decode_versioned(row["message"], data)
            assert version == row["version"]
            assert message.deviations is None
            assert message.encode(version).hex() == row["hex"]
            count += 1
    assert count >= 40
