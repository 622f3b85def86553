"""Configuration of a real Apache Kafka and of our cluster, field by field; and changes to it.

A difference is in `OF_ITS_OWN` or `EXPLAINED`, or a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any, Final

import pytest

from kafkawire.configs import ConfigSource, ResourceType, broker_configs
from kafkawire.configs.features import UNSERVED, served_level
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
from kafkawire.messages.describe_configs_response import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread

from ...real.broker import NODE_ID, PROPERTIES, Broker
from ...real.java import RELEASE
from ...real.wire import Wire
from .config_values import Value, values_of

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
NAME: Final = "configured"
OF_ITS_OWN: Final = frozenset(
    {
        "advertised.listeners",
        "authorizer.class.name",
        "controller.quorum.bootstrap.servers",
        "delegation.token.secret.key",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "sasl.enabled.mechanisms",
    }
)
"""Listeners and security: only names and types are compared."""
SET, DELETE = range(2)
NAMES: Final = {
    ResourceType.TOPIC: NAME,
    ResourceType.GROUP: "configured-group",
    ResourceType.CLIENT_METRICS: "configured-metrics",
}
OWN_WORDS: Final = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "share.auto.offset.reset",
    }
)
"""The keys with a form of values that we describe in words of our own."""
OTHERWISE: Final = {
    "config.providers": "Kafka checks it at the start only",
    "listener.security.protocol.map": "listeners cannot be added",
    "log.local.retention.ms": "tiered storage is not supported",
}
"""Key of brokers -> why values are valid here that are not in Kafka, or the other way round."""
SET_HERE: Final = frozenset(
    {
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_GROUP_CONFIG,
        ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    }
)
APPLIED_S: Final = 60.0
"""Kafka's controller answers before its broker has applied the record of a change."""
EXPLAINED: Final = frozenset({"min.insync.replicas"})
"""Kafka sets it for the whole cluster when it has eligible leader replicas (KIP-966)."""


@pytest.fixture(scope="module")
def both(own_kafka: Broker) -> Iterator[tuple[int, int]]:
    """The ports of the real broker and of ours, with the same configuration."""
    names = broker_configs(RELEASE).keys() - OF_ITS_OWN - {"node.id", "process.roles"}
    given = {
        key: value
        for key, value in PROPERTIES.items()
        if key in names and not key.startswith("controller.")
    }
    with ServerThread(ServerConfig(release=RELEASE, settings=given)) as ours:
        port = int(ours.bootstrap.rpartition(":")[2])
        topic = CreatableTopic(
            name=NAME,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name="retention.ms", value="1000")],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        for each in (own_kafka.port, port):
            with Wire(each) as wire:
                [made] = wire.exchange(request, 7, CreateTopicsResponse).topics
                assert (made.error_code, made.error_message) == (0, None)
        yield own_kafka.port, port


def result(port: int, kind: int, name: str, *, documented: bool = False) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=documented
    )
    with Wire(port) as wire:
        [row] = wire.exchange(request, 4, DescribeConfigsResponse).results
    return row


def described(port: int, kind: int, name: str) -> dict[str, Any]:
    row = result(port, kind, name)
    assert (row.error_code, row.error_message) == (0, "")
    return {each.name: each for each in row.configs}


def altered(
    port: int, kind: int, name: str, *changes: tuple[str, int, str | None], validate: bool = False
) -> tuple[int, str | None]:
    """Return the error and its message. changes: key, operation, value."""
    configs = [
        some.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = some.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = some.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate)
    with Wire(port) as wire:
        [row] = wire.exchange(request, 1, IncrementalAlterConfigsResponse).responses
    return row.error_code, row.error_message


def configured(port: int) -> dict[str, tuple[object, ...]]:
    """The configs of the topic, with their sources."""
    rows = described(port, TOPIC, NAME)
    return {key: values(row) for key, row in rows.items() if key not in EXPLAINED}


def kinds(row: Any) -> tuple[object, ...]:
    return row.config_type, row.read_only, row.is_sensitive, row.documentation


