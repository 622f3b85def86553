"""How a consumer is configured, under Kafka's keys and with Kafka's defaults.

Law: as in `client.config`: every key is in a table, with its reading, default and meaning.

    {"group.id": "g", ...} ─▶ read_config(CONSUMER_KEYS, ...) ─▶ consumer_config ─▶ ConsumerConfig
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from ...errors import LocalProtocolError
from ..config import (
    CLIENT_KEYS,
    INT32,
    MILLISECONDS,
    Key,
    Setting,
    Values,
    boolean,
    integer,
    one_of,
    optional_text,
    seconds,
    text,
    whole,
)
from ..failures import ConfigurationError
from .assignors import ASSIGNORS, Assignor, protocol_of


class IsolationLevel(IntEnum):
    """What of transactions is read (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Reset(Enum):
    """Where to begin where there is no valid offset."""

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


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A consumer's configuration; seconds here, milliseconds in Kafka's keys."""

    group_id: str | None = None
    group_instance_id: str | None = None
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
            raise ConfigurationError("group.instance.id", "is of no use without a group.id")


DURATION: Final = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d{1,3})?)S)?)?"
)
"""ISO 8601 durations without months and years, as `by_duration:PT1H30M`."""


def reset(value: Setting) -> object:
    """Read earliest, latest, none, by_duration:<ISO 8601> (KIP-1106), by_timestamp:<ms> (ours)."""
    if isinstance(value, ResetPolicy):
        return value
    name, _, rest = str(value).partition(":")
    if name == Reset.TIMESTAMP.value and rest.isdigit():
        return ResetPolicy(Reset.TIMESTAMP, int(rest))
    found = DURATION.fullmatch(rest) if name == Reset.DURATION.value else None
    if found is not None and any(found.groups()):
        d, h, m = (int(found[each] or 0) for each in "dhm")
        seconds = ((d * 24 + h) * 60 + m) * 60 + float(found["s"] or 0)
        return ResetPolicy(Reset.DURATION, round(seconds * 1000))
    plain = {each.value: each for each in (Reset.EARLIEST, Reset.LATEST, Reset.NONE)}
    if rest or name not in plain:
        raise ValueError(f"{value!r} is no reset policy")
    return ResetPolicy(plain[name])


ASSIGNOR_HAS: Final = ("name", "rebalance_protocols", "user_data", "understand", "assign")


def assignors(value: Setting) -> object:
    """Read names, in a list or with commas; assignors of the user's own stand as they are."""
    listed: Sequence[object] = [value]
    if isinstance(value, str):
        listed = value.split(",")
    elif isinstance(value, list | tuple):
        listed = value
    found = tuple(map(assignor, listed))
    if not found:
        raise ValueError(f"{value!r} names no assignor")
    return found


def assignor(value: object) -> object:
    """Read one."""
    if isinstance(value, str):
        known = ASSIGNORS.get(value.strip())
        if known is None:
            raise ValueError(f"{value!r} is no assignor; Kafka's are {', '.join(ASSIGNORS)}")
        return known
    lacking = [each for each in ASSIGNOR_HAS if not hasattr(value, each)]
    if lacking:
        raise ValueError(f"{value!r} is no assignor: it has no {', '.join(lacking)}")
    return value


ISOLATION: Final = one_of("read_uncommitted", "read_committed")
POSITIVE_MS: Final = integer(1, INT32)
BYTES: Final = integer(0, INT32)
D: Final = ConsumerConfig()

CONSUMER_KEYS: Final[Mapping[str, Key]] = {
    **CLIENT_KEYS,
    "group.id": Key(text, None, "the group to read in"),
    "group.instance.id": Key(text, None, "our name in it, for a static member (KIP-345)"),
    "client.rack": Key(text, None, "where we are, to read from replicas nearby (KIP-392)"),
    "partition.assignment.strategy": Key(assignors, D.assignors, "assignors, the best first"),
    "session.timeout.ms": Key(POSITIVE_MS, 45_000, "without a heartbeat, we are out of the group"),
    "heartbeat.interval.ms": Key(POSITIVE_MS, 3_000, "how often to say that we are alive"),
    "max.poll.interval.ms": Key(POSITIVE_MS, 300_000, "without a poll, we leave the group"),
    "max.poll.records": Key(integer(1, INT32), 500, "the most that one poll returns"),
    "enable.auto.commit": Key(boolean, True, "commit what was returned by earlier polls"),
    "auto.commit.interval.ms": Key(MILLISECONDS, 5_000, "how often"),
    "auto.offset.reset": Key(reset, FROM_LATEST, "where to begin where nothing is committed"),
    "isolation.level": Key(ISOLATION, "read_uncommitted", "what of transactions is read"),
    "fetch.min.bytes": Key(BYTES, 1, "a broker waits for so much, ..."),
    "fetch.max.wait.ms": Key(MILLISECONDS, 500, "... but not longer"),
    "fetch.max.bytes": Key(BYTES, 52_428_800, "the most that one fetch returns"),
    "max.partition.fetch.bytes": Key(BYTES, 1_048_576, "... of one partition"),
    "check.crcs": Key(boolean, True, "whether record batches are verified"),
    "default.api.timeout.ms": Key(MILLISECONDS, 60_000, "how long a call may take"),
}
"""What a consumer takes."""


def consumer_config(values: Values) -> ConsumerConfig:
    """Make a consumer's configuration out of checked values (`read_config(CONSUMER_KEYS, ...)`)."""
    named = values["partition.assignment.strategy"]
    policy = values["auto.offset.reset"]
    assert isinstance(named, tuple)
    assert isinstance(policy, ResetPolicy)
    return ConsumerConfig(
        group_id=optional_text(values, "group.id"),
        group_instance_id=optional_text(values, "group.instance.id"),
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
