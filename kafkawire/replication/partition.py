"""A replica of a partition: as leader, its followers, ISR and high watermark; as follower, its log.

The high watermark is what every replica of the maximal ISR has; only a follower that has it,
and the start of the leader's epoch, joins the ISR; requests with another leader epoch are fenced.
"""

# over 300 lines: one class, a replica as leader and as follower

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..metadata import NO_LEADER, PartitionRegistration, TopicIdPartition
from ..protocol import ErrorCode
from ..records.validated import ValidatedBatch
from .broker import Broker
from .isr import Isr, committed_isr
from .log.replica_log import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    AppendRejected,
    EpochEndOffset,
    LogAppendInfo,
    ReplicaLog,
    Validate,
    whole_batches,
)
from .replica import Replica
from .states import REPLICA_TRANSITIONS, IsrState, IsrTrigger, ReplicaState, Trigger

E = ErrorCode
NONE: Final = E.NONE
LEADER: Final = ReplicaState.LEADER
"""Members with names of their own: each request compares them."""


class Partition:
    """A partition on one broker."""

    def __init__(self, key: TopicIdPartition, topic: str, log: ReplicaLog, broker: Broker) -> None:
        self.key = key
        self.topic = topic
        self.log = log
        self.broker = broker
        self.state = ReplicaState.NO_LEADER
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.epoch_start_offset = UNKNOWN_OFFSET
        self.isr: Isr = committed_isr(frozenset())
        self.followers: dict[int, Replica] = {}

    @property
    def is_leader(self) -> bool:
        return self.state is LEADER

    def change(self, trigger: Trigger) -> None:
        """Change the state by the table."""
        self.state = REPLICA_TRANSITIONS[self.state, trigger]

    # -- metadata

    def apply(self, registration: PartitionRegistration, now: float) -> bool:
        """Become leader or follower; return whether the leader epoch is new."""
        if registration.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        was_leader = self.is_leader
        self.leader, self.leader_epoch = registration.leader, registration.leader_epoch
        if registration.partition_epoch > self.partition_epoch or not was_leader:
            self._set_isr(IsrTrigger.METADATA, frozenset(registration.isr))
        self.partition_epoch = registration.partition_epoch
        if registration.leader == self.broker.broker_id:
            self._lead(registration, was_leader, is_new_epoch, now)
        else:
            self._follow(is_new_epoch)
        return is_new_epoch

    def _lead(
        self, registration: PartitionRegistration, was_leader: bool, is_new: bool, now: float
    ) -> None:
        others = [each for each in registration.replicas if each != self.broker.broker_id]
        self.followers = {each: self.followers.get(each) or Replica(each) for each in others}
        if is_new:
            end = self.log.log_end_offset
            self.log.assign_epoch_start_offset(self.leader_epoch, end)
            self.epoch_start_offset = end
            for each in self.followers.values():
                each.reset(end, each.broker_id in self.isr.committed, not was_leader, now)
        self.change(Trigger.BECAME_LEADER)
        self.maybe_increment_high_watermark(now)

    def _follow(self, is_new: bool) -> None:
        self.followers = {}
        self.epoch_start_offset = UNKNOWN_OFFSET
        if self.leader == NO_LEADER:
            self.change(Trigger.LOST_LEADER)
        elif is_new or self.state in (ReplicaState.LEADER, ReplicaState.NO_LEADER):
            self.change(Trigger.BECAME_FOLLOWER)

    def _set_isr(self, trigger: IsrTrigger, committed: frozenset[int]) -> None:
        self.isr = self.isr.settle(trigger, committed)

    # -- requests

    def check(self, current_leader_epoch: int, only_leader: bool) -> ErrorCode:
        """Return the error of a request with a leader epoch, -1 for any (KIP-320)."""
        if current_leader_epoch != NO_EPOCH:
            if current_leader_epoch < self.leader_epoch:
                return E.FENCED_LEADER_EPOCH
            if current_leader_epoch > self.leader_epoch:
                return E.UNKNOWN_LEADER_EPOCH
        if only_leader and self.state is not LEADER:
            return E.NOT_LEADER_OR_FOLLOWER
        return NONE

    @property
    def min_insync_replicas(self) -> int:
        """min.insync.replicas, at most the number of replicas."""
        return min(self.broker.min_insync_replicas(self.topic), len(self.followers) + 1)

    def has_min_isr(self, in_sync: int) -> bool:
        """Return whether so many in-sync replicas are enough for acks=all."""
        return in_sync > len(self.followers) or in_sync >= self.min_insync_replicas

    def append_as_leader(
        self,
        records: bytes,
        all_replicas: bool,
        now: float,
        internal: bool = False,
        validate: Validate | None = None,
    ) -> LogAppendInfo:
        """Append records. Raises AppendRejected.

        all_replicas: for acks=all. internal: the broker's. validate: None is `whole_batches`.
        """
        if self.state is not LEADER:
            raise AppendRejected(E.NOT_LEADER_OR_FOLLOWER, "this broker is not the leader")
        in_sync = len(self.isr.committed)
        if all_replicas and not self.has_min_isr(in_sync):
            raise AppendRejected(
                E.NOT_ENOUGH_REPLICAS,
                f"{in_sync} in-sync replicas, min.insync.replicas is {self.min_insync_replicas}",
            )
        if validate is None:
            batches: Sequence[ValidatedBatch] = whole_batches(records, internal)
        else:
            batches = validate(self.topic, records)
        info = self.log.append_as_leader(batches, self.leader_epoch, internal)
        self.maybe_increment_high_watermark(now)
        return info

    def acknowledgement(self) -> ErrorCode:
        """Return the outcome of an append that the high watermark has passed."""
        enough = self.has_min_isr(len(self.isr.maximal))
        return E.NONE if enough else E.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Return the end of the largest epoch up to `leader_epoch` (KIP-101, KIP-279)."""
        return self.log.end_offset_for_epoch(leader_epoch)

    @property
    def offsets_are_available(self) -> bool:
        """Whether the high watermark is one of this leader epoch (KIP-207)."""
        return not self.is_leader or self.log.high_watermark >= self.epoch_start_offset

    # -- followers

    def update_follower(
        self, broker_id: int, offset: int, start: int, broker_epoch: int, now: float
    ) -> ErrorCode:
        """Note the fetch of a follower; the high watermark and the ISR may grow."""
        replica = self.followers.get(broker_id)
        if replica is None:
            return E.UNKNOWN_LEADER_EPOCH
        registration = self.broker.image.brokers.get(broker_id)
        if registration is not None and NO_EPOCH != broker_epoch < registration.epoch:
            return E.NOT_LEADER_OR_FOLLOWER  # of a former incarnation
        replica.fetched(offset, start, self.log.log_end_offset, broker_epoch, now)
        self.maybe_expand_isr(replica)
        self.maybe_increment_high_watermark(now)
        return E.NONE

    def progress(self, broker_id: int) -> tuple[object, ...]:
        """Return what the fetch of a follower may change, and others wait for."""
        replica = self.followers.get(broker_id)
        theirs = None if replica is None else (replica.log_end_offset, replica.log_start_offset)
        return theirs, self.log.high_watermark, self.isr

    @property
    def ends(self) -> tuple[int, int, int]:
        """Where the log starts and ends, and the high watermark."""
        return self.log.log_start_offset, self.log.log_end_offset, self.log.high_watermark

    def maybe_increment_high_watermark(self, now: float) -> None:
        """Advance the high watermark to what all of the maximal ISR have."""
        if self.is_under_min_isr():
            return
        log = self.log
        reached = end = log.log_end_offset
        for each in self.followers.values():
            if each.log_end_offset < reached and self.must_wait_for(each, end, now):
                reached = each.log_end_offset
        if reached > log.high_watermark:
            log.update_high_watermark(reached)

    def is_under_min_isr(self) -> bool:
        """Return whether the high watermark must stay, for too few in-sync replicas (KIP-966)."""
        if not self.broker.config.eligible_leader_replicas:
            return False
        return not self.has_min_isr(len(self.isr.committed))

    def must_wait_for(self, replica: Replica, end: int, now: float) -> bool:
        """Return whether the high watermark waits for a follower: in sync, or about to be."""
        if replica.broker_id in self.isr.maximal:
            return True
        caught_up = replica.is_caught_up(end, self.broker.config.replica_lag_time_max, now)
        return caught_up and self.is_eligible(replica)

    def is_eligible(self, replica: Replica) -> bool:
        """Return whether the controller would accept a follower (KIP-841, KIP-903)."""
        registration = self.broker.image.brokers.get(replica.broker_id)
        if registration is None or not registration.is_active:
            return False
        return replica.broker_epoch in (NO_EPOCH, registration.epoch)

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of all live replicas (KIP-107)."""
        live = [
            each.log_start_offset
            for each in self.followers.values()
            if self._is_alive(each.broker_id)
        ]
        return min([self.log.log_start_offset, *live])

    def _is_alive(self, broker_id: int) -> bool:
        registration = self.broker.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    # -- the ISR

    def has_reached(self, replica: Replica) -> bool:
        """Return whether a follower has the high watermark, and the start of this epoch."""
        end = replica.log_end_offset
        return end >= self.log.high_watermark and end >= self.epoch_start_offset

    def maybe_expand_isr(self, replica: Replica) -> None:
        """Propose a follower that has reached the high watermark and the start of the epoch."""
        if self.isr.is_pending or replica.broker_id in self.isr.committed:
            return
        if self.is_eligible(replica) and self.has_reached(replica):
            grown = self.isr.committed | {replica.broker_id}
            self.isr = self.isr.propose(IsrTrigger.CAUGHT_UP, grown)

    def maybe_shrink_isr(self, now: float) -> None:
        """Propose an ISR without the followers that lag for replica.lag.time.max.ms."""
        if not self.is_leader or self.isr.is_pending:
            return
        end, most = self.log.log_end_offset, self.broker.config.replica_lag_time_max
        lagging = {
            each.broker_id
            for each in self.followers.values()
            if each.broker_id in self.isr.committed and not each.is_caught_up(end, most, now)
        }
        if lagging:
            self.isr = self.isr.propose(IsrTrigger.LAGGING, self.isr.committed - lagging)

    def isr_with_epochs(self) -> list[tuple[int, int]]:
        """List the proposed ISR with the epochs of its brokers (KIP-903)."""
        followers = []
        for each in sorted(self.isr.proposed):
            replica = self.followers.get(each)
            epoch = self.broker.epoch if replica is None else replica.broker_epoch
            followers.append((each, NO_EPOCH if epoch is None else epoch))
        return followers

    def isr_accepted(
        self, leader_epoch: int, isr: frozenset[int], partition_epoch: int, now: float
    ) -> None:
        """Commit the ISR of the controller, unless something newer is known."""
        outdated = leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch
        if outdated or not self.isr.is_pending or not self.is_leader:
            return
        self._set_isr(IsrTrigger.ACCEPTED, isr)
        self.partition_epoch = partition_epoch
        self.maybe_increment_high_watermark(now)

    def isr_refused(self) -> None:
        """Return to the committed ISR: the controller did not make the change."""
        if self.isr.state is not IsrState.COMMITTED:
            self._set_isr(IsrTrigger.REFUSED, self.isr.committed)

    # -- as follower

    def append_as_follower(self, records: bytes, high_watermark: int, log_start: int) -> None:
        """Append what was fetched; take over the high watermark and the log start offset."""
        if records:
            self.log.append_as_follower(records)
        if high_watermark >= 0:
            self.log.update_high_watermark(high_watermark)
        self.log.increment_log_start_offset(log_start)

    def truncate_to_diverging(self, leader: EpochEndOffset) -> None:
        """Truncate to where the leader's log may agree with this one (KIP-279, KIP-595)."""
        end = self.log.log_end_offset
        if leader.end_offset < 0:
            self.log.truncate_to(self.log.high_watermark)
            return
        own = self.log.end_offset_for_epoch(leader.leader_epoch)
        if own.end_offset < 0 or leader.leader_epoch < 0:
            self.log.truncate_to(min(leader.end_offset, end))
        elif own.leader_epoch != leader.leader_epoch:
            self.log.truncate_to(min(own.end_offset, end))  # and the next fetch says more
        else:
            self.log.truncate_to(min(own.end_offset, leader.end_offset, end))
