"""Checks of groups: their members, descriptions and coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.sync_group_request import SyncGroupRequest
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.members import MayDescribe, may_describe_any
from ..request import Request
from ..security.operations import GROUP_OPERATIONS, AclResource
from ..security.permissions import Permission
from .access import Access, access_of
from .checks import Check, Partly, Verdict, any_of, each, operations, whole

E, P = ErrorCode, Permission
FAILED: Final = E.TOPIC_AUTHORIZATION_FAILED
PROTOCOL_FROM: Final = 5
"""The version of SyncGroup from which on it has a protocol (KIP-559)."""
HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."

# -- descriptions


def hides(topics: Callable[[Any], Iterable[str]], message: str) -> Check:
    """Hide the groups with topics that the caller may not describe. topics: those of a group."""

    def check(access: Access, body: Any) -> Verdict:
        def complete(response: Any) -> None:
            response.groups = [
                type(group)(group_id=group.group_id, error_code=FAILED, error_message=message)
                if access.split(P.DESCRIBE_TOPIC, topics(group), lambda name: name)[1]
                else group
                for group in response.groups
            ]

        return Partly(body, complete)

    return Check((P.DESCRIBE_TOPIC,), check)


def _topics(group: Any) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, getattr(member, "target_assignment", None))
        if assignment is not None
        for topic in assignment.topic_partitions
    }


OPERATIONS: Final = operations(
    "groups", "group_id", AclResource.GROUP, GROUP_OPERATIONS, "include_authorized_operations"
)
DESCRIBE_GROUPS: Final = (each(P.DESCRIBE_GROUP, "groups", "groups", None), OPERATIONS)
DESCRIBED: Final = (each(P.DESCRIBE_GROUP, "group_ids", "groups", None), OPERATIONS)
GROUP_DESCRIBE: Final = (*DESCRIBED, hides(_topics, HIDDEN))

# -- ConsumerGroupHeartbeat


def may_describe(broker: Broker, request: Request) -> MayDescribe:
    """Return which topics a regular expression may match that the sender subscribes to."""
    access = access_of(broker, request)
    return may_describe_any if access is None else partial(access.may, P.DESCRIBE_TOPIC)


# -- SyncGroup


def _sync_group(access: Access, body: SyncGroupRequest) -> Verdict:
    """Check the group, unless the request is not valid: that error comes first in Kafka."""
    named = body.protocol_type is not None and body.protocol_name is not None
    if access.request.version >= PROTOCOL_FROM and not named:
        return None
    return whole(P.READ_GROUP, "group_id").judge(access, body)


SYNC_GROUP: Final = (Check((P.READ_GROUP,), _sync_group),)

# -- FindCoordinator

OF_KEY_TYPE: Final = {
    0: P.DESCRIBE_GROUP,
    1: P.DESCRIBE_TRANSACTION,
    2: P.CLUSTER_ACTION,
}


def _find_coordinator(access: Access, body: FindCoordinatorRequest) -> Verdict:
    """Check each key by its type."""
    permission = OF_KEY_TYPE.get(body.key_type)
    if permission is None:
        return None
    if permission is P.CLUSTER_ACTION:
        check = whole(permission)
    elif body.coordinator_keys:
        check = each(permission, "coordinator_keys", "coordinators", None)
    else:
        check = any_of((permission,), "key")
    return check.judge(access, body)


FIND_COORDINATOR: Final = (
    Check((P.DESCRIBE_GROUP, P.DESCRIBE_TRANSACTION, P.CLUSTER_ACTION), _find_coordinator),
)
