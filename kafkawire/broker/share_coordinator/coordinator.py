"""Coordinates the share partitions of one partition of `__share_group_state`.

Invariant: a state is what its snapshot and the updates since made of it; a write of an older leader
or of an older state changes nothing.

    InitializeShareGroupState ─▶ state epoch, start offset          WriteShareGroupState ─▶ batches
    ReadShareGroupState ─▶ leader epoch                             DeleteShareGroupState ─▶ nothing
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ...messages.delete_share_group_state_request import PartitionData as DeleteData
from ...messages.delete_share_group_state_response import PartitionResult as Deleted
from ...messages.initialize_share_group_state_request import PartitionData as InitializeData
from ...messages.initialize_share_group_state_response import PartitionResult as Initialized
from ...messages.read_share_group_state_request import PartitionData as ReadData
from ...messages.read_share_group_state_response import PartitionResult as ReadResult
from ...messages.read_share_group_state_response import StateBatch as ReadBatch
from ...messages.read_share_group_state_summary_request import PartitionData as SummaryData
from ...messages.read_share_group_state_summary_response import PartitionResult as Summary
from ...messages.write_share_group_state_request import PartitionData as WriteData
from ...messages.write_share_group_state_response import PartitionResult as Written
from ...primitives import Structure
from ...protocol import ErrorCode
from ...protocol.log_records import decode_log_record
from ...protocol.log_types import InternalLog
from ...records import Batch, BatchBuilder
from ..context import Context
from ..groups.coordinator_log import CoordinatorLog
from ..groups.offsets import LogRecord
from .records import decode, encode_snapshot, encode_update
from .state import UNINITIALIZED, ShareKey, ShareState, StateUpdate, state_batches

E = ErrorCode
UPDATES_PER_SNAPSHOT: Final = "share.coordinator.snapshot.update.records.per.snapshot"
SNAPSHOT_MS: Final = 300_000
"""How old the snapshot of a share partition may be, as Kafka's cold snapshots."""
STATE_BATCHES: Final = 10_000
"""Maximum number of batches of a share partition; leaders have fewer records in flight."""


class Refusal(NamedTuple):
    """Why a request is refused; the message is Kafka's."""

    error: ErrorCode
    message: str


TOO_MANY: Final = Refusal(E.POLICY_VIOLATION, "Too many share partitions, or batches of one.")
FENCED_STATE: Final = Refusal(
    E.FENCED_STATE_EPOCH,
    "The share coordinator rejected the request because the share-group state epoch did not match.",
)
FENCED_LEADER: Final = Refusal(
    E.FENCED_LEADER_EPOCH, "The leader epoch in the request is older than the epoch on the broker."
)


