"""The tables of configuration keys, and what is written elsewhere of the same keys."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkawire.broker.releases import LATEST, numbered
from kafkawire.configs import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    broker_configs,
    config_error,
    group_configs,
)
from kafkawire.configs.documentation import (
    BROKER_DOCUMENTATION,
    GROUP_DOCUMENTATION,
    TOPIC_DOCUMENTATION,
)
from kafkawire.protocol.config_names import SHOWN_CONFIGS
from kafkawire.records.compression.codecs import TOPIC_CODEC_NAMES

TABLES: Mapping[str, Mapping[str, ConfigKey]] = {
    "brokers": broker_configs(LATEST),
    "topics": TOPIC_CONFIGS,
    "groups": GROUP_CONFIGS,
    "client metrics": CLIENT_METRICS_CONFIGS,
}


@pytest.mark.parametrize("table", TABLES)
def test_defaults_are_valid_and_described_as_they_are(table: str) -> None:
    for name, key in TABLES[table].items():
        if key.default is not None:
            assert config_error(key, name, key.default) is None, name
            assert key.normalized(key.default) == key.default, name


def test_where_share_groups_begin_is_explained_as_in_kafka() -> None:
    name = "share.auto.offset.reset"
    assert config_error(GROUP_CONFIGS[name], name, "middle") == (
        "Invalid value middle for configuration share.auto.offset.reset: Invalid value `middle` "
        "for configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' "
        "or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


@pytest.mark.parametrize("table", TABLES)
def test_values_of_keys_are_hidden_where_these_are_sensitive(table: str) -> None:
    keys = TABLES[table]
    assert {name for name in keys if name not in SHOWN_CONFIGS} == {
        name for name, key in keys.items() if key.sensitive
    }


def test_codecs_of_topics_are_those_of_records() -> None:
    codecs = set(TOPIC_CONFIGS["compression.type"].valid.one_of)
    assert codecs == {*TOPIC_CODEC_NAMES, "producer"}


def test_every_key_of_groups_has_its_release() -> None:
    assert group_configs(LATEST).keys() == GROUP_CONFIGS.keys()
    before: set[str] = set()
    for release in numbered():
        keys = group_configs(release).keys()
        assert before <= keys
        before = set(keys)


@pytest.mark.parametrize(
    ("documentation", "table"),
    [
        (TOPIC_DOCUMENTATION, "topics"),
        (GROUP_DOCUMENTATION, "groups"),
        (BROKER_DOCUMENTATION, "brokers"),
    ],
    ids=["topics", "groups", "brokers"],
)
def test_keys_that_are_documented_exist(documentation: Mapping[str, str], table: str) -> None:
    assert documentation.keys() <= TABLES[table].keys()
