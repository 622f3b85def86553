"""DescribeAcls, DescribeClientQuotas and DescribeUserScramCredentials, as brokers respond to them.

Law: each reads the metadata that was published last; the controller is not involved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from ...broker.broker import Broker
from ...broker.network.connection import Connection
from ...broker.request import Request
from ...controller.operations.acls import AUTHORIZER, DISABLED, Acl, is_known, matches
from ...controller.operations.assignments import Refused
from ...controller.operations.client_quotas import TYPES
from ...messages.api_key import ApiKey
from ...messages.describe_acls_request import DescribeAclsRequest
from ...messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ...messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from ...messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ...messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from ...messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ...metadata import MetadataImage
from ...primitives import Message
from ...protocol import ErrorCode
from .metadata_cache import ImageMetadata

E = ErrorCode
EXACT, DEFAULT, SPECIFIED = range(3)
"""How a component of a filter matches: this name, the default, or any."""


class Described:
    """A handler that reads the image."""

    def handle(
        self, broker: Broker, request: Request, body: Message, _connection: Connection, _now: float
    ) -> Message:
        """Respond, with an error if the request is not valid."""
        assert isinstance(broker.metadata, ImageMetadata)
        image = broker.metadata.image
        match body:
            case DescribeAclsRequest():
                enabled = bool(broker.settings.given.get(AUTHORIZER))
                return describe_acls(image, body, enabled)
            case DescribeClientQuotasRequest():
                return describe_client_quotas(image, body)
            case DescribeUserScramCredentialsRequest():
                return describe_scram_credentials(image, body)
        raise TypeError(request.api_key.name)

    def error_response(self, body: Message, error: ErrorCode) -> Message:
        """Return a response with the error."""
        made: Message = RESPONSES[type(body)](error_code=error, error_message=error.name)
        return made


RESPONSES: Final[Mapping[type[Message], Any]] = {
    DescribeAclsRequest: DescribeAclsResponse,
    DescribeClientQuotasRequest: DescribeClientQuotasResponse,
    DescribeUserScramCredentialsRequest: DescribeUserScramCredentialsResponse,
}
DESCRIBED: Final = {
    ApiKey.DESCRIBE_ACLS: Described(),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Described(),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Described(),
}
"""API -> its handler."""


def describe_acls(
    image: MetadataImage, body: DescribeAclsRequest, enabled: bool
) -> DescribeAclsResponse:
    """Find the ACLs that a filter matches. enabled: whether there is an authorizer."""
    if not enabled:
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
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=found
            )
            for (kind, name, pattern), found in resources.items()
        ],
    )


def describe_client_quotas(
    image: MetadataImage, body: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Find the quotas of the entities that all components of a filter match."""
    try:
        wanted = _components(body.components)
    except Refused as refused:
        return DescribeClientQuotasResponse(
            error_code=refused.error, error_message=refused.message, entries=None
        )
    entries = [
        EntryData(
            entity=[
                EntityData(entity_type=type, entity_name=name) for type, name in sorted(entity)
            ],
            values=[ValueData(key=key, value=value) for key, value in values.items()],
        )
        for entity, values in image.quotas.items()
        if _selected(dict(entity), wanted, body.strict)
    ]
    return DescribeClientQuotasResponse(entries=entries)


def _components(given: list[ComponentData]) -> dict[str, ComponentData]:
    """Return the components of a filter by type. Raises Refused."""
    found: dict[str, ComponentData] = {}
    for each in given:
        type = each.entity_type
        if not type:
            raise Refused(E.INVALID_REQUEST, "Invalid empty entity type.")
        if type in found:
            message = f"Entity type {type} cannot appear more than once in the filter."
            raise Refused(E.INVALID_REQUEST, message)
        if type not in TYPES:
            raise Refused(E.UNSUPPORTED_VERSION, f"Unsupported entity type {type}")
        if each.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise Refused(E.INVALID_REQUEST, f"Unknown match type {each.match_type}")
        if each.match_type != SPECIFIED and (each.match is None) != (each.match_type == DEFAULT):
            raise Refused(E.INVALID_REQUEST, f"{type} has no name to match, or one too many.")
        found[type] = each
    if "ip" in found and len(found) > 1:
        message = (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
        raise Refused(E.INVALID_REQUEST, message)
    return found


def _selected(
    entity: Mapping[str, str | None], wanted: Mapping[str, ComponentData], strict: bool
) -> bool:
    """Whether a filter matches an entity. strict: which has no other components."""
    if strict and len(entity) != len(wanted):
        return False
    return all(
        type in entity and (each.match_type == SPECIFIED or entity[type] == each.match)
        for type, each in wanted.items()
    )


def describe_scram_credentials(
    image: MetadataImage, body: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the credentials of users, of all if the request has none."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), record in sorted(image.scram_credentials.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=record.iterations)
        infos.setdefault(user, []).append(info)
    times = Counter([each.name for each in body.users or []])
    results = []
    for user in times or infos:
        result = DescribeUserScramCredentialsResult(user=user)
        if times[user] > 1:
            result.error_code, result.error_message = E.DUPLICATE_RESOURCE, _TWICE + user
        elif user not in infos:
            result.error_code, result.error_message = E.RESOURCE_NOT_FOUND, _UNKNOWN + user
        else:
            result.credential_infos = infos[user]
        results.append(result)
    return DescribeUserScramCredentialsResponse(results=results)


_TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN: Final = "Attempt to describe a user credential that does not exist: "
