"""Configuration under Kafka's keys, and the failures a user meets."""

from __future__ import annotations

import pickle

import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import (
    ASSIGNORS,
    CommitFailed,
    ConsumerConfig,
    ConsumerError,
    GroupProtocol,
    IsolationLevel,
    NoOffset,
    RangeAssignor,
    Reset,
    ResetPolicy,
    TopicPartition,
    consumer_config,
    read_consumer_config,
)
from kafkawire.client.failures import ConfigurationError
from kafkawire.protocol.error_code import ErrorCode

SERVERS = {"bootstrap.servers": "localhost:9092"}


def config_of(**config: Setting) -> ConsumerConfig:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return consumer_config(read_consumer_config(SERVERS | given))


def test_defaults_are_kafkas() -> None:
    assert config_of() == ConsumerConfig()


def test_milliseconds_become_seconds() -> None:
    config = config_of(session_timeout_ms="9000", heartbeat_interval_ms=500, fetch_max_wait_ms=20)
    assert config.session_timeout_s == 9.0
    assert config.heartbeat_interval_s == 0.5
    assert config.fetch_max_wait_s == 0.02


def test_a_group_whose_coordinator_assigns() -> None:
    config = config_of(group_protocol="CONSUMER", group_remote_assignor="range", group_id="g")
    assert config.group_protocol is GroupProtocol.CONSUMER
    assert config.group_remote_assignor == "range"
    assert config_of().group_protocol is GroupProtocol.CLASSIC


@pytest.mark.parametrize(
    ("protocol", "key", "value", "instead"),
    [
        ("consumer", "session.timeout.ms", 45_000, "group.consumer.session.timeout.ms"),
        ("consumer", "heartbeat.interval.ms", 3_000, "group.consumer.heartbeat.interval.ms"),
        ("consumer", "partition.assignment.strategy", "range", "group.remote.assignor"),
        ("classic", "group.remote.assignor", "uniform", "partition.assignment.strategy"),
    ],
)
def test_keys_that_a_group_protocol_does_not_have(
    protocol: str, key: str, value: Setting, instead: str
) -> None:
    """As Java's consumer, even where the value is the default."""
    with pytest.raises(ConfigurationError) as caught:
        read_consumer_config(SERVERS | {"group.protocol": protocol, key: value})
    for part in (key, f"group.protocol={protocol}", instead):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("earliest", ResetPolicy(Reset.EARLIEST)),
        ("none", ResetPolicy(Reset.NONE)),
        ("by_duration:PT1H30M", ResetPolicy(Reset.DURATION, 5_400_000)),
        ("by_duration:P1DT0.25S", ResetPolicy(Reset.DURATION, 86_400_250)),
        ("by_timestamp:17", ResetPolicy(Reset.TIMESTAMP, 17)),
    ],
)
def test_reset_policies(text: str, policy: ResetPolicy) -> None:
    assert config_of(auto_offset_reset=text).auto_offset_reset == policy


@pytest.mark.parametrize(
    "text",
    [
        *("oldest", "by_duration:", "by_duration:P", "by_timestamp:x", ""),
        f"by_duration:PT{'9' * 400}S",
        f"by_duration:P{'9' * 5_000}D",
        f"by_timestamp:{'9' * 5_000}",
    ],
)
def test_invalid_reset_policy(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"auto\.offset\.reset"):
        config_of(auto_offset_reset=text)


def test_assignors_by_name_and_custom() -> None:
    class Mine(RangeAssignor):
        """A user's own."""

    assert config_of(partition_assignment_strategy="sticky, range").assignors == (
        ASSIGNORS["sticky"],
        ASSIGNORS["range"],
    )
    mine = Mine()
    assert config_of(partition_assignment_strategy=[mine, "range"]).assignors == (
        mine,
        ASSIGNORS["range"],
    )
    assert config_of(partition_assignment_strategy=mine).assignors == (mine,)


class IncompleteAssignor:
    """An assignor without most of its methods."""

    name = "nearly"

    def assign(self) -> None: ...


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rangy", "unknown assignor 'rangy': expected one of range, roundrobin"),
        (IncompleteAssignor(), "missing rebalance_protocols, user_data, understand"),
        (7, "invalid assignor 7"),
        ([], "expected at least one assignor"),
    ],
)
def test_invalid_assignor(given: Setting, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        config_of(partition_assignment_strategy=given)


@pytest.mark.parametrize(
    "config",
    [
        {"heartbeat_interval_ms": 45_000},
        {"group_instance_id": "one"},
        {"max_poll_records": 0},
        {"isolation_level": "dirty"},
        {"enable_auto_commit": "maybe"},
        {"group_idd": "g"},
    ],
)
def test_invalid_settings_name_the_key(config: dict[str, Setting]) -> None:
    with pytest.raises(ConfigurationError) as found:
        config_of(**config)
    assert found.value.key == next(iter(config)).replace("_", ".")


def test_isolation() -> None:
    assert (
        config_of(isolation_level="read_committed").isolation_level is IsolationLevel.READ_COMMITTED
    )


@pytest.mark.parametrize("kind", [ConsumerError, CommitFailed, NoOffset])
def test_failures_pickle_and_name_partitions(kind: type[ConsumerError]) -> None:
    partitions = [TopicPartition("orders", n) for n in range(7)]
    error = kind("nothing is there", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.reason, again.code, again.partitions) == (
        error.reason, error.code, tuple(partitions),
    )  # fmt: skip
    text = str(again)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in text
    assert "orders-0" in text
    assert "and 2 more" in text
    assert again.retriable
