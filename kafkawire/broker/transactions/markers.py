"""Writes the markers of transactions into partitions that this node leads, and sends the others.

A marker is written when its partition has it on all in-sync replicas. In a partition of
`__consumer_offsets` it ends the pending offsets of the transaction, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from ...messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from ...metadata import TopicIdPartition
from ...primitives import Message
from ...protocol import ErrorCode
from ...records.builder import end_txn_batch
from ...replication import AppendCompleted
from ...transactions import TopicPartition, TransactionMarkers
from ..groups.coordinators import Coordinators
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..topics import OFFSETS_TOPIC

E = ErrorCode
VERSION: Final = 2
Then = Callable[[WriteTxnMarkersResponse, float], None]
MarkerAppended = Callable[[TopicIdPartition, int], None]
"""(partition, producer id): a transaction of that producer ended there."""


@dataclass(slots=True)
class Writing:
    """A WriteTxnMarkers whose appends are not all complete. left: how many are not."""

    response: WriteTxnMarkersResponse
    then: Then
    left: int = 1


class NodeMarkers:
    """The markers of a node: `queue` has those that its coordinators want to be written."""

    def __init__(
        self,
        node_id: int,
        metadata: MetadataCache,
        machines: Machines,
        groups: Coordinators,
        wall_ms: Callable[[float], int],
        on_append: MarkerAppended,
    ) -> None:
        self.queue = TransactionMarkers()
        self._node_id = node_id
        self._metadata = metadata
        self._machines = machines
        self._groups = groups
        self._wall_ms = wall_ms
        self._on_append = on_append
        self._sent: dict[int, int] = {}
        """Token of a request -> the broker."""
        self._appends: dict[int, tuple[Writing, WritableTxnMarkerPartitionResult]] = {}
        """Token of an append -> what it is for."""

    # -- those of the coordinators

    def send(self, now: float) -> None:
        """Send the markers that are due to the leaders of their partitions."""
        while requests := self.queue.requests(self._leader_of, now):
            for broker_id, body in requests:
                if broker_id == self._node_id:
                    self.write(body, self._written_here, now)
                    continue
                token = self._machines.send(broker_id, VERSION, body)
                if token is None:
                    self.queue.response(broker_id, None, now)
                else:
                    self._sent[token] = broker_id

    def _leader_of(self, partition: TopicPartition) -> int | None:
        registration = self._metadata.topics.partition(*partition)
        return None if registration is None else registration.leader_id

    def _written_here(self, body: WriteTxnMarkersResponse, now: float) -> None:
        self.queue.response(self._node_id, body, now)

    def arrived(self, token: int, body: Message | None, now: float) -> bool:
        """Handle a response; return whether it was for this."""
        broker_id = self._sent.pop(token, None)
        if broker_id is None:
            return False
        response = body if isinstance(body, WriteTxnMarkersResponse) else None
        self.queue.response(broker_id, response, now)
        return True

    # -- the partitions of this node

    def write(self, body: WriteTxnMarkersRequest, then: Then, now: float) -> None:
        """Write markers; `then` is called with the response when all are committed."""
        writing = Writing(WriteTxnMarkersResponse(), then)
        for marker in body.markers:
            topics = []
            for topic in marker.topics:
                results = []
                for index in topic.partition_indexes:
                    result = WritableTxnMarkerPartitionResult(partition_index=index)
                    results.append(result)
                    self._write_one(marker, (topic.name, index), writing, result, now)
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
            written = WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
            writing.response.markers.append(written)
        self._complete_one(writing, now)

    def _write_one(
        self,
        marker: WritableTxnMarker,
        partition: TopicPartition,
        writing: Writing,
        result: WritableTxnMarkerPartitionResult,
        now: float,
    ) -> None:
        topic = self._metadata.topics.get(partition[0])
        key = None if topic is None else TopicIdPartition(topic.topic_id, partition[1])
        replica = None if key is None else self._machines.replica(key)
        if key is None or replica is None:
            result.error_code = E.UNKNOWN_TOPIC_OR_PARTITION
            return
        batch = end_txn_batch(
            marker.transaction_result,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=self._wall_ms(now),
        )
        token, completed = self._machines.append(key, batch, now)
        if completed is not None and completed.error:
            result.error_code = completed.error
            return
        self._on_append(key, marker.producer_id)
        if partition[0] == OFFSETS_TOPIC:
            end = replica.log.log_end_offset
            committed = marker.transaction_result
            self._groups.end_transaction(key.partition, marker.producer_id, committed, end)
        if completed is None:
            writing.left += 1
            self._appends[token] = writing, result

    def appended(self, effect: AppendCompleted, now: float) -> None:
        """Take note of an append that is complete, if it is a marker's."""
        waiting = self._appends.pop(effect.token, None)
        if waiting is not None:
            writing, result = waiting
            result.error_code = effect.result.error
            self._complete_one(writing, now)

    def _complete_one(self, writing: Writing, now: float) -> None:
        writing.left -= 1
        if not writing.left:
            writing.then(writing.response, now)
