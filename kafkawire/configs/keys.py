"""The configuration keys of brokers and topics: Kafka's names, types and defaults.

A value is text, as on the wire, until `Settings` parses it by its type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple


class ConfigType(IntEnum):
    """The type of a value in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


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


class ConfigKey(NamedTuple):
    """One configuration key.

    default: None for none. synonym: the broker's key with the default value of a topic's or group's
    key. allowed: the
    valid values; () for all of the type. update: mode of a broker's key.
    """

    type: ConfigType
    default: str | None
    synonym: str | None = None
    allowed: tuple[str, ...] = ()
    update: Update = Update.CLUSTER_WIDE

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type is ConfigType.PASSWORD


B, S, I, H, L, D, LS = (  # noqa: E741
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)
MAX: Final = str(2**63 - 1)
CODECS: Final = ("uncompressed", "producer", "gzip", "snappy", "lz4", "zstd")
TIMESTAMPS: Final = ("CreateTime", "LogAppendTime")

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "cleanup.policy": ConfigKey(LS, "delete", "log.cleanup.policy", ("delete", "compact")),
    "compression.type": ConfigKey(S, "producer", "compression.type", CODECS),
    "compression.gzip.level": ConfigKey(I, "-1", "compression.gzip.level"),
    "compression.lz4.level": ConfigKey(I, "9", "compression.lz4.level"),
    "compression.zstd.level": ConfigKey(I, "3", "compression.zstd.level"),
    "delete.retention.ms": ConfigKey(L, "86400000", "log.cleaner.delete.retention.ms"),
    "errors.deadletterqueue.group.enable": ConfigKey(B, "false"),
    "file.delete.delay.ms": ConfigKey(L, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": ConfigKey(L, MAX, "log.flush.interval.messages"),
    "flush.ms": ConfigKey(L, MAX, "log.flush.interval.ms"),
    "follower.replication.throttled.replicas": ConfigKey(LS, ""),
    "index.interval.bytes": ConfigKey(I, "4096", "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": ConfigKey(LS, ""),
    "local.retention.bytes": ConfigKey(L, "-2", "log.local.retention.bytes"),
    "local.retention.ms": ConfigKey(L, "-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": ConfigKey(L, MAX, "log.cleaner.max.compaction.lag.ms"),
    "max.decompressed.message.bytes": ConfigKey(I, "2147483639", "max.decompressed.message.bytes"),
    "max.message.bytes": ConfigKey(I, "1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": ConfigKey(L, "3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": ConfigKey(L, MAX, "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": ConfigKey(S, "CreateTime", "log.message.timestamp.type", TIMESTAMPS),
    "min.cleanable.dirty.ratio": ConfigKey(D, "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": ConfigKey(L, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": ConfigKey(I, "1", "min.insync.replicas"),
    "preallocate": ConfigKey(B, "false", "log.preallocate"),
    "remote.copy.lag.bytes": ConfigKey(L, "-1", "log.remote.copy.lag.bytes"),
    "remote.copy.lag.ms": ConfigKey(L, "0", "log.remote.copy.lag.ms"),
    "remote.log.copy.disable": ConfigKey(B, "false"),
    "remote.log.delete.on.disable": ConfigKey(B, "false"),
    "remote.storage.enable": ConfigKey(B, "false"),
    "retention.bytes": ConfigKey(L, "-1", "log.retention.bytes"),
    "retention.ms": ConfigKey(L, "604800000", "log.retention.ms"),
    "segment.bytes": ConfigKey(I, "1073741824", "log.segment.bytes"),
    "segment.index.bytes": ConfigKey(I, "10485760", "log.index.size.max.bytes"),
    "segment.jitter.ms": ConfigKey(L, "0", "log.roll.jitter.ms"),
    "segment.ms": ConfigKey(L, "604800000", "log.roll.ms"),
    "unclean.leader.election.enable": ConfigKey(B, "false", "unclean.leader.election.enable"),
}

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "consumer.assignment.interval.ms": ConfigKey(
        I, "1000", "group.consumer.assignment.interval.ms"
    ),
    "consumer.heartbeat.interval.ms": ConfigKey(I, "5000", "group.consumer.heartbeat.interval.ms"),
    "consumer.session.timeout.ms": ConfigKey(I, "45000", "group.consumer.session.timeout.ms"),
    "share.assignment.interval.ms": ConfigKey(I, "1000", "group.share.assignment.interval.ms"),
    "share.auto.offset.reset": ConfigKey(S, "latest"),
    "share.delivery.count.limit": ConfigKey(I, "5", "group.share.delivery.count.limit"),
    "share.heartbeat.interval.ms": ConfigKey(I, "5000", "group.share.heartbeat.interval.ms"),
    "share.isolation.level": ConfigKey(
        S, "read_uncommitted", None, ("read_committed", "read_uncommitted")
    ),
    "share.partition.max.record.locks": ConfigKey(
        I, "2000", "group.share.partition.max.record.locks"
    ),
    "share.record.lock.duration.ms": ConfigKey(I, "30000", "group.share.record.lock.duration.ms"),
    "share.renew.acknowledge.enable": ConfigKey(B, "true"),
    "share.session.timeout.ms": ConfigKey(I, "45000", "group.share.session.timeout.ms"),
    "streams.assignment.interval.ms": ConfigKey(I, "1000", "group.streams.assignment.interval.ms"),
    "streams.assignor.name": ConfigKey(S, None, "group.streams.assignors", ("sticky",)),
    "streams.heartbeat.interval.ms": ConfigKey(I, "5000", "group.streams.heartbeat.interval.ms"),
    "streams.initial.rebalance.delay.ms": ConfigKey(
        I, "3000", "group.streams.initial.rebalance.delay.ms"
    ),
    "streams.num.standby.replicas": ConfigKey(I, "0", "group.streams.num.standby.replicas"),
    "streams.rack.aware.assignment.tags": ConfigKey(
        LS, "", "group.streams.rack.aware.assignment.tags"
    ),
    "streams.session.timeout.ms": ConfigKey(I, "45000", "group.streams.session.timeout.ms"),
}
"""The keys of a group; their synonyms are the broker's keys with the default values."""
SHARE_CONFIGS_SINCE: Final[Mapping[str, str]] = {
    "share.assignment.interval.ms": "4.3",
    "share.auto.offset.reset": "4.0",
    "share.delivery.count.limit": "4.3",
    "share.heartbeat.interval.ms": "4.0",
    "share.isolation.level": "4.1",
    "share.partition.max.record.locks": "4.3",
    "share.record.lock.duration.ms": "4.0",
    "share.renew.acknowledge.enable": "4.3",
    "share.session.timeout.ms": "4.0",
}
"""Key of a share group -> the first release that has it."""
LEAST: Final[Mapping[str, int]] = {
    "consumer.assignment.interval.ms": 0,
    "share.assignment.interval.ms": 0,
    "share.delivery.count.limit": 2,
    "share.partition.max.record.locks": 100,
    "share.record.lock.duration.ms": 1000,
    "streams.assignment.interval.ms": 0,
    "streams.initial.rebalance.delay.ms": 0,
    "streams.num.standby.replicas": 0,
}
"""Key of a group -> the least value; that of other numbers is 1."""

MIGRATION_POLICY: Final = "group.consumer.migration.policy"
ALLOWED: Final = {
    MIGRATION_POLICY: ("bidirectional", "upgrade", "downgrade", "disabled"),
    "ssl.client.auth": ("none", "requested", "required"),
    **{key.synonym: key.allowed for key in TOPIC_CONFIGS.values() if key.synonym is not None},
}
CASE_INSENSITIVE: Final = frozenset({MIGRATION_POLICY})
"""The keys whose values may be in capital letters."""
OUR_DEFAULTS: Final = {"sasl.enabled.mechanisms": ""}
"""Defaults that differ from Kafka's: SASL is disabled unless it is configured."""
NEWEST: Final = "trunk"


@cache
def _table() -> Mapping[str, Mapping[str, list[list[str | None]] | str]]:
    """Load `broker_configs.json`: the `ConfigDef` of each release of Kafka.

    name -> from: rows of (first release, type, default, update); until: the last release with it.
    """
    path = Path(__file__).with_name("broker_configs.json")
    found: Mapping[str, Mapping[str, list[list[str | None]] | str]]
    found = json.loads(path.read_text("utf-8"))
    return found


def _number(release: str | None) -> tuple[int, ...]:
    """Return the sort key of a release; `trunk` and `all` come last."""
    if release is None or not release[:1].isdigit():
        return (1 << 31,)
    return tuple(map(int, release.split(".")))


def _keys(release: str | None) -> Iterator[tuple[str, ConfigKey]]:
    at = _number(release)
    for name, entry in _table().items():
        rows, until = entry["from"], entry.get("until")
        assert not isinstance(rows, str)
        assert until is None or isinstance(until, str)
        if release is not None and until is not None and at > _number(until):
            continue
        existing = [row for row in rows if _number(row[0]) <= at]
        if existing and existing[-1][1] is not None:  # null: absent in that release
            _, kind, default, update = existing[-1]
            default = OUR_DEFAULTS.get(name, default)
            known = ConfigType[str(kind)]
            yield name, ConfigKey(known, default, None, ALLOWED.get(name, ()), Update(update))


@cache
def broker_configs(release: str) -> Mapping[str, ConfigKey]:
    """Return the broker keys of a release by name."""
    return dict(_keys(release))


OUTSIDE: Final[Mapping[str, ConfigKey]] = {
    "allow.everyone.if.no.acl.found": ConfigKey(B, "false", update=Update.READ_ONLY),
    "follower.replication.throttled.rate": ConfigKey(L, MAX),
    "leader.replication.throttled.rate": ConfigKey(L, MAX),
    "super.users": ConfigKey(S, "", update=Update.READ_ONLY),
}
"""Keys that are in no `ConfigDef`: of the authorizer, and quotas that are always dynamic."""
BROKER_CONFIGS: Final[Mapping[str, ConfigKey]] = {**dict(_keys(None)), **OUTSIDE}
"""The keys of all releases, each as in the newest release that has it."""

RANGES: Final = {ConfigType.SHORT: 2**15, ConfigType.INT: 2**31, ConfigType.LONG: 2**63}


def config_error(key: ConfigKey | None, name: str, value: str | None) -> str | None:
    """Return why a value is invalid for a key, None if it is valid."""
    if key is None:
        return f"Unknown config name: {name}"
    if value is None:
        return f"Null value not supported for config: {name}"
    given = [part.strip() for part in value.split(",")] if key.type is LS else [value]
    if name in CASE_INSENSITIVE:
        given = [part.lower() for part in given]
    if key.allowed and not set(given) <= set(key.allowed):
        return f"Invalid value {value} for configuration {name}: one of {', '.join(key.allowed)}"
    if key.type is B and value not in ("true", "false"):
        return f"Invalid value {value} for configuration {name}: true or false"
    if key.type in RANGES and not _is_int(value, RANGES[key.type]):
        return f"Invalid value {value} for configuration {name}: not a number of its type"
    if key.type is D and not _is_float(value):
        return f"Invalid value {value} for configuration {name}: not a number"
    return None


def _is_int(value: str, bound: int) -> bool:
    try:
        return -bound <= int(value) < bound
    except ValueError:
        return False


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
