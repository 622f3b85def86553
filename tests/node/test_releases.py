"""Nodes that their clients see as an older or newer release of Kafka."""

from __future__ import annotations

import pytest

from kafkawire import ApiKey, ErrorCode
from kafkawire.broker.apis import client_apis
from kafkawire.broker.releases import LATEST, releases
from kafkawire.configs.features import NEWEST_METADATA, metadata_version
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafkawire.messages.update_features_response import UpdateFeaturesResponse
from kafkawire.node.quorum.metadata_log import KafkaMetadataLog
from kafkawire.raft import (
    Endpoint,
    KRaftVersionRange,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
    VoterSet,
    bootstrap_snapshot,
)
from kafkawire.storage.directory_logs import DirectoryLogs
from kafkawire.storage.disks.log_directory import LogDirectory

from ..broker.harness import Client
from .front_harness import BROKER, CONTROLLER, EPOCH_MS, NodeHarness

REPLICATION = Endpoint("REPLICATION", "node", 9094)
DIRECTORY_ID = bytes([1] * 16)


def api_versions(client: Client, release: str) -> ApiVersionsResponse:
    version = client_apis(release).served[ApiKey.API_VERSIONS].last
    software = "a" if version >= 3 else ""
    request = ApiVersionsRequest(client_software_name=software, client_software_version=software)
    return client.exchange(request, version, ApiVersionsResponse)


def versions(response: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


@pytest.mark.parametrize("release", releases())
def test_a_node_shows_its_clients_what_its_release_has(release: str) -> None:
    node = api_versions(NodeHarness(release=release).client(), release)
    listed = client_apis(release).listed
    assert versions(node) == {key: tuple(each) for key, each in listed.items()}
    names = {each.name for each in node.finalized_features}
    assert names <= {each.name for each in node.supported_features}
    assert ("transaction.version" in names) == (release >= "4.0")


@pytest.mark.parametrize("release", releases())
def test_the_records_of_a_node_are_those_of_its_release(release: str) -> None:
    features = NodeHarness(release=release).front.broker.metadata.image.features
    assert features["metadata.version"] == (metadata_version(release) or NEWEST_METADATA)


def test_a_node_upgrades_no_feature_beyond_its_release() -> None:
    update = FeatureUpdateKey(feature="metadata.version", max_version_level=26, upgrade_type=1)
    request = UpdateFeaturesRequest(feature_updates=[update])
    response = NodeHarness(release="4.0").client().exchange(request, 2, UpdateFeaturesResponse)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_brokers_have_the_newest_versions_for_each_other() -> None:
    harness = NodeHarness(release="2.8", listeners=(REPLICATION, BROKER))
    for listener, release in (("REPLICATION", LATEST), ("PLAINTEXT", "2.8")):
        response = api_versions(harness.client(listener=listener), release)
        listed = client_apis(release).listed
        assert versions(response) == {key: tuple(each) for key, each in listed.items()}


def test_a_node_that_becomes_an_older_release_shows_the_levels_of_that() -> None:
    harness = NodeHarness()
    harness.release = "4.0"
    harness.restart()
    response = api_versions(harness.client(), "4.0")
    ranges = {each.name: each.max_version for each in response.supported_features}
    assert ranges["metadata.version"] == metadata_version("4.0")
    for each in response.finalized_features:
        assert each.max_version_level <= ranges[each.name]


class DynamicNode(NodeHarness):
    """A node whose metadata log names the voters, from its bootstrap snapshot on."""

    def launch(self) -> None:
        directory = DirectoryLogs(LogDirectory("data", self.disk))
        if directory.directory_id is None:
            directory.identify("a-cluster", 1, lambda: DIRECTORY_ID)
            voter = Voter(ReplicaKey(1, DIRECTORY_ID), (CONTROLLER,), KRaftVersionRange(0, 1))
            log = KafkaMetadataLog(self.disk, lambda: EPOCH_MS)
            log.store_snapshot(OffsetAndEpoch(0, 0), bootstrap_snapshot(VoterSet((voter,))))
        super().launch()


@pytest.mark.parametrize(("harness", "levels"), [(NodeHarness, []), (DynamicNode, [1])])
def test_a_node_shows_the_kraft_version_of_its_quorum(
    harness: type[NodeHarness], levels: list[int]
) -> None:
    node = harness()
    for _ in range(2):
        response = api_versions(node.client(), LATEST)
        finalized = {each.name: each.max_version_level for each in response.finalized_features}
        assert [finalized[name] for name in finalized if name == "kraft.version"] == levels
        node.restart()
