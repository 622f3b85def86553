"""Checks the invariants of a cluster that runs: what its nodes reported, and what is in their logs.

A check reads, and changes nothing. The first violation is kept until it is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from ...broker.effects import Report
from ...configs import ResourceType
from ...messages.produce_request import ProduceRequest
from ...messages.produce_response import ProduceResponse
from ...metadata import MetadataImage, TopicIdPartition
from ...node import Node
from ...node.invariants import Invariants, Replica, Violation
from ...raft import LeaderChanged
from ...records import RecordBatches
from ...replication import LogOffline, Partition, ReplicaChanged, ReplicaState

ALL: Final = -1
NO_TOPIC_ID: Final = bytes(16)
AS_SENT: Final = {"cleanup.policy": "delete", "compression.type": "producer"} | {
    "message.timestamp.type": "CreateTime"
}
"""The configuration with which batches are stored as they were sent; these are the defaults."""


class Running(NamedTuple):
    """A node that runs. incarnation: how often it was started."""

    node_id: int
    incarnation: int
    node: Node


class ClusterInvariants:
    """What was seen of a cluster so far."""

    def __init__(self) -> None:
        self._seen = Invariants()
        self._acknowledged: dict[TopicIdPartition, dict[int, int]] = {}
        """Offset of each batch that was acknowledged with acks=all -> its checksum."""
        self._produced: list[tuple[ProduceRequest, Report, Mapping[str, bytes]]] = []
        """Not read yet: a request with acks=all, its report, and the ids of topics then."""
        self._violation: Violation | None = None

    # -- what nodes report

    def observe(self, node_id: int, effect: object) -> None:
        """Note who leads."""
        try:
            match effect:
                case LeaderChanged(leader, epoch) if leader is not None:
                    self._seen.quorum_led(epoch, leader)
                case ReplicaChanged(key, ReplicaState.LEADER, epoch):
                    self._seen.led(key, epoch, node_id)
        except Violation as error:
            self._violation = self._violation or error

    def reported(self, report: Report, image: Callable[[], MetadataImage]) -> None:
        """Note a Produce with acks=all; the next check reads what was acknowledged."""
        body = report.request.body
        if isinstance(body, ProduceRequest) and body.acks == ALL:
            self._produced.append((body, report, image().topic_ids))

    def _read_produced(self) -> None:
        """Note which batches were acknowledged."""
        for body, report, topic_ids in self._produced:
            response = report.response
            if not isinstance(response, ProduceResponse):
                continue
            sent = {
                (topic.name, topic.topic_id, each.index): each.records or b""
                for topic in body.topic_data
                for each in topic.partition_data
            }
            for topic in response.responses:
                topic_id = topic.topic_id
                if topic_id == NO_TOPIC_ID:
                    topic_id = topic_ids.get(topic.name, NO_TOPIC_ID)
                for each in topic.partition_responses:
                    if not each.error_code:
                        records = sent.get((topic.name, topic.topic_id, each.index), b"")
                        key = TopicIdPartition(topic_id, each.index)
                        self._acknowledge(key, each.base_offset, records)
        self._produced.clear()

    def _acknowledge(self, key: TopicIdPartition, offset: int, records: bytes) -> None:
        for batch in RecordBatches(records):
            self._acknowledged.setdefault(key, {})[offset] = batch.crc
            offset += batch.last_offset - batch.base_offset + 1

    # -- what is in their logs

    def check(self, running: Iterable[Running], image: MetadataImage) -> None:
        """Raise Violation if something does not hold."""
        if self._violation is not None:
            raise self._violation
        self._read_produced()
        nodes = list(running)
        for topic, index, registration in image.partitions():
            key = TopicIdPartition(topic.topic_id, index)
            replicas = {
                each: replica
                for each in nodes
                if (replica := each.node.partitions.get(key)) is not None
            }
            for leader in replicas.values():
                if leader.is_leader and leader.leader_epoch == registration.leader_epoch:
                    in_sync = leader.isr.maximal & set(registration.isr)
                    with suppress(LogOffline):
                        self._check_acknowledged(key, leader, _stored_as_sent(image, topic.name))
                        self._check_replicas(key, leader, replicas, in_sync)
        for each in nodes:
            raft = each.node.parts.raft
            data = raft.log.read(raft.log.start_offset, 1 << 40)
            self._seen.metadata(each.node_id, data, raft.client.high_watermark)

    def _check_replicas(
        self,
        key: TopicIdPartition,
        leader: Partition,
        replicas: dict[Running, Partition],
        in_sync: frozenset[int],
    ) -> None:
        for each, replica in replicas.items():
            if each.node_id in in_sync:
                replica_found = Replica(each.node_id, each.incarnation, replica.log)
                self._seen.agree(key, leader.log, replica_found)

    def _check_acknowledged(self, key: TopicIdPartition, leader: Partition, as_sent: bool) -> None:
        """Check that a leader has what was acknowledged."""
        expected = self._acknowledged.get(key)
        if not expected:
            return
        log = leader.log
        start, end = log.log_start_offset, log.log_end_offset
        data = log.read(start, 1 << 40, end, at_least_one=True)
        has = {batch.base_offset: batch.crc for batch in RecordBatches(data)}
        where = f"{leader.topic}-{key.partition}: leader {leader.broker.broker_id}"
        for offset, checksum in expected.items():
            if offset >= end:
                raise Violation(f"{where} ends at {end}, acknowledged is offset {offset}")
            if as_sent and offset >= start and has.get(offset) != checksum:
                raise Violation(f"{where} lost the batch at offset {offset}, or has another there")


def _stored_as_sent(image: MetadataImage, topic: str) -> bool:
    configs = image.config(ResourceType.TOPIC, topic)
    return all(configs.get(name, value) == value for name, value in AS_SENT.items())
