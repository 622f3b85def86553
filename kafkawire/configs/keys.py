"""The configuration keys of brokers and other resources: Kafka's names, types and defaults.

A value is text, as on the wire, until `Settings` parses it by its type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from .valid import ANY, ConfigType, Valid, invalid_reason, normalized


class ConfigSource(IntEnum):
    """The source of a value in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ResourceType(IntEnum):
    """The type of a resource in requests and in `ConfigRecord`."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def source_of(resource: str) -> ConfigSource:
    """Return the config source of a value set for one broker, or for all of them ("")."""
    if resource == "":
        return ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return ConfigSource.DYNAMIC_BROKER_CONFIG


class Update(Enum):
    """The dynamic update mode of a broker's key, as in Kafka's documentation."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Synonym(NamedTuple):
    """A broker's key with the default value of a topic's or group's key.

    factor: what its value is multiplied by, as hours are for a key in milliseconds.
    """

    name: str
    factor: int = 1


class ConfigKey(NamedTuple):
    """One configuration key.

    default: None for none. synonyms: the first that is set has the default value. update: mode of a
    broker's key. internal: it is described only where it is set.
    """

    type: ConfigType
    default: str | None
    synonyms: tuple[Synonym, ...] = ()
    valid: Valid = ANY
    update: Update = Update.CLUSTER_WIDE
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type is ConfigType.PASSWORD

    @property
    def synonym(self) -> str | None:
        """The first of the broker's keys with the default value."""
        return self.synonyms[0].name if self.synonyms else None

    def normalized(self, value: str) -> str:
        """Return a valid value as DescribeConfigs shows it."""
        return value if self.internal else normalized(self.type, self.valid, value)


def _load(name: str) -> Any:
    """Load a table beside this module, as JSON."""
    return json.loads(Path(__file__).with_name(name).read_text("utf-8"))


def _of_resource(rows: Mapping[str, Any]) -> dict[str, ConfigKey]:
    return {
        name: ConfigKey(
            ConfigType[row["type"]],
            row["default"],
            tuple(Synonym(*synonym) for synonym in row.get("synonyms", ())),
            Valid.of(row.get("valid", {})),
            internal=row.get("internal", False),
        )
        for name, row in rows.items()
    }


