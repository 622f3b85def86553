"""What the sender of a request may do: the decisions of the authorizer about one caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Final, NamedTuple, TypeVar

from ...controller.operations.acls import CLUSTER_NAME
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol import ErrorCode
from ..broker import Broker
from ..request import Request
from ..security.authorizer import Caller, StandardAuthorizer
from ..security.operations import AclResource, Operation
from ..security.permissions import Permission

E = ErrorCode
T = TypeVar("T")
M = TypeVar("M", bound=Message)
NO_ID: Final = bytes(16)
USER: Final = "User:"
ERRORS: Final[Mapping[AclResource, ErrorCode]] = {
    AclResource.TOPIC: E.TOPIC_AUTHORIZATION_FAILED,
    AclResource.GROUP: E.GROUP_AUTHORIZATION_FAILED,
    AclResource.CLUSTER: E.CLUSTER_AUTHORIZATION_FAILED,
    AclResource.TRANSACTIONAL_ID: E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResource.DELEGATION_TOKEN: E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""Resource type -> the error of a request that is not authorized."""


class Access(NamedTuple):
    """A request and its sender."""

    authorizer: StandardAuthorizer
    caller: Caller
    broker: Broker
    request: Request

    def may(self, permission: Permission, name: str = CLUSTER_NAME) -> bool:
        """Return whether the caller has a permission. name: of the resource."""
        return self.authorizer.may(self.caller, permission.operation, permission.resource, name)

    def may_on_any(self, permission: Permission) -> bool:
        """Return whether the caller has a permission on a resource of any name."""
        return self.authorizer.may_on_any(self.caller, permission.operation, permission.resource)

    def may_in_cluster(self, operation: Operation) -> bool:
        """Return whether the caller may perform an operation on the cluster."""
        return self.authorizer.may(self.caller, operation, AclResource.CLUSTER, CLUSTER_NAME)

    def operations(self, resource: AclResource, name: str, supported: int) -> int:
        """Return the authorized operations, of those that a type of resource has (KIP-430)."""
        return self.authorizer.operations(self.caller, resource, name) & supported

    def split(
        self, permission: Permission, items: Iterable[T], name_of: Callable[[T], str | None]
    ) -> tuple[list[T], list[T]]:
        """Divide items into those that the caller has a permission for, and the others.

        name_of: returns the name of the resource of an item, None if it does not exist.
        """
        allowed: list[T] = []
        refused: list[T] = []
        decided: dict[str, bool] = {}
        for each in items:
            name = name_of(each)
            if name is not None and name not in decided:
                decided[name] = self.may(permission, name)
            (allowed if name is None or decided[name] else refused).append(each)
        return allowed, refused

    def topic_name(self, item: Any) -> str | None:
        """Return the name of the topic of an item with a name or an id, None for an unknown id."""
        name: str | None = getattr(item, "name", None)
        topic_id = getattr(item, "topic_id", NO_ID)
        if topic_id == NO_ID:
            return name
        topic = self.broker.metadata.topics.by_id(topic_id)
        return None if topic is None else topic.name

    def refusal(self, body: Message, error: ErrorCode) -> Message:
        """Build the response with an error for all of a request, or of a part of it."""
        return self.broker.channel.error_response(self.request._replace(body=body), error)

    @property
    def is_for_controller(self) -> bool:
        """Whether a listener of controllers has got the request."""
        return ApiKey.METADATA not in self.broker.apis.served


def access_of(broker: Broker, request: Request) -> Access | None:
    """Return what the sender of a request may do; None for everything.

    That is without an authorizer, for super users, and for nodes in the same process, which have
    connections with negative numbers.
    """
    authorizer = broker.authorizer
    if authorizer is None or request.connection < 0:
        return None
    caller = Caller(USER + request.user, request.client_host)
    if caller.principal in authorizer.super_users:
        return None
    return Access(authorizer, caller, broker, request)


def with_(body: M, **changes: Any) -> M:
    """Return a copy of a message with other values of some fields."""
    changed = copy(body)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed
