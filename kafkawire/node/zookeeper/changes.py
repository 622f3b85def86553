"""What the controller in ZooKeeper does about changes that the quorum has committed.

Each change of a partition is sent once, with the change of the broker that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...metadata import MetadataDelta, MetadataImage, PartitionRegistration
from .controller import ZooKeeperController
from .registry import Key, PartitionState, Registry

NO_EPOCH: Final = -1
Pending = dict[Key, PartitionRegistration]
"""Partitions whose change is not sent yet, as they are now."""


class Changes:
    """Calls the controller."""

    def __init__(self, registry: Registry, controller: ZooKeeperController) -> None:
        self._registry = registry
        self._controller = controller
        self._registrations: dict[int, int] = {}
        """Broker -> the epoch of its registration with the quorum."""

    def publish(self, image: MetadataImage, delta: MetadataDelta, now: float) -> None:
        """Send the brokers what has changed."""
        self._delete(delta.deleted_topics.values(), now)
        pending: Pending = {}
        for topic_id, index in delta.partitions:
            topic = image.topics.get(topic_id)
            if topic is not None and index in topic.partitions:
                pending[topic.name, index] = topic.partitions[index]
        for node_id in delta.brokers:
            self._broker_changed(image, node_id, pending, now)
        self._send(pending, now)

    def _delete(self, names: Iterable[str], now: float) -> None:
        partitions = [each for name in names for each in self._registry.of_topic(name)]
        if partitions:
            self._controller.deleted(partitions, now)

    # -- brokers

    def _broker_changed(
        self, image: MetadataImage, node_id: int, pending: Pending, now: float
    ) -> None:
        broker = image.brokers.get(node_id)
        epoch = NO_EPOCH if broker is None or broker.fenced else broker.epoch
        before = self._registrations.get(node_id, NO_EPOCH)
        if before != NO_EPOCH and epoch != before:
            self._stopped(node_id, pending, now)
        if epoch not in (NO_EPOCH, before):
            self._controller.broker_started(node_id, now)
        elif epoch != NO_EPOCH and broker is not None and broker.in_controlled_shutdown:
            self._shuts_down(node_id, pending, now)
        self._registrations[node_id] = epoch

    def _stopped(self, node_id: int, pending: Pending, now: float) -> None:
        """Send the leaders and ISRs of a broker's partitions, as its session has ended."""
        led: list[PartitionState] = []
        others: list[PartitionState] = []
        for state in self._of_broker(node_id, pending):
            (led if state.leader_id == node_id else others).append(state)
            state.set(pending.pop(state.key))
        self._controller.broker_stopped(node_id, led, led + others, now)

    def _shuts_down(self, node_id: int, pending: Pending, now: float) -> None:
        """Send the leaders that a ControlledShutdown has moved, then stop the followers."""
        led: list[PartitionState] = []
        followed: list[tuple[PartitionState, int]] = []
        for state in self._of_broker(node_id, pending):
            registration = pending.pop(state.key)
            if state.leader_id == node_id:
                led.append(state)
            else:
                followed.append((state, state.leader_epoch))
            state.set(registration)
        if node_id not in self._controller.shutting_down:
            self._controller.led_elsewhere(node_id, led, now)
            self._controller.replicas_stopped(node_id, followed, now)

    def _of_broker(self, node_id: int, pending: Pending) -> list[PartitionState]:
        """Return the partitions that a broker has led, or in whose ISR it was, until now."""
        states = (self._registry.partitions.get(key) for key in pending)
        return [
            state
            for state in states
            if state is not None and (state.leader_id == node_id or node_id in state.isr)
        ]

    # -- partitions

    def _send(self, pending: Pending, now: float) -> None:
        """Send what no broker's start or end has changed."""
        created: list[PartitionState] = []
        elected: list[PartitionState] = []
        isr_changed: list[PartitionState] = []
        for (name, index), registration in pending.items():
            state = self._registry.partitions.get((name, index))
            if state is None:
                created.append(self._registry.create(name, index, registration))
                continue
            removed = [each for each in state.replicas if each not in registration.replicas]
            same_replicas = tuple(state.replicas) == registration.replicas
            same_leader = state.leader_epoch == registration.leader_epoch
            same_isr = tuple(state.isr) == registration.isr
            state.set(registration)
            if removed:
                self._controller.reassigned(state, removed, now)
            elif not (same_leader and same_replicas):
                elected.append(state)
            elif not same_isr:
                isr_changed.append(state)
        if created:
            self._controller.created(created, now)
        if elected:
            self._controller.elected(elected, now)
        self._controller.isr_changed(isr_changed, now)
