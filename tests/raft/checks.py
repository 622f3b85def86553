"""The invariants of a quorum, checked after each step of the simulation.

one leader an epoch │ epochs never go back │ a high watermark never goes back │ what is committed
is the same on all nodes, and every later leader has it │ an isolated leader resigns, and an
isolated voter raises no epochs │ a healed quorum commits
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from kafkawire.raft import KafkaRaftClient, OffsetAndEpoch, ReplicatedLog, State
from kafkawire.raft.log import StoredBatch
from kafkawire.records import RecordBatches


class CrashableLog(ReplicatedLog, Protocol):
    """A log that can lose what was not flushed, except the first `kept` batches of it."""

    @property
    def batches(self) -> Sequence[StoredBatch]: ...

    def crash(self, kept: int = 0) -> int: ...


class Violation(AssertionError):
    """An invariant does not hold."""


class Checks:
    """What has been seen so far."""

    def __init__(self) -> None:
        self.last_appended = -1
        self._leaders: dict[int, tuple[int, int]] = {}
        self._epochs: dict[int, int] = {}
        self._watermarks: dict[int, int] = {}
        self._committed: dict[int, tuple[int, bytes]] = {}
        self._ends: list[int] = []
        self._checked: dict[int, int] = {}
        self._values: list[tuple[int, bytes]] = []

    def fail(self, now: float, reason: str) -> None:
        """Raise the violation of an invariant."""
        raise Violation(f"at {now:.3f}: {reason}")

    @property
    def end(self) -> int:
        """Where the committed records end."""
        return self._ends[-1] if self._ends else 0

    def started(self, now: float, id: int, incarnation: int, client: KafkaRaftClient) -> None:
        """Begin with a node that has restarted."""
        self._watermarks[id] = client.high_watermark
        self._checked[id] = client.high_watermark
        self.step(now, id, incarnation, client)

    def step(self, now: float, id: int, incarnation: int, client: KafkaRaftClient) -> None:
        """Check a node after it has carried out its effects."""
        epoch = client.epoch
        if epoch < self._epochs.get(id, 0):
            self.fail(now, f"node {id} goes from epoch {self._epochs[id]} back to {epoch}")
        self._epochs[id] = epoch
        if client.high_watermark < self._watermarks[id]:
            self.fail(now, f"the high watermark of node {id} goes back")
        self._watermarks[id] = client.high_watermark
        if client.state is State.LEADER:
            self._leads(now, id, incarnation, client)

    def _leads(self, now: float, id: int, incarnation: int, client: KafkaRaftClient) -> None:
        known = self._leaders.get(client.epoch)
        if known == (id, incarnation):
            return
        if known is not None:
            self.fail(now, f"epoch {client.epoch} has leaders {known} and {(id, incarnation)}")
        self._leaders[client.epoch] = (id, incarnation)
        log = cast("CrashableLog", client.log)
        if log.end.offset < self.end:
            self.fail(now, f"leader {id} lacks committed records from {log.end.offset} on")
        self._compare(now, id, log, log.start_offset, self.end)

    def committed(self, now: float, id: int, log: CrashableLog, offset: int) -> None:
        """Compare what a node commits with what any node has committed."""
        if offset > log.end.offset:
            self.fail(now, f"node {id} commits {offset}, its log ends at {log.end.offset}")
        self._compare(now, id, log, self._checked.get(id, 0), offset)
        self._checked[id] = offset

    def _compare(self, now: float, id: int, log: CrashableLog, start: int, end: int) -> None:
        for batch in log.batches:
            if batch.last_offset < start:
                continue
            if batch.base_offset >= end:
                break
            found = (batch.epoch, batch.data)
            known = self._committed.get(batch.base_offset)
            if known is None and batch.base_offset == self.end:
                self._committed[batch.base_offset] = found
                self._ends.append(batch.last_offset + 1)
                for each in RecordBatches(batch.data):
                    if not each.control:
                        self._values += [(x.offset, x.value or b"") for x in each]
            elif known != found:
                self.fail(now, f"node {id} has another committed batch at {batch.base_offset}")

    def values(self, end: int) -> list[bytes]:
        """Return the values that are committed before an offset."""
        return [value for offset, value in self._values if offset < end]

    def loaded(self, now: float, id: int, log: CrashableLog, snapshot: OffsetAndEpoch) -> None:
        """Compare a snapshot with the records that it stands for."""
        data = log.snapshot(snapshot)
        assert data is not None
        batches = [batch for batch in RecordBatches(data) if not batch.control]
        found = [record.value for batch in batches for record in batch]
        if found != (self.values(snapshot.offset) or [b"-"]):
            self.fail(now, f"node {id} loads a snapshot of other records")
        self._checked[id] = snapshot.offset

    def appending(self, now: float, id: int, client: KafkaRaftClient) -> None:
        """Check that the leader to which records go is the leader of its epoch."""
        if self._leaders.get(client.epoch, (id, 0))[0] != id:
            self.fail(now, f"node {id} leads an epoch of another leader")

    def was_isolated(self, now: float, id: int, client: KafkaRaftClient, before: int) -> None:
        """Check a node that could reach no other for seconds."""
        if len(client.voters.voters) == 1:
            return
        if client.state is State.LEADER and now:
            self.fail(now, f"node {id} leads without a majority")
        if client.epoch > before + 2:
            self.fail(now, f"isolated node {id} went from epoch {before} to {client.epoch}")
