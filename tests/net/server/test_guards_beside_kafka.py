"""A guest's requests to a real Apache Kafka and to our cluster, with one permission at a time.

Both refuse the same, and show the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import pytest

from kafkawire import REGISTRY, Message
from kafkawire.broker.apis import client_apis
from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafkawire.messages.create_acls_response import CreateAclsResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafkawire.messages.delete_acls_response import DeleteAclsResponse
from kafkawire.messages.describe_acls_request import DescribeAclsRequest
from kafkawire.messages.describe_acls_response import DescribeAclsResponse
from kafkawire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.offset_commit_request import OffsetCommitRequest
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.broker.handlers.test_every_version import METADATA_LOG
from tests.broker.security.acls import ALL, ALLOW, CLUSTER, DENY, LITERAL, STANDARD
from tests.broker.security.test_guards import ERRORS
from tests.interop.implementations import until
from tests.real.java import RELEASE

from ...real.broker import GUEST, PASSWORD, USER, Broker
from ...real.requests import Known, filled
from ...real.responses import errors, structures
from ...real.wire import Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

O, R = Operation, AclResource  # noqa: E741
TOPIC, HIDDEN, GROUP = "guarded", "guarded-hidden", "guarded-group"
PRINCIPAL: Final = f"User:{GUEST}"
ANY: Final = 1
NOT_JOINED: Final = 5
"""The epoch of a member that no group has."""
OF_TOPICS = (O.READ, O.WRITE, O.CREATE, O.DELETE, O.ALTER, O.DESCRIBE)
OF_CONFIGS = (O.DESCRIBE_CONFIGS, O.ALTER_CONFIGS)
PERMISSIONS: Final = {
    R.TOPIC: (*OF_TOPICS, *OF_CONFIGS),
    R.GROUP: (O.READ, O.DELETE, O.DESCRIBE),
    R.TRANSACTIONAL_ID: (O.WRITE, O.DESCRIBE),
    R.CLUSTER: (
        *(O.CREATE, O.ALTER, O.DESCRIBE, O.CLUSTER_ACTION, O.IDEMPOTENT_WRITE, O.DELETE),
        *OF_CONFIGS,
    ),
}
NAMES: Final = {
    R.TOPIC: TOPIC,
    R.GROUP: GROUP,
    R.TRANSACTIONAL_ID: "guarded-id",
    R.CLUSTER: CLUSTER,
}
UNSAFE: Final = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
}
"""Need no permission, or change the Kafka that other tests share."""


class Rule(NamedTuple):
    """An ACL of the guest."""

    resource: AclResource
    operation: int
    permission: int = ALLOW
    name: str = ""

    @property
    def text(self) -> str:
        return self.name or NAMES[self.resource]


@contextmanager
def signed_in(port: int, user: str) -> Iterator[Wire]:
    with Wire(port, 8.0) as wire:
        handshake = SaslHandshakeRequest(mechanism="PLAIN")
        assert not wire.exchange(handshake, 1, SaslHandshakeResponse).error_code
        token = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{PASSWORD}".encode())
        assert not wire.exchange(token, 2, SaslAuthenticateResponse).error_code
        yield wire


class Connected:
    """One of the two clusters: a connection of its super user, and one of the guest."""

    def __init__(self, admin: Wire, guest: Wire) -> None:
        self.admin = admin
        self.guest = guest

    def set_rules(self, rules: list[Rule]) -> None:
        """Let the guest have these ACLs, and no others."""
        guests = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=PRINCIPAL,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        self.admin.exchange(DeleteAclsRequest(filters=[guests]), 3, DeleteAclsResponse)
        creations = [
            AclCreation(
                resource_type=each.resource,
                resource_name=each.text,
                resource_pattern_type=LITERAL,
                principal=PRINCIPAL,
                host="*",
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in rules
        ]
        made = self.admin.exchange(CreateAclsRequest(creations=creations), 3, CreateAclsResponse)
        assert not any(each.error_code for each in made.results), made
        wanted = {(each.resource, each.text, each.operation, each.permission) for each in rules}
        until(lambda: self._rules() == wanted)

    def _rules(self) -> set[tuple[int, str, int, int]]:
        guests = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=PRINCIPAL,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        found = self.admin.exchange(guests, 3, DescribeAclsResponse).resources
        return {
            (one.resource_type, one.resource_name, acl.operation, acl.permission_type)
            for one in found
            for acl in one.acls
        }


class Side(Connected):
    """A cluster with topics, a group and a transactional id."""

    def __init__(self, admin: Wire, guest: Wire) -> None:
        super().__init__(admin, guest)
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in (TOPIC, HIDDEN)
        ]
        created = admin.exchange(CreateTopicsRequest(topics=topics), 7, CreateTopicsResponse)
        assert not any(each.error_code for each in created.topics), created
        self.topic_id = created.topics[0].topic_id
        until(lambda: self._is_there)
        coordinator = FindCoordinatorRequest(key=GROUP)
        until(lambda: not errors(admin.exchange(coordinator, 3, FindCoordinatorResponse)))
        commit = self.request("OffsetCommitRequest", 9)
        assert isinstance(commit, OffsetCommitRequest)
        commit.member_id, commit.generation_id_or_member_epoch = "", -1
        until(lambda: not errors(admin.exchange(commit, 9, OffsetCommitResponse)))
        name = NAMES[R.TRANSACTIONAL_ID]
        of_transactions = FindCoordinatorRequest(key=name, key_type=1)
        until(lambda: not errors(admin.exchange(of_transactions, 3, FindCoordinatorResponse)))
        begun = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        until(lambda: not errors(admin.exchange(begun, 4, InitProducerIdResponse)))

    @property
    def _is_there(self) -> bool:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=HIDDEN)])
        return not self.admin.exchange(wanted, 12, MetadataResponse).topics[0].error_code

    def request(self, name: str, version: int) -> Message:
        """Return a request that changes nothing which other tests look at."""
        known = Known(
            METADATA_LOG if name == "DescribeQuorumRequest" else TOPIC,
            topic_id=self.topic_id,
            transactional_id=NAMES[R.TRANSACTIONAL_ID],
            groups=(("", GROUP),),
        )
        request = filled(name, version, known)
        for each in structures(request):
            if getattr(each, "group_id", None):
                each.group_id = GROUP  # type: ignore[attr-defined]
            if getattr(each, "transactional_id", None):
                each.transactional_id = NAMES[R.TRANSACTIONAL_ID]  # type: ignore[attr-defined]
        if isinstance(request, CreateTopicsRequest):
            request.topics[0].name, request.validate_only = "guarded-new", True
        if isinstance(request, ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest):
            request.member_epoch = NOT_JOINED
        if isinstance(request, DescribeUserScramCredentialsRequest):
            request.users = [UserName(name=GUEST)]  # for null, Kafka has no response to an error
        if isinstance(request, AddPartitionsToTxnRequest):
            for transaction in request.transactions:
                transaction.verify_only = True
        return request

    def answer(self, name: str, version: int) -> tuple[list[int], list[str]]:
        """Return what the guest is refused, and the names that it is shown."""
        try:
            body = self.guest.send(self.request(name, version), version).frame.body
        except ConnectionError:
            return [-1], []
        refused = []
        shown = set()
        for each in structures(body):
            for attribute in each.__match_args__:
                value = getattr(each, attribute)
                if attribute.endswith("error_code") and value in {*ERRORS.values()}:
                    refused.append(value)
                if isinstance(value, str) and value.startswith(TOPIC):
                    shown.add(value)
        return sorted(refused), sorted(shown)


def requests() -> list[tuple[str, int]]:
    """List each API in its newest version, and those before with another form."""
    old = {"OffsetFetchRequest": 7, "FindCoordinatorRequest": 3, "DeleteTopicsRequest": 5}
    more = {"AddPartitionsToTxnRequest": 3, "OffsetCommitRequest": 9, "FetchRequest": 12}
    newest = client_apis(RELEASE).served
    found = [
        (info.name, versions.last)
        for key, versions in newest.items()
        if key not in UNSAFE and (info := REGISTRY.request(key)) is not None
    ]
    return [*found, *old.items(), *more.items()]


def variants() -> Iterator[list[Rule]]:
    """Yield the ACLs that the guest has: none, one, all but one, all of a resource."""
    yield []
    for resource, operations in PERMISSIONS.items():
        for operation in operations:
            if (resource, operation) != (R.CLUSTER, O.DELETE):  # not an operation of a cluster
                yield [Rule(resource, operation)]
        yield [Rule(resource, ALL)]
    everything = [Rule(each, ALL) for each in PERMISSIONS]
    yield everything
    for denied in (
        Rule(R.TOPIC, O.DESCRIBE, DENY),
        Rule(R.TOPIC, O.READ, DENY),
        Rule(R.GROUP, O.READ, DENY),
        Rule(R.TOPIC, ALL, DENY, "*"),
    ):
        yield [*everything, denied]


SETTINGS: Final = STANDARD | {
    "super.users": f"User:{USER}",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
CONFIG: Final = ServerConfig(settings=SETTINGS, passwords={USER: PASSWORD, GUEST: PASSWORD})


def test_a_guest_is_refused_what_kafka_refuses(kafka: Broker) -> None:
    different = []
    refusals: set[int] = set()
    with (
        ServerThread(CONFIG) as server,
        signed_in(kafka.sasl_port, USER) as admin,
        signed_in(kafka.sasl_port, GUEST) as guest,
        signed_in(server.server.endpoints[0].port, USER) as our_admin,
        signed_in(server.server.endpoints[0].port, GUEST) as our_guest,
    ):
        theirs, ours = Side(admin, guest), Side(our_admin, our_guest)
        for rules in variants():
            theirs.set_rules(rules)
            ours.set_rules(rules)
            for name, version in requests():
                wanted, found = theirs.answer(name, version), ours.answer(name, version)
                refusals.update(wanted[0])
                if wanted != found:
                    different.append(f"{name} v{version} {rules}: Kafka {wanted}, ours {found}")
        theirs.set_rules([])
    assert not different, "\n".join(different)
    assert refusals == {*ERRORS.values()}
