"""Rules taken out of a node, one at a time: some seed of the whole cluster has to find each.

A mutant patches what the machine runs on; the simulation's own checks stay as they are. Rules
of one package alone have their mutants there.
"""

# ruff: noqa: ARG001 - a mutant has the signature of what it replaces
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

from kafkawire import controller
from kafkawire.node import outputs
from kafkawire.node.broker.assignments import AssignmentsManager
from kafkawire.node.broker.broker_server import BrokerServer
from kafkawire.node.broker.publisher import LogPublisher
from kafkawire.node.broker.replica_log import StoredReplicaLog
from kafkawire.node.lifecycle import BrokerLifecycleManager
from kafkawire.node.quorum.metadata_log import KafkaMetadataLog
from kafkawire.node.quorum.raft_manager import RaftManager
from kafkawire.replication import Registered, ReplicaManager

Patch = Any


def _nothing(*_arguments: Any, **_keywords: Any) -> None:
    return None


def _publishes_before_its_registration() -> Patch:
    """Act on metadata that may be of an earlier incarnation of the broker."""
    original = BrokerServer.maybe_publish_first

    def early(self: BrokerServer, now: float) -> Any:
        offset = self.loader.offset
        if offset >= 0 and self.lifecycle.epoch >= 0:
            self.loader.offset = max(offset, self.lifecycle.epoch)
        found = original(self, now)
        self.loader.offset = offset
        return found

    return patch.object(BrokerServer, "maybe_publish_first", early)


def _hands_on_what_is_not_committed() -> Patch:
    original = RaftManager._committed

    def early(self: RaftManager, _offset: int) -> Any:
        return original(self, self.log.end.offset)

    return patch.object(RaftManager, "_committed", early)


def _appends_without_sequences() -> Patch:
    original = StoredReplicaLog.append_as_leader

    def append(self: Any, batches: Any, epoch: int, internal: bool = False) -> Any:
        return original(self, batches, epoch, internal=True)

    return patch.object(StoredReplicaLog, "append_as_leader", append)


def _takes_the_log_end_for_the_high_watermark() -> Patch:
    def update(self: StoredReplicaLog, _offset: int) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)

    return patch.object(StoredReplicaLog, "update_high_watermark", update)


def _keeps_its_old_broker_epoch() -> Patch:
    original = ReplicaManager.handle

    def handle(self: Any, event: Any, now: float) -> Any:
        known = isinstance(event, Registered)
        return original(self, Registered(0) if known else event, now)

    return patch.object(ReplicaManager, "handle", handle)


def _ignores_snapshots() -> Patch:
    return patch.object(BrokerServer, "snapshot_loaded", lambda *_: [])


def _handles_outputs_last_first() -> Patch:
    """Let what is committed reach the controller before what was committed earlier."""
    original = outputs.on_committed

    def committed(parts: Any, output: Any, now: float) -> None:
        original(parts, output, now)
        parts.queue.reverse()

    return patch.dict(outputs.OUTPUTS, {controller.Committed: committed})


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "publishes before its registration": _publishes_before_its_registration,
    "keeps the logs of deleted topics": lambda: patch.object(
        LogPublisher, "delete_strays", _nothing
    ),
    "keeps what was deleted while it was down": lambda: patch.object(
        LogPublisher, "set_strays_aside", lambda *_: []
    ),
    "does not flush the metadata log": lambda: patch.object(KafkaMetadataLog, "flush", _nothing),
    "hands on what is not committed": _hands_on_what_is_not_committed,
    "appends without sequences": _appends_without_sequences,
    "takes the log end for the high watermark": _takes_the_log_end_for_the_high_watermark,
    "does not truncate": lambda: patch.object(StoredReplicaLog, "truncate_to", _nothing),
    "keeps its old broker epoch": _keeps_its_old_broker_epoch,
    "ignores snapshots": _ignores_snapshots,
    "handles outputs last first": _handles_outputs_last_first,
    "does not report a directory that failed": lambda: patch.object(
        BrokerLifecycleManager, "directory_failed", _nothing
    ),
    "does not report where replicas are": lambda: patch.object(
        AssignmentsManager, "assign", _nothing
    ),
    "keeps the replicas of a directory that failed": lambda: patch.object(
        ReplicaManager, "_fail", _nothing
    ),
}
