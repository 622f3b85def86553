"""Checks changes to the configs of brokers and groups before the controller gets them.

As in Kafka's ConfigAdminManager, a broker refuses what it could not apply; the controller,
which may have another release, stores what it gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...configs import (
    STORES,
    ResourceType,
    Update,
    config_error,
    group_configs,
    has_resources,
    listener_key,
    prefixed,
    source_of,
)
from ...configs.rules import broker_error, group_error, key_error
from ...controller.operations.alter_configs import DELETE, SET, changes
from ...controller.operations.assignments import Refused
from ...controller.operations.refusals import refusal
from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from ...primitives import Message
from ...protocol import ErrorCode
from ..configs import Settings, loggers
from ..configs.stores import Stores
from ..request import DELAYED, HandlerResult, Request
from . import AnyPlan, ForwardingManager, Submit

E = ErrorCode
Problem = tuple[ErrorCode, str | None]
ConfigsOf = Callable[[str], Mapping[str, str]]
"""Group -> the values set for it."""
Changes = AlterConfigsRequest | IncrementalAlterConfigsRequest
ASSIGNORS: Final = "group.streams.assignors"
FIXED: Final = frozenset(
    {
        "cordoned.log.dirs",
        "listener.security.protocol.map",
        "listeners",
        "ssl.engine.factory.class",
    }
)
"""Keys that Kafka changes while a broker runs; here they are those of its start."""
Check = Callable[[Changes, str, Sequence[Any]], Problem | None]
"""Checks the changes of a resource by its name; None if the controller decides."""
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
        results = iter(response.responses)
        merged = []
        for at, resource in enumerate(self.body.resources):
            if at not in self.refused:
                merged.append(next(results))
                continue
            error, message = self.refused[at]
            refused: Any = refusal(self._request([resource]), error)
            refused.responses[0].error_message = message
            merged += refused.responses
        response.responses = merged
        return body


class CheckedForwarding(ForwardingManager):
    """The way of the clients of a broker to the active controller.

    release: of the broker. listeners: their names. stores: of their certificates.
    """

    def __init__(
        self,
        settings: Settings,
        node_id: int,
        submit: Submit,
        configs_of_group: ConfigsOf,
        release: str,
        listeners: Sequence[str],
        stores: Stores,
    ) -> None:
        super().__init__(submit)
        self._stores = stores
        self._prefixes = tuple(prefixed(each, "") for each in listeners)
        self._release = release
        self._group_keys = group_configs(release)
        self._configs_of_group = configs_of_group
        self._settings = settings
        self._own = str(node_id)
        self._checks: dict[int, Check] = {
            ResourceType.BROKER: self._problem,
            ResourceType.BROKER_LOGGER: self._logger_problem,
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
        """Return position -> error of the resources that the controller does not get.

        Levels of loggers are changed here: their error is NONE.
        """
        resources: list[Any] = [*body.resources]
        counts = Counter((one.resource_type, one.resource_name) for one in resources)
        decided = {}
        for position, resource in enumerate(resources):
            check = self._checks.get(resource.resource_type)
            if not has_resources(self._release, resource.resource_type):
                check = _unknown_type(resource.resource_type)
            problem = check and check(body, resource.resource_name, resource.configs)
            if counts[resource.resource_type, resource.resource_name] > 1:
                problem = E.INVALID_REQUEST, "Each resource must appear at most once."
            if problem is not None:
                decided[position] = problem
        return decided

    def _logger_problem(self, body: Changes, name: str, configs: Sequence[Any]) -> Problem:
        """Change levels of loggers. AlterConfigs cannot: only the other API can (KIP-412)."""
        if isinstance(body, AlterConfigsRequest):
            return E.INVALID_REQUEST, f"Unknown resource type {ResourceType.BROKER_LOGGER}"
        if not name.lstrip("+-").isdecimal():
            return E.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        if name != self._own:
            reason = f"Unexpected node id. Expected {self._own}, but received {name}"
            return E.INVALID_REQUEST, reason
        problem = _form_problem(configs) or loggers.problem(configs)
        if problem is None and not body.validate_only:
            loggers.apply(configs)
        return problem or (E.NONE, None)

    def _group_problem(self, body: Changes, name: str, configs: Sequence[Any]) -> Problem | None:
        """Return why a change of a group is not valid, None if it is."""
        if name == "":
            return None
        old = self._configs_of_group(name)
        try:
            wanted = changes(body, configs, old, ResourceType.GROUP)
        except Refused as refused:
            return refused.error, refused.message or ""
        merged = {key: value for key, value in {**old, **wanted}.items() if value is not None}
        reasons = (
            key_error(self._group_keys, "group", key, value)
            for key, value in merged.items()
            if key in wanted or key in self._group_keys
        )
        invalid = next(filter(None, reasons), None)
        streams = self._settings.text(ASSIGNORS) if ASSIGNORS in self._settings.keys else ""
        invalid = invalid or group_error(merged, self._number, streams)
        return None if invalid is None else (E.INVALID_CONFIG, invalid)

    def _number(self, key: str) -> int | None:
        return self._settings.number(key) if key in self._settings.keys else None

    def _problem(self, body: Changes, name: str, configs: Sequence[Any]) -> Problem | None:
        """Return why this broker could not apply a change, None if it could.

        name: a broker's, or "" for all, where values of its own go before.
        """
        if name not in ("", self._own):
            expected = f"expected {self._own} or empty string, but received {name}"
            return E.INVALID_REQUEST, f"Unexpected broker id, {expected}"
        values = self._settings.altered(source_of(name))
        absent = {each.name for each in configs if self._settings.lacks(each.name)}
        if any(each.name in absent and _extends(each) for each in configs):
            return E.UNKNOWN_SERVER_ERROR, None
        configs = [each for each in configs if each.name not in absent]
        try:
            wanted = changes(body, configs, values, ResourceType.BROKER)
        except Refused as refused:
            return E.INVALID_REQUEST, refused.message or ""
        changed = {
            key: self._settings.key(key)
            for key, value in wanted.items()
            if values.get(key) != value
        }
        updates = {
            key: Update.READ_ONLY if key in FIXED else facts.update
            for key, facts in changed.items()
            if facts is not None
        }
        reason = _not_dynamic(updates, name)
        own = {} if name else self._settings.altered(source_of(self._own))
        for key, value in wanted.items():
            if reason is None and value is not None:
                reason = config_error(self._settings.key(key), key, value)
            if reason is None and value is not None and key not in own:
                reason = self._range_problem(key, value)
        if reason is None and name:
            after = self._settings.changed(source_of(name), wanted)
            reason = self._stores.problem(after, changed)
        return None if reason is None else (E.INVALID_REQUEST, reason)

    def _range_problem(self, key: str, value: str) -> str | None:
        """Return why the broker could not use a value; those of others' listeners are stored."""
        of_listener = listener_key(key)
        if of_listener is None:
            return broker_error(key, value, self._settings.text)
        if not key.startswith(self._prefixes):
            return None
        return broker_error(of_listener.name, value, self._settings.text)


