"""Configuration: what brokers and topics describe, AlterConfigs, features; by release."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafkawire import ApiKey, ErrorCode
from kafkawire.broker.apis import Listener, served_on, supported_apis
from kafkawire.broker.releases import LATEST, numbered, releases
from kafkawire.configs import BROKER_CONFIGS, ConfigType, Update, broker_configs
from kafkawire.configs.features import UNSERVED, features, served_level
from kafkawire.configs.keys import OUTSIDE
from kafkawire.messages import alter_configs_request as full
from kafkawire.messages import incremental_alter_configs_request as some
from kafkawire.messages.alter_configs_response import AlterConfigsResponse
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
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
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.broker.harness import Client, Harness
from tests.broker.log.test_log import batch, offset_at, produce

E = ErrorCode
TOPIC, BROKER, LOGGER, METRICS = 2, 4, 8, 16
EARLIEST = -2
STATIC, DYNAMIC, ALL_BROKERS, DEFAULT = 4, 2, 3, 5


def describe(client: Client, kind: int, name: str, version: int = 4, *keys: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=version > 0)
    [result] = client.exchange(request, version, DescribeConfigsResponse).results
    assert (result.error_code, result.error_message) == (E.NONE, "")
    return {each.name: each for each in result.configs}


def replace(
    client: Client, kind: int, name: str, *values: tuple[str, str | None], validate: bool = False
) -> int:
    configs = [full.AlterableConfig(name=key, value=value) for key, value in values]
    resource = full.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = full.AlterConfigsRequest(resources=[resource], validate_only=validate)
    [response] = client.exchange(request, 2, AlterConfigsResponse).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    assert (response.error_message is None) == (response.error_code == E.NONE)
    return response.error_code


def set_one(client: Client, kind: int, name: str, key: str, value: str | None, how: int = 0) -> int:
    config = some.AlterableConfig(name=key, config_operation=how, value=value)
    resource = some.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    request = some.IncrementalAlterConfigsRequest(resources=[resource])
    [response] = client.exchange(request, 1, IncrementalAlterConfigsResponse).responses
    return response.error_code


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 1}, settings={"num.io.threads": "4"}, release="4.3")


@pytest.fixture
def client(harness: Harness) -> Client:
    return harness.client()


@pytest.mark.parametrize("version", [2, 4, 5, 7])
def test_a_topic_that_is_made_has_a_null_error_message(client: Client, version: int) -> None:
    topic = CreatableTopic(name="made", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
    [made] = client.exchange(request, version, CreateTopicsResponse).topics
    assert (made.error_code, made.error_message) == (E.NONE, None)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_describe_configs_has_an_empty_error_message(client: Client, version: int) -> None:
    assert "retention.ms" in describe(client, TOPIC, "t", version)  # asserted in `describe`


def test_a_broker_says_who_it_is_and_where_it_listens(client: Client) -> None:
    found = describe(client, BROKER, "1")
    listeners = found["advertised.listeners"]
    assert "PLAINTEXT://broker-1:9091" in listeners.value.split(",")
    assert listeners.config_source == STATIC
    for name, value in (
        ("node.id", "1"),
        ("broker.id", "1"),
        ("num.io.threads", "4"),
    ):
        assert (found[name].value, found[name].config_source) == (value, STATIC), name
    assert [each.value for each in found["num.io.threads"].synonyms] == ["4", "8"]
    assert found["node.id"].read_only
    assert not found["num.io.threads"].read_only


def test_passwords_are_sensitive_and_never_shown() -> None:
    harness = Harness(settings={"ssl.key.password": "secret"}, release="4.3")
    found = describe(harness.client(), BROKER, "1")
    password = found["ssl.key.password"]
    assert password.is_sensitive
    assert password.value is None
    assert [each.value for each in password.synonyms] == [None]
    assert {name for name, each in found.items() if each.is_sensitive} == {
        name for name, key in broker_configs("4.3").items() if key.type is ConfigType.PASSWORD
    }


COUNTS = {"2.2": 188, "2.8": 218, "3.9": 314, "4.0": 289, "4.3": 340, "4.4": 350}


@pytest.mark.parametrize("release", COUNTS)
def test_a_broker_has_the_keys_of_its_release(release: str) -> None:
    """The number of public keys in its `ConfigDef`."""
    found = describe(Harness(release=release).client(), BROKER, "1", 1)
    assert len(found) == COUNTS[release]
    assert ("zookeeper.connect" in found) == (release < "4.0")
    assert ("node.id" in found) == (release >= "3.0"), "internal in 2.8"
    assert found["message.max.bytes"].value == ("1000012" if release < "2.5" else "1048588")


def test_every_release_has_keys_and_every_key_a_release() -> None:
    known: set[str] = set()
    for release in numbered():
        known |= broker_configs(release).keys()
    assert known == BROKER_CONFIGS.keys() - OUTSIDE.keys()
    assert broker_configs("trunk") == broker_configs(LATEST) == broker_configs("all")


def test_alter_configs_replaces_all_that_was_set(harness: Harness, client: Client) -> None:
    assert (
        replace(client, TOPIC, "t", ("retention.ms", "5"), ("segment.bytes", "2097152")) == E.NONE
    )
    assert replace(client, TOPIC, "t", ("retention.ms", "6")) == E.NONE
    found = describe(client, TOPIC, "t")
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("6", 1)
    assert found["segment.bytes"].config_source == DEFAULT
    assert replace(client, TOPIC, "t", validate=True) == E.NONE
    assert describe(client, TOPIC, "t")["retention.ms"].value == "6"
    assert describe(harness.restored().client(), TOPIC, "t")["retention.ms"].value == "6"
    assert replace(client, TOPIC, "t") == E.NONE
    assert describe(client, TOPIC, "t")["retention.ms"].config_source == DEFAULT


def test_alter_configs_of_a_broker_keeps_what_its_file_says(
    harness: Harness, client: Client
) -> None:
    assert replace(client, BROKER, "1", ("num.io.threads", "5")) == E.NONE
    altered = describe(client, BROKER, "1")["num.io.threads"]
    assert [(each.value, each.source) for each in altered.synonyms] == [
        ("5", DYNAMIC),
        ("4", STATIC),
        ("8", DEFAULT),
    ]
    for_all = ("background.threads", "7"), ("min.insync.replicas", "1")
    assert replace(client, BROKER, "", *for_all) == E.NONE
    assert describe(client, BROKER, "").keys() == {name for name, _ in for_all}
    again = describe(harness.restored().client(), BROKER, "1")
    assert again["background.threads"].config_source == ALL_BROKERS
    assert again["num.io.threads"].config_source == DYNAMIC
    assert replace(client, BROKER, "1") == E.NONE
    found = describe(client, BROKER, "1")
    assert (found["num.io.threads"].value, found["num.io.threads"].config_source) == ("4", STATIC)
    assert found["background.threads"].config_source == ALL_BROKERS, "another resource's"


def test_a_value_of_one_broker_is_described_before_that_of_all(client: Client) -> None:
    key = "num.io.threads"
    assert set_one(client, BROKER, "", key, "6") == E.NONE
    assert replace(client, BROKER, "1", (key, "5")) == E.NONE
    row = describe(client, BROKER, "1")[key]
    assert [(synonym.value, synonym.source) for synonym in row.synonyms] == [
        ("5", DYNAMIC),
        ("6", ALL_BROKERS),
        ("4", STATIC),
        ("8", DEFAULT),
    ]
    assert describe(client, BROKER, "")[key].value == "6"
    assert replace(client, BROKER, "1") == E.NONE
    assert describe(client, BROKER, "1")[key].value == "6"


WRONG: list[tuple[int, str, list[tuple[str, str | None]], ErrorCode]] = [
    (TOPIC, "nobody", [("retention.ms", "5")], E.UNKNOWN_TOPIC_OR_PARTITION),
    (TOPIC, "bad name", [("retention.ms", "5")], E.INVALID_TOPIC_EXCEPTION),
    (TOPIC, "", [("retention.ms", "5")], E.INVALID_REQUEST),
    (TOPIC, "t", [("nothing", "5")], E.INVALID_CONFIG),
    (TOPIC, "t", [("retention.ms", "x")], E.INVALID_CONFIG),
    (TOPIC, "t", [("retention.ms", None)], E.INVALID_REQUEST),
    (TOPIC, "t", [("retention.ms", "1"), ("retention.ms", "2")], E.INVALID_REQUEST),
    (TOPIC, "t", [("cleanup.policy", "foo")], E.INVALID_CONFIG),
    (BROKER, "1", [("broker.id", "5")], E.INVALID_REQUEST),
    (BROKER, "2", [("num.io.threads", "5")], E.INVALID_REQUEST),
    (BROKER, "x", [("num.io.threads", "5")], E.INVALID_REQUEST),
    (BROKER, "", [("listeners", "PLAINTEXT://x:1")], E.INVALID_REQUEST),
    (BROKER, "", [("log.cleaner.threads", "x")], E.INVALID_REQUEST),
    (3, "x", [("a", "b")], E.INVALID_REQUEST),
]
"""The messages of Kafka 4.4 with the same code."""


@pytest.mark.parametrize(("kind", "name", "values", "error"), WRONG)
def test_invalid_configs_are_rejected_and_nothing_changes(
    client: Client,
    kind: int,
    name: str,
    values: list[tuple[str, str | None]],
    error: ErrorCode,
) -> None:
    before = describe(client, TOPIC, "t"), describe(client, BROKER, "1")
    assert replace(client, kind, name, ("segment.ms", "5"), *values) == error or kind != TOPIC
    assert replace(client, kind, name, *values) == error
    if len(values) == 1:
        assert set_one(client, kind, name, *values[0]) == error
    assert (describe(client, TOPIC, "t"), describe(client, BROKER, "1")) == before


def test_a_key_that_is_deleted_goes_back_to_what_the_file_says(client: Client) -> None:
    assert set_one(client, BROKER, "1", "num.io.threads", "6") == E.NONE
    assert set_one(client, BROKER, "1", "num.io.threads", None, how=1) == E.NONE
    assert describe(client, BROKER, "1")["num.io.threads"].value == "4"
    assert set_one(client, TOPIC, "t", "nothing", None, how=1) == E.NONE


def test_a_value_of_all_brokers_is_not_compared_where_this_one_has_its_own(client: Client) -> None:
    assert set_one(client, BROKER, "", "num.io.threads", "1") == E.INVALID_REQUEST
    assert set_one(client, BROKER, "1", "num.io.threads", "6") == E.NONE
    assert set_one(client, BROKER, "", "num.io.threads", "1") == E.NONE
    assert set_one(client, BROKER, "", "num.io.threads", "0") == E.INVALID_REQUEST
    assert describe(client, BROKER, "1")["num.io.threads"].value == "6"


def test_updates_are_what_kafka_documents() -> None:
    assert BROKER_CONFIGS["broker.id"].update is Update.READ_ONLY
    assert BROKER_CONFIGS["listeners"].update is Update.PER_BROKER
    assert BROKER_CONFIGS["num.io.threads"].update is Update.CLUSTER_WIDE


@pytest.mark.parametrize("release", releases())
def test_features_are_those_of_the_release(release: str) -> None:
    client = Harness(release=release).client()
    newest = features(release)
    served = supported_apis(release, served_on(Listener.BROKER)).served
    for version in range(5):
        if version not in served[ApiKey.API_VERSIONS]:
            continue
        software = "a" if version >= 3 else ""
        request = ApiVersionsRequest(
            client_software_name=software, client_software_version=software
        )
        response = client.exchange(request, version, ApiVersionsResponse)
        expected_features = newest if version >= 3 else ()
        assert {
            (each.name, each.min_version, each.max_version) for each in response.supported_features
        } == {
            (each.name, each.lowest, each.highest)
            for each in expected_features
            if each.lowest or version > 3
        }
        assert {(each.name, each.max_version_level) for each in response.finalized_features} == {
            (each.name, served_level(each.name, each.level))
            for each in expected_features
            if each.level and each.name not in UNSERVED
        }
        assert (response.finalized_features_epoch >= 0) == bool(expected_features)


# -- topics have the values of several keys of brokers


@pytest.mark.parametrize(
    ("static", "key", "value"),
    [
        ({"log.retention.hours": "2"}, "retention.ms", "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention.ms", "180000"),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, "retention.ms", "4"),
        ({"log.retention.hours": "-1"}, "retention.ms", "-1"),
        ({"log.roll.hours": " 1 "}, "segment.ms", "3600000"),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", "3600000"),
        ({"log.flush.scheduler.interval.ms": "5"}, "flush.ms", "5"),
    ],
)
def test_a_topic_has_what_brokers_have_in_another_unit(
    static: dict[str, str], key: str, value: str
) -> None:
    described = describe(Harness(topics={"t": 1}, settings=static).client(), TOPIC, "t")[key]
    assert described.value == value


@pytest.mark.parametrize(("policy", "start"), [("delete", 1), ("", 0)], ids=["delete", "neither"])
def test_records_are_deleted_after_the_minutes_of_a_broker(policy: str, start: int) -> None:
    """But not from a topic that is neither deleted from nor compacted."""
    harness = Harness(topics={"t": 1}, settings={"log.retention.minutes": "1"})
    client = harness.client()
    assert set_one(client, TOPIC, "t", "cleanup.policy", policy) == E.NONE
    produce(client, batch(b"a"))
    harness.advance(50.0)
    assert offset_at(client, EARLIEST).offset == 0
    harness.advance(350.0)
    assert offset_at(client, EARLIEST).offset == start


# -- loggers and client metrics


@pytest.fixture
def own_levels() -> Iterator[None]:
    """Put the levels of loggers back: they are those of this process."""
    loggers = [logging.getLogger(name) for name in ("kafkawire", "kafkawire.broker")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("own_levels")
def test_a_level_of_a_logger_is_in_effect_at_once(client: Client) -> None:
    logger = logging.getLogger("kafkawire.broker")
    assert set_one(client, LOGGER, "1", "root", "WARN") == E.NONE
    assert set_one(client, LOGGER, "1", "kafkawire.broker", "DEBUG") == E.NONE
    assert logger.isEnabledFor(logging.DEBUG)
    row = describe(client, LOGGER, "1")["kafkawire.broker"]
    assert (row.value, row.config_source, row.read_only) == ("DEBUG", 6, False)
    assert set_one(client, LOGGER, "1", "kafkawire.broker", None, how=1) == E.NONE
    assert describe(client, LOGGER, "1")["kafkawire.broker"].value == "WARN"
    assert not logger.isEnabledFor(logging.INFO)


@pytest.mark.usefixtures("own_levels")
def test_loggers_of_others_are_not_shown_and_not_altered(client: Client) -> None:
    other = logging.getLogger("somebody.else")
    root = logging.getLogger()
    before = other.level, root.level
    shown = describe(client, LOGGER, "1").keys()
    assert {name.partition(".")[0] for name in shown} == {"root", "kafkawire"}
    assert set_one(client, LOGGER, "1", "somebody.else", "DEBUG") == E.INVALID_CONFIG
    assert set_one(client, LOGGER, "1", "root", "TRACE") == E.NONE
    assert (other.level, root.level) == before


def test_alter_configs_does_not_set_levels(client: Client) -> None:
    assert replace(client, LOGGER, "1", ("root", "INFO")) == E.INVALID_REQUEST


def test_client_metrics_are_described_as_they_were_set(client: Client, harness: Harness) -> None:
    assert set_one(client, METRICS, "m", "interval.ms", " 200") == E.NONE
    assert set_one(client, METRICS, "m", "metrics", "a,a,b") == E.NONE
    for connection in (client, harness.restored().client()):
        rows = describe(connection, METRICS, "m")
        assert {name: (row.value, row.config_source) for name, row in rows.items()} == {
            "interval.ms": ("200", 7),
            "match": ("", DEFAULT),
            "metrics": ("a,b", 7),
        }
    assert set_one(client, METRICS, "m", "interval.ms", None, how=1) == E.NONE
    assert describe(client, METRICS, "m")["interval.ms"].value == "300000"


@pytest.mark.parametrize("pattern", ["(" * 10_000, "client_id=" + "(" * 10_000, "client_id=[a"])
def test_a_pattern_that_cannot_be_read_is_refused(client: Client, pattern: str) -> None:
    assert set_one(client, METRICS, "m", "match", pattern) == E.INVALID_CONFIG
    assert describe(client, METRICS, "m")["match"].value == ""


# -- values that belong together


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min.compaction.lag.ms": "6"}, "min.compaction.lag.ms (6) > max.compaction.lag.ms (5)"),
        ({"remote.storage.enable": " TRUE"}, "Tiered Storage functionality is disabled"),
    ],
)
def test_values_of_a_topic_that_do_not_fit_are_refused(
    values: dict[str, str], message: str
) -> None:
    harness = Harness(topics={"t": 1}, settings={"log.cleaner.max.compaction.lag.ms": "5"})
    client = harness.client()
    for key, value in values.items():
        assert set_one(client, TOPIC, "t", key, value) == E.INVALID_CONFIG
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in values.items()]
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=configs)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
    [row] = client.exchange(request, 7, CreateTopicsResponse).topics
    assert row.error_code == E.INVALID_CONFIG
    assert message in (row.error_message or "")


def test_a_resource_that_a_request_has_twice_is_refused_both_times(client: Client) -> None:
    change = some.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    resource = some.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[change])
    request = some.IncrementalAlterConfigsRequest(resources=[resource, resource])
    response = client.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert [row.error_code for row in response.responses] == [E.INVALID_REQUEST] * 2
    assert describe(client, TOPIC, "t")["retention.ms"].config_source == DEFAULT


@pytest.mark.parametrize(("include", "version"), [(True, 4), (False, 4), (True, 2)])
def test_documentation_is_sent_where_it_is_requested(
    client: Client, include: bool, version: int
) -> None:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=["retention.ms", "preallocate"]
    )
    request = DescribeConfigsRequest(resources=[resource])
    if version > 2:
        request.include_documentation = include
    [result] = client.exchange(request, version, DescribeConfigsResponse).results
    shown = {row.name: row.documentation for row in result.configs}
    assert bool(shown["retention.ms"]) is (include and version > 2)
    assert not shown["preallocate"], "has no effect"
