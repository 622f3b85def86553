"""Counts what a broker in memory executes for one record that is delivered, by part of the code.

A Fetch waits, and a Produce of one record of 100 bytes completes it, in virtual time: bytecodes and
calls of Python are the same in each run, and tell what time does, without its noise.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any, Final

import kafkawire
from kafkawire.broker import Received
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.records import BatchBuilder
from tests.broker.harness import Harness

PRODUCE_VERSION: Final = 13
FETCH_VERSION: Final = 17
VALUE: Final = b"x" * 100
TIMESTAMP_MS: Final = 1_700_000_000_000
WARM: Final = 50
"""Records before those that are counted."""
COUNTED: Final = 20
PACKAGE: Final = "/kafkawire/"
NAMED_TUPLES: Final = "(constructors of named tuples)"


class Delivery:
    """A cluster of one node, with a producer and a consumer of one partition."""

    def __init__(self) -> None:
        self._harness = Harness(topics={"t": 1}, release="4.4")
        self._producer, self._consumer = self._harness.client(), self._harness.client()
        topic_state = self._harness.topic("t")
        assert topic_state is not None
        self._topic_id = topic_state.topic_id
        builder = BatchBuilder()
        builder.append(None, VALUE, TIMESTAMP_MS)
        data = PartitionProduceData(index=0, records=builder.build())
        topic = TopicProduceData(topic_id=self._topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        self._produce = kafkawire.encode_frame(request, PRODUCE_VERSION, 1, client_id="p")

    def _fetch(self, offset: int) -> bytes:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic_id=self._topic_id, partitions=[partition])
        request = FetchRequest(max_wait_ms=500, min_bytes=1, session_epoch=-1, topics=[topic])
        return kafkawire.encode_frame(request, FETCH_VERSION, 1, client_id="c")

    def events(self, offset: int) -> tuple[Received, Received]:
        """Return what clients send for the record with an offset."""
        return (
            Received(self._consumer.number, self._fetch(offset)),
            Received(self._producer.number, self._produce),
        )

    def deliver(self, events: tuple[Received, Received]) -> None:
        """Deliver one record."""
        for event in events:
            self._harness.cluster.handle(event, self._harness.now)
            self._harness.cluster.next_deadline()


def _part(path: str) -> str:
    return "/".join(path.rpartition(PACKAGE)[2].split("/")[:2])


def main() -> None:
    """Print the shares of modules."""
    delivery = Delivery()
    for offset in range(WARM):
        delivery.deliver(delivery.events(offset))
    prepared = [delivery.events(offset) for offset in range(WARM, WARM + COUNTED)]
    bytecodes: Counter[str] = Counter()
    calls: Counter[str] = Counter()

    def trace(frame: FrameType, _event: str, _argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        path = frame.f_code.co_filename
        if path == __file__:
            return None
        part = NAMED_TUPLES if path == "<string>" else _part(path)
        calls[part] += 1

        def local(_frame: FrameType, event: str, _argument: object) -> Any:
            bytecodes[part] += event == "opcode"
            return local

        return local

    sys.settrace(trace)
    for events in prepared:
        delivery.deliver(events)
    sys.settrace(None)
    print(f"{'':36}{'bytecodes':>10}{'share':>8}{'calls':>8}")
    print(f"{'all':36}{bytecodes.total() / COUNTED:10.0f}{'':8}{calls.total() / COUNTED:8.0f}")
    for part, count in bytecodes.most_common():
        share = count / bytecodes.total()
        print(f"{part:36}{count / COUNTED:10.0f}{share:8.1%}{calls[part] / COUNTED:8.0f}")


if __name__ == "__main__":
    main()
