"""A scripted controller: elects leaders from the ISR, judges AlterPartition, fences brokers.

One process that never fails, with the rules of Kafka's ReplicationControlManager; the metadata log
is a list of records, those of one decision together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from kafkawire.messages.alter_partition_request import AlterPartitionRequest
from kafkawire.messages.alter_partition_request import PartitionData as Proposed
from kafkawire.messages.alter_partition_response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from kafkawire.messages.config_record import ConfigRecord
from kafkawire.messages.topic_record import TopicRecord
from kafkawire.metadata import (
    NO_LEADER,
    BrokerRegistration,
    PartitionRegistration,
    TopicIdPartition,
)
from kafkawire.metadata.snapshot import registration_record
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

E = ErrorCode
SESSION: Final = 4.0
"""Seconds after the last heartbeat until a broker is fenced."""


@dataclass(frozen=True)
class PartitionState:
    """A partition. elr: eligible leader replicas (KIP-966). target: of a reassignment."""

    key: TopicIdPartition
    registration: PartitionRegistration
    elr: frozenset[int] = frozenset()
    target: tuple[int, ...] = ()


@dataclass
class Controller:
    """The controller. elr: whether it keeps eligible leader replicas."""

    elr: bool
    min_isr: int
    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    partitions: dict[TopicIdPartition, PartitionState] = field(default_factory=dict)
    log: list[tuple[Message, ...]] = field(default_factory=list)
    seen: dict[int, float] = field(default_factory=dict)
    registered_at: dict[int, int] = field(default_factory=dict)
    """Broker -> the length of the log with its registration."""

    def publish(self, *states: PartitionState, broker: BrokerRegistration | None = None) -> None:
        """Append to the metadata log."""
        records: list[Message] = []
        for state in states:
            self.partitions[state.key] = state
            records.append(state.registration.record(*state.key))
        if broker is not None:
            self.brokers[broker.broker_id] = broker
            records.append(registration_record(broker))
        self.log.append(tuple(records))

    def create(self, key: TopicIdPartition, topic: str, replicas: tuple[int, ...]) -> None:
        """Create a partition whose replicas are all in sync."""
        made = PartitionRegistration(replicas, replicas, replicas[0])
        records: list[Message] = []
        if not any(each.topic_id == key.topic_id for each in self.partitions):
            records = created(key.topic_id, topic, self.min_isr)
        self.partitions[key] = PartitionState(key, made)
        self.log.append((*records, made.record(*key)))

    # -- brokers

    def register(self, broker_id: int, rack: str, was_clean: bool, now: float) -> int:
        """Register an incarnation; one that may have lost records leaves ISR and ELR."""
        self.fence(broker_id)
        epoch = len(self.log) + 1
        self.publish(broker=BrokerRegistration(broker_id, bytes(16), epoch, rack=rack))
        self.registered_at[broker_id] = len(self.log)
        self.seen[broker_id] = now
        if not was_clean:
            self.lost(broker_id)
        return epoch

    def lost(self, broker_id: int) -> None:
        """Take a broker that may have lost records out of ISR and ELR."""
        for state in list(self.partitions.values()):
            without = self._without(state, broker_id, keep_last=False)
            self._change(replace(without, elr=without.elr - {broker_id}))

    def heartbeat(self, broker_id: int, epoch: int, applied: int, now: float) -> None:
        """Note a heartbeat; unfence a broker that has the metadata of its registration."""
        known = self.brokers.get(broker_id)
        if known is None or known.epoch != epoch:
            return
        self.seen[broker_id] = now
        if known.fenced and applied >= self.registered_at[broker_id]:
            self.publish(broker=known._replace(fenced=False))
            for state in list(self.partitions.values()):
                self._change(state)

    def tick(self, now: float) -> None:
        """Fence the brokers whose session is over."""
        for broker_id, seen in list(self.seen.items()):
            if now - seen > SESSION and not self.brokers[broker_id].fenced:
                self.fence(broker_id)

    def fence(self, broker_id: int) -> None:
        """Fence a broker: it leaves all ISRs, and leads nothing."""
        known = self.brokers.get(broker_id)
        if known is None or known.fenced:
            return
        self.publish(broker=known._replace(fenced=True))
        for state in list(self.partitions.values()):
            self._change(self._without(state, broker_id, keep_last=True))

    def is_live(self, broker_id: int) -> bool:
        known = self.brokers.get(broker_id)
        return known is not None and not known.fenced

    # -- partitions

    def _without(self, state: PartitionState, broker_id: int, keep_last: bool) -> PartitionState:
        """Take a broker out of the ISR; without ELR the last one stays if it is only fenced."""
        registration = state.registration
        isr = tuple(each for each in registration.isr if each != broker_id)
        if not isr and keep_last and not self.elr:
            return state
        return self._with_isr(state, isr)

    def _with_isr(self, state: PartitionState, isr: tuple[int, ...]) -> PartitionState:
        removed = set(state.registration.isr) - set(isr)
        elr = frozenset[int]()
        if self.elr and len(isr) < min(self.min_isr, len(state.registration.replicas)):
            elr = (state.elr | removed) - set(isr)
        return replace(state, registration=state.registration._replace(isr=isr), elr=elr)

    def _change(self, state: PartitionState, force: bool = False) -> None:
        """Elect a leader if needed, and publish what changed."""
        old = self.partitions[state.key]
        state = self._elected(self._progressed(state))
        if state != old or force:
            epoch = old.registration.partition_epoch + 1
            self.publish(
                replace(state, registration=state.registration._replace(partition_epoch=epoch))
            )

    def _elected(self, state: PartitionState) -> PartitionState:
        now = state.registration
        if now.leader in now.isr and self.is_live(now.leader):
            return state
        electable = [each for each in now.isr if self.is_live(each)]
        if not electable:
            eligible = [each for each in now.replicas if each in state.elr and self.is_live(each)]
            if eligible and not now.isr:
                state = replace(
                    state,
                    registration=now._replace(isr=(eligible[0],)),
                    elr=state.elr - {eligible[0]},
                )
                electable = [eligible[0]]
        leader = electable[0] if electable else NO_LEADER
        if leader == now.leader:
            return state
        changed = state.registration._replace(leader=leader, leader_epoch=now.leader_epoch + 1)
        return replace(state, registration=changed)

    def elect(self, key: TopicIdPartition, broker_id: int) -> None:
        """Elect another in-sync replica, if it is one and lives."""
        state = self.partitions[key]
        now = state.registration
        if broker_id in now.isr and self.is_live(broker_id) and now.leader != broker_id:
            epoch = now.leader_epoch + 1
            self._change(
                replace(state, registration=now._replace(leader=broker_id, leader_epoch=epoch))
            )

    def reassign(self, key: TopicIdPartition, target: tuple[int, ...]) -> None:
        """Add replicas; the old ones leave when the new ones are in sync."""
        state = self.partitions[key]
        now = state.registration
        replicas = tuple(dict.fromkeys((*target, *now.replicas)))
        self._change(PartitionState(key, now._replace(replicas=replicas), state.elr, target), True)

    def _progressed(self, state: PartitionState) -> PartitionState:
        """Complete a reassignment whose target is in sync."""
        now, target = state.registration, state.target
        if not target or not set(target) <= set(now.isr):
            return state
        return PartitionState(state.key, now._replace(replicas=target, isr=target))

    # -- AlterPartition

    def alter(self, body: AlterPartitionRequest) -> AlterPartitionResponse:
        """Judge the ISRs that a leader proposes."""
        known = self.brokers.get(body.broker_id)
        if known is None or known.epoch != body.broker_epoch:
            return AlterPartitionResponse(error_code=E.STALE_BROKER_EPOCH)
        return AlterPartitionResponse(
            topics=[
                TopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        self._judge(
                            TopicIdPartition(topic.topic_id, each.partition_index),
                            body.broker_id,
                            each,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )

    def _judge(self, key: TopicIdPartition, broker_id: int, proposed: Proposed) -> PartitionData:
        made = PartitionData(partition_index=key.partition)
        state = self.partitions[key]
        made.error_code = self._error(state.registration, broker_id, proposed)
        if made.error_code:
            return made
        isr = tuple(each.broker_id for each in proposed.new_isr_with_epochs)
        self._change(self._with_isr(state, isr), force=True)
        now = self.partitions[key].registration
        if now.leader != broker_id:
            made.error_code = E.NEW_LEADER_ELECTED
            return made
        made.leader_id, made.leader_epoch = now.leader, now.leader_epoch
        made.isr, made.partition_epoch = list(now.isr), now.partition_epoch
        return made

    def _error(self, now: PartitionRegistration, broker_id: int, proposed: Proposed) -> ErrorCode:
        if proposed.leader_epoch < now.leader_epoch:
            return E.FENCED_LEADER_EPOCH
        if now.leader != broker_id or proposed.leader_epoch > now.leader_epoch:
            return E.INVALID_REQUEST
        if proposed.partition_epoch != now.partition_epoch:
            return E.INVALID_UPDATE_VERSION
        epochs = {each.broker_id: each.broker_epoch for each in proposed.new_isr_with_epochs}
        if not set(epochs) <= set(now.replicas) or broker_id not in epochs:
            return E.INVALID_REQUEST
        for each, epoch in epochs.items():
            known = self.brokers.get(each)
            if known is None or known.fenced or epoch not in (-1, known.epoch):
                return E.INELIGIBLE_REPLICA
        return E.NONE


def created(topic_id: bytes, topic: str, min_isr: int) -> list[Message]:
    """Make the records of a topic without partitions."""
    value = str(min_isr)
    return [
        TopicRecord(name=topic, topic_id=topic_id),
        ConfigRecord(resource_type=2, resource_name=topic, name="min.insync.replicas", value=value),
    ]
