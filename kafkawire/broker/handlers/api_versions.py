"""ApiVersions: lists the supported API versions and features, before authentication too.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response (KIP-219)
v3   request +client_software_name +client_software_version; response +supported_features
      +finalized_features_epoch +finalized_features +zk_migration_ready; flexible │ error 35
      comes in version 0 (KIP-511)
v4   no new fields │ supported features may begin at 0
v5   request +cluster_id +node_id │ those of another broker: error 129 (KIP-1242)
"""

from __future__ import annotations

from ...configs.features import features
from ...messages.api_key import ApiKey
from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..releases import Versions
from ..request import Request

SOFTWARE_FROM = 3
FEATURES_FROM = 3
LOWEST_0_FROM = 4
"""Earlier versions omit features that are supported from level 0 (KIP-1022)."""
IDENTITY_FROM = 5
ANY_NODE = -1


def handle(
    broker: Broker, request: Request, body: ApiVersionsRequest, _connection: Connection, _now: float
) -> ApiVersionsResponse:
    """List the supported versions of each API."""
    if request.version >= SOFTWARE_FROM and not (
        _is_software(body.client_software_name) and _is_software(body.client_software_version)
    ):
        return error_response(body, ErrorCode.INVALID_REQUEST)
    if request.version >= IDENTITY_FROM:
        error = _identity_error(broker, body)
        if error is not ErrorCode.NONE:
            return error_response(body, error)
    keys = [
        ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
        for key, versions in sorted(broker.apis.listed_by(broker.settings).items())
    ]
    response = ApiVersionsResponse(api_keys=keys)
    supported = features(broker.apis.release)
    if supported and request.version >= FEATURES_FROM:
        response.supported_features = [
            SupportedFeatureKey(name=each.name, min_version=each.lowest, max_version=each.highest)
            for each in supported
            if each.lowest or request.version >= LOWEST_0_FROM
        ]
        response.finalized_features_epoch = broker.metadata.offset
        response.finalized_features = [
            FinalizedFeatureKey(name=each.name, max_version_level=level, min_version_level=level)
            for each in supported
            for level in (broker.metadata.finalized_level(each),)
            if level
        ]
    return response


def _identity_error(broker: Broker, body: ApiVersionsRequest) -> ErrorCode:
    """Check which broker a client wants to reach, as Kafka 4.4 does (KIP-1242)."""
    if (body.cluster_id is None) != (body.node_id == ANY_NODE):
        return ErrorCode.INVALID_REQUEST
    reached = broker.context.cluster_id, broker.node_id
    if body.cluster_id is not None and (body.cluster_id, body.node_id) != reached:
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def _is_software(name: str) -> bool:
    """Whether a client software name or version is valid (KIP-511)."""
    ends = name[:1].isalnum() and name[-1:].isalnum() and name.isascii()
    return ends and all(letter.isalnum() or letter in "-." for letter in name)


def unsupported(supported: Versions) -> ApiVersionsResponse:
    """Respond to an unsupported version: error 35 and the supported range."""
    ours = ApiVersion(
        api_key=ApiKey.API_VERSIONS, min_version=supported.first, max_version=supported.last
    )
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ours])


def error_response(_body: ApiVersionsRequest, error: ErrorCode) -> ApiVersionsResponse:
    """Return a response with the error."""
    return ApiVersionsResponse(error_code=error)
