"""The forms of checks: of a whole request, of each of its items, of what a response shows.

A check lets a request pass (None), responds to it, or lets a part of it pass, and completes the
response with what it has refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ...configs import ResourceType
from ...primitives import Message
from ...protocol import ErrorCode
from ..security.operations import AclResource
from ..security.permissions import Permission
from .access import ERRORS, Access, with_

OF_CLUSTER: Final = (
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
)
"""The types of config resources that the permissions of the cluster are for."""
Complete = Callable[[Any], None]
"""Changes the response to the part that has passed."""


class Partly(NamedTuple):
    """The part of a request that has passed."""

    body: Message
    complete: Complete


Verdict = Message | Partly | None
Refuse = Callable[[Any, ErrorCode], Message]
"""(request, error) -> the response with the error for all of it."""


class Check(NamedTuple):
    """A check. permissions: those that it may need."""

    permissions: tuple[Permission, ...]
    judge: Callable[[Access, Any], Verdict]


def judge(access: Access, body: Message, checks: Iterable[Check]) -> Verdict:
    """Make the checks of a request in order, each of what the ones before have let pass."""
    complete: list[Complete] = []
    original = body
    for check in checks:
        verdict = check.judge(access, body)
        if isinstance(verdict, Partly):
            body = verdict.body
            complete.append(verdict.complete)
        elif verdict is not None:
            _all_of(complete)(verdict)
            return verdict
    return Partly(body, _all_of(complete)) if complete or body is not original else None


def _all_of(complete: list[Complete]) -> Complete:
    def completed(response: Any) -> None:
        for each in reversed(complete):
            each(response)

    return completed


# -- whole requests


def whole(
    permission: Permission, field: str | None = None, *, refuse: Refuse | None = None
) -> Check:
    """Check a permission for a whole request.

    field: has the resource's name, None: the cluster. refuse: builds the response with the error,
    where it is not that of the API.
    """
    return any_of((permission,), field, refuse=refuse)


def any_of(
    permissions: tuple[Permission, ...], field: str | None = None, *, refuse: Refuse | None = None
) -> Check:
    """Check that the caller has one of some permissions."""

    def check(access: Access, body: Any) -> Verdict:
        names = () if field is None else (getattr(body, field) or "",)
        if any(access.may(each, *names) for each in permissions):
            return None
        return (refuse or access.refusal)(body, ERRORS[permissions[-1].resource])

    return Check(permissions, check)


def every(permission: Permission, field: str) -> Check:
    """Check a permission for each of the names in a field; one that lacks refuses the request."""

    def check(access: Access, body: Any) -> Verdict:
        names = getattr(body, field) or ()
        if all(access.may(permission, name) for name in names):
            return None
        return access.refusal(body, ERRORS[permission.resource])

    return Check((permission,), check)


# -- items of requests


def each(
    permission: Permission,
    items: str,
    results: str,
    name: str | None = "name",
    *,
    refuse: Refuse | None = None,
    unless: Permission | None = None,
    keeps: bool = False,
) -> Check:
    """Check a permission for each item of a request.

    items, results: the fields of request and response. name: the field of an item with the
    resource's name, or with the topic's id beside it; None for items that are names. refuse: builds
    the response with the error, where that of the API has it at the top. unless: what makes the
    check needless. keeps: whether a request of which nothing is left is handled, too.
    """

    def check(access: Access, body: Any) -> Verdict:
        if unless is not None and access.may(unless):
            return None
        name_of = _name_of(access, name)
        allowed, refused = access.split(permission, getattr(body, items) or (), name_of)
        if not refused:
            return None
        part = with_(body, **{items: refused})
        response = (refuse or access.refusal)(part, ERRORS[permission.resource])
        if not allowed and not keeps:
            return response
        return Partly(with_(body, **{items: allowed}), appends(response, results))

    return Check((permission,) if unless is None else (unless, permission), check)


def _name_of(access: Access, name: str | None) -> Callable[[Any], str | None]:
    if name is None:
        return lambda item: item
    if name == "name":
        return access.topic_name
    return lambda item: getattr(item, name)


def appends(refused: Message, results: str) -> Complete:
    """Append the results of what was refused to those of a response, unless it failed as such."""

    def complete(response: Any) -> None:
        if not getattr(response, "error_code", 0):
            setattr(response, results, [*getattr(response, results), *getattr(refused, results)])

    return complete


def each_resource(permissions: Mapping[int, Permission], results: str) -> Check:
    """Check each config resource of a request by its type."""

    def check(access: Access, body: Any) -> Verdict:
        allowed: list[Any] = []
        refused: dict[ErrorCode, list[Any]] = {}
        for resource in body.resources:
            permission = permissions.get(resource.resource_type)
            if permission is None:
                allowed.append(resource)
                continue
            in_cluster = permission.resource is AclResource.CLUSTER
            names = () if in_cluster else (resource.resource_name,)
            if access.may(permission, *names):
                allowed.append(resource)
            else:
                refused.setdefault(ERRORS[permission.resource], []).append(resource)
        if not refused:
            return None
        refusal: Any = None
        for error, resources in refused.items():
            part: Any = access.refusal(with_(body, resources=resources), error)
            if refusal is not None:
                appends(refusal, results)(part)
            refusal = part
        if not allowed:
            return refusal  # type: ignore[no-any-return]
        return Partly(with_(body, resources=allowed), appends(refusal, results))

    return Check(tuple(dict.fromkeys(permissions.values())), check)


def of_configs(cluster: Permission, topic: Permission, group: Permission) -> dict[int, Permission]:
    """Return the permission for the configs of each type of resource."""
    return {
        **dict.fromkeys(map(int, OF_CLUSTER), cluster),
        int(ResourceType.TOPIC): topic,
        int(ResourceType.GROUP): group,
    }


# -- what responses show


def shown(
    permission: Permission, results: str, name: str, *, unless: Permission | None = None
) -> Check:
    """Leave out the results that the caller may not see. unless: what lets it see them all."""

    def check(access: Access, body: Any) -> Verdict:
        if unless is not None and access.may(unless):
            return None

        def complete(response: Any) -> None:
            allowed, _ = access.split(
                permission, getattr(response, results), lambda item: getattr(item, name)
            )
            setattr(response, results, allowed)

        return Partly(body, complete)

    return Check((permission,) if unless is None else (unless, permission), check)


def operations(
    results: str, name: str, resource: AclResource, supported: int, wanted: str | None
) -> Check:
    """Put in the authorized operations of each result without an error (KIP-430).

    wanted: the field of the request that says whether they are wanted.
    """
    field = "topic_authorized_operations"
    if resource is AclResource.GROUP:
        field = "authorized_operations"

    def check(access: Access, body: Any) -> Verdict:
        if wanted is not None and not getattr(body, wanted):
            return None

        def complete(response: Any) -> None:
            for result in getattr(response, results):
                if not result.error_code:
                    bits = access.operations(resource, getattr(result, name), supported)
                    setattr(result, field, bits)

        return Partly(body, complete)

    return Check((), check)
