"""DescribeAcls: lists the ACLs that a filter matches, from the metadata that was published last.

v0   the first
v1   request +pattern_type_filter; response +pattern_type │ prefixed ACLs (KIP-290)
v2   flexible
v3   no new fields │ ACLs of users (KIP-373)
"""

from __future__ import annotations

from ...controller.operations.acls import AUTHORIZER, DISABLED, Acl, is_known, matches
from ...messages.describe_acls_request import DescribeAclsRequest
from ...messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ...metadata import MetadataImage
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request

E = ErrorCode


def handle(
    broker: Broker,
    _request: Request,
    body: DescribeAclsRequest,
    _connection: Connection,
    _now: float,
) -> DescribeAclsResponse:
    """Describe ACLs; an error if there is no authorizer."""
    return describe_acls(broker.image, body, bool(broker.settings.effective.get(AUTHORIZER)))


def error_response(_body: DescribeAclsRequest, error: ErrorCode) -> DescribeAclsResponse:
    """Return a response with the error."""
    return DescribeAclsResponse(error_code=error, error_message=error.name)


def describe_acls(
    image: MetadataImage, body: DescribeAclsRequest, has_authorizer: bool
) -> DescribeAclsResponse:
    """Find the ACLs that a filter matches."""
    if not has_authorizer:
        return DescribeAclsResponse(error_code=E.SECURITY_DISABLED, error_message=DISABLED)
    if not is_known(body):
        message = "Unknown element in the filter"
        return DescribeAclsResponse(error_code=E.INVALID_REQUEST, error_message=message)
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in map(Acl.of, image.acls.values()):
        if matches(body, acl):
            entry = AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            resources.setdefault(acl[:3], []).append(entry)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=entries
            )
            for (kind, name, pattern), entries in resources.items()
        ],
    )
