"""Simulates a whole cluster with a pipeline that reads, processes and writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from kafkawire.broker.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafkawire.metadata import TopicIdPartition
from kafkawire.records import RecordBatches
from kafkawire.replication import ReplicaLog

from ..clients import CREATE_VERSION, FETCH_VERSION, create_topic, fetch, fetched
from ..groups.connections import ConnectedNetwork
from ..scenario import GROUPS_EVERY, Composition, Scenario, Serving, draw
from ..simulation import Simulation
from ..workload import MAIN, OUTPUT
from .checker import Input, PipelineChecker
from .group_protocols import WORKERS
from .steps import Call, Pause, Steps, leader, play
from .transaction_log import check_markers, decisions
from .workers import OUTPUT_PARTITIONS, Pipeline, Workers

READ_COMMITTED: Final = 1
READ_EVERY: Final = 0.2


def with_pipeline(seed: int, composition: Composition = Composition.RAFT) -> Scenario:
    """Draw a scenario, and let its cluster have a pipeline."""
    return draw(seed, composition)._replace(serving=Serving.PIPELINE)


class PipelineSimulation(Simulation, ConnectedNetwork):
    """One run of a scenario with a pipeline."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.pipeline = Pipeline(self, PipelineChecker())
        self.worker = WORKERS[scenario.seed // GROUPS_EVERY % len(WORKERS)]
        self.workers = Workers(self, partial(self.worker, self.pipeline))

    def simulate(self) -> str:
        """Run it all; return the digest of the trace. Raises Violation."""
        self.at(1.5, self.create_output)
        return super().simulate()

    def create_output(self) -> None:
        """Create the topic that is written; then let workers and consumers begin."""
        image, live = self.image(), self.live()
        topic = None if image is None else image.topic(OUTPUT)
        if topic is not None:
            self.workers.come_and_go()
            for index in range(OUTPUT_PARTITIONS):
                play(self, self.read(TopicIdPartition(topic.topic_id, index)))
            return
        if live:
            request = create_topic(OUTPUT, OUTPUT_PARTITIONS, 3, min_insync_replicas="2")
            self.call(self.rng.choice(live), CREATE_VERSION, request, lambda _: None)
        self.at(self.now + 0.5, self.create_output)

    def heal(self) -> None:
        """End all faults; workers stay from now on, and abort nothing."""
        super().heal()
        self.workers.settle()
        self.pipeline.aborts = False

    def read(self, key: TopicIdPartition) -> Steps:
        """Consume a partition of the output with read_committed."""
        position = 0
        while True:
            request = fetch(key.topic_id, key.partition, position)
            request.isolation_level = READ_COMMITTED
            data = fetched((yield Call(leader(self, key), FETCH_VERSION, request)))
            if data is not None and not data.error_code:
                for offset, value in visible(data):
                    if offset >= position:
                        self.pipeline.checker.consumed(value)
                position = max(position, next_offset(data))
            yield Pause(READ_EVERY)

    # -- what must hold

    def inputs(self) -> list[Input]:
        """List the records of the input that were not deleted."""
        return [
            Input(key.partition, offset)
            for key, written in self.checker.promised.items()
            if self.is_input(key)
            for offset in written
            if offset >= self.checker.deleted.get(key, 0)
        ]

    def is_input(self, key: TopicIdPartition) -> bool:
        """Return whether a partition is one of the topic that is read."""
        image = self.image()
        topic = None if image is None else image.topic(MAIN)
        return topic is not None and topic.topic_id == key.topic_id

    def unsettled(self) -> str:
        """Say what has not caught up, or is not written."""
        unsettled = super().unsettled()
        if unsettled:
            return unsettled
        image = self.image()
        topic = None if image is None else image.topic(MAIN)
        assert topic is not None
        has = sorted(key.partition for each in self.workers.members for key in each.partitions)
        if has != sorted(topic.partitions):
            return f"workers read {has}"
        missing = self.pipeline.checker.missing(self.inputs())
        return f"not written: {missing}" if missing else ""

    def check_end(self) -> None:
        """Check all transactions, and what the logs say of them."""
        super().check_end()
        self.pipeline.checker.check_end()
        decided = decisions(log for _, log in self.logs(TRANSACTIONS_TOPIC))
        for name in (OUTPUT, OFFSETS_TOPIC):
            for index, log in self.logs(name):
                check_markers((name, index), log, decided)

    def logs(self, name: str) -> Iterator[tuple[int, ReplicaLog]]:
        """Iterate over the partitions of a topic: the logs of their leaders."""
        image = self.image()
        topic = None if image is None else image.topic(name)
        for index in topic.partitions if topic is not None else ():
            assert topic is not None
            leader = self.leader(TopicIdPartition(topic.topic_id, index))
            assert leader is not None
            yield index, leader.log


def visible(data: Any) -> list[tuple[int, bytes]]:
    """Return what a consumer with read_committed sees of a response: offsets and values."""
    begins = [(each.first_offset, each.producer_id) for each in data.aborted_transactions or []]
    begins.sort(reverse=True)
    aborted: set[int] = set()
    records: list[tuple[int, bytes]] = []
    for batch in RecordBatches(data.records or b""):
        while begins and begins[-1][0] <= batch.base_offset:
            aborted.add(begins.pop()[1])
        if batch.control:
            aborted.discard(batch.producer_id)
        elif batch.producer_id not in aborted:
            records += [(each.offset, each.value or b"") for each in batch.records()]
    return records


def next_offset(data: Any) -> int:
    """Return the offset after the batches of a response; 0 if it has none."""
    return max((each.last_offset + 1 for each in RecordBatches(data.records or b"")), default=0)
