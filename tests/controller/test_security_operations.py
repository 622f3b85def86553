"""Users, ACLs, controllers and directories of replicas: what is written and what is refused."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode
from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.controller import ControllerConfig, MetadataLoader, snapshot
from kafkawire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from kafkawire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from kafkawire.messages.controller_registration_response import ControllerRegistrationResponse
from kafkawire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafkawire.messages.create_acls_response import CreateAclsResponse
from kafkawire.messages.delete_acls_request import DeleteAclsFilter
from kafkawire.messages.delete_acls_response import DeleteAclsResponse
from kafkawire.messages.unregister_controller_request import UnregisterControllerRequest
from kafkawire.messages.unregister_controller_response import UnregisterControllerResponse

from .harness import CLUSTER, Harness
from .node_requests import controller, directories
from .security_requests import (
    ANY,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    SHA_256,
    SHA_512,
    acl,
    acl_filter,
    acls,
    no_user,
    user,
    users,
    without_acls,
)
from .security_requests import (
    CLUSTER as CLUSTER_RESOURCE,
)
from .test_operations import cluster, create, partition

E = ErrorCode


def secured(**bootstrap: int) -> Harness:
    levels = {"metadata.version": 30} | bootstrap
    static = {"authorizer.class.name": "x"}
    return Harness(ControllerConfig(CLUSTER, bootstrap=levels, static=static))


def names(harness: Harness) -> list[str]:
    return sorted(each.resource_name for each in harness.controller.image.acls.values())


def create_acls(harness: Harness, request: CreateAclsRequest) -> list[int]:
    response = harness.exchange(request, CreateAclsResponse, 3)
    return [each.error_code for each in response.results]


def delete_acls(harness: Harness, *filters: DeleteAclsFilter) -> list[tuple[int, list[str]]]:
    response = harness.exchange(without_acls(*filters), DeleteAclsResponse, 3)
    return [
        (each.error_code, sorted(one.resource_name for one in each.matching_acls))
        for each in response.filter_results
    ]


def alter_users(harness: Harness, *upsertions: Any, **more: Any) -> list[tuple[str, int]]:
    request = users(*upsertions, **more)
    response = harness.exchange(request, AlterUserScramCredentialsResponse)
    return [(each.user, each.error_code) for each in response.results]


# -- ACLs


def test_an_acl_is_created_once_and_deleted_once() -> None:
    harness = secured()
    assert create_acls(harness, acls(acl("a"), acl("a"), acl("b"))) == [0, 0, 0]
    assert create_acls(harness, acls(acl("a"))) == [0]
    assert names(harness) == ["a", "b"]
    written = len(harness.log)
    assert delete_acls(harness, acl_filter(resource_name_filter="a"), acl_filter()) == [
        (0, ["a"]),
        (0, ["a", "b"]),
    ]
    assert names(harness) == []
    assert len(harness.log) == written + 2


@pytest.mark.parametrize(
    "wanted",
    [
        acl(""),
        acl("a", resource_type=0),
        acl("a", resource_type=ANY),
        acl("a", resource_type=8),
        acl("a", resource_pattern_type=ANY),
        acl("a", resource_pattern_type=MATCH),
        acl("a", operation=ANY),
        acl("a", operation=16),
        acl("a", permission_type=ANY),
        acl("a", principal="alice"),
        acl("a", resource_type=CLUSTER_RESOURCE),
    ],
    ids=str,
)
def test_invalid_acls(wanted: AclCreation) -> None:
    harness = secured()
    assert create_acls(harness, acls(wanted, acl("valid"))) == [E.INVALID_REQUEST, 0]
    assert names(harness) == ["valid"]


@pytest.mark.parametrize(
    ("fields", "deleted"),
    [
        ({"resource_name_filter": "ab"}, ["ab"]),
        ({"resource_name_filter": "ab", "pattern_type_filter": LITERAL}, ["ab"]),
        ({"resource_name_filter": "ab", "pattern_type_filter": PREFIXED}, []),
        ({"resource_name_filter": "a", "pattern_type_filter": PREFIXED}, ["a"]),
        ({"resource_name_filter": "ab", "pattern_type_filter": MATCH}, ["*", "a", "ab"]),
        ({"pattern_type_filter": PREFIXED}, ["a"]),
        ({"resource_type_filter": GROUP}, ["g"]),
        ({"principal_filter": "User:bob"}, ["g"]),
        ({"host_filter": "10.0.0.1"}, ["g"]),
        ({"host_filter": "10.0.0.2"}, []),
        ({"operation": 4}, ["g"]),
        ({"permission_type": 2}, ["g"]),
    ],
    ids=str,
)
def test_filters(fields: dict[str, Any], deleted: list[str]) -> None:
    harness = secured()
    other = acl("g", resource_type=GROUP, principal="User:bob", host="10.0.0.1", operation=4,
                permission_type=2)  # fmt: skip
    prefixed = acl("a", resource_pattern_type=PREFIXED)
    create_acls(harness, acls(acl("ab"), prefixed, acl("*"), acl("c"), other))
    assert delete_acls(harness, acl_filter(**fields)) == [(0, deleted)]
    assert names(harness) == sorted({"ab", "a", "*", "c", "g"} - set(deleted))


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
def test_unknown_filters(field: str) -> None:
    harness = secured()
    create_acls(harness, acls(acl("a")))
    assert delete_acls(harness, acl_filter(**{field: 99})) == [(E.INVALID_REQUEST, [])]
    assert names(harness) == ["a"]


def test_acls_without_an_authorizer() -> None:
    harness = Harness()
    assert create_acls(harness, acls(acl("a"), acl("b"))) == [E.SECURITY_DISABLED] * 2
    assert delete_acls(harness, acl_filter()) == [(E.SECURITY_DISABLED, [])]


# -- users


NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
PROOF = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SIGNATURE = b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
"""Of the example of RFC 7677: user `user`, password `pencil`."""


def test_a_user_authenticates_with_what_is_written() -> None:
    harness = Harness()
    wanted = user("user")
    wanted.salt = b64decode(SALT)
    wanted.salted_password = hashlib.pbkdf2_hmac("sha256", b"pencil", wanted.salt, 4096)
    assert alter_users(harness, wanted) == [("user", 0)]
    found = harness.controller.image.scram_credentials["user", SHA_256]
    assert (found.salt, found.iterations) == (wanted.salt, 4096)
    message = f"n=user,r={NONCE[:20]},r={NONCE},s={SALT},i=4096,c=biws,r={NONCE}".encode()
    assert hmac.digest(found.server_key, message, "sha256") == SIGNATURE
    signature = hmac.digest(found.stored_key, message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(PROOF, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == found.stored_key


def test_users_of_two_mechanisms() -> None:
    harness = Harness()
    alter_users(harness, user("a"))
    alter_users(harness, user("a", SHA_512))
    assert list(harness.controller.image.scram_credentials) == [("a", SHA_256), ("a", SHA_512)]
    assert alter_users(harness, without=(no_user("a"),)) == [("a", 0)]
    assert alter_users(harness, without=(no_user("a"),)) == [("a", E.RESOURCE_NOT_FOUND)]
    assert list(harness.controller.image.scram_credentials) == [("a", SHA_512)]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (user(""), E.UNACCEPTABLE_CREDENTIAL),
        (user("a", 3), E.UNSUPPORTED_SASL_MECHANISM),
        (user("a", iterations=4095), E.UNACCEPTABLE_CREDENTIAL),
        (user("a", iterations=16385), E.UNACCEPTABLE_CREDENTIAL),
    ],
    ids=str,
)
def test_invalid_users(wanted: Any, error: ErrorCode) -> None:
    harness = Harness()
    assert alter_users(harness, user("b"), wanted) == [("b", 0), (wanted.name, error)]


def test_a_user_is_changed_once_by_a_request() -> None:
    harness = Harness()
    twice = [("a", E.DUPLICATE_RESOURCE)]
    assert alter_users(harness, user("a"), user("a", SHA_512)) == twice
    assert alter_users(harness, user("a"), user("a"), user("a")) == twice
    alter_users(harness, user("a"))
    assert alter_users(harness, user("a"), without=(no_user("a"),)) == twice
    assert list(harness.controller.image.scram_credentials) == [("a", SHA_256)]


def test_users_before_metadata_version_3_5() -> None:
    harness = secured(**{"metadata.version": 10})
    assert alter_users(harness, user("a")) == [("a", E.UNSUPPORTED_VERSION)]


# -- controllers and directories


def test_a_controller_is_registered() -> None:
    harness = Harness()
    for _ in range(2):
        response = harness.exchange(controller(3001), ControllerRegistrationResponse)
        assert response.error_code == 0
    [found] = harness.controller.image.controllers.values()
    assert (found.controller_id, found.incarnation_id) == (3001, bytes(range(16)))
    assert [(each.name, each.host, each.port) for each in found.end_points] == [
        ("CONTROLLER", "host", 9093)
    ]
    assert [each.max_supported_version for each in found.features] == [1]
    old = secured(**{"metadata.version": 14})
    refused = old.exchange(controller(3001), ControllerRegistrationResponse)
    assert refused.error_code == E.UNSUPPORTED_VERSION


def test_a_controller_is_unregistered() -> None:
    harness = Harness()
    harness.exchange(controller(3001), ControllerRegistrationResponse)
    request = UnregisterControllerRequest(controller_id=3001)
    assert harness.exchange(request, UnregisterControllerResponse).error_code == E.NONE
    assert harness.controller.image.controllers == {}
    again = harness.exchange(request, UnregisterControllerResponse)
    assert again.error_code == E.CONTROLLER_ID_NOT_REGISTERED


def test_the_active_controller_does_not_unregister_itself() -> None:
    harness = Harness(ControllerConfig(CLUSTER, node_id=3001))
    harness.exchange(controller(3001), ControllerRegistrationResponse)
    request = UnregisterControllerRequest(controller_id=3001)
    response = harness.exchange(request, UnregisterControllerResponse)
    assert response.error_code == E.INVALID_REQUEST
    assert list(harness.controller.image.controllers) == [3001]


def test_a_replica_is_in_the_directory_that_its_broker_names() -> None:
    harness = Harness()
    one, other = b"a directory of 1", b"another dir of 1"
    harness.start(1, log_dirs=[one, other])
    harness.start(2, 3)
    create(harness, [1, 2], [2, 1], [2, 3])
    topic_id = harness.controller.image.topic_ids["t"]
    epoch = harness.controller.image.brokers[1].epoch
    rows = [(one, topic_id, 0), (other, topic_id, 1), (one, topic_id, 2), (one, topic_id, 3)]
    request = directories(1, epoch, *rows, (one, bytes(16), 0))
    response = harness.exchange(request, AssignReplicasToDirsResponse)
    codes = [
        each.error_code
        for directory in response.directories
        for topic in directory.topics
        for each in topic.partitions
    ]
    refused = [E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_ID]
    assert codes == [0, 0, *refused]
    assert partition(harness, 0).directory(1) == one
    assert partition(harness, 1).directory(1) == other
    assert partition(harness, 1).directory(2) != other
    assert harness.controller.image.indexes.directories.of(other) == [(topic_id, 1)]
    written = len(harness.log)
    harness.exchange(directories(1, epoch, *rows[:2]), AssignReplicasToDirsResponse)
    assert len(harness.log) == written, "nothing changed"


def test_a_replica_in_a_directory_that_is_offline_leaves_the_isr() -> None:
    harness = cluster()
    create(harness, [1, 2], [2, 1])
    topic_id = harness.controller.image.topic_ids["t"]
    epoch = harness.controller.image.brokers[1].epoch
    rows = [(b"an unknown place", topic_id, index) for index in (0, 1)]
    harness.exchange(directories(1, epoch, *rows), AssignReplicasToDirsResponse)
    assert (partition(harness, 0).leader, partition(harness, 0).isr) == (2, (2,))
    assert (partition(harness, 1).leader, partition(harness, 1).isr) == (2, (2,))
    assert partition(harness, 0).directory(1) == b"an unknown place"


@pytest.mark.parametrize(
    ("level", "error"), [(30, E.STALE_BROKER_EPOCH), (16, E.UNSUPPORTED_VERSION)]
)
def test_directories_of_another_incarnation_and_of_old_clusters(
    level: int, error: ErrorCode
) -> None:
    harness = secured(**{"metadata.version": level})
    harness.start(1)
    epoch = harness.controller.image.brokers[1].epoch
    response = harness.exchange(directories(1, epoch + 1), AssignReplicasToDirsResponse)
    assert response.error_code == error


def test_all_of_it_survives_a_snapshot() -> None:
    harness = secured()
    create_acls(harness, acls(acl("a"), acl("b", resource_pattern_type=PREFIXED)))
    alter_users(harness, user("a"), user("b", SHA_512))
    harness.exchange(controller(3001), ControllerRegistrationResponse)
    image = harness.controller.image
    again = MetadataLoader()
    again.load_snapshot([each.message for each in snapshot(image)], image.offset)
    assert again.image == image
    assert len(again.image.acls) == len(again.image.scram_credentials) == 2
