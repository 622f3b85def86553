"""Changes the configuration of topics and brokers (AlterConfigs, IncrementalAlterConfigs).

Law: the changes of one resource are applied all together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...configs import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    ResourceType,
    Update,
    config_error,
    source_of,
)
from ...configs.topic_names import topic_name_error
from ...protocol import ErrorCode
from .controller import Controller

E = ErrorCode
LONGEST_VALUE: Final = 2**15 - 1
"""Maximum length of a value, as in Kafka's controller, so that APPEND has a limit."""
Problem = tuple[ErrorCode, str]
Values = dict[str, str]
Change = Callable[[Mapping[str, ConfigKey], Mapping[str, str]], Values | Problem]
"""(known keys, current values) -> new values, or the error."""


def alter(
    controller: Controller, kind: int, name: str, change: Change, validate_only: bool, now: float
) -> Problem | None:
    """Change the configuration of one resource; return the error, or None."""
    if kind == ResourceType.TOPIC:
        return _alter_topic(controller, name, change, validate_only, now)
    if kind == ResourceType.BROKER:
        return _alter_brokers(controller, name, change, validate_only, now)
    return E.INVALID_REQUEST, f"unsupported resource type {kind}"


def _alter_topic(
    controller: Controller, name: str, change: Change, validate_only: bool, now: float
) -> Problem | None:
    if name == "":
        return E.INVALID_REQUEST, "topics have no default resource"
    reason = topic_name_error(name)
    if reason is not None:
        return E.INVALID_TOPIC_EXCEPTION, reason
    topic = controller.topics.get(name)
    if topic is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION, f"no such topic: {name}"
    found = change(TOPIC_CONFIGS, topic.configs)
    if not isinstance(found, dict):
        return found
    if not validate_only:
        controller.alter_topic_configs(topic, found, now)
    return None


def _alter_brokers(
    controller: Controller, name: str, change: Change, validate_only: bool, now: float
) -> Problem | None:
    if name not in ("", *map(str, controller.metadata.endpoints)):
        return E.INVALID_REQUEST, f"no such broker: {name}"
    changed = broker_changes(name, controller.context.settings.altered(source_of(name)), change)
    if not isinstance(changed, dict):
        return changed
    if not validate_only and changed:
        controller.alter_broker_configs(changed, now, name)
    return None


def broker_changes(
    name: str, values: Mapping[str, str], change: Change
) -> dict[str, str | None] | Problem:
    """Return what a change makes different, None for a key that is deleted; or the error.

    name: a broker's, or "" for all. values: its dynamic values.
    """
    found = change(BROKER_CONFIGS, values)
    if not isinstance(found, dict):
        return E.INVALID_REQUEST, found[1]
    changed: dict[str, str | None] = {key: None for key in values if key not in found}
    changed |= {key: value for key, value in found.items() if values.get(key) != value}
    known = {key: BROKER_CONFIGS.get(key) for key in changed}
    fixed = [key for key, at in known.items() if at is not None and not _may_change(at, name)]
    if fixed:
        return E.INVALID_REQUEST, f"not dynamic here: {', '.join(sorted(fixed))}"
    return changed


def _may_change(key: ConfigKey, resource: str) -> bool:
    return key.update is Update.CLUSTER_WIDE or (key.update is Update.PER_BROKER and resource != "")


def checked(key: ConfigKey | None, name: str, value: str | None) -> str | Problem:
    """Validate a value: return it, or the error."""
    if value is None:
        return E.INVALID_REQUEST, f"null is not a valid value of {name}"
    if len(value) > LONGEST_VALUE:
        return E.INVALID_CONFIG, (
            f"the value of {name} has {len(value)} characters; {LONGEST_VALUE} are allowed"
        )
    reason = config_error(key, name, value)
    return value if reason is None else (E.INVALID_CONFIG, reason)


def duplicates(names: Sequence[str]) -> Problem | None:
    """Return an error if a key occurs twice."""
    if len(set(names)) == len(names):
        return None
    return E.INVALID_REQUEST, "duplicate configuration keys"
