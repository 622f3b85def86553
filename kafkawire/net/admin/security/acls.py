"""ACLs: who may do what (KIP-140, KIP-290).

Types and operations have the names that Kafka's tools print: TOPIC, PREFIXED, READ, ALLOW.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ....client.arguments import text
from ....client.requests import CONTROLLER, LEAST_LOADED
from ....errors import InvalidValue
from ....messages.api_key import ApiKey
from ....messages.create_acls_request import AclCreation, CreateAclsRequest
from ....messages.create_acls_response import CreateAclsResponse
from ....messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from ....messages.delete_acls_response import DeleteAclsMatchingAcl, DeleteAclsResponse
from ....messages.describe_acls_request import DescribeAclsRequest
from ....messages.describe_acls_response import DescribeAclsResponse
from ..calls import CallRunner, check
from .values import AclBinding, AclFilter

ANY: Final = 1
RESOURCE_TYPES: Final = {
    "TOPIC": 2,
    "GROUP": 3,
    "CLUSTER": 4,
    "TRANSACTIONAL_ID": 5,
    "DELEGATION_TOKEN": 6,
    "USER": 7,
}
PATTERN_TYPES: Final = {"LITERAL": 3, "PREFIXED": 4}
OPERATIONS: Final = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
    "CREATE_TOKENS": 13,
    "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}
PERMISSIONS: Final = {"DENY": 2, "ALLOW": 3}
FILTERED: Final = {"MATCH": 2} | PATTERN_TYPES
"""The pattern types of filters: MATCH finds all ACLs that are about a resource of that name."""
PREFIXED_FROM: Final = 1
"""The first version of the APIs with prefixed ACLs; what is older would ignore the pattern type."""


class Row(NamedTuple):
    """An ACL in numbers, as requests have it."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


async def create(calls: CallRunner, acls: Iterable[AclBinding]) -> None:
    """Create ACLs. BrokerError for the first that the cluster refuses."""
    creations = [_creation(acl, f"acls[{index}]") for index, acl in enumerate(acls)]
    response = await calls.call(
        CONTROLLER,
        ApiKey.CREATE_ACLS,
        CreateAclsResponse,
        lambda _: CreateAclsRequest(creations=creations),
        lambda response: [each.error_code for each in response.results],
        lowest=PREFIXED_FROM,
    )
    for creation, result in zip(creations, response.results, strict=False):
        what = f"ACL of {creation.principal} for {creation.resource_name}"
        check(result.error_code, what, result.error_message)


async def describe(calls: CallRunner, wanted: AclFilter) -> list[AclBinding]:
    """Return the ACLs that a filter matches, sorted."""
    numbers = _filter(wanted, "filter")
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.DESCRIBE_ACLS,
        DescribeAclsResponse,
        lambda _: DescribeAclsRequest(
            resource_type_filter=numbers.resource_type_filter,
            resource_name_filter=numbers.resource_name_filter,
            pattern_type_filter=numbers.pattern_type_filter,
            principal_filter=numbers.principal_filter,
            host_filter=numbers.host_filter,
            operation=numbers.operation,
            permission_type=numbers.permission_type,
        ),
        lambda response: [response.error_code],
        lowest=PREFIXED_FROM,
    )
    check(response.error_code, "ACLs", response.error_message)
    return sorted(
        _binding(
            Row(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
        )
        for resource in response.resources
        for acl in resource.acls
    )


async def delete(calls: CallRunner, filters: Iterable[AclFilter]) -> list[AclBinding]:
    """Delete the ACLs that filters match; return them, sorted."""
    wanted = [_filter(each, f"filters[{index}]") for index, each in enumerate(filters)]
    response = await calls.call(
        CONTROLLER,
        ApiKey.DELETE_ACLS,
        DeleteAclsResponse,
        lambda _: DeleteAclsRequest(filters=wanted),
        lambda response: [each.error_code for each in response.filter_results],
        lowest=PREFIXED_FROM,
    )
    deleted: set[AclBinding] = set()
    for result in response.filter_results:
        check(result.error_code, "ACLs", result.error_message)
        for acl in result.matching_acls:
            check(acl.error_code, f"ACL of {acl.principal}", acl.error_message)
            deleted.add(_binding(_row(acl)))
    return sorted(deleted)


def _row(acl: DeleteAclsMatchingAcl) -> Row:
    return Row(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _creation(acl: AclBinding, name: str) -> AclCreation:
    if not isinstance(acl, AclBinding):
        raise InvalidValue(f"expected AclBinding, got {type(acl).__name__}", name)
    return AclCreation(
        resource_type=_number(acl.resource_type, RESOURCE_TYPES, f"{name}.resource_type"),
        resource_name=text(acl.resource_name, f"{name}.resource_name"),
        resource_pattern_type=_number(acl.pattern_type, PATTERN_TYPES, f"{name}.pattern_type"),
        principal=text(acl.principal, f"{name}.principal"),
        host=text(acl.host, f"{name}.host"),
        operation=_number(acl.operation, OPERATIONS, f"{name}.operation"),
        permission_type=_number(acl.permission_type, PERMISSIONS, f"{name}.permission_type"),
    )


def _filter(wanted: AclFilter, name: str) -> DeleteAclsFilter:
    if not isinstance(wanted, AclFilter):
        raise InvalidValue(f"expected AclFilter, got {type(wanted).__name__}", name)

    def number(value: str | None, numbers: Mapping[str, int], field: str) -> int:
        return ANY if value is None else _number(value, numbers, f"{name}.{field}")

    def optional(value: str | None, field: str) -> str | None:
        return None if value is None else text(value, f"{name}.{field}")

    return DeleteAclsFilter(
        resource_type_filter=number(wanted.resource_type, RESOURCE_TYPES, "resource_type"),
        resource_name_filter=optional(wanted.resource_name, "resource_name"),
        pattern_type_filter=number(wanted.pattern_type, FILTERED, "pattern_type"),
        principal_filter=optional(wanted.principal, "principal"),
        host_filter=optional(wanted.host, "host"),
        operation=number(wanted.operation, OPERATIONS, "operation"),
        permission_type=number(wanted.permission_type, PERMISSIONS, "permission_type"),
    )


def _number(value: object, numbers: Mapping[str, int], name: str) -> int:
    number = numbers.get(value) if isinstance(value, str) else None
    if number is None:
        raise InvalidValue(f"expected one of {', '.join(numbers)}; got {value!r}", name)
    return number


def _binding(row: Row) -> AclBinding:
    return AclBinding(
        _name(row.resource_type, RESOURCE_TYPES),
        row.resource_name,
        row.principal,
        _name(row.operation, OPERATIONS),
        _name(row.permission_type, PERMISSIONS),
        row.host,
        _name(row.pattern_type, PATTERN_TYPES),
    )


def _name(number: int, numbers: Mapping[str, int]) -> str:
    """Return the name of a type; the number of one that is newer."""
    return next((name for name, each in numbers.items() if each == number), str(number))
