"""Every version that a real broker offers: it accepts kafkawire's request, and kafkawire decodes
its response.

A response decodes strictly, encodes to the same bytes, survives a round trip through JSON, has
no unknown field, and no error but the expected one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import pytest

import kafkawire
from kafkawire import REGISTRY, ErrorCode
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from tests.conftest import ROOT
from tests.schemas import schemas

from .broker import Broker
from .java import KAFKA_VERSION, RELEASE
from .requests import Known, filled
from .responses import errors, opened, prepare, structures
from .wire import Wire

pytestmark = pytest.mark.xdist_group("kafka")

SPOKEN: Final = json.loads((ROOT / "schemas/releases.json").read_text())["releases"][RELEASE]

METADATA_TOPIC: Final = ("__cluster_metadata", bytes(15) + b"\x01")
FIRST_CONTROLLER_EPOCH: Final = 1
ABOUT_QUORUM: Final = frozenset(
    {"BeginQuorumEpochRequest", "DescribeQuorumRequest", "EndQuorumEpochRequest", "VoteRequest"}
)
"""Only the metadata log has a quorum."""
ONLY_OF_METADATA: Final = ABOUT_QUORUM | {"FetchRequest", "FetchSnapshotRequest"}
"""APIs that the controller serves for its own log only."""

TAKEN_BY_NONE: Final = {"ProduceRequest": range(3)}
"""Offered for the sake of old clients that look at the range only (KAFKA-18659): the connection
is closed."""

UNANSWERED: Final = frozenset({"DescribeUserScramCredentialsRequest"})
"""The controller offers it without a handler: there is no response."""

WANT_A_PLUGIN: Final = {"GetTelemetrySubscriptionsRequest", "PushTelemetryRequest"}
"""Not offered by a broker without a metrics reporter for them."""


def taken_by(listener: str) -> list[str]:
    """Name the requests of the release that the schemas say this listener takes."""
    by_name = {schema.name: schema for schema in schemas()}
    names = sorted(f"{name}Request" for name in SPOKEN)
    return [name for name in names if listener in by_name[name].listeners]


BROKER: Final = [name for name in taken_by("broker") if name not in WANT_A_PLUGIN]
CONTROLLER: Final = [name for name in taken_by("controller") if name not in UNANSWERED]

IN_NO_ORDER: Final = {
    *(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE),
    *(ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED),
    ErrorCode.TRANSACTION_ABORTABLE,
}
"""What transactional requests may lead to, as tests run in any order."""

EXPECTED: Final = {
    "AddOffsetsToTxn": IN_NO_ORDER,
    "AddPartitionsToTxn": IN_NO_ORDER,
    "AddRaftVoter": {ErrorCode.INVALID_REQUEST},
    "AllocateProducerIds": {ErrorCode.STALE_BROKER_EPOCH},
    "AlterPartition": {ErrorCode.STALE_BROKER_EPOCH},
    "AlterReplicaLogDirs": {ErrorCode.LOG_DIR_NOT_FOUND},
    "AlterShareGroupOffsets": {ErrorCode.NON_EMPTY_GROUP},
    "AlterUserScramCredentials": {ErrorCode.RESOURCE_NOT_FOUND},
    "AssignReplicasToDirs": {ErrorCode.STALE_BROKER_EPOCH},
    "BeginQuorumEpoch": {ErrorCode.FENCED_LEADER_EPOCH},
    "BrokerHeartbeat": {ErrorCode.STALE_BROKER_EPOCH},
    "BrokerRegistration": {ErrorCode.INVALID_REGISTRATION},
    "CreateDelegationToken": {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    "CreateTopics": {ErrorCode.TOPIC_ALREADY_EXISTS},
    "DeleteGroups": {ErrorCode.GROUP_ID_NOT_FOUND},
    "DeleteShareGroupOffsets": {ErrorCode.NON_EMPTY_GROUP},
    "DeleteTopics": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    "DescribeCluster": {ErrorCode.INVALID_REQUEST, ErrorCode.MISMATCHED_ENDPOINT_TYPE},
    # the controller has no handler for it
    "DescribeDelegationToken": {ErrorCode.UNKNOWN_SERVER_ERROR},
    "StreamsGroupTopologyDescriptionUpdate": {ErrorCode.UNSUPPORTED_VERSION},  # no plugin
    "UnregisterController": {ErrorCode.CONTROLLER_ID_NOT_REGISTERED},
    "ElectLeaders": {ErrorCode.ELECTION_NOT_NEEDED},
    "EndQuorumEpoch": {ErrorCode.FENCED_LEADER_EPOCH},
    "EndTxn": IN_NO_ORDER,
    "Envelope": {ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE},
    "ExpireDelegationToken": {
        *(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    },
    # the metadata log is fetched with leader epochs, which came with version 12
    "Fetch": {ErrorCode.INVALID_REQUEST},
    # an unknown snapshot: the controller fails over the records it then does not have
    "FetchSnapshot": {ErrorCode.UNKNOWN_SERVER_ERROR},
    "Heartbeat": {ErrorCode.UNKNOWN_MEMBER_ID},
    "InitializeShareGroupState": {ErrorCode.FENCED_STATE_EPOCH},
    "JoinGroup": {ErrorCode.MEMBER_ID_REQUIRED},
    "LeaveGroup": {ErrorCode.UNKNOWN_MEMBER_ID},
    "RemoveRaftVoter": {ErrorCode.INVALID_REQUEST},
    "RenewDelegationToken": {
        *(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    },
    "SaslAuthenticate": {ErrorCode.ILLEGAL_SASL_STATE},
    "SaslHandshake": {ErrorCode.ILLEGAL_SASL_STATE},
    "ShareAcknowledge": {ErrorCode.INVALID_SHARE_SESSION_EPOCH},
    "SyncGroup": {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL},
    "TxnOffsetCommit": IN_NO_ORDER,
    "UnregisterBroker": {ErrorCode.BROKER_ID_NOT_REGISTERED},
    "UpdateRaftVoter": {ErrorCode.FENCED_LEADER_EPOCH},
    "Vote": {ErrorCode.INVALID_REQUEST},
    "WriteShareGroupState": {ErrorCode.FENCED_STATE_EPOCH},
}
"""The expected errors of requests that refer to unknown brokers, members and sessions, or come in
any order; all others have none.
"""


@pytest.fixture(scope="module")
def known(own_kafka: Broker) -> Known:
    """What requests can refer to."""
    return prepare(own_kafka)


def offered(wire: Wire) -> dict[str, range]:
    """Return the versions of requests that the broker accepts."""
    request = ApiVersionsRequest(client_software_name="kafkawire", client_software_version="tests")
    answer = wire.exchange(request, 4, ApiVersionsResponse)
    found = {}
    for entry in answer.api_keys:
        info = REGISTRY.request(entry.api_key)
        assert info is not None, f"api key {entry.api_key} is not in our schemas"
        found[info.name] = range(entry.min_version, entry.max_version + 1)
    return found


def of_metadata(known: Known) -> Known:
    """Make requests refer to the metadata log instead of a topic."""
    name, topic_id = METADATA_TOPIC
    return replace(known, topic=name, topic_id=topic_id, leader_epoch=FIRST_CONTROLLER_EPOCH)


def check(wire: Wire, name: str, version: int, known: Known) -> None:
    """Send one request and check its response."""
    data, frame = wire.send(filled(name, version, known), version)
    again = kafkawire.encode_frame(frame.body, frame.body_version, frame.correlation_id)
    assert again == data, "the answer does not encode to the same bytes"
    json_form = kafkawire.to_json(frame.body, frame.body_version)
    kind = type(frame.body).__name__
    assert kafkawire.from_json(kind, frame.body_version, json_form) == frame.body
    lacking = [one for one in structures(frame.body) if getattr(one, "unknown_tags", None)]
    assert not lacking, "fields that our schemas do not have"
    assert errors(frame.body) <= EXPECTED.get(name.removesuffix("Request"), set()), frame.body


def test_groups_of_tests_have_one_worker(request: pytest.FixtureRequest) -> None:
    """Otherwise each worker would start a broker of its own."""
    if request.config.getoption("loadgroup", default=False):
        assert request.node.nodeid.endswith("@kafka")


@pytest.mark.parametrize("name", BROKER)
def test_the_broker_is_understood(own_kafka: Broker, known: Known, name: str) -> None:
    if name in ABOUT_QUORUM:
        known = of_metadata(known)
    with opened(own_kafka, "", known) as wire:
        versions = offered(wire)[name]
    for version in versions:
        with opened(own_kafka, name, known) as wire:
            if version in TAKEN_BY_NONE.get(name, ()):
                with pytest.raises(ConnectionError):
                    check(wire, name, version, known)
            else:
                check(wire, name, version, known)


@pytest.mark.parametrize("name", CONTROLLER)
def test_the_controller_is_understood(own_kafka: Broker, known: Known, name: str) -> None:
    if name in ONLY_OF_METADATA:
        known = of_metadata(known)
    with Wire(own_kafka.controller_port) as wire:
        versions = offered(wire)[name]
    for version in versions:
        with Wire(own_kafka.controller_port) as wire:
            check(wire, name, version, known)


def test_versions_of_the_release_are_those_of_releases_json(
    own_kafka: Broker, known: Known
) -> None:
    assert own_kafka.installation.kafka_version == KAFKA_VERSION
    with opened(own_kafka, "", known) as wire:
        found = offered(wire)
    with Wire(own_kafka.controller_port) as wire:
        found |= offered(wire)
    listed = stable()
    for name, versions in TAKEN_BY_NONE.items():
        listed[name] = range(versions.start, listed[name].stop)
    assert found == {name: listed.get(name) for name in found}
    assert set(listed) - set(found) == WANT_A_PLUGIN


def span(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def stable() -> dict[str, range]:
    """Give the versions of the release that are taken without asking for unstable ones."""
    whole = json.loads((ROOT / "schemas/releases.json").read_text())
    unstable = whole["unstable"].get(RELEASE, {})
    found = {}
    for name, text in whole["releases"][RELEASE].items():
        versions = span(text)
        end = span(unstable[name]).start if name in unstable else versions.stop
        found[f"{name}Request"] = range(versions.start, end)
    return found
