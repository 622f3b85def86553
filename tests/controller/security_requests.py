"""Requests about users and ACLs, for a real Kafka's controller and ours."""

from __future__ import annotations

from typing import Any, Final

from kafkawire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkawire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from kafkawire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafkawire.messages.create_acls_response import CreateAclsResponse
from kafkawire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafkawire.messages.delete_acls_response import DeleteAclsResponse
from kafkawire.primitives import Message

TOPIC, GROUP, CLUSTER, USER = 2, 3, 4, 7
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ALL, READ, WRITE, DESCRIBE = 2, 3, 4, 8
DENY, ALLOW = 2, 3
SHA_256, SHA_512 = 1, 2
SALTED: Final = bytes(range(32))


def acl(name: str, **fields: Any) -> AclCreation:
    """An ACL that lets alice read a topic."""
    given: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(resource_name=name, **(given | fields))


def acls(*creations: AclCreation) -> CreateAclsRequest:
    return CreateAclsRequest(creations=list(creations))


def acl_filter(**fields: Any) -> DeleteAclsFilter:
    """A filter that matches every ACL."""
    given: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DeleteAclsFilter(**(given | fields))


def without_acls(*filters: DeleteAclsFilter) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=list(filters))


def user(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt of " + name.encode(),
        salted_password=SALTED,
    )


def no_user(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def users(
    *upsertions: ScramCredentialUpsertion, without: tuple[ScramCredentialDeletion, ...] = ()
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(deletions=list(without), upsertions=list(upsertions))


ACLS: Final = tuple(
    (body, 3, CreateAclsResponse)
    for body in (
        acls(acl("orders"), acl("orders"), acl("orders-", resource_pattern_type=PREFIXED)),
        acls(acl("orders")),
        acls(acl("*", operation=DESCRIBE, permission_type=DENY)),
        acls(
            acl("kafka-cluster", resource_type=CLUSTER, operation=ALL),
            acl("another", resource_type=CLUSTER),
            acl("orders", principal="nobody"),
            acl("", resource_type=GROUP),
        ),
        acls(*(acl(f"g{n}", resource_type=GROUP) for n in range(3))),
    )
)
DELETIONS: Final = tuple(
    (body, 3, DeleteAclsResponse)
    for body in (
        without_acls(acl_filter(resource_name_filter="nothing")),
        without_acls(
            acl_filter(resource_name_filter="orders-eu", pattern_type_filter=LITERAL),
            acl_filter(resource_name_filter="orders-eu", pattern_type_filter=PREFIXED),
            acl_filter(resource_name_filter="g1", resource_type_filter=TOPIC),
        ),
        without_acls(
            acl_filter(resource_type_filter=TOPIC, resource_name_filter="orders-eu",
                       pattern_type_filter=MATCH, operation=READ),
            acl_filter(resource_type_filter=TOPIC, resource_name_filter="orders-eu",
                       pattern_type_filter=MATCH, operation=READ),
        ),
        without_acls(acl_filter(resource_name_filter="any", pattern_type_filter=MATCH)),
        without_acls(acl_filter(resource_name_filter="g1"), acl_filter(host_filter="10.0.0.1")),
    )
)  # fmt: skip
USERS: Final = tuple(
    (body, 0, AlterUserScramCredentialsResponse)
    for body in (
        users(user("dave")),
        users(user("dave", SHA_512, 8192)),
        users(user("bob"), user("bob", SHA_512)),
        users(user("bob"), user("bob"), user("bob")),
        users(user("carol", 3), without=(no_user("carol"),)),
        users(user("carol", iterations=4095)),
        users(user("carol", iterations=16385)),
        users(user("")),
        users(user("carol", 7)),
        users(without=(no_user("dave"),)),
        users(without=(no_user("dave"),)),
        users(user("dave"), without=(no_user("dave", SHA_512),)),
        users(user("bob"), without=(no_user("dave", SHA_512),)),
    )
)
REQUESTS: Final[tuple[tuple[Message, int, type[Message]], ...]] = (*ACLS, *DELETIONS, *USERS)