def _extends(config: Any) -> bool:
    """Whether a change depends on the type of its key; those of AlterConfigs do not."""
    return getattr(config, "config_operation", SET) not in (SET, DELETE)


def _unknown_type(type: int) -> Check:
    return lambda _body, _name, _configs: (E.INVALID_REQUEST, f"Unknown resource type {type}")


def _form_problem(configs: Sequence[Any]) -> Problem | None:
    """Return what is wrong with a request whatever its values are."""
    if len({config.name for config in configs}) != len(configs):
        return E.INVALID_REQUEST, "Error due to duplicate config keys"
    nulls = [
        config.name
        for config in configs
        if config.value is None and config.config_operation != DELETE
    ]
    if nulls:
        return E.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
    return None


def _not_dynamic(updates: Mapping[str, Update], resource: str) -> str | None:
    """Return which keys cannot be changed for one broker, or for all of them (""), and why."""
    of_one = sorted(key for key, update in updates.items() if update is Update.PER_BROKER)
    reasons = {
        "Cannot update these configs dynamically": sorted(
            key for key, update in updates.items() if update is Update.READ_ONLY
        ),
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix": [key for key in of_one if key in STORES],
        "Cannot update these configs at default cluster level, broker id must be specified": (
            [] if resource else of_one
        ),
    }
    return next((f"{why}: [{', '.join(keys)}]" for why, keys in reasons.items() if keys), None)
