"""Reports to the controller in which log directories replicas are, as Kafka's AssignmentsManager.

A difference from the metadata is reported until the controller has it, also that of a
directory which has failed meanwhile: only so does the controller know that its replicas are offline
(KIP-858). One request is in flight.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from ...messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from ...messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from ...metadata import TopicIdPartition
from ...primitives import Message

VERSION: Final = 0
MOST: Final = 2000
"""Replicas in one request."""


class AssignmentsManager:
    """The replicas whose directory the controller does not know. retry_backoff: in seconds."""

    def __init__(self, broker_id: int, retry_backoff: float) -> None:
        self._broker_id = broker_id
        self._retry_backoff = retry_backoff
        self._pending: dict[TopicIdPartition, bytes] = {}
        self._sent: dict[TopicIdPartition, bytes] | None = None
        """What is in flight."""
        self._due = 0.0

    def assign(self, key: TopicIdPartition, directory: bytes) -> None:
        """Report the directory of a replica."""
        self._pending[key] = directory

    def forget(self, key: TopicIdPartition) -> None:
        """Note that the metadata has the directory of a replica, or the replica was removed."""
        self._pending.pop(key, None)

    def next_deadline(self) -> float | None:
        """Return when `request` has something to send."""
        return self._due if self._pending and self._sent is None else None

    def request(self, broker_epoch: int, now: float) -> Message | None:
        """Return the request that is due."""
        if not self._pending or self._sent is not None or now < self._due:
            return None
        self._sent = dict(islice(self._pending.items(), MOST))
        directories: dict[bytes, dict[bytes, list[PartitionData]]] = {}
        for key, directory in self._sent.items():
            topics = directories.setdefault(directory, {})
            data = PartitionData(partition_index=key.partition)
            topics.setdefault(key.topic_id, []).append(data)
        return AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            directories=[
                DirectoryData(
                    id=directory,
                    topics=[TopicData(topic_id=id, partitions=all_) for id, all_ in topics.items()],
                )
                for directory, topics in directories.items()
            ],
        )

    def handle(self, body: Message | None, now: float) -> None:
        """Handle the response; None if there was none in time."""
        sent, self._sent = self._sent or {}, None
        if not isinstance(body, AssignReplicasToDirsResponse) or body.error_code:
            self._due = now + self._retry_backoff
            return
        for key, directory in sent.items():  # an error of one: it is not a replica of this broker
            if self._pending.get(key) == directory:
                del self._pending[key]