_RESOURCES: Final = {
    kind: _of_resource(rows) for kind, rows in _load("resource_configs.json").items()
}
"""What `tests.real.config_defs` writes of the `ConfigDef`s of Kafka 4.4."""
TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = _RESOURCES["topic"]
GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = _RESOURCES["group"]
CLIENT_METRICS_CONFIGS: Final[Mapping[str, ConfigKey]] = _RESOURCES["client-metrics"]
_GROUPS_SINCE: Final = {
    "4.0": (
        "consumer.heartbeat.interval.ms",
        "consumer.session.timeout.ms",
        "share.auto.offset.reset",
        "share.heartbeat.interval.ms",
        "share.record.lock.duration.ms",
        "share.session.timeout.ms",
    ),
    "4.1": (
        "share.isolation.level",
        "streams.heartbeat.interval.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    ),
    "4.2": ("streams.initial.rebalance.delay.ms",),
    "4.3": (
        "consumer.assignment.interval.ms",
        "consumer.assignor.offload.enable",
        "share.assignment.interval.ms",
        "share.assignor.offload.enable",
        "share.delivery.count.limit",
        "share.partition.max.record.locks",
        "share.renew.acknowledge.enable",
        "streams.assignment.interval.ms",
        "streams.assignor.offload.enable",
    ),
    "4.4": (
        "errors.deadletterqueue.copy.record.enable",
        "errors.deadletterqueue.topic.name",
        "streams.acceptable.recovery.lag",
        "streams.assignor.name",
        "streams.num.warmup.replicas",
        "streams.rack.aware.assignment.tags",
        "streams.task.offset.interval.ms",
    ),
}


_RESOURCES_SINCE: Final = {ResourceType.CLIENT_METRICS: "3.7", ResourceType.GROUP: "4.0"}
"""The first release with a type of resource; the others are older than the releases here."""


def has_resources(release: str, type: int) -> bool:
    """Return whether resources of a type have configurations in a release."""
    since = _RESOURCES_SINCE.get(ResourceType(type)) if type in set(ResourceType) else None
    return since is None or _number(since) <= _number(release)


def group_configs(release: str) -> Mapping[str, ConfigKey]:
    """Return the keys of groups that a release has."""
    number = _number(release)
    return {
        name: GROUP_CONFIGS[name]
        for since, names in _GROUPS_SINCE.items()
        if _number(since) <= number
        for name in names
    }


@cache
def _differences(release: str | None) -> Mapping[str, Mapping[str, Any]]:
    """Return how a release differs from the newest one: of resource -> name -> facts.

    Those of the first release that is not older and that `tests.real.release_configs` has drawn.
    """
    table: Mapping[str, Mapping[str, Mapping[str, Any]]] = _load("release_configs.json")
    later = (listed for listed in table if _number(listed) >= _number(release))
    return table.get(next(later, ""), {"topic": {}, "broker": {}})


@cache
def topic_configs(release: str) -> Mapping[str, ConfigKey]:
    """Return the keys of topics that a release has."""
    rows = _differences(release)["topic"]
    changed = _of_resource({name: row for name, row in rows.items() if row is not None})
    kept = {name: key for name, key in TOPIC_CONFIGS.items() if name not in rows}
    return {**kept, **changed}


OUR_DEFAULTS: Final = {"sasl.enabled.mechanisms": ""}
"""Defaults that differ from Kafka's: SASL is disabled unless it is configured."""
NEWEST: Final = "trunk"


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    """Load `broker_configs.json`: the `ConfigDef` of each release of Kafka.

    name -> from: rows of (first release, type, default, update); until: the last release with it;
    valid: the valid values, of the newest release with it; `release_configs.json`: of others.
    """
    table: Mapping[str, Mapping[str, Any]] = _load("broker_configs.json")
    return table


def _number(release: str | None) -> tuple[int, ...]:
    """Return the sort key of a release; `trunk` and `all` come last."""
    if release is None or not release[:1].isdigit():
        return (1 << 31,)
    return tuple(map(int, release.split(".")))


def _keys(release: str | None) -> Iterator[tuple[str, ConfigKey]]:
    at = _number(release)
    valid_then = _differences(release)["broker"]
    for name, entry in _table().items():
        rows, until = entry["from"], entry.get("until")
        if release is not None and until is not None and at > _number(until):
            continue
        existing = [row for row in rows if _number(row[0]) <= at]
        if existing and existing[-1][1] is not None:  # null: absent in that release
            _, kind, default, update = existing[-1]
            default = OUR_DEFAULTS.get(name, default)
            row = valid_then.get(name, entry.get("valid", {}))
            valid = Valid.of(row) if name in valid_then or kind == rows[-1][1] else ANY
            yield name, ConfigKey(ConfigType[kind], default, (), valid, Update(update))


@cache
def broker_configs(release: str) -> Mapping[str, ConfigKey]:
    """Return the broker keys of a release by name."""
    return dict(_keys(release))


MAX: Final = str(2**63 - 1)
OUTSIDE: Final[Mapping[str, ConfigKey]] = {
    "allow.everyone.if.no.acl.found": ConfigKey(
        ConfigType.BOOLEAN, "false", update=Update.READ_ONLY
    ),
    "follower.replication.throttled.rate": ConfigKey(ConfigType.LONG, MAX, valid=Valid(least=0)),
    "leader.replication.throttled.rate": ConfigKey(ConfigType.LONG, MAX, valid=Valid(least=0)),
    "super.users": ConfigKey(ConfigType.STRING, "", update=Update.READ_ONLY),
}
"""Keys that are in no `ConfigDef`: of the authorizer, and quotas that are always dynamic."""
BROKER_CONFIGS: Final[Mapping[str, ConfigKey]] = {**dict(_keys(None)), **OUTSIDE}
"""The keys of all releases, each as in the newest release that has it."""


def inherited(key: ConfigKey, broker_value: Callable[[str], str]) -> str:
    """Return the value of a key of a topic that has none of its own.

    broker_value: returns the value of a broker's key, "" if it is not set.
    """
    for name, factor in key.synonyms:
        value = broker_value(name)
        if value:
            return value if factor == 1 else str(max(int(value) * factor, -1))
    return key.default or ""


def config_error(key: ConfigKey | None, name: str, value: str | None) -> str | None:
    """Return why a value is invalid for a key, None if it is valid."""
    if key is None:
        return f"Unknown config name: {name}"
    if value is None:
        return f"Null value not supported for config: {name}"
    return invalid_reason(key.type, key.valid, name, value)
