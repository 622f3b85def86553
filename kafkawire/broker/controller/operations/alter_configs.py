"""Replaces all configs of resources; absent keys return to their defaults.

Law: the values of one resource are replaced all together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....configs import ConfigKey
from ....messages.alter_configs_request import AlterableConfig, AlterConfigsRequest
from ....messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from ....protocol import ErrorCode
from ...request import Request
from ..altering import Change, Problem, Values, alter, checked, duplicates
from ..controller import Controller


def alter_configs(
    controller: Controller, _request: Request, body: AlterConfigsRequest, now: float
) -> AlterConfigsResponse:
    """Replace each resource's configuration."""
    responses = []
    for each in body.resources:
        kind, name = each.resource_type, each.resource_name
        problem = alter(controller, kind, name, replacement(each.configs), body.validate_only, now)
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
