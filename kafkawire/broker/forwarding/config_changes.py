"""Checks changes to the configs of brokers and groups before the controller gets them.

As in Kafka's ConfigAdminManager, a broker refuses what it could not apply; the controller,
which may have another release, stores what it gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...configs import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    LEAST,
    ConfigKey,
    ConfigType,
    ResourceType,
    Update,
    config_error,
    source_of,
)
from ...controller.operations.alter_configs import changes
from ...controller.operations.assignments import Refused
from ...controller.operations.refusals import refusal
from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from ...primitives import Message
from ...protocol import ErrorCode
from ..configs import Settings
from ..configs.offset_reset import is_offset_reset
from ..request import DELAYED, HandlerResult, Request
from . import AnyPlan, ForwardingManager, Submit

Problem = tuple[ErrorCode, str]
Changes = AlterConfigsRequest | IncrementalAlterConfigsRequest
SHARE: Final = "share"
STREAMS: Final = "streams"
STANDBY_REPLICAS: Final = "streams.num.standby.replicas"
RESET: Final = "share.auto.offset.reset"
CHANGES: Final = (AlterConfigsRequest, IncrementalAlterConfigsRequest)


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """A change of configs: its request, and the refused resources by position."""

    body: Changes
    refused: dict[int, Problem]

    @property
    def rest(self) -> Changes:
        """What the controller gets."""
        resources: list[Any] = [
            each for at, each in enumerate(self.body.resources) if at not in self.refused
        ]
        return self._request(resources)

    def _request(self, resources: list[Any]) -> Changes:
        return type(self.body)(resources=resources, validate_only=self.body.validate_only)

    def response(self, body: Message, _now: float) -> Message:
        """Put the refused resources where their request has them."""
        response: Any = body
        found = iter(response.responses)
        merged = []
        for at, resource in enumerate(self.body.resources):
            if at not in self.refused:
                merged.append(next(found))
                continue
            error, message = self.refused[at]
            made: Any = refusal(self._request([resource]), error)
            made.responses[0].error_message = message
            merged += made.responses
        response.responses = merged
        return body


class CheckedForwarding(ForwardingManager):
    """The way of the clients of a broker to the active controller."""

    def __init__(self, settings: Settings, node_id: int, submit: Submit) -> None:
        super().__init__(submit)
        self._settings = settings
        self._own = str(node_id)
        self._checks = {
            ResourceType.BROKER: self._problem,
            ResourceType.GROUP: self._group_problem,
        }

    def forward(
        self,
        request: Request,
        now: float,
        instead: Message | None = None,
        plan: AnyPlan | None = None,
    ) -> HandlerResult:
        """Let the controller decide on what this broker does not refuse."""
        body = request.body
        refused = self._refused(body) if isinstance(body, CHANGES) else {}
        if not refused:
            return super().forward(request, now, instead, plan)
        assert isinstance(body, CHANGES)
        plan = ConfigPlan(body, refused)
        rest = plan.rest
        if not rest.resources:
            return plan.response(refusal(rest, ErrorCode.NONE), now)
        self._submit(request, rest, plan, now)
        return DELAYED

    def _refused(self, body: Changes) -> dict[int, Problem]:
        found = {}
        resources: list[Any] = [*body.resources]
        for at, resource in enumerate(resources):
            check = self._checks.get(resource.resource_type)
            problem = check and check(body, resource.resource_name, resource.configs)
            if problem is not None:
                found[at] = problem
        return found

    def _group_problem(self, body: Changes, _name: str, configs: Sequence[Any]) -> Problem | None:
        """Return why a change of a group is not valid, None if it is."""
        try:
            wanted = changes(body, configs, {}, ResourceType.GROUP)
        except Refused as refused:
            return refused.error, refused.message or ""
        for key, value in wanted.items():
            config = GROUP_CONFIGS.get(key)
            if config is None:
                return ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}"
            invalid = None if value is None else self._invalid(config, key, value)
            if invalid is not None:
                return ErrorCode.INVALID_CONFIG, invalid
        return None

    def _invalid(self, config: ConfigKey, key: str, value: str) -> str | None:
        """Return why a value of a group is not valid."""
        invalid = config_error(config, key, value)
        problem = ""
        if invalid is None and config.type is ConfigType.INT:
            problem = self._range_problem(key, int(value))
        elif key == RESET and not is_offset_reset(value):
            problem = "expected earliest, latest or by_duration:<duration>"
        if problem:
            return f"Invalid value {value} for configuration {key}: {problem}"
        return invalid

    def _range_problem(self, key: str, value: int) -> str:
        """Return why a number of a group is too small or too large, "" if it is not.

        Share and Streams groups must be within the bounds of the broker; consumer groups are
        brought there.
        """
        least = LEAST.get(key, 1)
        if value < least:
            return f"Value must be at least {least}"
        kind, _, rest = key.partition(".")
        bounds = [f"group.{kind}.{bound}.{rest}" for bound in ("min", "max")]
        if key == STANDBY_REPLICAS:
            most = self._settings.number("group.streams.max.standby.replicas")
            return "" if value <= most else f"Value must be at most {most}"
        bounded = kind in (SHARE, STREAMS)
        if not bounded or not all(each in self._settings.keys for each in bounds):
            return ""
        low, high = map(self._settings.number, bounds)
        return "" if low <= value <= high else f"Value must be between {low} and {high}"

    def _problem(self, body: Changes, name: str, configs: Sequence[Any]) -> Problem | None:
        """Return why this broker could not apply a change, None if it could.

        name: a broker's, or "" for all.
        """
        if name not in ("", self._own):
            reason = f"Unexpected broker id, expected {self._own} or empty string, but received "
            return ErrorCode.INVALID_REQUEST, reason + name
        values = self._settings.altered(source_of(name))
        try:
            wanted = changes(body, configs, values, ResourceType.BROKER)
        except Refused as refused:
            return ErrorCode.INVALID_REQUEST, refused.message or ""
        fixed: list[str] = []
        for key, value in wanted.items():
            config = BROKER_CONFIGS.get(key)
            invalid = None if value is None else config_error(config, key, value)
            if invalid is not None:
                return ErrorCode.INVALID_REQUEST, invalid
            if values.get(key) != value and config is not None and not _may_change(config, name):
                fixed.append(key)
        if fixed:
            return ErrorCode.INVALID_REQUEST, f"not dynamic here: {', '.join(sorted(fixed))}"
        return None


def _may_change(config: ConfigKey, resource: str) -> bool:
    of_one = config.update is Update.PER_BROKER and resource != ""
    return config.update is Update.CLUSTER_WIDE or of_one
