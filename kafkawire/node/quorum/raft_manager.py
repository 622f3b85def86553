"""The quorum's replica of a node with its files, as Kafka's KafkaRaftManager.

Committed records are handed on once, in order, decoded, without control records; a snapshot
comes in their place. quorum-state is on disk before what depends on it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ...controller import BecameLeader, Committed, LogEndMoved, Resigned, SnapshotLoaded
from ...errors import InvalidMetadataRecord, InvalidValue
from ...log import InternalLog, decode_log_record, encode_log_message
from ...metadata import MetadataImage, VersionedRecord, snapshot
from ...primitives import Message
from ...raft import (
    Append,
    Event,
    Fault,
    KafkaRaftClient,
    LeaderChanged,
    OffsetAndEpoch,
    PersistQuorumState,
    RaftConfig,
    Reply,
    Resign,
    Send,
    SnapshotTaken,
    read_quorum_state,
)
from ...raft import AppendFailed as Failed
from ...raft import BecameLeader as Leads
from ...raft import Committed as HighWatermark
from ...raft import Effect as RaftEffect
from ...raft import LoadSnapshot as Load
from ...raft import LogEndMoved as EndMoved
from ...raft import Resigned as Follows
from ...records import Batch, RecordBatches
from ...storage.disks.log_directory import LogDirectory
from ..config import NodeConfig
from .metadata_log import KafkaMetadataLog

Output = (
    Send
    | Reply
    | LeaderChanged
    | Committed
    | SnapshotLoaded
    | BecameLeader
    | LogEndMoved
    | Resigned
    | Failed
    | Fault
)
"""What the quorum does for the rest of the node: messages, and what the controller handles."""
READ_BYTES: Final = 1 << 20
SNAPSHOT_BATCH: Final = 1000
"""Records in a batch of a snapshot."""


class RaftManager:
    """The replica of the metadata log.

    rng: returns a random number in [0, 1). now_ms: the wall-clock time. Raises CorruptFile if the
    log or the state of the quorum is damaged.
    """

    def __init__(
        self,
        config: NodeConfig,
        disk: LogDirectory,
        directory_id: bytes,
        rng: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self.log = KafkaMetadataLog(disk, now_ms, directory=disk.name)
        self._quorum_state = self._read_quorum_state()
        self.client = KafkaRaftClient(
            RaftConfig(
                config.node_id,
                directory_id,
                config.cluster_id,
                voters=config.voters,
                bootstrap=config.bootstrap,
                endpoints=config.controller_listeners,
                timeouts=config.quorum,
                epoch_ms=config.epoch_ms,
            ),
            self.log,
            rng,
        )
        self._snapshot_bytes = config.snapshot_bytes
        self._handed_on = 0
        """All committed records before this offset went to the rest of the node."""
        self._since_snapshot = 0
        """The bytes of those that the latest snapshot does not have."""
        self._own: dict[OffsetAndEpoch, list[Message]] = {}
        """What this node appended as the leader and is not committed: it need not be decoded."""

    def _read_quorum_state(self) -> str | None:
        """Read the file `quorum-state`; CorruptFile if it is not a valid one."""
        text = self.log.read_quorum_state()
        if text is not None:
            try:
                read_quorum_state(text)
            except InvalidValue as error:
                raise self.log.invalid_quorum_state(str(error)) from None
        return text

    # -- the machine

    def start(self, now: float) -> list[Output]:
        """Begin where the replica stopped."""
        outputs: list[Output] = []
        latest = self.log.latest_snapshot
        if latest is not None and latest.offset:
            outputs.append(self._loaded(latest))
        effects = self.client.start(self._quorum_state, now)
        return [*outputs, *self._outputs(effects)]

    def handle(self, event: Event, now: float) -> list[Output]:
        """Handle an event of the quorum."""
        return self._outputs(self.client.handle(event, now))

    def advance(self, now: float) -> list[Output]:
        """Handle expired deadlines."""
        return self._outputs(self.client.advance(now))

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.client.next_deadline()

    def _outputs(self, effects: list[RaftEffect]) -> list[Output]:
        outputs: list[Output] = []
        quorum_state: str | None = None
        for effect in effects:
            match effect:
                case PersistQuorumState():
                    quorum_state = effect.text
                case HighWatermark():
                    outputs += self._committed(effect.offset)
                case Load():
                    outputs.append(self._loaded(effect.snapshot_id))
                case Leads():
                    outputs.append(BecameLeader(effect.epoch, self.log.end.offset))
                case EndMoved():
                    outputs.append(LogEndMoved(effect.epoch, effect.end_offset))
                case Follows():
                    self._own.clear()
                    outputs.append(Resigned(effect.epoch))
                case Send() | Reply() | LeaderChanged() | Failed() | Fault():
                    outputs.append(effect)
        if quorum_state is not None:  # the newest one, before any output leaves
            self.log.write_quorum_state(quorum_state)
        return outputs

    # -- records

    def append(
        self, epoch: int, base_offset: int, records: Sequence[VersionedRecord], now: float
    ) -> list[Output]:
        """Append a controller's records at exactly its offset; it resigns where it cannot."""
        if self.log.end.offset != base_offset:
            return self.resign(epoch, now)
        values = tuple(encode_log_message(*each) for each in records)
        self._own[OffsetAndEpoch(base_offset, epoch)] = [each.message for each in records]
        outputs = self.handle(Append(base_offset, epoch, values), now)
        if any(map(_failed, outputs)):
            self._own.clear()
            outputs += self.resign(epoch, now)
        return outputs

    def resign(self, epoch: int, now: float) -> list[Output]:
        """Give up the leadership of an epoch."""
        return self.handle(Resign(epoch), now)

    def _committed(self, offset: int) -> list[Output]:
        """Decode the records up to an offset."""
        outputs: list[Output] = []
        while self._handed_on < offset:
            data = self.log.read(self._handed_on, READ_BYTES)
            for batch in RecordBatches(data):
                if batch.base_offset >= offset:
                    return outputs
                self._handed_on = batch.last_offset + 1
                self._since_snapshot += batch.end - batch.start
                if not batch.control:
                    id = OffsetAndEpoch(batch.base_offset, batch.partition_leader_epoch)
                    records = self._own.pop(id, None) or list(_decoded(batch))
                    outputs.append(Committed(batch.base_offset, records))
            if not data:
                raise InvalidMetadataRecord("missing from the log", "", self._handed_on)
        return outputs

    # -- snapshots

    def _loaded(self, id: OffsetAndEpoch) -> SnapshotLoaded:
        data = self.log.snapshot(id)
        assert data is not None
        self._handed_on = id.offset
        self._since_snapshot = 0
        batches = (batch for batch in RecordBatches(data) if not batch.control)
        return SnapshotLoaded(
            id.offset - 1, [each for batch in batches for each in _decoded(batch)]
        )

    def maybe_snapshot(self, image: MetadataImage, now: float) -> list[Output]:
        """Write a snapshot of the image if there are enough records since the last one."""
        end = image.offset + 1
        latest = self.log.latest_snapshot
        if self._since_snapshot < self._snapshot_bytes or end <= (latest or (0, 0))[0]:
            return []
        if end != self._handed_on:  # in the middle of a transaction
            return []
        id = OffsetAndEpoch(end, self.log.epoch_of(image.offset))
        values = [encode_log_message(*each) for each in snapshot(image)]
        batches = [values[at : at + SNAPSHOT_BATCH] for at in range(0, len(values), SNAPSHOT_BATCH)]
        self._since_snapshot = 0
        return self.handle(SnapshotTaken(id, self.client.snapshot(id, batches, now)), now)


def _failed(output: Output) -> bool:
    return isinstance(output, Failed)


def _decoded(batch: Batch) -> Iterator[Message]:
    """Decode the records of a data batch. Raises InvalidMetadataRecord."""
    for record in batch.records():
        part = decode_log_record(InternalLog.METADATA, record.key, record.value).value
        if part is None or part.message is None:
            reason = "null" if part is None else part.error or "not decoded"
            raise InvalidMetadataRecord(reason, "", record.offset)
        yield part.message
