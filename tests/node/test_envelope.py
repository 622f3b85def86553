"""Requests that a broker forwards in an Envelope, as a real Kafka's brokers do."""

from __future__ import annotations

import pytest

from kafkawire import ApiKey
from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.messages.access_control_entry_record import AccessControlEntryRecord
from kafkawire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kafkawire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.default_principal_data import DefaultPrincipalData
from kafkawire.messages.envelope_request import EnvelopeRequest
from kafkawire.messages.envelope_response import EnvelopeResponse
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode, decode_response_header, encode_frame, encode_versioned

from ..broker.security.acls import CLUSTER, acl
from .front_harness import NodeHarness

CORRELATION_ID = 77
CREATE = CreateTopicsRequest(
    topics=[CreatableTopic(name="orders", num_partitions=2, replication_factor=1)], timeout_ms=1000
)


def content(message: Message, version: int) -> bytes:
    return encode_frame(message, version, CORRELATION_ID, client_id="behind")[4:]


def responded(data: bytes) -> EnvelopeResponse:
    """The response of a new node to an Envelope with this content."""
    client = NodeHarness().client(listener="CONTROLLER")
    request = EnvelopeRequest(request_data=data, client_host_address=bytes([127, 0, 0, 1]))
    return client.exchange(request, 0, EnvelopeResponse)


@pytest.mark.parametrize("version", [5, 7])
def test_the_controller_decides_on_what_is_in_it(version: int) -> None:
    found = responded(content(CREATE, version))
    assert found.error_code == ErrorCode.NONE
    assert found.response_data is not None
    head = decode_response_header(found.response_data, ApiKey.CREATE_TOPICS, version)
    assert head.header.correlation_id == CORRELATION_ID
    response = CreateTopicsResponse.decode(found.response_data[head.end :], version)
    assert [(each.name, each.error_code) for each in response.topics] == [("orders", 0)]


def responded_to_token(principal: bytes | None) -> EnvelopeResponse:
    harness = NodeHarness({"delegation.token.secret.key": "k"})
    token = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    request = EnvelopeRequest(request_data=content(token, 2), request_principal=principal)
    return harness.client(listener="CONTROLLER").exchange(request, 0, EnvelopeResponse)


def test_a_token_is_for_the_principal_of_the_envelope() -> None:
    principal = encode_versioned(DefaultPrincipalData(type="User", name="alice"), 0)
    data = responded_to_token(principal).response_data
    assert data is not None
    head = decode_response_header(data, ApiKey.CREATE_DELEGATION_TOKEN, 2)
    response = CreateDelegationTokenResponse.decode(data[head.end :], 2)
    assert (response.error_code, response.principal_name) == (ErrorCode.NONE, "alice")


@pytest.mark.parametrize("principal", [None, b"", b"\0", b"\0\0\7", b"\0\7\1\1\0\0"])
def test_a_token_needs_a_valid_principal(principal: bytes | None) -> None:
    error = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    assert responded_to_token(principal).error_code == error


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 20,
        content(CREATE, 7)[:-3],
        content(HeartbeatRequest(group_id="g"), 4),
        content(EnvelopeRequest(request_data=content(CREATE, 7)), 0),
    ],
    ids=["empty", "garbage", "truncated", "not for controllers", "another envelope"],
)
def test_what_is_invalid(data: bytes) -> None:
    assert responded(data) == EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)


# -- with an authorizer


STANDARD = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
PRINCIPAL = DefaultPrincipalData(type="User", name="alice")
ALICE = b"\0\0" + PRINCIPAL.encode(0)
HOST = bytes([10, 0, 0, 7])
CLUSTER_ACTION = acl(AclResource.CLUSTER, CLUSTER, Operation.CLUSTER_ACTION)
FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Secured:
    """A node with an authorizer, and a broker's connection to its controller."""

    def __init__(self, *acls: AccessControlEntryRecord) -> None:
        self.harness = NodeHarness(STANDARD)
        authorizer = self.harness.front.broker.broker.authorizer
        assert authorizer is not None
        authorizer.publish({each.id: each for each in acls}, [each.id for each in acls])

    def exchange(
        self, body: Message, principal: bytes | None = ALICE, host: bytes = HOST
    ) -> EnvelopeResponse:
        request = EnvelopeRequest(
            request_data=content(body, 7), request_principal=principal, client_host_address=host
        )
        client = self.harness.client(listener="CONTROLLER")
        return client.exchange(request, 0, EnvelopeResponse)

    def created(self, *names: str, host: bytes = HOST) -> dict[str, int]:
        topics = [
            CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in names
        ]
        found = self.exchange(CreateTopicsRequest(topics=topics, timeout_ms=1000), host=host)
        assert found.error_code == ErrorCode.NONE
        assert found.response_data is not None
        head = decode_response_header(found.response_data, ApiKey.CREATE_TOPICS, 7)
        assert head.header.correlation_id == CORRELATION_ID
        response = CreateTopicsResponse.decode(found.response_data[head.end :], 7)
        return {each.name: each.error_code for each in response.topics}


def test_only_brokers_send_envelopes() -> None:
    found = Secured().exchange(CREATE)
    assert found == EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def test_the_client_needs_the_permission_not_the_broker() -> None:
    mine = acl(AclResource.TOPIC, "mine", Operation.CREATE, principal="User:alice", host="10.0.0.7")
    secured = Secured(CLUSTER_ACTION, mine)
    assert secured.created("other") == {"other": FAILED}
    assert secured.created("mine", "other") == {"mine": ErrorCode.NONE, "other": FAILED}
    assert secured.created("mine", host=bytes([10, 0, 0, 8])) == {"mine": FAILED}
    image = secured.harness.front.broker.metadata.image
    assert set(image.topic_ids) == {"mine"}


@pytest.mark.parametrize(
    ("principal", "host", "error"),
    [
        (None, HOST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"\0\0\xff", HOST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"\0\x09" + ALICE[2:], HOST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (ALICE, b"\x7f", ErrorCode.INVALID_REQUEST),
    ],
    ids=["no principal", "garbage", "unknown version", "no address"],
)
def test_a_client_that_cannot_be_read_is_refused(
    principal: bytes | None, host: bytes, error: ErrorCode
) -> None:
    secured = Secured(CLUSTER_ACTION)
    assert secured.exchange(CREATE, principal, host) == EnvelopeResponse(error_code=error)
