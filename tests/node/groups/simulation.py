"""Simulates a whole cluster whose nodes serve groups: members come and go."""

from __future__ import annotations

from typing import Any, Final

from kafkawire.broker.groups.coordinators import partition_for
from kafkawire.broker.share.states import AcknowledgeType, RecordState
from kafkawire.broker.share_coordinator.coordinators import coordinator_key
from kafkawire.broker.share_coordinator.state import ShareKey, ShareState
from kafkawire.broker.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kafkawire.controller.operations.alter_configs import SET
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.metadata import TopicIdPartition
from kafkawire.protocol import ErrorCode

from ..scenario import Composition, Scenario, Serving, draw
from ..simulation import Simulation
from ..workload import MAIN, VERSIONS
from .connections import ConnectedNetwork, ServingNode
from .consumer_checker import ConsumerChecker
from .consumer_members import ConsumerGroup, ConsumerMember
from .members import Members
from .share_checker import ShareChecker
from .share_members import GROUP, ShareGroup, ShareMember

DELIVERY_LIMIT: Final = 4
GROUP_RESOURCE: Final = 32


def with_groups(seed: int, composition: Composition = Composition.RAFT) -> Scenario:
    """Draw a scenario, and let its cluster have groups."""
    return draw(seed, composition)._replace(serving=Serving.GROUPS)


class GroupSimulation(Simulation, ConnectedNetwork):
    """One run of a scenario with groups."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.sharing = ShareGroup(self, ShareChecker(DELIVERY_LIMIT))
        self.share_members = Members(self, lambda id: ShareMember(self.sharing, id))
        self.consuming = ConsumerGroup(self, ConsumerChecker())
        self.consumer_members = Members(self, lambda id: ConsumerMember(self.consuming, id))

    def simulate(self) -> str:
        """Run it all; return the digest of the trace. Raises Violation."""
        self.at(1.5, self.configure_group)
        return super().simulate()

    def configure_group(self) -> None:
        """Let the group begin at the earliest record; then let members come."""
        if not self.live():
            self.at(self.now + 0.5, self.configure_group)
            return
        earliest = AlterableConfig(
            name="share.auto.offset.reset", config_operation=SET, value="earliest"
        )
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[earliest]
        )
        body = IncrementalAlterConfigsRequest(resources=[resource])
        version = VERSIONS[IncrementalAlterConfigsRequest]
        self.call(self.rng.choice(self.live()), version, body, self._configured)

    def _configured(self, body: Any) -> None:
        if body is None or body.responses[0].error_code:
            self.at(self.now + 0.5, self.configure_group)
        else:
            self.share_members.come_and_go()
            self.consumer_members.come_and_go()

    def heal(self) -> None:
        """End all faults; members stay from now on, and accept all that they get."""
        super().heal()
        self.share_members.settle()
        self.consumer_members.settle()
        self.sharing.kinds, self.sharing.late = {AcknowledgeType.ACCEPT: 1}, 0.0

    def serving(self, id: int) -> ServingNode:
        """Return the node of a process that runs."""
        node = self.processes[id].node
        assert isinstance(node, ServingNode)
        return node

    def is_coordinator(self, node: int) -> bool:
        """Whether a node coordinates the groups in the newest epoch."""
        image = self.image()
        topic = None if image is None else image.topic(OFFSETS_TOPIC)
        leader = None if topic is None else self.leader(TopicIdPartition(topic.topic_id, 0))
        return leader is not None and leader.broker.broker_id == node

    def share_start(self, node: int, key: TopicIdPartition) -> int | None:
        """Return the start offset of a share partition that a node has loaded."""
        loaded = self.serving(node).broker.shares.partitions._active.get(share_key(key))
        return None if loaded is None else loaded.start_offset

    # -- what must hold

    def check(self) -> None:
        """Check the stored states, too."""
        super().check()
        for key in self.main_partitions():
            state, leader = self.stored_state(key), self.leader(key)
            if state is not None and leader is not None:
                written = self.checker.promised.get(key, {})
                start = max(self.checker.deleted.get(key, 0), leader.log.log_start_offset)
                self.sharing.checker.stored(key, state, written, start)

    def main_partitions(self) -> list[TopicIdPartition]:
        """List the partitions of the topic of the groups."""
        image = self.image()
        topic = None if image is None else image.topic(MAIN)
        if topic is None:
            return []
        return [TopicIdPartition(topic.topic_id, index) for index in topic.partitions]

    def stored_state(self, key: TopicIdPartition) -> ShareState | None:
        """Return the state of a share partition, if its coordinator leads in the newest epoch."""
        image, share = self.image(), share_key(key)
        topic = None if image is None else image.topic(SHARE_STATE_TOPIC)
        if topic is None:
            return None
        index = partition_for(coordinator_key(share), len(topic.partitions))
        leader = self.leader(TopicIdPartition(topic.topic_id, index))
        if leader is None:
            return None
        coordinators = self.serving(leader.broker.broker_id).broker.share_coordinators
        coordinator = coordinators.find(share)
        if isinstance(coordinator, ErrorCode) or coordinator.epoch != leader.leader_epoch:
            return None
        return coordinator.states.get(share)

    def unsettled(self) -> str:
        """Say what has not caught up, or is not acknowledged."""
        unsettled = super().unsettled()
        if unsettled:
            return unsettled
        keys, assigned = self.main_partitions(), self.share_members.partitions()
        if assigned != set(keys):
            return f"share group: assigned {assigned}"
        for key in keys:
            state, leader = self.stored_state(key), self.leader(key)
            assert leader is not None
            if not is_complete(state, leader.log.log_end_offset):
                return f"{key.partition}: {state}, log end {leader.log.log_end_offset}"
            if self.consuming.checker.reached(key) != leader.log.log_end_offset:
                return f"{key.partition}: log end {leader.log.log_end_offset} is not committed"
        return self._unshared(keys)

    def _unshared(self, keys: list[TopicIdPartition]) -> str:
        """Say what the members of the consumer group have, if it is not each partition once."""
        members = self.consumer_members.members
        has = sorted(key for member in members for key in member.partitions)
        return "" if has == sorted(keys) else f"consumer group: assigned {has}"

    def check_end(self) -> None:
        """Check all records once more."""
        super().check_end()
        self.check()
        for key in self.main_partitions():
            leader = self.leader(key)
            assert leader is not None
            start = max(self.checker.deleted.get(key, 0), leader.log.log_start_offset)
            offsets = (offset for offset in self.checker.promised.get(key, {}) if offset >= start)
            self.consuming.checker.complete(key, offsets)


def share_key(key: TopicIdPartition) -> ShareKey:
    """Return a partition as the group reads it."""
    return ShareKey(GROUP, key.topic_id, key.partition)


def is_complete(state: ShareState | None, end: int) -> bool:
    """Return whether all records before an offset are acknowledged or archived."""
    if state is None:
        return False
    next_offset = state.start_offset
    for batch in state.batches:
        if batch.first_offset <= next_offset and RecordState(batch.delivery_state).is_terminal:
            next_offset = batch.last_offset + 1
    return next_offset >= end
