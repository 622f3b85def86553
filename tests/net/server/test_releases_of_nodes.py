"""Real clients at nodes that emulate older releases: `kafka_cluster(release=...)`, `serve`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.broker.apis import Listener, served_on, supported_apis
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from tests.interop.implementations import IMPLEMENTATIONS, Implementation
from tests.interop.implementations.ours import Ours

from ...real.wire import Wire
from .test_produce_and_consume import all_seen, values
from .test_serve import serving
from .test_transactions import consumer, producer, read, send

CLIENTS = (Ours(), *IMPLEMENTATIONS)
RELEASES = ("2.2", "2.8", "3.9")
pytestmark = pytest.mark.timeout(600)


def listed(port: int, version: int) -> dict[int, tuple[int, int]]:
    """Return the versions that a broker lists."""
    with Wire(port) as wire:
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        response = wire.exchange(request, version, ApiVersionsResponse)
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def expected(release: str) -> dict[int, tuple[int, int]]:
    apis = supported_apis(release, served_on(Listener.BROKER))
    return {key: (versions.first, versions.last) for key, versions in apis.listed.items()}


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request: pytest.FixtureRequest) -> Iterator[ClusterThread]:
    """Three nodes of a release."""
    with ClusterThread(ServerConfig(brokers=3, release=request.param)) as cluster:
        port = cluster.ports()[1]
        assert listed(port, 2) == expected(request.param)
        yield cluster


@pytest.mark.parametrize("make", CLIENTS, ids=lambda make: make.name)
def test_clients_produce_and_consume_in_groups(
    cluster: ClusterThread, make: Implementation
) -> None:
    topic = f"topic-{make.name}"
    sent = values(50, make.name)
    make.produce(cluster.bootstrap, topic, sent)
    member = make.member(cluster.bootstrap, topic, f"group-{make.name}")
    member.until(lambda: all_seen([member], len(sent)))
    member.leave()
    assert [each.value for each in member.seen] == sent
    cluster.wait(lambda: cluster.isr(topic) == [1, 2, 3])
    cluster.invariants()


def test_transactions_of_librdkafka(cluster: ClusterThread) -> None:
    """Their markers go from the coordinator to the leaders, in versions that 2.8 does not have."""
    for number in range(6):
        sender = producer(cluster, f"id-{number}")
        send(sender, "transactional", [b"aborted"])
        sender.abort_transaction(60)
        send(sender, "transactional", [b"committed"])
        sender.commit_transaction(60)
    with consumer(cluster, "transactional", "readers") as reader:
        assert read(reader, 6) == [b"committed"] * 6


@pytest.mark.kafka_cluster(brokers=1, release="3.9")
def test_the_marker_of_the_fixture_has_a_release(kafka_cluster: ClusterThread) -> None:
    assert listed(kafka_cluster.ports()[1], 4) == expected("3.9")


def test_serve_has_a_release_for_a_node_with_files(tmp_path: Path) -> None:
    with serving("--data-dir", str(tmp_path), "--release", "2.8", "--quiet") as (_, [port]):
        assert listed(port, 3) == expected("2.8")
