"""Keys of topics and brokers exist, and their values are checked, as in the emulated release."""

from __future__ import annotations

import pytest

from kafkawire.configs import TOPIC_CONFIGS, ResourceType, broker_configs, topic_configs
from kafkawire.configs.keys import OUTSIDE
from kafkawire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.protocol import ErrorCode as E
from tests.broker.harness import Harness

from .test_configs import BROKER, TOPIC, describe, replace, set_one

ADDED = {"2.8": {"message.downconversion.enable", "message.format.version"}}
ADDED["3.9"] = ADDED["2.8"] | {"message.timestamp.difference.max.ms"}
DIFFER = [
    ("flush.messages", "0", "2.8"),
    ("segment.bytes", "14", "2.8"),
    ("segment.bytes", "14", "3.9"),
    ("segment.index.bytes", "0", "2.8"),
    ("message.format.version", "2.8", "2.8"),
    ("message.downconversion.enable", "false", "3.9"),
    ("remote.copy.lag.ms", "5", "4.4"),
]
"""(key of a topic, value, release in which it is valid); it is not in the others of the test."""
OLDEST_WITH = {"flush.messages": "3.9", "segment.index.bytes": "3.9"}


def harness(release: str) -> Harness:
    return Harness(topics={"t": 1}, release=release)


@pytest.mark.parametrize("release", ["2.8", "3.9", "4.4"])
def test_a_topic_has_the_keys_of_its_release(release: str) -> None:
    configs = describe(harness(release).client(), TOPIC, "t")
    keys = {name for name, key in topic_configs(release).items() if not key.internal}
    assert configs.keys() == keys
    assert ADDED.get(release, set()) <= keys
    assert ("message.format.version" in keys) == (release < "4.0")
    assert ("remote.storage.enable" in keys) == (release >= "3.9")
    assert configs["segment.bytes"].synonyms[0].name == "log.segment.bytes"


def test_defaults_of_topics_are_those_of_the_release() -> None:
    configs = describe(harness("3.9").client(), TOPIC, "t")
    assert configs["message.format.version"].value == "3.0-IV1"
    assert configs["message.timestamp.after.max.ms"].value == str(2**63 - 1)
    newest = describe(harness("4.4").client(), TOPIC, "t")
    assert newest["message.timestamp.after.max.ms"].value == "3600000"


@pytest.mark.parametrize(("key", "value", "release"), DIFFER)
def test_values_of_topics_are_valid_in_one_release_and_not_in_another(
    key: str, value: str, release: str
) -> None:
    other = OLDEST_WITH.get(key, "3.9" if release == "4.4" else "4.4")
    for of, expected in ((release, E.NONE), (other, E.INVALID_CONFIG)):
        client = harness(of).client()
        assert replace(client, TOPIC, "t", (key, value)) == expected, of
        assert set_one(client, TOPIC, "t", key, value) == expected, of
        config = CreatableTopicConfig(name=key, value=value)
        topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=[config])
        [created] = client.exchange(
            CreateTopicsRequest(topics=[topic]), 5, CreateTopicsResponse
        ).topics
        assert created.error_code == expected, of


def test_configs_in_the_response_to_create_topics_are_those_of_the_release() -> None:
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic])
    for release in ("2.8", "4.4"):
        [created] = harness(release).client().exchange(request, 5, CreateTopicsResponse).topics
        assert created.configs is not None
        names = {each.name for each in created.configs}
        assert ("message.format.version" in names) == (release == "2.8")


def test_values_of_brokers_are_checked_as_in_the_release() -> None:
    for release, expected in (("3.9", E.NONE), ("4.4", E.INVALID_REQUEST)):
        client = harness(release).client()
        assert set_one(client, BROKER, "", "log.segment.bytes", "14") == expected


@pytest.mark.parametrize(
    ("release", "expected"),
    [("3.9", E.INVALID_REQUEST), ("4.2", E.INVALID_CONFIG), ("4.3", E.NONE)],
)
def test_groups_have_the_keys_of_the_release(release: str, expected: E) -> None:
    client = harness(release).client()
    key = ("share.delivery.count.limit", "6")
    assert set_one(client, ResourceType.GROUP, "g", *key) == expected


@pytest.mark.parametrize(
    ("kind", "since", "before"),
    [(ResourceType.GROUP, "4.0", "3.9"), (ResourceType.CLIENT_METRICS, "3.7", "3.6")],
)
def test_resources_have_configs_since_a_release(kind: int, since: str, before: str) -> None:
    """As a broker of 3.9 responds for groups."""
    key = {ResourceType.GROUP: "share.heartbeat.interval.ms"}.get(ResourceType(kind), "interval.ms")
    resource = DescribeConfigsResource(resource_type=kind, resource_name="g")
    request = DescribeConfigsRequest(resources=[resource])
    for release, expected in ((since, E.NONE), (before, E.INVALID_REQUEST)):
        client = harness(release).client()
        [result] = client.exchange(request, 2, DescribeConfigsResponse).results
        assert result.error_code == expected, release
        assert set_one(client, kind, "g", key, "5000") == expected, release


def test_client_metrics_have_their_defaults_since_4_0() -> None:
    for release, names in (("3.9", set()), ("4.4", {"interval.ms", "match", "metrics"})):
        configs = describe(harness(release).client(), ResourceType.CLIENT_METRICS, "g")
        assert configs.keys() == names
    client = harness("3.9").client()
    assert set_one(client, ResourceType.CLIENT_METRICS, "g", "interval.ms", "6000") == E.NONE
    assert describe(client, ResourceType.CLIENT_METRICS, "g").keys() == {"interval.ms"}


def test_releases_in_between_have_the_keys_of_the_next_one_that_was_read() -> None:
    assert topic_configs("2.2") == topic_configs("2.8") != topic_configs("3.0")
    assert topic_configs("3.0") == topic_configs("3.9") != topic_configs("4.0")
    assert topic_configs("4.0") == topic_configs("trunk") == TOPIC_CONFIGS


@pytest.mark.parametrize("release", ["2.8", "3.9"])
def test_synonyms_are_keys_of_the_brokers_of_the_release(release: str) -> None:
    brokers = broker_configs(release).keys() | OUTSIDE.keys()
    for name, key in topic_configs(release).items():
        if not key.internal:
            assert {each.name for each in key.synonyms} <= brokers, name
