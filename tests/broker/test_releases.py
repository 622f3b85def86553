"""The API versions of the releases that a broker emulates."""

from __future__ import annotations

import json

import pytest

from kafkawire import REGISTRY, ApiKey
from kafkawire.broker.apis import APIS, METRIC_REPORTERS, client_apis
from kafkawire.broker.configs import Settings
from kafkawire.broker.releases import (
    LATEST,
    Versions,
    key_of,
    numbered,
    parse,
    releases,
    versions_of,
    with_zookeeper,
)
from kafkawire.configs.features import METADATA_VERSIONS, features, metadata_version

from ..conftest import ROOT

SCHEMAS = json.loads((ROOT / "schemas" / "releases.json").read_text())


@pytest.mark.parametrize("release", numbered())
def test_a_release_has_its_stable_versions(release: str) -> None:
    unstable = {key_of(name) for name in SCHEMAS["unstable"].get(release, {})}
    for name, text in SCHEMAS["releases"][release].items():
        key, versions = key_of(name), versions_of(release).get(key_of(name))
        if key not in unstable:
            assert versions == parse(text)
            continue
        last = parse(SCHEMAS["unstable"][release][name]).first - 1
        expected = Versions(parse(text).first, last)
        assert versions == (expected if last >= expected.first else None)


def test_all_has_every_version_that_there_ever_was() -> None:
    for key, versions in client_apis("all").served.items():
        info = REGISTRY.request(key)
        assert info is not None
        assert versions == (APIS[key].versions or Versions(info.first, info.last))


def test_releases_since_4_list_produce_from_0_and_serve_it_from_3() -> None:
    apis = client_apis(LATEST)
    assert apis.listed[ApiKey.PRODUCE] == Versions(0, apis.served[ApiKey.PRODUCE].last)
    assert apis.served[ApiKey.PRODUCE].first == 3
    older = client_apis("3.6")
    assert older.listed == older.served


def test_releases_since_3_7_serve_what_they_list_only_with_a_plugin() -> None:
    apis = client_apis("3.7")
    plugged = {key for key, api in APIS.items() if api.plugin is not None}
    assert apis.served.keys() - apis.listed.keys() == plugged
    assert apis.listed_by(Settings()) == apis.listed
    assert apis.listed_by(Settings({METRIC_REPORTERS: "com.example.Reporter"})) == apis.served


def test_an_unknown_release_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"4\.3.*all"):
        versions_of("0.7")


def test_brokers_before_2_8_need_zookeeper() -> None:
    assert set(with_zookeeper()) == {each for each in numbered() if each < "2.8"}


@pytest.mark.parametrize("release", releases())
def test_the_metadata_version_is_that_of_the_release(release: str) -> None:
    level = metadata_version(release)
    if level is None:
        assert release < "3.3" or not release[0].isdecimal()
        return
    assert METADATA_VERSIONS[level].startswith(f"{release}-")
    assert not METADATA_VERSIONS.get(level + 1, "").startswith(f"{release}-")
    levels = {each.name: each.level for each in features(release)}
    assert levels.get("metadata.version", level) == level
