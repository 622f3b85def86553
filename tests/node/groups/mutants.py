"""Rules of groups taken out of a node, one at a time: some seed has to find each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kafkawire.broker.groups import group_types
from kafkawire.broker.groups.consumer_groups.group import ConsumerGroup
from kafkawire.broker.groups.coordinator import Coordinator
from kafkawire.broker.share.fetching import ShareFetches
from kafkawire.broker.share.in_flight import Run
from kafkawire.broker.share.partition import SharePartition
from kafkawire.broker.share.partitions import SharePartitions
from kafkawire.broker.share.states import Trigger
from kafkawire.broker.share_coordinator import coordinator
from kafkawire.broker.share_coordinator.coordinator import ShareCoordinator
from kafkawire.broker.share_coordinator.records import decode
from kafkawire.broker.share_coordinator.state import StateUpdate
from kafkawire.messages.write_share_group_state_request import PartitionData as WriteData
from kafkawire.messages.write_share_group_state_response import PartitionResult as Written
from kafkawire.protocol import ErrorCode

E = ErrorCode
Patch = Any


def _acknowledges_before_it_is_stored() -> Patch:
    original = SharePartitions.store

    def store(self: Any, key: Any, share: Any, write: Any, then: Any, now: float) -> None:
        original(self, key, share, write, lambda *_: None, now)
        then(E.NONE, now)

    return patch.object(SharePartitions, "store", store)


def _delivers_without_a_limit() -> Patch:
    def settle(
        _: Any, run: Run, trigger: Trigger, _dead_letters: bool, write: int | None = None
    ) -> None:
        run.change(trigger, write)

    return patch.object(SharePartition, "_settle", settle)


def _locks_do_not_end() -> Patch:
    return patch.object(SharePartition, "next_deadline", lambda _: None)


def _loads_no_updates() -> Patch:
    def snapshots_alone(key: Any, value: Any) -> Any:
        decoded = decode(key, value)
        is_update = decoded is not None and isinstance(decoded[1], StateUpdate)
        return None if is_update else decoded

    return patch.object(coordinator, "decode", snapshots_alone)


def _snapshots_without_batches() -> Patch:
    original = ShareCoordinator._snapshot

    def snapshot(self: Any, key: Any, state: Any, now: float) -> None:
        original(self, key, replace(state, batches=()), now)

    return patch.object(ShareCoordinator, "_snapshot", snapshot)


def _stale_leaders_write() -> Patch:
    """Do not compare the leader epochs of writes."""
    original = ShareCoordinator._write

    def write(self: Any, key: Any, data: Any, now: float) -> Any:
        state = self.states.get(key)
        if state is not None:
            data.leader_epoch = max(data.leader_epoch, state.leader_epoch)
        return original(self, key, data, now)

    return patch.dict(coordinator.OPERATIONS, {WriteData: (write, Written)})


def _former_leaders_deliver() -> Patch:
    """Keep what was loaded in an earlier leader epoch."""
    return patch.multiple(
        SharePartitions,
        _current=lambda self, key, _replica: self._active.get(key),
        published=lambda _self, _now: None,
    )


def _accepted_records_return() -> Patch:
    original = Run.change

    def change(self: Run, trigger: Trigger, write: int | None = None) -> None:
        original(self, Trigger.RELEASE if trigger is Trigger.ACCEPT else trigger, write)

    return patch.object(Run, "change", change)


def _acquired_records_are_left_out() -> Patch:
    """Acquire what is not in the response."""
    original = ShareFetches._acquire_one

    def acquire_one(self: Any, *arguments: Any) -> Any:
        data = original(self, *arguments)
        if data is not None:
            data.acquired_records.pop()
        return data

    return patch.object(ShareFetches, "_acquire_one", acquire_one)


def _anybody_acknowledges() -> Patch:
    """Let members acknowledge what others have acquired."""
    original = SharePartition._refusal

    def refusal(self: SharePartition, member_id: str, first: int, last: int) -> ErrorCode:
        runs = self.in_flight.between(first, last)
        holder = next((run.member_id for run in runs if run.is_acquired), member_id)
        return original(self, holder, first, last)

    return patch.object(SharePartition, "_refusal", refusal)


def _partitions_are_not_released_first() -> Patch:
    """Assign a partition that another member has not revoked yet."""
    return patch.object(ConsumerGroup, "_is_free", lambda _self, _partition: True)


def _anybody_commits() -> Patch:
    """Let members commit that were removed, or have another epoch."""
    return patch.object(group_types, "commit_error", lambda *_: ErrorCode.NONE)


def _commits_are_not_logged() -> Patch:
    original = Coordinator.commit

    def commit(self: Any, group_id: str, offsets: Any, now: float, _records: Any) -> None:
        original(self, group_id, offsets, now, ())

    return patch.object(Coordinator, "commit", commit)


def _members_stay_for_good() -> Patch:
    return patch.object(ConsumerGroup, "next_deadline", lambda _: None)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "acknowledges before it is stored": _acknowledges_before_it_is_stored,
    "delivers without a limit": _delivers_without_a_limit,
    "acquisition locks do not end": _locks_do_not_end,
    "loads no updates of states": _loads_no_updates,
    "snapshots without batches": _snapshots_without_batches,
    "former leaders write states": _stale_leaders_write,
    "former leaders deliver": _former_leaders_deliver,
    "accepted records return": _accepted_records_return,
    "acquired records are left out": _acquired_records_are_left_out,
    "anybody acknowledges": _anybody_acknowledges,
    "partitions are not released first": _partitions_are_not_released_first,
    "anybody commits": _anybody_commits,
    "commits are not logged": _commits_are_not_logged,
    "members stay for good": _members_stay_for_good,
}