def values(row: Any) -> tuple[object, ...]:
    synonyms = [(each.name, each.value, each.source) for each in row.synonyms]
    return row.value, row.config_source, synonyms


def test_a_broker_describes_what_kafka_describes(both: tuple[int, int]) -> None:
    real, ours = (described(port, BROKER, str(NODE_ID)) for port in both)
    # neither `ConfigDef` nor table has those of plugins and of listeners
    extra = {name for name in real if name == "super.users" or name.startswith("listener.name.")}
    assert real.keys() - extra == ours.keys()
    assert {n: kinds(row) for n, row in ours.items()} == {n: kinds(real[n]) for n in ours}
    same = ours.keys() - OF_ITS_OWN - EXPLAINED
    assert {n: values(ours[n]) for n in same} == {n: values(real[n]) for n in same}


def test_a_topic_describes_what_kafka_describes(both: tuple[int, int]) -> None:
    real, ours = (described(port, TOPIC, NAME) for port in both)
    assert real.keys() == ours.keys()
    assert {n: kinds(row) for n, row in ours.items()} == {n: kinds(real[n]) for n in ours}
    same = ours.keys() - EXPLAINED
    assert {n: values(ours[n]) for n in same} == {n: values(real[n]) for n in same}


@pytest.mark.parametrize("version", [3, 4])
def test_features_are_kafkas(both: tuple[int, int], version: int) -> None:
    """But for those whose APIs are not served: they are not finalized."""
    found = []
    for port in both:
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        with Wire(port) as wire:
            response = wire.exchange(request, version, ApiVersionsResponse)
        supported = {(e.name, e.min_version, e.max_version) for e in response.supported_features}
        finalized = {
            (
                e.name,
                served_level(e.name, e.min_version_level),
                served_level(e.name, e.max_version_level),
            )
            for e in response.finalized_features
            if port != both[0] or e.name not in UNSERVED
        }
        found.append((supported, finalized, response.finalized_features_epoch >= 0))
    assert found[0] == found[1]


