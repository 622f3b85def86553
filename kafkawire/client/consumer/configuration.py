"""The configuration of a consumer, with Kafka's keys and defaults.

As in `client.config`: every key is in a table, with its parser, default and description.

    {"group.id": "g", ...} ─▶ read_consumer_config ─▶ consumer_config ─▶ ConsumerConfig
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from ...configs.durations import duration_seconds
from ...errors import LocalProtocolError
from ...whole_numbers import whole_number
from ..config import (
    CLIENT_KEYS,
    INT32,
    INT64,
    MILLISECONDS,
    Key,
    Setting,
    Values,
    boolean,
    integer,
    one_of,
    optional_text,
    read_config,
    seconds,
    text,
    whole,
)
from ..failures import ConfigurationError
from .assignors import ASSIGNORS, Assignor, protocol_of


class IsolationLevel(IntEnum):
    """Which transactional records are read (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Reset(Enum):
    """Where to start without a valid offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    TIMESTAMP = "by_timestamp"
    DURATION = "by_duration"


class ResetPolicy(NamedTuple):
    """A reset with its milliseconds: since the epoch (TIMESTAMP), or before now (DURATION)."""

    kind: Reset
    ms: int = 0


FROM_LATEST: Final = ResetPolicy(Reset.LATEST)


class GroupProtocol(Enum):
    """Who computes the assignments of a group: one of its members, or its coordinator (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


NOT_OF_PROTOCOL: Final[Mapping[GroupProtocol, Mapping[str, str]]] = {
    GroupProtocol.CLASSIC: {
        "group.remote.assignor": "set partition.assignment.strategy, or group.protocol=consumer",
    },
    GroupProtocol.CONSUMER: {
        "partition.assignment.strategy": "the coordinator assigns: set group.remote.assignor",
        "session.timeout.ms": "the broker decides: group.consumer.session.timeout.ms, or "
        "consumer.session.timeout.ms of the group",
        "heartbeat.interval.ms": "the broker decides: group.consumer.heartbeat.interval.ms, or "
        "consumer.heartbeat.interval.ms of the group",
    },
}
"""Group protocol -> the keys that it does not have -> what to set instead."""


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A consumer's configuration; seconds here, milliseconds in Kafka's keys."""

    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    group_remote_assignor: str | None = None
    client_rack: str = ""
    assignors: tuple[Assignor, ...] = (ASSIGNORS["range"], ASSIGNORS["cooperative-sticky"])
    session_timeout_s: float = 45.0
    heartbeat_interval_s: float = 3.0
    max_poll_interval_s: float = 300.0
    max_poll_records: int = 500
    enable_auto_commit: bool = True
    auto_commit_interval_s: float = 5.0
    auto_offset_reset: ResetPolicy = FROM_LATEST
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_s: float = 0.5
    max_partition_fetch_bytes: int = 1_048_576
    check_crcs: bool = True
    request_timeout_s: float = 30.0
    default_api_timeout_s: float = 60.0
    retry_backoff_s: float = 0.1
    retry_backoff_max_s: float = 1.0

    def __post_init__(self) -> None:
        try:
            protocol_of(self.assignors)
        except LocalProtocolError as error:
            raise ConfigurationError("partition.assignment.strategy", str(error)) from None
        if self.heartbeat_interval_s >= self.session_timeout_s:
            raise ConfigurationError("heartbeat.interval.ms", "must be below session.timeout.ms")
        if self.group_id is None and self.group_instance_id is not None:
            raise ConfigurationError("group.instance.id", "requires group.id")


def reset(value: Setting) -> object:
    """Parse earliest, latest, none, by_duration:<ISO 8601> (KIP-1106), by_timestamp:<ms> (ours)."""
    if isinstance(value, ResetPolicy):
        return value
    name, _, rest = str(value).partition(":")
    timestamp = whole_number(rest, INT64)
    if name == Reset.TIMESTAMP.value and timestamp is not None:
        return ResetPolicy(Reset.TIMESTAMP, timestamp)
    duration = duration_seconds(str(value))
    if duration is not None:
        return ResetPolicy(Reset.DURATION, round(duration * 1000))
    plain = {each.value: each for each in (Reset.EARLIEST, Reset.LATEST, Reset.NONE)}
    if rest or name not in plain:
        raise ValueError(f"invalid reset policy {value!r}")
    return ResetPolicy(plain[name])


ASSIGNOR_ATTRIBUTES: Final = ("name", "rebalance_protocols", "user_data", "understand", "assign")


def assignors(value: Setting) -> object:
    """Parse a list of assignors or a comma-separated list of names."""
    listed: Sequence[object] = [value]
    if isinstance(value, str):
        listed = value.split(",")
    elif isinstance(value, list | tuple):
        listed = value
    parsed = tuple(map(assignor, listed))
    if not parsed:
        raise ValueError("expected at least one assignor")
    return parsed


def assignor(value: object) -> object:
    """Return an assignor by name; custom assignors as they are."""
    if isinstance(value, str):
        by_name = ASSIGNORS.get(value.strip())
        if by_name is None:
            raise ValueError(f"unknown assignor {value!r}: expected one of {', '.join(ASSIGNORS)}")
        return by_name
    missing = [each for each in ASSIGNOR_ATTRIBUTES if not hasattr(value, each)]
    if missing:
        raise ValueError(f"invalid assignor {value!r}: missing {', '.join(missing)}")
    return value


ISOLATION: Final = one_of("read_uncommitted", "read_committed")
POSITIVE_MS: Final = integer(1, INT32)
BYTES: Final = integer(0, INT32)
D: Final = ConsumerConfig()

CONSUMER_KEYS: Final[Mapping[str, Key]] = {
    **CLIENT_KEYS,
    "group.id": Key(text, None, "the consumer group"),
    "group.instance.id": Key(text, None, "the instance id of a static member (KIP-345)"),
    "group.protocol": Key(
        one_of(*(each.value for each in GroupProtocol)),
        "classic",
        "who computes assignments: a member, or the coordinator (consumer, KIP-848)",
    ),
    "group.remote.assignor": Key(
        text, None, "the assignor of the coordinator, as uniform or range; default: the broker's"
    ),
    "client.rack": Key(
        text, None, "the rack of this client, to fetch from the nearest replica (KIP-392)"
    ),
    "partition.assignment.strategy": Key(
        assignors, D.assignors, "assignors in order of preference"
    ),
    "session.timeout.ms": Key(
        POSITIVE_MS, 45_000, "without heartbeats the member is removed from the group"
    ),
    "heartbeat.interval.ms": Key(POSITIVE_MS, 3_000, "the time between heartbeats"),
    "max.poll.interval.ms": Key(POSITIVE_MS, 300_000, "without a poll the member leaves the group"),
    "max.poll.records": Key(
        integer(1, INT32), 500, "the maximum number of records that a poll returns"
    ),
    "enable.auto.commit": Key(boolean, True, "commit the offsets of earlier polls automatically"),
    "auto.commit.interval.ms": Key(MILLISECONDS, 5_000, "the time between automatic commits"),
    "auto.offset.reset": Key(reset, FROM_LATEST, "where to start without a committed offset"),
    "isolation.level": Key(ISOLATION, "read_uncommitted", "which transactional records are read"),
    "fetch.min.bytes": Key(BYTES, 1, "a broker waits for this many bytes, ..."),
    "fetch.max.wait.ms": Key(MILLISECONDS, 500, "... but not longer than this"),
    "fetch.max.bytes": Key(BYTES, 52_428_800, "the maximum bytes of a fetch response"),
    "max.partition.fetch.bytes": Key(
        BYTES, 1_048_576, "the maximum bytes of one partition in a fetch response"
    ),
    "check.crcs": Key(boolean, True, "verify the checksums of record batches"),
    "default.api.timeout.ms": Key(MILLISECONDS, 60_000, "the default timeout of calls"),
}
"""The settings of a consumer."""


def read_consumer_config(settings: Mapping[str, Setting]) -> dict[str, object]:
    """Check a configuration as `read_config`, and that its keys are of its group protocol."""
    values = read_config(CONSUMER_KEYS, settings)
    protocol = GroupProtocol(values["group.protocol"])
    for name, instead in NOT_OF_PROTOCOL[protocol].items():
        if name in settings:
            reason = f"cannot be set with group.protocol={protocol.value}: {instead}"
            raise ConfigurationError(name, reason)
    return values


def consumer_config(values: Values) -> ConsumerConfig:
    """Return the configuration of checked values (`read_consumer_config`)."""
    named = values["partition.assignment.strategy"]
    policy = values["auto.offset.reset"]
    assert isinstance(named, tuple)
    assert isinstance(policy, ResetPolicy)
    return ConsumerConfig(
        group_id=optional_text(values, "group.id"),
        group_instance_id=optional_text(values, "group.instance.id"),
        group_protocol=GroupProtocol(values["group.protocol"]),
        group_remote_assignor=optional_text(values, "group.remote.assignor"),
        client_rack=optional_text(values, "client.rack") or "",
        assignors=named,
        session_timeout_s=seconds(values, "session.timeout.ms"),
        heartbeat_interval_s=seconds(values, "heartbeat.interval.ms"),
        max_poll_interval_s=seconds(values, "max.poll.interval.ms"),
        max_poll_records=whole(values, "max.poll.records"),
        enable_auto_commit=values["enable.auto.commit"] is True,
        auto_commit_interval_s=seconds(values, "auto.commit.interval.ms"),
        auto_offset_reset=policy,
        isolation_level=IsolationLevel[str(values["isolation.level"]).upper()],
        fetch_min_bytes=whole(values, "fetch.min.bytes"),
        fetch_max_bytes=whole(values, "fetch.max.bytes"),
        fetch_max_wait_s=seconds(values, "fetch.max.wait.ms"),
        max_partition_fetch_bytes=whole(values, "max.partition.fetch.bytes"),
        check_crcs=values["check.crcs"] is True,
        request_timeout_s=seconds(values, "request.timeout.ms"),
        default_api_timeout_s=seconds(values, "default.api.timeout.ms"),
        retry_backoff_s=seconds(values, "retry.backoff.ms"),
        retry_backoff_max_s=seconds(values, "retry.backoff.max.ms"),
    )
