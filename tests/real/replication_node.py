"""Runs replicas of `kafkawire.replication` on loopback sockets, beside a real Kafka.

One request at a time, in the order of the machine; a request to the controller, and to a
broker that is not there, fails.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from kafkawire.metadata import MetadataImage, TopicIdPartition, everything
from kafkawire.replication import (
    Append,
    Effect,
    Event,
    MemoryLog,
    MetadataPublished,
    Registered,
    ReplicaManager,
    ReplicationConfig,
    ResponseReceived,
    SendRequest,
)

from .wire import Wire

SECONDS: Final = 120.0
"""After which a condition is not expected any more, however slow the machine is."""
IDLE_SECONDS: Final = 0.02
QUICK: Final = ReplicationConfig(replica_fetch_wait_max=0.1, replica_fetch_backoff=0.1)


class ReplicationNode:
    """A broker of ours with one log, and connections to other brokers: id -> port."""

    def __init__(self, broker_id: int, epoch: int, ports: dict[int, int]) -> None:
        self.log = MemoryLog()
        self.machine = ReplicaManager(broker_id, QUICK, lambda _: self.log, self.now)
        self._wires = {other: Wire(port) for other, port in ports.items()}
        self._pending: deque[SendRequest] = deque()
        self.handle(Registered(epoch))

    @property
    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.socket.close()

    def handle(self, event: Event) -> None:
        """Give the machine an event."""
        self._take(self.machine.handle(event, self.now))

    def publish(self, image: MetadataImage) -> None:
        """Publish what an image says."""
        self.handle(MetadataPublished(image, everything(image)))

    def append(self, image: MetadataImage, topic: str, records: bytes) -> None:
        """Append a batch as the leader."""
        key = TopicIdPartition(image.topic_ids[topic], 0)
        self.machine.appends.append(1, key, records, Append(1, SECONDS, internal=True), self.now)
        self._take(self.machine.finish(self.now))

    def run_until(self, holds: Callable[[], bool], what: str) -> None:
        """Carry out effects and deadlines until a condition holds."""
        deadline = self.now + SECONDS
        while not holds():
            assert self.now < deadline, f"not within {SECONDS} s: {what}"
            if self._pending:
                self._send(self._pending.popleft())
            else:
                time.sleep(IDLE_SECONDS)
            if self.machine.next_deadline() <= self.now:
                self._take(self.machine.advance(self.now))

    def _take(self, effects: list[Effect]) -> None:
        self._pending += [each for each in effects if isinstance(each, SendRequest)]

    def _send(self, sent: SendRequest) -> None:
        wire = self._wires.get(sent.destination)
        body = None if wire is None else wire.send(sent.body, sent.version).frame.body
        self.handle(ResponseReceived(sent.token, body))