class ShareCoordinator:
    """The share partitions of one partition. epoch: the leader epoch of the partition.

    pending: the offset after what it has appended, 0 if that is committed.
    """

    def __init__(self, index: int, epoch: int, log: CoordinatorLog, context: Context) -> None:
        self.index = index
        self.epoch = epoch
        self.pending = 0
        self.states: dict[ShareKey, ShareState] = {}
        self._log = log
        self._context = context
        self._updates: dict[ShareKey, int] = {}
        """Share partition -> number of updates since its snapshot."""
        self._snapshots: dict[ShareKey, int] = {}
        """Share partition -> the offset of its snapshot."""

    # -- requests

    def handle(self, key: ShareKey, data: Structure, now: float) -> Structure:
        """Handle the part of a request for one share partition; return its result.

        data: the partition in the request. The result holds once `pending` is committed.
        """
        operation, result = OPERATIONS[type(data)]
        outcome = operation(self, key, data, now)
        if isinstance(outcome, Refusal):
            error, message = outcome
            return result(partition=key.partition, error_code=error, error_message=message)
        return outcome

    def _initialize(self, key: ShareKey, data: InitializeData, now: float) -> Initialized | Refusal:
        """Set up the state of a share partition, or reset it with the next state epoch."""
        state = self.states.get(key)
        if data.state_epoch < 0:
            return _negative("state")
        if state is not None and state.state_epoch > data.state_epoch:
            return FENCED_STATE
        if state is None and len(self.states) >= self._context.bounds.share_partitions:
            return TOO_MANY
        wall_ms = self._context.wall_ms(now)
        self._snapshot(
            key,
            ShareState(
                0 if state is None else state.snapshot_epoch + 1,
                data.state_epoch,
                0 if state is None else state.leader_epoch,
                data.start_offset,
                0 if data.start_offset != UNINITIALIZED else UNINITIALIZED,
                wall_ms if state is None else state.created,
                wall_ms,
            ),
            now,
        )
        return Initialized(partition=data.partition)

    def _read(self, key: ShareKey, data: ReadData, now: float) -> ReadResult | Refusal:
        """Return the state of a share partition to its leader, whose epoch is stored."""
        state = self.states.get(key)
        if data.leader_epoch < 0:
            return _negative("leader")
        if state is None:
            return _uninitialized("Read")
        if data.leader_epoch < state.leader_epoch:
            return FENCED_LEADER
        if data.leader_epoch > state.leader_epoch:
            count = state.delivery_complete_count
            self._change(key, StateUpdate(data.leader_epoch, UNINITIALIZED, count, ()), now)
        return ReadResult(
            partition=data.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[ReadBatch(**each._asdict()) for each in state.batches],
        )

    def _write(self, key: ShareKey, data: WriteData, now: float) -> Written | Refusal:
        """Change the state of a share partition."""
        state = self.states.get(key)
        if data.state_epoch < 0 or data.leader_epoch < 0:
            return _negative("state" if data.state_epoch < 0 else "leader")
        if state is None:
            return _uninitialized("Write")
        if data.leader_epoch < state.leader_epoch or data.state_epoch < state.state_epoch:
            return FENCED_LEADER if data.leader_epoch < state.leader_epoch else FENCED_STATE
        if len(state.batches) + len(data.state_batches) > STATE_BATCHES:
            return TOO_MANY
        if any(each.first_offset < 0 for each in data.state_batches):
            return Refusal(E.INVALID_REQUEST, "Offsets cannot be negative numbers.")
        update = StateUpdate(
            data.leader_epoch,
            data.start_offset,
            data.delivery_complete_count,
            state_batches(data.state_batches),
        )
        self._change(key, update, now)
        return Written(partition=data.partition)

    def _delete(self, key: ShareKey, _data: DeleteData, now: float) -> Deleted:
        """Delete the state of a share partition, if there is any."""
        if key in self.states:
            self._tombstone(key, now)
        return Deleted(partition=key.partition)

    def _summarize(self, key: ShareKey, _data: SummaryData, _now: float) -> Summary:
        """Return the start offset of a share partition; that of an unknown one is open."""
        state = self.states.get(key, ShareState())
        return Summary(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    # -- changes

    def _change(self, key: ShareKey, update: StateUpdate, now: float) -> None:
        """Log an update, or a snapshot when there were enough updates."""
        state = self.states[key]
        if self._updates.get(key, 0) >= self._context.settings.number(UPDATES_PER_SNAPSHOT):
            wall_ms = self._context.wall_ms(now)
            after = replace(state.updated(update), written=wall_ms)
            self._snapshot(key, replace(after, snapshot_epoch=state.snapshot_epoch + 1), now)
        else:
            offset = self._append(encode_update(key, state.snapshot_epoch, update), now)
            self._replay(key, update, offset)

    def _snapshot(self, key: ShareKey, state: ShareState, now: float) -> None:
        offset = self._append(encode_snapshot(key, state), now)
        self._replay(key, state, offset)

    def _append(self, record: LogRecord, now: float) -> int:
        """Append a record; return its offset."""
        builder = BatchBuilder()
        builder.append(*record, self._context.wall_ms(now))
        end = self._log.append(self.index, builder, now)
        self.pending = end if self._log.committed(self.index) < end else 0
        return end - 1

    def _replay(self, key: ShareKey, change: ShareState | StateUpdate | None, offset: int) -> None:
        state = self.states.get(key)
        if change is None:
            self.states.pop(key, None)
            self._updates.pop(key, None)
            self._snapshots.pop(key, None)
        elif isinstance(change, ShareState):
            self.states[key] = change
            self._updates[key] = 0
            self._snapshots[key] = offset
        elif state is not None:
            self.states[key] = state.updated(change)
            self._updates[key] += 1

    def topics_deleted(self, topic_ids: Container[bytes], now: float) -> None:
        """Delete the states of deleted topics."""
        for key in [each for each in self.states if each.topic_id in topic_ids]:
            self._tombstone(key, now)

    def _tombstone(self, key: ShareKey, now: float) -> None:
        offset = self._append(encode_snapshot(key, None), now)
        self._replay(key, None, offset)

    # -- the log

    def load(self) -> None:
        """Load the states from the log."""
        for data in self._log.batches(self.index):
            batch = Batch(data, 0, len(data))
            for record in () if batch.control else batch.records():
                read = decode_log_record(InternalLog.SHARE, record.key, record.value)
                key = None if read.key is None else read.key.message
                value = None if read.value is None else read.value.message
                decoded = None if value is None and record.value is not None else decode(key, value)
                if decoded is not None:
                    self._replay(*decoded, record.offset)
            end = batch.last_offset + 1
            self.pending = end if self._log.committed(self.index) < end else 0

    def prune(self, now: float) -> None:
        """Delete the records that no state needs; old snapshots are written anew before."""
        wall_ms = self._context.wall_ms(now)
        for key, state in list(self.states.items()):
            if wall_ms - state.written >= SNAPSHOT_MS:
                epoch = state.snapshot_epoch + 1
                self._snapshot(key, replace(state, snapshot_epoch=epoch, written=wall_ms), now)
        committed = self._log.committed(self.index)
        needed = min(self._snapshots.values(), default=committed)
        if needed <= committed:
            self._log.delete_before(self.index, needed, now)

    def committed(self, offset: int) -> None:
        """Take note that the records before an offset are committed."""
        if self.pending <= offset:
            self.pending = 0


def _negative(epoch: str) -> Refusal:
    return Refusal(E.INVALID_REQUEST, f"The {epoch} epoch cannot be a negative number.")


def _uninitialized(operation: str) -> Refusal:
    return Refusal(
        E.INVALID_REQUEST, f"{operation} operation on uninitialized share partition not allowed."
    )


Operation = Callable[[ShareCoordinator, ShareKey, Any, float], Structure | Refusal]
OPERATIONS: Final[Mapping[type[Structure], tuple[Operation, Callable[..., Structure]]]] = {
    InitializeData: (ShareCoordinator._initialize, Initialized),
    ReadData: (ShareCoordinator._read, ReadResult),
    WriteData: (ShareCoordinator._write, Written),
    DeleteData: (ShareCoordinator._delete, Deleted),
    SummaryData: (ShareCoordinator._summarize, Summary),
}
"""The partition in a request -> what is done, and the class of its result."""
