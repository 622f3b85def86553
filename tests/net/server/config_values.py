"""Values of the configurations of topics, groups, client metrics and brokers, valid and not."""

from __future__ import annotations

from typing import Final

from kafkawire.configs import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    ConfigType,
    ResourceType,
    Update,
    broker_configs,
)

Value = tuple[str, str]
WHOLE: Final = ("", "x", "1_0", "٣", "0x10", "9" * 20, " +7 ", "1.5", "NaN")
TEXTS: Final = {
    ConfigType.BOOLEAN: ("yes", " TRUE "),
    ConfigType.STRING: ("nonsense",),
    ConfigType.LIST: ("", "a,", "a,,b", "a , a"),
    ConfigType.DOUBLE: ("", "x", "1_0", "inf", " .5d", "1e0", "1e7", "-12.5e-5"),
    ConfigType.INT: WHOLE,
    ConfigType.LONG: WHOLE,
}
"""Type of a key -> values to try."""


def bounds(key: ConfigKey) -> list[str]:
    """Return the values next to the bounds of a key, and those that are listed."""
    ends = [end for end in (key.valid.least, key.valid.most, *key.valid.also) if end is not None]
    near = [str(int(end) + step) for end in ends for step in (-1, 0, 1)]
    return [*near, *key.valid.one_of, *map(str.swapcase, key.valid.one_of)]


FURTHER: Final[dict[ResourceType, tuple[Value, ...]]] = {
    ResourceType.TOPIC: (
        ("nothing", "1"),
        ("cleanup.policy", " delete , compact "),
        ("cleanup.policy", "delete,delete"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "*,1:1"),
        ("leader.replication.throttled.replicas", "1:1,1:1"),
        ("leader.replication.throttled.replicas", "1:1, "),
        ("min.cleanable.dirty.ratio", ".5d"),
        ("internal.segment.bytes", "100"),
        ("max.compaction.lag.ms", "5"),
        ("min.compaction.lag.ms", "10"),
    ),
    ResourceType.GROUP: (
        ("nothing", "1"),
        ("consumer.heartbeat.interval.ms", "600"),
        ("consumer.session.timeout.ms", "50000"),
        ("share.auto.offset.reset", "by_duration:PT1H"),
        ("share.auto.offset.reset", "by_duration:1h"),
        ("share.delivery.count.limit", "7"),
        ("streams.assignor.name", "sticky"),
        ("streams.num.standby.replicas", "3"),
        ("consumer.assignment.interval.ms", "99999"),
    ),
    ResourceType.CLIENT_METRICS: (
        ("nothing", "1"),
        ("interval.ms", "99"),
        ("interval.ms", "100"),
        ("interval.ms", "3600000"),
        ("interval.ms", "3600001"),
        ("match", "client_id=a.*, client_software_name=b"),
        ("match", "client_id"),
        ("match", "client_id=a=b"),
        ("match", "client_id="),
        ("match", "other=a"),
        ("match", "client_id=["),
        ("metrics", "*"),
        ("metrics", "org.apache.kafka.consumer."),
    ),
    ResourceType.BROKER: (
        ("broker.id", "5"),
        ("log.retention.hours", "5"),
        ("num.io.threads", "5"),
        ("ssl.keystore.location", "/x"),
        ("log.cleaner.threads", "0"),
        ("log.cleaner.dedupe.buffer.size", "5"),
        ("log.cleanup.policy", "delete,delete"),
        ("log.retention.ms", "0"),
        ("max.connections", "0"),
        ("max.connections.per.ip.overrides", "a"),
        ("max.connections.per.ip.overrides", "a:1,b:2"),
        ("num.io.threads", "9"),
        ("num.replica.fetchers", "3"),
    ),
}
"""Type of a resource -> values of which tables of keys say nothing."""
KEYS: Final = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}


def values_of(type: ResourceType, release: str) -> list[Value]:
    """Return the values to try: of each key by its bounds, of one key of each type by that.

    Of keys of brokers, only those that can be set while these run.
    """
    dynamic = {
        name: key
        for name, key in broker_configs(release).items()
        if key.update is not Update.READ_ONLY
    }
    keys = KEYS.get(type, dynamic)
    one_each = {key.type: name for name, key in keys.items() if not key.valid.one_of}
    of_types = [(name, text) for type, name in one_each.items() for text in TEXTS.get(type, ())]
    of_keys = [(name, value) for name, key in keys.items() for value in bounds(key)]
    return list(dict.fromkeys([*of_types, *of_keys, *FURTHER[type]]))
