"""Members of a group that read, process and write in transactions (KIP-447)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafkawire.messages.end_txn_request import EndTxnRequest
from kafkawire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import values
from kafkawire.primitives import Message
from kafkawire.protocol import ErrorCode

from ..checker import Checker
from ..clients import FETCH_VERSION, fetch, fetched
from ..groups.members import Counts, Member, Members
from ..workload import OUTPUT
from . import steps
from .checker import Input, Outcome, PipelineChecker, Transaction
from .producers import Producer, Stall, Succeeded, TransactionProtocol
from .steps import Call, Coordinator, Pause, Steps, leader, play

E = ErrorCode
GROUP: Final = "pipeline"
OFFSETS_VERSION: Final = 10
OUTPUT_PARTITIONS: Final = 4
PAUSE: Final = (0.05, 0.4)
MAX_WAIT_MS: Final = 100
ABORT_EVERY: Final = 4
"""One of so many transactions is aborted."""
ORDERLY: Final = 0.2
REPLACED: Final = 0.5
ZOMBIE_FOR: Final = (1.0, 4.5)
"""For how many seconds a worker that is taken for dead goes on."""
STALLS: Final[dict[type[Message], int]] = {
    EndTxnRequest: 4,
    TxnOffsetCommitRequest: 1,
    ProduceRequest: 1,
}
"""Before what it stands still all the time -> the weight."""
LATE: Final = 0.3
"""How often a transaction that is aborted leaves records behind that arrive late."""


class Cluster(steps.Cluster, Protocol):
    """What workers need of the simulation, besides."""

    checker: Checker


@dataclass
class Pipeline:
    """What workers have in common. aborts: whether some transactions are aborted."""

    cluster: Cluster
    checker: PipelineChecker
    counts: Counts = field(default_factory=Counts)
    aborts: bool = True


class Worker(Member):
    """A member with a transactional producer. slot: of these, one has a transactional id.

    partitions: what it reads. A partition to give up is among them until its transaction ends.
    """

    group_id = GROUP

    def __init__(self, pipeline: Pipeline, member_id: str, slot: int) -> None:
        super().__init__(pipeline.cluster, pipeline.counts, member_id)
        self.cluster: Cluster = pipeline.cluster
        self.pipeline = pipeline
        self.slot = slot
        self.producer = Producer(pipeline.cluster, pipeline.checker, f"worker-{slot}", member_id)
        self.group_coordinator = Coordinator(pipeline.cluster, 0, GROUP)
        self._next: set[TopicIdPartition] | None = None
        """The assignment to take over when no transaction is under way."""
        self._positions: dict[TopicIdPartition, int] = {}
        self._transactions = 0
        self._in_transaction = False
        self._works_until = float("inf")
        self.heartbeat()
        play(self.cluster, self._work())

    # -- membership

    def assign(self, partitions: set[TopicIdPartition]) -> None:
        """Take over an assignment once no transaction is under way."""
        self._next = partitions
        if not self._in_transaction:
            self._take_over()

    def lose(self) -> None:
        """Read nothing: others may have the partitions."""
        self._next = None
        self.partitions = set()
        self._positions.clear()

    def leave(self, *, orderly: bool) -> None:
        """Go; if not orderly, the transaction and the ones after it go on for a while."""
        super().leave(orderly=orderly)
        self._works_until = self.cluster.now
        if not orderly:
            rng = self.cluster.rng
            self._works_until += rng.uniform(*ZOMBIE_FOR)
            [before] = rng.choices(list(STALLS), list(STALLS.values()))
            self.producer.stall = Stall(before, self._works_until)

    def _take_over(self) -> None:
        if self._next is not None:
            self.partitions, self._next = self._next, None
            for key in self._positions.keys() - self.partitions:
                del self._positions[key]

    # -- transactions

    def _work(self) -> Steps:
        """Begin anew after each error; a worker that is taken for dead ends with the first."""
        while self.running:
            error = yield from self.producer.initialise()
            while error is E.NONE and self.cluster.now < self._works_until:
                yield Pause(self.cluster.rng.uniform(*PAUSE))
                self._in_transaction = True
                error = yield from self._transaction()
                self._in_transaction = False
                self._take_over()
            self._positions.clear()
            yield Pause(self.cluster.rng.uniform(*PAUSE))

    def _transaction(self) -> Succeeded:
        """Read, process and write once."""
        inputs, positions = yield from self._read()
        if not inputs:
            self._positions.update(positions)
            return E.NONE
        self._transactions += 1
        name = f"{self.member_id}.{self._transactions}"
        number = len(self.pipeline.checker.transactions)
        aborts = self.pipeline.aborts and number % ABORT_EVERY == 0
        transaction = self.pipeline.checker.begin(name, inputs, not aborts)
        error = yield from self._write(transaction, positions)
        if error is not E.NONE:
            return error
        if aborts:
            return (yield from self._abort(transaction))
        error = yield from self.producer.end(transaction, Outcome.COMMITTED)
        self.counts.add(f"commit {error.name}")
        if error is E.NONE:
            self._positions.update(
                {key: each for key, each in positions.items() if key in self._positions}
            )
        return error

    def _abort(self, transaction: Transaction) -> Succeeded:
        """Abort; now and then without waiting for the last records.

        A client of version 1 gets a new epoch then, as Kafka's do: with the one that it has, they
        might become part of its next transaction.
        """
        late = self.cluster.rng.random() < LATE
        if late:
            last = max(transaction.inputs)
            [(key, values)] = self._output(transaction, [last]).items()
            play(self.cluster, self.producer.produce_late(key, values))
        error = yield from self.producer.end(transaction, Outcome.ABORTED)
        self.counts.add(f"abort {error.name}")
        bumps = self.producer.protocol is TransactionProtocol.V2
        return error if bumps or not late else E.REQUEST_TIMED_OUT

    def _read(
        self,
    ) -> Generator[Pause | Call, Any, tuple[list[Input], dict[TopicIdPartition, int]]]:
        """Fetch records from the positions; return them, and the positions after them."""
        inputs: list[Input] = []
        positions: dict[TopicIdPartition, int] = {}
        for key in sorted(self.partitions):
            if key not in self._positions:
                yield from self._fetch_offset(key)
            offset = self._positions.get(key)
            if offset is None:
                continue
            request = fetch(key.topic_id, key.partition, offset, MAX_WAIT_MS)
            data = fetched((yield Call(leader(self.cluster, key), FETCH_VERSION, request)))
            if key not in self._positions or data is None:
                continue
            if data.error_code == E.OFFSET_OUT_OF_RANGE:
                positions[key] = max(offset, self.cluster.checker.deleted.get(key, 0))
            elif not data.error_code:
                offsets = [each for each, _ in values(data.records) if each >= offset]
                inputs += [Input(key.partition, each) for each in offsets]
                positions[key] = max((each + 1 for each in offsets), default=offset)
        return inputs, positions

    def _fetch_offset(self, key: TopicIdPartition) -> Steps:
        """Fetch the committed offset, once no transaction may change it."""
        topic = OffsetFetchRequestTopics(topic_id=key.topic_id, partition_indexes=[key.partition])
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=[topic], **self.fetching())
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        target = yield from self.group_coordinator.find()
        since = self.cluster.now

        def sent(response: Any) -> None:
            fetched = [each for topic in response.groups[0].topics for each in topic.partitions]
            if not response.groups[0].error_code and not fetched[0].error_code:
                self.pipeline.checker.offset_fetched(key.partition, since, self.cluster.now)

        body = yield Call(target, OFFSETS_VERSION, request, sent)
        if body is None or body.groups[0].error_code:
            self.group_coordinator.forget()
        elif key in self.partitions:
            for partition in body.groups[0].topics[0].partitions:
                if not partition.error_code:
                    self._positions[key] = max(partition.committed_offset, 0)

    def fetching(self) -> dict[str, Any]:
        """Return the fields of OffsetFetch that name the member."""
        return {"member_id": self.member_id, "member_epoch": self.epoch}

    def _write(self, transaction: Transaction, positions: dict[TopicIdPartition, int]) -> Succeeded:
        """Write a record for each input, and commit the positions."""
        written = self._output(transaction, sorted(transaction.inputs))
        if not written:
            return E.UNKNOWN_TOPIC_OR_PARTITION
        error = E.NONE
        if self.producer.protocol is TransactionProtocol.V1:
            indexes = [key.partition for key in written]
            error = yield from self.producer.add_partitions(indexes)
            if error is E.NONE:
                error = yield from self.producer.add_group(GROUP)
        for key, records in written.items():
            if error is E.NONE:
                error = yield from self.producer.produce(key, records)
        if error is not E.NONE:
            return error
        member = {
            "group_id": GROUP,
            "member_id": self.member_id,
            "generation_id_or_member_epoch": self.epoch,
        }
        offsets = {key.partition: offset for key, offset in positions.items()}
        coordinator = self.group_coordinator
        return (yield from self.producer.commit_offsets(transaction, coordinator, member, offsets))

    def _output(
        self, transaction: Transaction, inputs: list[Input]
    ) -> dict[TopicIdPartition, list[bytes]]:
        """Return the records to write for inputs; none if the topic is not there."""
        image = self.cluster.image()
        topic = None if image is None else image.topic(OUTPUT)
        written: dict[TopicIdPartition, list[bytes]] = {}
        for one in inputs if topic is not None else ():
            index = (one.partition + one.offset) % OUTPUT_PARTITIONS
            key = TopicIdPartition(topic.topic_id if topic else b"", index)
            written.setdefault(key, []).append(transaction.value(one))
        return written


class Workers(Members[Worker]):
    """The workers of a pipeline. new: makes one with an id and a slot.

    Most disappear, and go on; a new process takes over the transactional id of every second one.
    """

    def __init__(self, cluster: Cluster, new: Callable[[str, int], Worker]) -> None:
        super().__init__(cluster, self._at_slot)
        self._worker = new
        self._slots = 0
        self._free: int | None = None

    def _at_slot(self, member_id: str) -> Worker:
        slot, self._free = self._free, None
        if slot is None:
            slot = self._slots
            self._slots += 1
        return self._worker(member_id, slot)

    def go(self) -> None:
        """Let a worker go; perhaps another one takes its place."""
        rng = self._cluster.rng
        worker = self.members.pop(rng.randrange(len(self.members)))
        worker.leave(orderly=rng.random() < ORDERLY)
        if rng.random() < REPLACED:
            self._free = worker.slot
            self.come()
