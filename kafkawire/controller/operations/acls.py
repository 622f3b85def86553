"""CreateAcls and DeleteAcls (KIP-140, KIP-290): who may do what.

An ACL that exists is not created again; each is deleted once, whichever filters match it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...messages.access_control_entry_record import AccessControlEntryRecord
from ...messages.create_acls_request import AclCreation, CreateAclsRequest
from ...messages.create_acls_response import AclCreationResult, CreateAclsResponse
from ...messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from ...messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from ...messages.describe_acls_request import DescribeAclsRequest
from ...messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from ...protocol import ErrorCode
from ..state import ControllerState
from .assignments import Refused

E = ErrorCode
ANY: Final = 1
"""Of each of the types below: matches all; 0 is an unknown one."""
CLUSTER: Final = 4
RESOURCE_TYPES: Final = range(2, 8)
"""Topic, group, cluster, transactional id, delegation token, user."""
MATCH, LITERAL, PREFIXED = 2, 3, 4
OPERATIONS: Final = range(2, 16)
DENY, ALLOW = 2, 3
CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD: Final = "*"
AUTHORIZER: Final = "authorizer.class.name"
DISABLED: Final = "No Authorizer is configured."


AclFilter = DeleteAclsFilter | DescribeAclsRequest


class Acl(NamedTuple):
    """An ACL without its id."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        """Read a record."""
        return cls(*(getattr(record, name) for name in cls._fields))


def create_acls(
    state: ControllerState, body: CreateAclsRequest, _version: int, _now: float
) -> CreateAclsResponse:
    """Create each ACL, unless it exists."""
    if not state.config.static.get(AUTHORIZER):
        disabled = AclCreationResult(error_code=E.SECURITY_DISABLED, error_message=DISABLED)
        return CreateAclsResponse(results=[disabled] * len(body.creations))
    existing = set(map(Acl.of, state.image.acls.values()))
    results = []
    for each in body.creations:
        error, message = E.NONE, ""
        try:
            acl = _checked(each)
            if acl not in existing:
                existing.add(acl)
                state.write(AccessControlEntryRecord(id=state.new_uuid(), **acl._asdict()))
        except Refused as refused:
            error, message = refused.error, refused.message
        results.append(AclCreationResult(error_code=error, error_message=message))
    return CreateAclsResponse(results=results)


def _checked(wanted: AclCreation) -> Acl:
    """Return the ACL; raises Refused if it is not valid."""
    acl = Acl(
        wanted.resource_type,
        wanted.resource_name,
        wanted.resource_pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )
    valid = {
        "resourceType": acl.resource_type in RESOURCE_TYPES,
        "patternType": acl.pattern_type in (LITERAL, PREFIXED),
        "operation": acl.operation in OPERATIONS,
        "permissionType": acl.permission_type in (DENY, ALLOW),
    }
    for name, each in valid.items():
        if not each:
            raise Refused(E.INVALID_REQUEST, f"Invalid {name}")
    if acl.resource_type == CLUSTER and acl.resource_name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        raise Refused(E.INVALID_REQUEST, message)
    if not acl.resource_name:
        raise Refused(E.INVALID_REQUEST, "Invalid empty resource name")
    if ":" not in acl.principal:
        raise Refused(
            E.INVALID_REQUEST,
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)",
        )
    return acl


def delete_acls(
    state: ControllerState, body: DeleteAclsRequest, _version: int, _now: float
) -> DeleteAclsResponse:
    """Delete the ACLs that each filter matches."""
    if not state.config.static.get(AUTHORIZER):
        disabled = DeleteAclsFilterResult(error_code=E.SECURITY_DISABLED, error_message=DISABLED)
        return DeleteAclsResponse(filter_results=[disabled] * len(body.filters))
    acls = {id: Acl.of(record) for id, record in state.image.acls.items()}
    deleted: dict[bytes, None] = {}
    results = []
    for each in body.filters:
        if not is_known(each):
            results.append(
                DeleteAclsFilterResult(
                    error_code=E.INVALID_REQUEST, error_message="Unknown element in the filter"
                )
            )
            continue
        matching_ids = [id for id, acl in acls.items() if matches(each, acl)]
        deleted |= dict.fromkeys(matching_ids)
        matching = [
            DeleteAclsMatchingAcl(error_message=None, **acls[id]._asdict()) for id in matching_ids
        ]
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=matching))
    for id in deleted:
        state.write(RemoveAccessControlEntryRecord(id=id))
    return DeleteAclsResponse(filter_results=results)


def is_known(wanted: AclFilter) -> bool:
    """Whether a filter has only types and operations that exist."""
    return (
        (wanted.resource_type_filter in (ANY, *RESOURCE_TYPES))
        and wanted.pattern_type_filter in (ANY, MATCH, LITERAL, PREFIXED)
        and wanted.operation in (ANY, *OPERATIONS)
        and wanted.permission_type in (ANY, DENY, ALLOW)
    )


def matches(wanted: AclFilter, acl: Acl) -> bool:
    """Return whether a filter matches an ACL; null and ANY match everything."""
    return (
        wanted.resource_type_filter in (ANY, acl.resource_type)
        and _name_matches(wanted, acl)
        and wanted.principal_filter in (None, acl.principal)
        and wanted.host_filter in (None, acl.host)
        and wanted.operation in (ANY, acl.operation)
        and wanted.permission_type in (ANY, acl.permission_type)
    )


def _name_matches(wanted: AclFilter, acl: Acl) -> bool:
    """Return whether the pattern matches: MATCH finds all ACLs that apply to a name."""
    name, kind = wanted.resource_name_filter, wanted.pattern_type_filter
    if kind not in (ANY, MATCH, acl.pattern_type):
        return False
    if name is None or name == acl.resource_name:
        return True
    if kind != MATCH:
        return False
    if acl.pattern_type == LITERAL:
        return acl.resource_name == WILDCARD
    return name.startswith(acl.resource_name)
