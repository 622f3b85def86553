"""The configuration of a share consumer, and its errors."""

from __future__ import annotations

import pickle

import pytest

from kafkawire.client.config import Setting, read_config
from kafkawire.client.consumer import TopicPartition
from kafkawire.client.failures import ConfigurationError
from kafkawire.client.share_consumer import (
    SHARE_CONSUMER_KEYS,
    AcknowledgeFailed,
    AcknowledgementMode,
    AcquireMode,
    ShareConsumerConfig,
    share_consumer_config,
)
from kafkawire.net.share_consumer import ShareConsumer
from kafkawire.protocol.error_code import ErrorCode

REQUIRED = {"bootstrap.servers": "localhost:9092", "group.id": "g"}


def config_of(**config: Setting) -> ShareConsumerConfig:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return share_consumer_config(read_config(SHARE_CONSUMER_KEYS, REQUIRED | settings))


def test_defaults_are_kafkas() -> None:
    assert config_of() == ShareConsumerConfig("g")


def test_modes() -> None:
    config = config_of(
        share_acknowledgement_mode="EXPLICIT",
        share_acquire_mode="record_limit",
        fetch_max_wait_ms="20",
        client_rack="a",
    )
    assert config.acknowledgement_mode is AcknowledgementMode.EXPLICIT
    assert config.acquire_mode is AcquireMode.RECORD_LIMIT
    assert (config.fetch_max_wait_s, config.client_rack) == (0.02, "a")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("share.acknowledgement.mode", "manual", "implicit, explicit"),
        ("share.acquire.mode", "strict", "batch_optimized, record_limit"),
        ("max.poll.records", 0, "not between 1 and"),
        ("enable.auto.commit", False, "unknown key"),
        ("auto.offset.reset", "earliest", "unknown key"),
    ],
)
def test_invalid_values_are_named(key: str, value: Setting, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        read_config(SHARE_CONSUMER_KEYS, REQUIRED | {key: value})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("key", "of_group"),
    [
        ("auto.offset.reset", "share.auto.offset.reset"),
        ("isolation_level", "share.isolation.level"),
        ("share.auto.offset.reset", "share.auto.offset.reset"),
    ],
)
def test_configurations_of_the_group_are_named(key: str, of_group: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{of_group}, a configuration of the group"):
        ShareConsumer({**REQUIRED, key: "earliest"})


def test_a_group_is_required() -> None:
    with pytest.raises(ConfigurationError, match=r"group\.id"):
        read_config(SHARE_CONSUMER_KEYS, {"bootstrap.servers": "localhost:9092"})


def test_errors_pickle() -> None:
    where = [TopicPartition("orders", 0)]
    error = AcknowledgeFailed("refused", ErrorCode.INVALID_RECORD_STATE, where)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code) == (str(error), error.code)
    assert "orders-0" in str(error)
