"""AlterConfigs: replaces all configs of a resource; absent keys return to their defaults.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from collections.abc import Mapping

from ...configs import ConfigKey
from ...messages.alter_configs_request import AlterableConfig, AlterConfigsRequest
from ...messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..controller.altering import Change, Problem, Values, alter, checked, duplicates
from ..network.connection import Connection
from ..request import Request


def handle(
    broker: Broker,
    _request: Request,
    body: AlterConfigsRequest,
    _connection: Connection,
    now: float,
) -> AlterConfigsResponse:
    """Replace each resource's configuration."""
    responses = []
    for each in body.resources:
        kind, name = each.resource_type, each.resource_name
        problem = alter(
            broker.controller, kind, name, replacement(each.configs), body.validate_only, now
        )
        error, message = problem or (ErrorCode.NONE, None)
        responses.append(_response(kind, name, error, message))
    return AlterConfigsResponse(responses=responses)


def replacement(given: list[AlterableConfig]) -> Change:
    """Return the change that replaces all values by those given."""

    def replace(keys: Mapping[str, ConfigKey], _now: Mapping[str, str]) -> Values | Problem:
        made: Values = {}
        for each in given:
            value = checked(keys.get(each.name), each.name, each.value)
            if not isinstance(value, str):
                return value
            made[each.name] = value
        return duplicates([each.name for each in given]) or made

    return replace


def _response(
    kind: int, name: str, error: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error, error_message=message, resource_type=kind, resource_name=name
    )


def error_response(body: AlterConfigsRequest, error: ErrorCode) -> AlterConfigsResponse:
    """Return a response with the error for each resource."""
    return AlterConfigsResponse(
        responses=[
            _response(each.resource_type, each.resource_name, error, error.name)
            for each in body.resources
        ]
    )
