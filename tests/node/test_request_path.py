"""How often a node touches the bytes of a request, from its frame to its response."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import pytest

from benchmarks.delivery.__main__ import Delivery
from kafkawire.broker.handlers import produce as produce_handler
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.node.broker.controller_channel import ControllerChannel
from kafkawire.node.lifecycle import BrokerLifecycleManager
from kafkawire.node.quorum.controller_server import ControllerServer
from kafkawire.node.quorum.raft_manager import RaftManager
from kafkawire.protocol import ErrorCode
from kafkawire.records import Batch, BatchBuilder, Compression, RecordBatches
from kafkawire.replication import Partition
from kafkawire.storage import LogManager, MemoryDisk
from kafkawire.storage.unified_log import UnifiedLog
from tests.calls import calls

from .front_harness import EPOCH_MS, NodeClient, NodeHarness

LARGE = 1 << 19
PACKAGES = tuple(f"kafkawire.{name}." for name in ("broker", "node", "replication", "storage"))


def batch(records: int, size: int, codec: Compression = Compression.NONE) -> bytes:
    builder = BatchBuilder(compression=codec, base_timestamp=EPOCH_MS)
    for _ in range(records):
        builder.append(None, b"x" * size, EPOCH_MS)
    return builder.build()


def produce(
    harness: NodeHarness, data: bytes, acks: int = -1, client: NodeClient | None = None
) -> ProduceResponse:
    partition = PartitionProduceData(index=0, records=data)
    topic = TopicProduceData(name="t", partition_data=[partition])
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])
    return (client or harness.client()).exchange(request, 9, ProduceResponse)


def fetch_request(offset: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2 * LARGE)
    topic = FetchTopic(topic="t", partitions=[partition])
    return FetchRequest(max_wait_ms=100, min_bytes=1, topics=[topic])


def fetch(harness: NodeHarness, client: NodeClient | None = None) -> FetchResponse:
    return (client or harness.client()).exchange(fetch_request(), 11, FetchResponse)


class CountedBatch:
    """A batch; `work` counts the times that its bytes are read for their checksum."""

    def __init__(self, original: Batch, work: Counter[str]) -> None:
        self._original = original
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def verify(self) -> None:
        self._work["checksums"] += 1
        self._original.verify()

    def columns(self, *arguments: Any) -> Any:
        self._work["decoded"] += 1
        self._work["checksums"] += self._original.check_crcs
        return self._original.columns(*arguments)

    def records(self, *arguments: Any, **keywords: Any) -> Any:
        self._work["decoded"] += 1
        self._work["checksums"] += self._original.check_crcs
        return self._original.records(*arguments, **keywords)


def replaced(monkeypatch: pytest.MonkeyPatch, original: type, by: Callable[..., Any]) -> None:
    """Replace a name wherever a module of a broker or node has it."""
    for name, module in list(sys.modules.items()):
        if name.startswith(PACKAGES) and getattr(module, original.__name__, None) is original:
            monkeypatch.setattr(module, original.__name__, by)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often records are enumerated, and their checksums computed."""
    count: Counter[str] = Counter()

    class Batches:
        def __init__(self, data: bytes, **settings: Any) -> None:
            self._original = RecordBatches(data, **settings)

        def __iter__(self) -> Iterator[Any]:
            count["enumerations"] += 1
            return (CountedBatch(each, count) for each in self._original)

        @property
        def cut_tail(self) -> int:
            count["enumerations"] += 1
            return self._original.cut_tail

    replaced(monkeypatch, RecordBatches, Batches)
    return count


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_a_produced_batch_is_read_once(work: Counter[str], codec: Compression) -> None:
    harness = NodeHarness(topics={"t": 1})
    work.clear()
    response = produce(harness, batch(10, 100, codec))
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert work == {"enumerations": 1, "checksums": 1, "decoded": 1}


def test_fetched_batches_are_not_read(work: Counter[str]) -> None:
    harness = NodeHarness(topics={"t": 1})
    data = batch(10, 100)
    produce(harness, data)
    work.clear()
    [topic] = fetch(harness).responses
    assert len(topic.partitions[0].records or b"") == len(data)
    assert not work


