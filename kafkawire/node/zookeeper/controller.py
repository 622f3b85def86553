"""The controller of a cluster before 2.8: elected in ZooKeeper, it sends changes to the brokers.

It changes no partition; `changes` calls it for each change that the quorum has committed, and
it sends the requests that Kafka's KafkaController sends, in that order. What a recording of Kafka
2.7 shows for each change:

    elected              UpdateMetadata without partitions, then LeaderAndIsr of all
    topic, partitions    LeaderAndIsr to the replicas, UpdateMetadata to all
    topic deleted        UpdateMetadata with leader -2, StopReplica, StopReplica with deletion
    broker stopped       LeaderAndIsr of its partitions, UpdateMetadata without partitions
    broker started       UpdateMetadata of all to it, LeaderAndIsr of its replicas
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from ...broker.apis import between_brokers
from ...broker.releases import before
from ...messages.api_key import ApiKey
from ...primitives import Message
from .channel import BrokerChannel, Queued
from .channels import BrokerChannels
from .context import ZooKeeperContext
from .registry import PartitionState, Registry
from .request_batch import EPOCH_DURING_DELETE, RequestBatch

MOST_QUEUED: Final = 1_000
"""Requests that wait for one broker; beyond, they are replaced by the state of all partitions."""
CHANGED_IN: Final = "2.3"
"""Before, StopReplica is sent for each replica, and a new controller repeats no offline ones."""


class ZooKeeperController:
    """The controller, whichever broker it is, and its channels to all brokers."""

    def __init__(
        self,
        context: ZooKeeperContext,
        registry: Registry,
        channels: BrokerChannels,
    ) -> None:
        self.registry = registry
        self.shutting_down: set[int] = set()
        self._channels = channels
        self._to: dict[int, BrokerChannel] = {}
        self._versions = between_brokers(context.release)
        self._is_oldest = before(context.release, CHANGED_IN)

    @property
    def total_queue_size(self) -> int:
        """The requests to all brokers without a response yet: Kafka's metric of that name."""
        return sum(map(len, self._to.values()))

    # -- the controller itself

    def _elect(self, now: float, changed: Sequence[PartitionState] = ()) -> None:
        """Elect the first of the live brokers, which sends the others what it knows.

        changed: partitions whose leader or ISR it changes.
        """
        if not self.registry.alive:
            return
        elected = min(self.registry.alive)
        self.registry.elect(elected)
        for node_id in sorted(self.registry.alive):
            self._to[node_id] = self._channels.add(elected, node_id)
        self._send_brokers(self.registry.alive, now)
        self._write(changed)
        partitions = list(self.registry.partitions.values())
        self._send_leaders(partitions, now)
        if not self._is_oldest:
            self._write_offline(partitions, now)
        for node_id in sorted(self.registry.deletions):
            self._repeat_deletions(node_id, now)

    def _write_offline(self, partitions: Iterable[PartitionState], now: float) -> None:
        """Write and send the partitions of which a replica is offline, as a new controller."""
        offline = [each for each in partitions if not self._online.issuperset(each.replicas)]
        for partition in offline:
            partition.controller_epoch = self.registry.controller_epoch
        self._send_leaders(offline, now)

    def _resign(self) -> None:
        for channel in self._to.values():
            self._channels.remove(channel)
        self._to.clear()
        self.shutting_down.clear()

    # -- brokers

    def broker_started(self, node_id: int, now: float) -> None:
        """Send a broker that is up again the state of the cluster, before it is in any ISR."""
        if node_id in self.registry.broker_epochs:
            return
        self.registry.register(node_id)
        self.shutting_down.discard(node_id)
        if self.registry.controller_id is None:
            self._elect(now)
            return
        self._to[node_id] = self._channels.add(self.registry.controller_id, node_id)
        self._send_brokers(self.registry.alive - {node_id}, now)
        self._send_all(node_id, now)

    def _send_all(self, node_id: int, now: float) -> None:
        """Send a broker the metadata of all partitions, and the state of those that it hosts."""
        partitions = list(self.registry.partitions.values())
        batch = self._batch()
        batch.update_metadata([node_id], partitions)
        self._send(batch, now)
        batch = self._batch()
        for partition in partitions:
            if node_id in partition.replicas:
                batch.leader_and_isr([node_id], partition)
        self._send(batch, now)

    def broker_stopped(
        self,
        node_id: int,
        led: Sequence[PartitionState],
        changed: Sequence[PartitionState],
        now: float,
    ) -> None:
        """Send the others that a broker is down.

        led: the partitions that it led; changed: all whose leader or ISR has changed.
        """
        if node_id not in self.registry.broker_epochs:
            return
        self.registry.unregister(node_id)
        self.shutting_down.discard(node_id)
        if self.registry.controller_id is None:
            self._resign()
            self._elect(now, changed)
            return
        self._channels.remove(self._to.pop(node_id))
        self._write(changed)
        self._send_leaders(led, now)
        hosted = [each for each in self.registry.partitions.values() if node_id in each.replicas]
        self._send_leaders(hosted, now)
        if not led:
            self._send_brokers(self.registry.alive, now)

    # -- partitions

    def created(self, partitions: Iterable[PartitionState], now: float) -> None:
        """Send the brokers new partitions."""
        self._send_leaders(partitions, now, is_new=True)

    def elected(self, partitions: Sequence[PartitionState], now: float) -> None:
        """Send the brokers partitions whose leader has changed."""
        self._write(partitions)
        self._send_leaders(partitions, now)

    def isr_changed(self, partitions: Sequence[PartitionState], now: float) -> None:
        """Send all brokers the ISRs that leaders have written, those of each leader at once."""
        by_leader: dict[int, list[PartitionState]] = {}
        for partition in partitions:
            self.registry.write(partition)
            by_leader.setdefault(partition.leader_id, []).append(partition)
        for written in by_leader.values():
            batch = self._batch()
            batch.update_metadata(self.registry.alive, written)
            self._send(batch, now)

    def deleted(self, partitions: Sequence[PartitionState], now: float) -> None:
        """Stop and delete the replicas of deleted topics."""
        batch = self._batch()
        batch.update_metadata(self.registry.alive, partitions, deleted=True)
        self._send(batch, now)
        self._delete_replicas([(each, each.replicas) for each in partitions], now)
        for partition in partitions:
            self.registry.remove(partition)

    def reassigned(self, partition: PartitionState, removed: Sequence[int], now: float) -> None:
        """Send the replicas of a partition that they are, and delete those that were removed."""
        self.elected([partition], now)
        self._delete_replicas([(partition, removed)], now)

    def _delete_replicas(
        self, replicas: Sequence[tuple[PartitionState, Sequence[int]]], now: float
    ) -> None:
        for partition, node_ids in replicas:
            for node_id in self.registry.alive.intersection(node_ids):
                self.registry.deletions.setdefault(node_id, {})[partition.key] = partition
        for delete in (False, True):
            batch = self._batch()
            for partition, node_ids in replicas:
                for node_id in node_ids:
                    batch.stop_replica(node_id, partition, EPOCH_DURING_DELETE, delete)
            self._send(batch, now)

    def _repeat_deletions(self, node_id: int, now: float) -> None:
        """Delete replicas on a broker that did not respond to it."""
        batch = self._batch()
        for partition in self.registry.deletions.get(node_id, {}).values():
            batch.stop_replica(node_id, partition, EPOCH_DURING_DELETE, delete=True)
        self._send(batch, now)

    def _responded(self, node_id: int, _response: Message, _now: float) -> None:
        """Forget the deletions of a broker that has responded to all requests."""
        if not self._to[node_id]:
            self.registry.deletions.pop(node_id, None)

    def led_elsewhere(self, node_id: int, led: Sequence[PartitionState], now: float) -> None:
        """Send all replicas the new leaders of partitions that a stopping broker led."""
        self.shutting_down.add(node_id)
        self.elected(led, now)

    def replicas_stopped(
        self, node_id: int, followed: Sequence[tuple[PartitionState, int]], now: float
    ) -> None:
        """Stop the followers on a stopping broker. followed: with the former leader epochs."""
        if not followed:
            return
        batch = self._batch()
        for partition, leader_epoch in followed:
            batch.stop_replica(node_id, partition, leader_epoch, delete=False)
        self._send(batch, now)
        self._write([partition for partition, _ in followed])
        batch = self._batch()
        for partition, leader_epoch in followed:
            others = [each for each in partition.replicas if each != node_id]
            batch.leader_and_isr(others, partition)
            batch.stop_replica(node_id, partition, leader_epoch, delete=False)
        self._send(batch, now)

    # -- requests

    @property
    def _online(self) -> set[int]:
        return self.registry.alive - self.shutting_down

    def _write(self, partitions: Iterable[PartitionState]) -> None:
        for partition in partitions:
            self.registry.write(partition, self.registry.controller_epoch)

    def _batch(self) -> RequestBatch:
        return RequestBatch(self.registry, self.shutting_down, grouped=not self._is_oldest)

    def _send_brokers(self, node_ids: Iterable[int], now: float) -> None:
        """Send which brokers are live, without partitions."""
        batch = self._batch()
        batch.update_metadata(node_ids)
        self._send(batch, now)

    def _send_leaders(
        self, partitions: Iterable[PartitionState], now: float, is_new: bool = False
    ) -> None:
        """Send the state of partitions to their replicas, and their metadata to all brokers."""
        batch = self._batch()
        for partition in partitions:
            batch.leader_and_isr(partition.replicas, partition, is_new)
        self._send(batch, now)

    def _send(self, batch: RequestBatch, now: float) -> None:
        version = self._versions[ApiKey.STOP_REPLICA].last
        late = set()
        for node_id, key, message in batch.messages(version):
            channel = self._to[node_id]
            on_response = partial(self._responded, node_id)
            channel.send(Queued(message, self._versions[key].last, on_response), now)
            if len(channel) > MOST_QUEUED:
                late.add(node_id)
        for node_id in late:
            self._to[node_id].clear()
            self._send_all(node_id, now)
            self._repeat_deletions(node_id, now)
