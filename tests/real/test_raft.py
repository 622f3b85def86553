"""A replica of ours in the quorum of a real Kafka: as an observer, then as a voter, then as leader.

What ours fetched equals the file that Kafka wrote, byte for byte.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import pytest

from kafkawire.log import InternalLog, decode_log_record
from kafkawire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kafkawire.messages.add_raft_voter_response import AddRaftVoterResponse
from kafkawire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kafkawire.messages.describe_quorum_response import DescribeQuorumResponse
from kafkawire.messages.register_broker_record import RegisterBrokerRecord
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.raft import (
    Append,
    Endpoint,
    LoadSnapshot,
    OffsetAndEpoch,
    RaftConfig,
    State,
    Timeouts,
)
from kafkawire.records import RecordBatches

from .broker import CLUSTER_ID, NODE_ID, Broker, free_ports
from .java import Installation
from .raft_node import RaftNode
from .wire import HOST, Wire

pytestmark = pytest.mark.xdist_group("raft")

SECONDS: Final = 240.0
REGISTERED: Final = RegisterBrokerRecord.__name__
LOG: Final = "__cluster_metadata-0/00000000000000000000.log"
FETCH_SECONDS: Final = 10.0
"""How late fetches may be before anyone elects: on a slow machine no leader is lost."""
PROPERTIES: Final = (
    "metadata.log.max.snapshot.interval.ms=1500\n"
    f"controller.quorum.fetch.timeout.ms={FETCH_SECONDS * 1000:.0f}\n"
)
SLOW: Final = Timeouts(election_timeout=4.0, fetch_timeout=FETCH_SECONDS, request_timeout=10.0)


@pytest.fixture(scope="module")
def controller(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """A controller that writes snapshots often; not started yet."""
    port, sasl_port, controller_port = free_ports(3)
    directory = tmp_path_factory.mktemp("raft")
    broker = Broker(installation, directory, port, sasl_port, controller_port)
    broker.format()
    with (directory / "server.properties").open("a") as file:
        file.write(PROPERTIES)
    return broker


def node(broker: Broker, id: int, port: int = 0) -> RaftNode:
    endpoints = (Endpoint("CONTROLLER", HOST, port),) if port else ()
    return RaftNode(
        RaftConfig(
            node_id=id,
            directory_id=bytes([id] * 16),
            cluster_id=CLUSTER_ID,
            bootstrap=(Endpoint("CONTROLLER", HOST, broker.controller_port),),
            endpoints=endpoints,
            timeouts=SLOW,
        )
    )


async def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not within {SECONDS} s: {what}"
        await asyncio.sleep(0.05)


def stored(replica: RaftNode) -> bytes:
    return b"".join(batch.data for batch in replica.log.batches)


def test_ours_follows_a_real_controller_and_then_leads_its_quorum(controller: Broker) -> None:
    try:
        controller.start()
        asyncio.run(follow_and_lead(controller))
    finally:
        controller.stop()


async def follow_and_lead(controller: Broker) -> None:
    ports = free_ports(2)
    replicas = [node(controller, 101, ports[0]), node(controller, 102, ports[1])]
    try:
        for replica in replicas:
            await replica.start()
        await observed(controller, replicas[0])
        await joined(controller, replicas)
        assert controller.process is not None
        controller.process.kill()
        await led(replicas)
    finally:
        for replica in replicas:
            await replica.stop()


async def observed(controller: Broker, replica: RaftNode) -> None:
    """Ours has the log of the controller, and decodes all of its records."""
    await until(lambda: replica.client.high_watermark > 20 and bool(stored(replica)), "records")
    assert replica.client.is_observer
    assert [key.id for key in replica.client.voters.keys] == [NODE_ID]
    # the broker may register after the first snapshot: then it is in the log behind it
    await until(lambda: REGISTERED in names(fetched(replica)), "the broker's registration")
    directory = controller.data / "__cluster_metadata-0"
    for id in snapshot_ids(replica):
        file = directory / f"{id.offset:020}-{id.epoch:010}.checkpoint"
        assert replica.log.snapshot(id) == file.read_bytes()
    assert stored(replica) in (controller.data / LOG).read_bytes()


def snapshot_ids(replica: RaftNode) -> list[OffsetAndEpoch]:
    """The snapshots that a replica fetched and still has."""
    loaded = [each.snapshot_id for each in replica.effects if isinstance(each, LoadSnapshot)]
    return [id for id in loaded if replica.log.snapshot(id) is not None]


def fetched(replica: RaftNode) -> bytes:
    """All that a replica has fetched: snapshots, then its log."""
    snapshots = [replica.log.snapshot(id) or b"" for id in snapshot_ids(replica)]
    return b"".join(snapshots) + stored(replica)


def names(data: bytes) -> set[str]:
    """The names of the records of a metadata log or snapshot, each of which can be decoded."""
    found = set()
    for batch in RecordBatches(data):
        for record in batch:
            if not batch.control:
                row = decode_log_record(InternalLog.METADATA, record.key, record.value).value
                assert row is not None
                assert row.message is not None, row
                assert row.name is not None, row
                found.add(row.name)
    return found


async def joined(controller: Broker, replicas: list[RaftNode]) -> None:
    """The real controller takes ours as voters, one after the other."""
    for replica in replicas:
        listener = replica.config.endpoints[0]
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=60_000,
            voter_id=replica.config.node_id,
            voter_directory_id=replica.config.directory_id,
            listeners=[Listener(name=listener.name, host=listener.host, port=listener.port)],
        )
        await until(lambda r=replica: r.client.high_watermark > 20, "caught up")  # type: ignore[misc]
        response = await asyncio.to_thread(sent, controller.controller_port, request)
        assert response.error_code == ErrorCode.NONE, response
        await until(lambda r=replica: not r.client.is_observer, "a voter")  # type: ignore[misc]
    ids = [NODE_ID, *(replica.config.node_id for replica in replicas)]
    quorum = await asyncio.to_thread(described, controller.controller_port)
    assert [each.replica_id for each in quorum.current_voters] == ids
    assert quorum.leader_id == NODE_ID


def sent(port: int, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    with Wire(port) as wire:
        return wire.exchange(request, 1, AddRaftVoterResponse)


def described(port: int):  # type: ignore[no-untyped-def]
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])
    with Wire(port) as wire:
        response = wire.exchange(DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)
    return response.topics[0].partitions[0]


async def led(replicas: list[RaftNode]) -> None:
    """Without the real controller, ours elect one of them; it commits, and the logs agree."""
    await until(
        lambda: any(each.client.state is State.LEADER for each in replicas), "a leader of ours"
    )
    leader = next(each for each in replicas if each.client.state is State.LEADER)
    other = next(each for each in replicas if each is not leader)
    leader.handle(Append(1, leader.client.epoch, (b"\x00ours",)))
    end = leader.log.end.offset
    await until(lambda: other.client.high_watermark >= end, "committed")
    ours, theirs = stored(leader), stored(other)
    assert ours.endswith(theirs[-200:])
    assert theirs.endswith(ours[-200:])
