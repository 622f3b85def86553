"""ACLs of a cluster in memory, for tests: set without requests, which would need permissions."""

from __future__ import annotations

from typing import Final

from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.messages.access_control_entry_record import AccessControlEntryRecord
from tests.broker.harness import Harness

STANDARD: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
}
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALL: Final = 2
ANONYMOUS: Final = "User:ANONYMOUS"
CLUSTER: Final = "kafka-cluster"


def acl(
    resource: AclResource | int,
    name: str,
    operation: Operation | int,
    permission: int = ALLOW,
    *,
    principal: str = ANONYMOUS,
    host: str = "*",
    pattern: int = LITERAL,
) -> AccessControlEntryRecord:
    """Return an ACL. Its id is its content."""
    text = f"{resource}{name}{operation}{permission}{principal}{host}{pattern}"
    return AccessControlEntryRecord(
        id=text.encode(),
        resource_type=resource,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def everything() -> list[AccessControlEntryRecord]:
    """Return ACLs that allow clients everything."""
    names = {AclResource.CLUSTER: CLUSTER}
    return [acl(each, names.get(each, "*"), ALL) for each in AclResource]


def set_acls(harness: Harness, *acls: AccessControlEntryRecord) -> None:
    """Let a cluster have these ACLs, and no others."""
    for front in harness.cluster.fronts.values():
        authorizer = front.broker.broker.authorizer
        assert authorizer is not None
        published = {each.id: each for each in acls}
        authorizer.publish(published, {*authorizer._acls, *published})
