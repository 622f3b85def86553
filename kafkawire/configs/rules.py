"""What Kafka checks of values beside their type and range: values that belong together.

Each function returns why values are not valid, None if they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from .keys import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, ConfigKey, config_error
from .valid import ConfigType, items

Lookup = Callable[[str], str]
"""Key -> its value as text: of a topic, its own or that of the broker; or of a broker."""
Number = Callable[[str], int | None]
"""Key of a broker -> its number, None for a key that the release does not have."""
LEAST_LAG: Final = "min.compaction.lag.ms"
MOST_LAG: Final = "max.compaction.lag.ms"
REMOTE: Final = "remote.storage.enable"
PUSH_INTERVAL: Final = "interval.ms"
PUSH_INTERVAL_MS: Final = range(100, 3_600_001)
MATCH: Final = "match"
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
ASSIGNOR: Final = "streams.assignor.name"
TAGS: Final = "streams.rack.aware.assignment.tags"
INTERNAL_BOUNDS: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "streams.num.warmup.replicas": (None, 20),
    "streams.task.offset.interval.ms": (15_000, None),
}
"""Key of a group -> the bounds of which Kafka's keys are internal."""
COUNT: Final = "num."
"""In the names of numbers of things in groups, but not in those of the bounds of these."""
CLEANER_THREADS: Final = "log.cleaner.threads"
DEDUPE_BUFFER: Final = "log.cleaner.dedupe.buffer.size"
DEDUPE_BYTES: Final = 1 << 20
PER_IP: Final = "max.connections.per.ip"
OVERRIDES: Final = "max.connections.per.ip.overrides"
OVERRIDE: Final = re.compile(r".*:[+-]?\d{1,10}")
POSITIVE: Final = frozenset({"max.connection.creation.rate", "max.connections"})
RETENTION: Final = "log.retention.ms"
THREADS: Final = frozenset(
    {
        "background.threads",
        CLEANER_THREADS,
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
MATCHED: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What the clients of a subscription are matched by (KIP-714)."""


def key_error(
    keys: Mapping[str, ConfigKey], resource: str, name: str, value: str | None
) -> str | None:
    """Check one value by the table of a type of resource, as `topic` or `group`."""
    key = keys.get(name)
    if key is None:
        return f"Unknown {resource} config name: {name}"
    if value is None:
        return f"Null value not supported for {resource} configs: {name}"
    return resource_error(key, name, value)


def resource_error(key: ConfigKey, name: str, value: str) -> str | None:
    """Check a value of a topic, a group or client metrics: lists have each item once."""
    return config_error(key, name, key.normalized(value) if key.type is ConfigType.LIST else value)


def topic_error(value: Lookup) -> str | None:
    """Check the values of a topic with each other. Tiered storage is not supported."""
    least, most = int(value(LEAST_LAG)), int(value(MOST_LAG))
    if least > most:
        return f"conflict topic config setting {LEAST_LAG} ({least}) > {MOST_LAG} ({most})"
    if TOPIC_CONFIGS[REMOTE].normalized(value(REMOTE)) == "true":
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return None


def broker_error(name: str, value: str, text: Lookup) -> str | None:
    """Check a valid value that is to be set for brokers while they run. text: present values."""
    if name in THREADS:
        return _threads_error(name, int(value), int(text(name)))
    if name in POSITIVE and int(value) < 1:
        return f"Invalid {name} {value}"
    if name == RETENTION and int(value) == 0:
        return f"{name} must be unlimited (-1) or, greater than or equal to 1"
    if name == DEDUPE_BUFFER and int(value) < DEDUPE_BYTES * int(text(CLEANER_THREADS)):
        return f"{name} must be at least 1MB per cleaner thread."
    if name == PER_IP and int(value) == 0 and not text(OVERRIDES):
        return f"{name} can be set to zero only if {OVERRIDES} property is set."
    if name == OVERRIDES and not all(OVERRIDE.fullmatch(item) for item in items(value)):
        return f"Invalid value {value} for configuration {name}: expected host:count,host:count"
    return None


def _threads_error(name: str, value: int, present: int) -> str | None:
    """Check a number of threads: it is at most doubled or halved at once."""
    if value >= 1 and present // 2 <= value <= present * 2:
        return None
    return (
        f"Dynamic thread count update validation failed for {name}={value}, value should be "
        f"between half and double the current value {present}"
    )


def group_error(configs: Mapping[str, str], number: Number, assignors: str) -> str | None:
    """Check the values of a group with those of the broker, and with each other.

    assignors: those of Streams groups.
    """
    for name, value in configs.items():
        key = GROUP_CONFIGS[name]
        if key.type is ConfigType.INT:
            reason = _bounds_error(name, int(value), number)
            if reason is not None:
                return reason
    if configs.get(DEAD_LETTER_TOPIC, "").startswith("__"):
        return f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'"
    assignor = configs.get(ASSIGNOR)
    if assignor is not None and assignor.strip() not in items(assignors):
        registered = f"Registered assignors are: [{', '.join(items(assignors))}]."
        return f"{ASSIGNOR} '{assignor}' is not a registered task assignor. {registered}"
    tags = items(configs.get(TAGS, ""))
    if len(set(tags)) != len(tags):
        return f"{TAGS} must not contain duplicate tag keys."
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        both = session in configs and heartbeat in configs
        if both and int(configs[session]) <= int(configs[heartbeat]):
            return f"{session} must be greater than {heartbeat}"
    return None


def _bounds_error(name: str, value: int, number: Number) -> str | None:
    """Check a number of a group by `group.TYPE.min.REST` and `group.TYPE.max.REST`."""
    kind, _, rest = name.partition(".")
    low, high = (number(f"group.{kind}.{end}.{rest.removeprefix(COUNT)}") for end in ("min", "max"))
    low, high = INTERNAL_BOUNDS.get(name, (low, high))
    if (low is None or low <= value) and (high is None or value <= high):
        return None
    if low is None:
        return f"{name} must be less than or equal to {high}"
    if high is None:
        return f"{name} must be greater than or equal to {low}"
    return f"{name} must be in the range {low} to {high} inclusive."


def push_interval_error(value: str) -> str | None:
    """Check the push interval of a subscription of client metrics."""
    number = int(value)
    if number in PUSH_INTERVAL_MS:
        return None
    return (
        f"Invalid value {number} for {PUSH_INTERVAL}, "
        "interval must be between 100 and 3600000 (1 hour)"
    )


def match_error(value: str) -> str | None:
    """Check which clients a subscription of client metrics is for: `client_id=a.*,...`."""
    for pattern in items(CLIENT_METRICS_CONFIGS[MATCH].normalized(value)):
        name, _, expression = (part.strip() for part in pattern.partition("="))
        if name not in MATCHED or not expression or "=" in expression or not _compiles(expression):
            return f"Illegal client matching pattern: {pattern}"
    return None


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
