"""Voters of the quorum that change while the controller decides (KIP-853)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from kafkawire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kafkawire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kafkawire.node import Event, RequestReceived, Respond
from kafkawire.node.quorum.metadata_log import KafkaMetadataLog
from kafkawire.protocol import ErrorCode
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

from .clients import CREATE_VERSION, create_topic
from .cluster import Cluster, combined
from .network import CLUSTER, CONTROLLER_PORT, EPOCH_MS, Process

E = ErrorCode
VOTERS: Final = (1, 2, 3)
OBSERVER: Final = 4
ADD_VERSION: Final = 0
REMOVE_VERSION: Final = 0


def directory_id(node: int) -> bytes:
    return bytes([1] * 15 + [node])


def endpoint(node: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"node{node}", CONTROLLER_PORT)


class DynamicQuorum(Cluster):
    """Three voters that the metadata log names, and an observer."""

    def __init__(self) -> None:
        bootstrap = tuple(map(endpoint, VOTERS))
        super().__init__(
            [replace(each, voters=VoterSet(()), bootstrap=bootstrap) for each in combined(4)]
        )

    def prepare(self) -> None:
        voters = VoterSet(
            tuple(
                Voter(ReplicaKey(id, directory_id(id)), (endpoint(id),), KRaftVersionRange(0, 1))
                for id in VOTERS
            )
        )
        for id, process in self.processes.items():
            directory = DirectoryLogs(LogDirectory("data", process.disk))
            directory.identify(CLUSTER, id, lambda id=id: directory_id(id))  # type: ignore[misc]
            log = KafkaMetadataLog(process.disk, lambda: EPOCH_MS)
            log.store_snapshot(OffsetAndEpoch(0, 0), bootstrap_snapshot(voters))

    def handle(self, process: Process, event: Event) -> None:
        """Respond to ApiVersions, as the listener of a node does."""
        if isinstance(event, RequestReceived) and isinstance(event.body, ApiVersionsRequest):
            known = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            self._respond(Respond(event.token, ApiVersionsResponse(supported_features=[known])))
        else:
            super().handle(process, event)

    def voters(self, node: int) -> set[int]:
        """Return the voters that a node knows."""
        return {each.key.id for each in self.node(node).parts.raft.client.voters}


def added(node: int) -> AddRaftVoterRequest:
    at = endpoint(node)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER,
        voter_id=node,
        voter_directory_id=directory_id(node),
        listeners=[Listener(name=at.name, host=at.host, port=at.port)],
        timeout_ms=5_000,
    )


def removed(node: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=node, voter_directory_id=directory_id(node)
    )


def test_a_voter_is_added_while_topics_are_created_and_the_controller_stays() -> None:
    cluster = DynamicQuorum()
    active = cluster.active_controller()
    assert active is not None
    epoch = cluster.node(active).parts.raft.client.epoch
    results: list[object] = []
    for number in range(10):
        request = create_topic(f"topic-{number}", 1, 3)
        for each in (active, OBSERVER):
            cluster.request(-1, each, "PLAINTEXT", CREATE_VERSION, request, results.append, 20.0)
        if number == 3:
            body = cluster.exchange(OBSERVER, ADD_VERSION, added(OBSERVER))
            assert body.error_code == E.NONE, body
        cluster.run(cluster.now + 0.003)
    cluster.wait(lambda: len(results) == 20)
    assert None not in results
    assert cluster.active_controller() == active
    assert cluster.node(active).parts.raft.client.epoch == epoch
    for each in cluster.live():
        cluster.wait(lambda each=each: cluster.voters(each) == {1, 2, 3, 4})
    cluster.wait(lambda: len(cluster.newest().topics) == 10)
    removal = cluster.exchange(OBSERVER, REMOVE_VERSION, removed(OBSERVER))
    assert removal.error_code == E.NONE, removal
    cluster.create("last", 1, 3)
    assert cluster.voters(active) == {1, 2, 3}
    assert cluster.active_controller() == active


def test_the_leader_is_removed_and_another_decides() -> None:
    cluster = DynamicQuorum()
    active = cluster.active_controller()
    assert active is not None
    body = cluster.exchange(OBSERVER, REMOVE_VERSION, removed(active))
    assert body.error_code == E.NONE, body
    cluster.wait(lambda: cluster.active_controller() not in (None, active))
    cluster.create("orders", 1, 3)
    assert cluster.voters(OBSERVER) == {1, 2, 3} - {active}


@pytest.mark.parametrize(
    "request_", [added(OBSERVER), removed(OBSERVER)], ids=["AddRaftVoter", "RemoveRaftVoter"]
)
def test_static_voters_do_not_change(request_: AddRaftVoterRequest) -> None:
    cluster = Cluster(combined(1))
    body = cluster.exchange(1, ADD_VERSION, request_)
    assert body.error_code == E.UNSUPPORTED_VERSION
