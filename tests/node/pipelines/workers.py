"""Members of a group that read, process and write in transactions (KIP-447)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafkawire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import values
from kafkawire.protocol import ErrorCode

from ..checker import Checker
from ..clients import FETCH_VERSION, fetch, fetched
from ..groups.members import Counts, Member
from ..workload import OUTPUT
from . import steps
from .checker import Input, Outcome, PipelineChecker, Transaction
from .producers import Producer, Succeeded, TransactionProtocol
from .steps import Call, Coordinator, Pause, Steps, leader, play

E = ErrorCode
GROUP: Final = "pipeline"
OFFSETS_VERSION: Final = 10
OUTPUT_PARTITIONS: Final = 4
PAUSE: Final = (0.05, 0.4)
MAX_WAIT_MS: Final = 100
ABORT_EVERY: Final = 4
"""One of so many transactions is aborted."""
ZOMBIE_FOR: Final = (0.0, 5.0)
"""For how many seconds a worker that is taken for dead goes on."""


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
            self._works_until += self.cluster.rng.uniform(*ZOMBIE_FOR)

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
        transaction = self.pipeline.checker.begin(name, inputs)
        error = yield from self._write(transaction, positions)
        if error is not E.NONE:
            return error
        number = len(self.pipeline.checker.transactions)
        aborts = self.pipeline.aborts and number % ABORT_EVERY == 0
        outcome = Outcome.ABORTED if aborts else Outcome.COMMITTED
        error = yield from self.producer.end(transaction, outcome)
        self.counts.add(f"{outcome.value} {error.name}")
        if error is E.NONE and not aborts:
            self._positions.update(
                {key: each for key, each in positions.items() if key in self._positions}
            )
        return error

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
        body = yield Call((yield from self.group_coordinator.find()), OFFSETS_VERSION, request)
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
        image = self.cluster.image()
        topic = None if image is None else image.topic(OUTPUT)
        if topic is None:
            return E.UNKNOWN_TOPIC_OR_PARTITION
        written: dict[int, list[bytes]] = {}
        for one in sorted(transaction.inputs):
            index = (one.partition + one.offset) % OUTPUT_PARTITIONS
            written.setdefault(index, []).append(transaction.value(one))
        error = E.NONE
        if self.producer.protocol is TransactionProtocol.V1:
            error = yield from self.producer.add_partitions(list(written))
            if error is E.NONE:
                error = yield from self.producer.add_group(GROUP)
        for index, records in written.items():
            key = TopicIdPartition(topic.topic_id, index)
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
        return (yield from self.producer.commit_offsets(self.group_coordinator, member, offsets))