CHANGES: Final[dict[str, tuple[int, str, list[tuple[str, str | None]]]]] = {
    "a value": (TOPIC, NAME, [("segment.bytes", "10485760")]),
    "another instead": (TOPIC, NAME, [("retention.ms", "5")]),
    "nothing": (TOPIC, NAME, []),
    "no such topic": (TOPIC, "nobody", [("retention.ms", "5")]),
    "no valid topic": (TOPIC, "bad name", [("retention.ms", "5")]),
    "default topic": (TOPIC, "", [("retention.ms", "5")]),
    "no such key": (TOPIC, NAME, [("nothing", "5")]),
    "no number": (TOPIC, NAME, [("retention.ms", "x")]),
    "null": (TOPIC, NAME, [("retention.ms", None)]),
    "twice": (TOPIC, NAME, [("retention.ms", "1"), ("retention.ms", "2")]),
    "no such policy": (TOPIC, NAME, [("cleanup.policy", "foo")]),
    "a broker's value": (BROKER, str(NODE_ID), [("num.io.threads", "5")]),
    "a broker's, nothing": (BROKER, str(NODE_ID), []),
    "a broker's, fixed": (BROKER, str(NODE_ID), [("broker.id", "5")]),
    "another broker": (BROKER, "2", [("num.io.threads", "5")]),
    "no broker": (BROKER, "x", [("num.io.threads", "5")]),
    "all brokers, one broker's": (BROKER, "", [("listeners", "PLAINTEXT://x:1")]),
    "no such type": (3, "x", [("a", "b")]),
    "a logger": (8, "1", [("kafka.server", "INFO")]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("validate_only", [True, False])
def test_a_change_leads_to_the_same(
    both: tuple[int, int],
    change: tuple[int, str, list[tuple[str, str | None]]],
    validate_only: bool,
) -> None:
    kind, name, given = change
    configs = [full.AlterableConfig(name=key, value=value) for key, value in given]
    resource = full.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = full.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    changes = [some.AlterableConfig(name=k, config_operation=0, value=v) for k, v in given]
    one = some.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    single = some.IncrementalAlterConfigsRequest(resources=[one], validate_only=validate_only)
    found = []
    for port in both:
        with Wire(port) as wire:
            [row] = wire.exchange(request, 2, AlterConfigsResponse).responses
            codes = [(row.error_code, row.error_message is None)]
            if kind != 8:
                [other] = wire.exchange(single, 1, IncrementalAlterConfigsResponse).responses
                codes.append((other.error_code, other.error_message is None))
        found.append(codes)
    assert found[0] == found[1]
    real, ours = both
    want = configured(ours)
    until = monotonic() + APPLIED_S
    while configured(real) != want and monotonic() < until:
        sleep(0.02)
    assert configured(real) == want


def outcome(port: int, type: ResourceType, name: str, value: Value) -> tuple[object, ...]:
    """Set a value, describe it, and delete it. Returns the error, or what was described."""
    key, text = value
    code, message = altered(port, type, name, (key, SET, text))
    if code:
        return code, None if key in OWN_WORDS else message
    row = described_once(port, type, name, key, is_set=True)
    assert altered(port, type, name, (key, DELETE, None))[0] == 0
    described_once(port, type, name, key, is_set=False)
    return kinds(row), values(row)


def delete_all(port: int, type: ResourceType, name: str) -> None:
    """Delete what earlier tests have set: a key is described as set once its next value is."""
    for key, row in described(port, type, name).items():
        if row.config_source in SET_HERE:
            assert altered(port, type, name, (key, DELETE, None))[0] == 0
            described_once(port, type, name, key, is_set=False)


def described_once(port: int, type: ResourceType, name: str, key: str, *, is_set: bool) -> Any:
    """Wait until a key is described as set, or as not set, and return its description."""
    deadline = monotonic() + APPLIED_S
    while True:
        row = described(port, type, name).get(key)
        if (row is not None and row.config_source in SET_HERE) is is_set:
            return row
        assert monotonic() < deadline, f"{key} is described as it was"
        sleep(0.01)


@pytest.mark.parametrize("type", NAMES)
def test_values_are_valid_where_they_are_in_kafka(
    both: tuple[int, int], type: ResourceType
) -> None:
    for port in both:
        delete_all(port, type, NAMES[type])
    tried = values_of(type, RELEASE)
    real, ours = ({v: outcome(port, type, NAMES[type], v) for v in tried} for port in both)
    assert ours == real


@pytest.mark.parametrize("name", [str(NODE_ID), ""], ids=["one broker", "all brokers"])
def test_values_of_brokers_are_valid_where_they_are_in_kafka(
    both: tuple[int, int], name: str
) -> None:
    tried = values_of(ResourceType.BROKER, RELEASE)
    real, ours = (
        {
            (key, value): altered(port, BROKER, name, (key, SET, value), validate=True)[0]
            for key, value in tried
        }
        for port in both
    )
    assert {value: code for value, code in ours.items() if value[0] not in OTHERWISE} == {
        value: code for value, code in real.items() if value[0] not in OTHERWISE
    }


@pytest.mark.parametrize(
    ("key", "own", "tried"),
    [
        ("num.io.threads", "5", ["0", "1", "2", "9", "40"]),
        ("log.retention.ms", "5000", ["0", "-1", "-2", "1000"]),
    ],
)
def test_values_of_all_brokers_are_checked_by_a_broker_that_has_its_own(
    both: tuple[int, int], key: str, own: str, tried: list[str]
) -> None:
    outcomes = []
    for port in both:
        assert altered(port, BROKER, str(NODE_ID), (key, SET, own))[0] == 0
        described_once(port, ResourceType.BROKER, str(NODE_ID), key, is_set=True)
        changes = [(key, SET, value) for value in tried]
        outcomes.append([altered(port, BROKER, "", each, validate=True)[0] for each in changes])
        assert altered(port, BROKER, str(NODE_ID), (key, DELETE, None))[0] == 0
        described_once(port, ResourceType.BROKER, str(NODE_ID), key, is_set=False)
    assert outcomes[0] == outcomes[1]


def test_groups_and_client_metrics_describe_what_kafka_describes(both: tuple[int, int]) -> None:
    for type in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        real, ours = (described(port, type, "nobody") for port in both)
        assert {name: (kinds(row), values(row)) for name, row in ours.items()} == {
            name: (kinds(row), values(row)) for name, row in real.items()
        }


LOGGERS: Final = ("org.apache.kafka.server.logger.LoggingController", "kafkawire.broker")
"""A logger of the real broker, and one of ours."""
LEVELS: Final[dict[str, tuple[str, list[tuple[str, int, str | None]]]]] = {
    "a level": (str(NODE_ID), [("*", SET, "DEBUG")]),
    "deleted": (str(NODE_ID), [("*", DELETE, None)]),
    "the root's": (str(NODE_ID), [("root", SET, "FATAL")]),
    "the root's, deleted": (str(NODE_ID), [("root", DELETE, None)]),
    "small letters": (str(NODE_ID), [("*", SET, "debug")]),
    "no such level": (str(NODE_ID), [("*", SET, "OFF")]),
    "no such logger": (str(NODE_ID), [("nobody", SET, "INFO")]),
    "no name": (str(NODE_ID), [("", SET, "INFO")]),
    "one of two": (str(NODE_ID), [("*", SET, "TRACE"), ("nobody", SET, "INFO")]),
    "null": (str(NODE_ID), [("*", SET, None)]),
    "twice": (str(NODE_ID), [("*", SET, "INFO"), ("*", SET, "WARN")]),
    "appended": (str(NODE_ID), [("*", 2, "INFO")]),
    "subtracted": (str(NODE_ID), [("*", 3, "INFO")]),
    "no such operation": (str(NODE_ID), [("*", 7, "INFO")]),
    "nothing": (str(NODE_ID), []),
    "another broker": ("2", [("*", SET, "INFO")]),
    "no broker": ("x", [("*", SET, "INFO")]),
    "all brokers": ("", [("*", SET, "INFO")]),
}
"""Changes of levels of loggers; `*` is the one of `LOGGERS`."""


@pytest.fixture
def own_levels() -> Iterator[None]:
    """Put the levels of our loggers, which this process has, back."""
    loggers = [logging.getLogger(name) for name in ("kafkawire", LOGGERS[1])]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("own_levels")
def test_levels_of_loggers_are_altered_as_in_kafka(both: tuple[int, int]) -> None:
    """Each change in turn, and the levels after it."""
    outcomes = []
    for port, own in zip(both, LOGGERS, strict=True):
        rows: list[object] = [altered(port, BROKER_LOGGER, str(NODE_ID), ("root", SET, "ERROR"))]
        for name, changes in LEVELS.values():
            named = [(key.replace("*", own), how, value) for key, how, value in changes]
            for validate in (True, False):
                code, message = altered(port, BROKER_LOGGER, name, *named, validate=validate)
                levels = described(port, BROKER_LOGGER, str(NODE_ID))
                shown = [(kinds(levels[key]), values(levels[key])) for key in ("root", own)]
                rows.append((code, message and message.replace(own, "*"), shown))
        outcomes.append(rows)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", ["", "2", "x"])
@pytest.mark.parametrize("type", [BROKER_LOGGER, ResourceType.CLIENT_METRICS, ResourceType.GROUP])
def test_resources_that_are_not_described_have_kafkas_errors(
    both: tuple[int, int], type: int, name: str
) -> None:
    real, ours = (result(port, type, name) for port in both)
    assert (ours.error_code, ours.error_message) == (real.error_code, real.error_message)


@pytest.mark.parametrize(
    ("type", "name"), [(TOPIC, NAME), (ResourceType.GROUP, "g"), (BROKER, str(NODE_ID))]
)
def test_documentation_is_in_our_words(both: tuple[int, int], type: int, name: str) -> None:
    real, ours = (
        {row.name: row.documentation for row in result(port, type, name, documented=True).configs}
        for port in both
    )
    documented = {key: text for key, text in ours.items() if text is not None}
    assert documented
    assert all(real[key] for key in documented)
    assert not {key for key, text in documented.items() if text.rstrip(".") in (real[key] or "")}