def test_a_produced_batch_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the request, there is one copy of a batch: with its offsets, for the disk."""
    harness = NodeHarness(topics={"t": 1})
    data = batch(LARGE // 1000, 1000)
    original, append = MemoryDisk.append, produce_handler.append
    peaks: list[int] = []

    def not_kept(self: MemoryDisk, path: str, written: bytes) -> None:
        if not path.endswith(".log"):
            original(self, path, written)

    def measured(*arguments: Any) -> Any:
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        try:
            return append(*arguments)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            tracemalloc.stop()

    monkeypatch.setattr(MemoryDisk, "append", not_kept)
    monkeypatch.setattr(produce_handler, "append", measured)
    produce(harness, data)
    assert len(data) <= peaks[0] < 1.2 * len(data)


def test_fetched_batches_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of several appends are joined, and nothing of the one that the limit cuts."""
    harness = NodeHarness(topics={"t": 1})
    data = batch(LARGE // 4000, 1000)
    for _ in range(4):
        produce(harness, data)
    request = fetch_request()
    request.topics[0].partitions[0].partition_max_bytes = 4 * len(data) - 1
    read, peaks = UnifiedLog.read, list[int]()

    def measured(*arguments: Any) -> Any:
        tracemalloc.start()
        try:
            return read(*arguments)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    monkeypatch.setattr(UnifiedLog, "read", measured)
    [topic] = harness.client().exchange(request, 11, FetchResponse).responses
    size = 3 * len(data)
    assert len(topic.partitions[0].records or b"") == size
    assert size <= peaks[0] < 1.2 * size


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_response_is_built_once(monkeypatch: pytest.MonkeyPatch, acks: int) -> None:
    harness = NodeHarness(topics={"t": 1})
    built: Counter[str] = Counter()

    def counted(original: type) -> Callable[..., Any]:
        def build(**fields: Any) -> Any:
            built[original.__name__] += 1
            return original(**fields)

        return build

    for original in (ProduceResponse, FetchResponse):
        replaced(monkeypatch, original, counted(original))
    produce(harness, batch(1, 100), acks)
    fetch(harness)
    assert built == {"ProduceResponse": 1, "FetchResponse": 1}


def test_a_delayed_fetch_is_read_when_it_begins_and_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its partition is checked as often, and the batch that it waits for is read from the disk."""
    harness = NodeHarness(topics={"t": 1})
    client, waiting = harness.client(), harness.client()
    count: Counter[str] = Counter()
    for owner, name in ((Partition, "check"), (MemoryDisk, "read")):
        original = getattr(owner, name)

        def counted(*arguments: Any, _of: Any = original, _name: str = name) -> Any:
            count[_name] += 1
            return _of(*arguments)

        monkeypatch.setattr(owner, name, counted)
    waiting.send(fetch_request(), 11)
    assert count == {"check": 1}
    produce(harness, batch(1, 100), client=client)
    assert waiting.receive(FetchResponse).responses[0].partitions[0].records
    assert count == {"check": 2, "read": 1}


def test_a_delayed_fetch_has_one_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is built for a consumer that has read all there is, until there is more."""
    harness = NodeHarness(topics={"t": 1})
    client, waiting = harness.client(), harness.client()
    built: list[object] = []

    def build(**fields: Any) -> FetchResponse:
        built.append(fields)
        return FetchResponse(**fields)

    replaced(monkeypatch, FetchResponse, build)
    waiting.send(fetch_request(), 11)
    assert not built
    produce(harness, batch(1, 100), client=client)
    assert waiting.receive(FetchResponse).responses[0].partitions[0].records
    assert len(built) == 1


def test_no_other_part_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Produce and a Fetch concern replicas alone, and so does the next deadline after them.

    Brokers of other tests, in threads of their own, are not counted.
    """
    here = get_ident()
    harness = NodeHarness(topics={"t": 1})
    client, waiting = harness.client(), harness.client()
    asked: Counter[str] = Counter()
    parts = (
        (RaftManager, "next_deadline"),
        (ControllerServer, "next_deadline"),
        (ControllerChannel, "due"),
        (ControllerChannel, "next_deadline"),
        (BrokerLifecycleManager, "request"),
        (BrokerLifecycleManager, "next_deadline"),
        (LogManager, "next_deadline"),
    )
    for part, name in parts:
        original = getattr(part, name)

        def asking(*arguments: Any, _of: Any = original, _name: str = part.__name__) -> Any:
            if get_ident() == here:
                asked[_name] += 1
            return _of(*arguments)

        monkeypatch.setattr(part, name, asking)
    produce(harness, batch(1, 100), client=client)
    fetch(harness, client)
    waiting.send(fetch_request(offset=1), 11)
    produce(harness, batch(1, 100), client=client)
    assert waiting.receive(FetchResponse).responses[0].partitions[0].records
    assert not asked
    harness.advance(10.0)
    assert asked, "heartbeats are due"


@pytest.mark.parametrize("request_of", [lambda node: produce(node, batch(1, 100)), fetch])
def test_what_has_nothing_to_do_costs_nothing(request_of: Callable[[NodeHarness], object]) -> None:
    """A request takes as many calls beside many partitions and connections as beside few."""
    counts = []
    for many in (3, 30):
        harness = NodeHarness(topics={"t": 1, "others": many})
        for _ in range(many):
            harness.client()
        for _ in range(3):  # what is made at the first request is there
            produce(harness, batch(1, 100))
            fetch(harness)
        counts.append(calls(lambda: request_of(harness)))  # noqa: B023 - called at once
    assert counts[0] == counts[1]


def test_one_record_takes_few_calls() -> None:
    """A Fetch that waits and the Produce that completes it: 229 with Python 3.11, less later."""
    delivery = Delivery()
    for offset in range(3):  # what is made at the first request is there
        delivery.deliver(delivery.events(offset))
    events = delivery.events(3)
    assert calls(lambda: delivery.deliver(events)) <= 230
