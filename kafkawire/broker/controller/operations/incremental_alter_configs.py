"""Sets, deletes, appends to and subtracts from values of resources (KIP-339).

Law: the operations of one resource are applied all together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....configs import ConfigKey, ConfigType
from ....messages.incremental_alter_configs_request import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from ....messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ....protocol import ErrorCode
from ...request import Request
from ..altering import Change, Problem, Values, alter, checked, duplicates
from ..controller import Controller

E = ErrorCode
SET, DELETE, APPEND, SUBTRACT = range(4)


def incremental_alter_configs(
    controller: Controller, _request: Request, body: IncrementalAlterConfigsRequest, now: float
) -> IncrementalAlterConfigsResponse:
    """Change the configs of each resource, all its operations or none."""
    responses = []
    for resource in body.resources:
        kind, name = resource.resource_type, resource.resource_name
        problem = alter(controller, kind, name, changes(resource.configs), body.validate_only, now)
        error, message = problem or (E.NONE, None)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=error, error_message=message, resource_type=kind, resource_name=name
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


def changes(given: list[AlterableConfig]) -> Change:
    """Return the change that applies operations to the current values."""

    def apply(keys: Mapping[str, ConfigKey], values: Mapping[str, str]) -> Values | Problem:
        made = dict(values)
        problem = duplicates([each.name for each in given])
        for each in given:
            problem = problem or _applied(made, each, keys.get(each.name))
        return problem or made

    return apply


def _applied(made: Values, each: AlterableConfig, key: ConfigKey | None) -> Problem | None:
    """Apply one operation in place; return its error, or None."""
    operation, value = each.config_operation, each.value
    if operation == DELETE:
        made.pop(each.name, None)
        return None
    if operation not in (SET, APPEND, SUBTRACT):
        return E.INVALID_REQUEST, f"unknown config operation {operation}"
    if operation != SET and key is not None:
        if key.type is not ConfigType.LIST:
            return E.INVALID_CONFIG, f"{each.name} is not a list"
        value = _list(made.get(each.name, key.default or ""), value or "", operation)
    found = checked(key, each.name, value)
    if not isinstance(found, str):
        return found
    made[each.name] = found
    return None


def _list(current: str, given: str, operation: int) -> str:
    existing = dict.fromkeys(part for part in current.split(",") if part)
    for part in (part.strip() for part in given.split(",")):
        if operation == SUBTRACT:
            existing.pop(part, None)
        elif part:
            existing[part] = None
    return ",".join(existing)
