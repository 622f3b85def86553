"""The configuration keys of brokers and topics: Kafka's names, types and defaults.

Law: a value is text, as on the wire, until `Settings` reads it by its type; a topic's value wins
over the broker's, that over the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple


class ConfigType(IntEnum):
    """What DescribeConfigs calls the type of a value."""

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
    """Where a value is from, as DescribeConfigs counts it."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigKey(NamedTuple):
    """One key. synonym: the broker's key that is a topic's default. allowed: the values there are,
    in any order; () for any of the type.
    """

    type: ConfigType
    default: str
    synonym: str | None = None
    allowed: tuple[str, ...] = ()


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
    "file.delete.delay.ms": ConfigKey(L, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": ConfigKey(L, MAX, "log.flush.interval.messages"),
    "flush.ms": ConfigKey(L, MAX, "log.flush.interval.ms"),
    "follower.replication.throttled.replicas": ConfigKey(LS, ""),
    "index.interval.bytes": ConfigKey(I, "4096", "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": ConfigKey(LS, ""),
    "local.retention.bytes": ConfigKey(L, "-2", "log.local.retention.bytes"),
    "local.retention.ms": ConfigKey(L, "-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": ConfigKey(L, MAX, "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": ConfigKey(I, "1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": ConfigKey(L, "3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": ConfigKey(L, MAX, "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": ConfigKey(S, "CreateTime", "log.message.timestamp.type", TIMESTAMPS),
    "min.cleanable.dirty.ratio": ConfigKey(D, "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": ConfigKey(L, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": ConfigKey(I, "1", "min.insync.replicas"),
    "preallocate": ConfigKey(B, "false", "log.preallocate"),
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

BROKER_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    key.synonym: ConfigKey(key.type, key.default, None, key.allowed)
    for key in TOPIC_CONFIGS.values()
    if key.synonym is not None
} | {
    "auto.create.topics.enable": ConfigKey(B, "true"),
    "connections.max.idle.ms": ConfigKey(L, "600000"),
    "default.replication.factor": ConfigKey(I, "1"),
    "fetch.max.bytes": ConfigKey(I, "57671680"),
    "group.initial.rebalance.delay.ms": ConfigKey(I, "3000"),
    "group.max.session.timeout.ms": ConfigKey(I, "1800000"),
    "group.max.size": ConfigKey(I, str(2**31 - 1)),
    "group.min.session.timeout.ms": ConfigKey(I, "6000"),
    "max.connections": ConfigKey(I, str(2**31 - 1)),
    "max.connections.per.ip": ConfigKey(I, str(2**31 - 1)),
    "max.incremental.fetch.session.cache.slots": ConfigKey(I, "1000"),
    "max.request.partition.size.limit": ConfigKey(I, "2000"),
    "num.partitions": ConfigKey(I, "1"),
    "offset.metadata.max.bytes": ConfigKey(I, "4096"),
    "offsets.retention.check.interval.ms": ConfigKey(L, "600000"),
    "offsets.retention.minutes": ConfigKey(I, "10080"),
    "offsets.topic.num.partitions": ConfigKey(I, "50"),
    "offsets.topic.replication.factor": ConfigKey(H, "3"),
    "queued.max.request.bytes": ConfigKey(L, "-1"),
    "sasl.enabled.mechanisms": ConfigKey(LS, ""),
    "sasl.server.max.receive.size": ConfigKey(I, "524288"),
    "socket.request.max.bytes": ConfigKey(I, "104857600"),
    "transaction.max.timeout.ms": ConfigKey(I, "900000"),
}
"""The keys that mean something here; the others that real brokers have are not listed."""

RANGES: Final = {ConfigType.SHORT: 2**15, ConfigType.INT: 2**31, ConfigType.LONG: 2**63}


def refusal(key: ConfigKey | None, name: str, value: str | None) -> str | None:
    """Say why a value cannot be that key's, None if it can."""
    if key is None:
        return f"Unknown config name: {name}"
    if value is None:
        return f"Null value not supported for config: {name}"
    given = [part.strip() for part in value.split(",")] if key.type is LS else [value]
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


class Settings:
    """A broker's values: what was given, over the defaults. KeyError for what is no key."""

    def __init__(self, given: Mapping[str, str] = {}) -> None:
        for name, value in given.items():
            reason = refusal(BROKER_CONFIGS.get(name), name, value)
            if reason is not None:
                raise ValueError(reason)
        self.given: dict[str, str] = dict(given)
        self._altered: set[str] = set()
        self._numbers: dict[str, int] = {}

    def alter(self, name: str, value: str | None) -> None:
        """Set a value while the broker runs; None goes back to the default."""
        self._altered.add(name)
        self._numbers.pop(name, None)
        if value is None:
            self.given.pop(name, None)
        else:
            self.given[name] = value

    def source(self, name: str) -> ConfigSource:
        """Say where the value is from."""
        if name not in self.given:
            return ConfigSource.DEFAULT_CONFIG
        altered = name in self._altered
        return ConfigSource.DYNAMIC_BROKER_CONFIG if altered else ConfigSource.STATIC_BROKER_CONFIG

    def text(self, name: str) -> str:
        """The value as text."""
        found = self.given.get(name)
        return BROKER_CONFIGS[name].default if found is None else found

    def number(self, name: str) -> int:
        """The value of a numeric key."""
        found = self._numbers.get(name)  # every request needs some
        if found is None:
            found = self._numbers[name] = int(self.text(name))
        return found

    def seconds(self, name: str) -> float:
        """The value of a key in milliseconds."""
        return self.number(name) / 1000

    def flag(self, name: str) -> bool:
        """The value of a boolean key."""
        return self.text(name) == "true"

    def items(self, name: str) -> tuple[str, ...]:
        """The values of a list."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def topic(self, configs: Mapping[str, str], name: str) -> str:
        """A topic's value: its own, else the broker's."""
        own = configs.get(name)
        if own is not None:
            return own
        synonym = TOPIC_CONFIGS[name].synonym
        return TOPIC_CONFIGS[name].default if synonym is None else self.text(synonym)
