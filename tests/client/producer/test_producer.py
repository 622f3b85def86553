"""The producer's machine: batches, time, memory, results; stories with a broker machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.client.client import Client
from kafkawire.client.cluster import Broker, Partition, Topic
from kafkawire.client.config import Setting, read_config
from kafkawire.client.network.backoff import Backoff
from kafkawire.client.network.transport import BytesReceived
from kafkawire.client.producer import (
    PRODUCER_KEYS,
    Abandon,
    Appended,
    Blocked,
    Cancel,
    CloseProducer,
    Delivered,
    Failed,
    Flush,
    Flushed,
    Producer,
    ProducerClosed,
    Send,
    producer_settings,
)
from kafkawire.client.producer.partition_queue import ProducerIdAndEpoch
from kafkawire.client.producer.produce_requests import OUTCOMES, BatchOutcome, outcome_of
from kafkawire.client.producer.producer_id import LEGAL, ProducerIdManager, ProducerIdState
from kafkawire.client.producer.sender import ProduceBatches, Sender
from kafkawire.client.requests import (
    MetadataChanged,
    Reason,
    ResponseReceived,
    SendRequest,
    Sent,
)
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkawire.protocol.error_code import ErrorCode
from tests.calls import names_called
from tests.client.administering import alter_topic
from tests.client.clients import producer_client
from tests.client.consumer.test_subscription import View
from tests.client.simulation import NetworkConditions, Simulation

CALM = NetworkConditions(0.001, 0.0, 0.0)


class Stage:
    """A producer and a broker; what the producer says."""

    def __init__(
        self,
        config: dict[str, Setting] | None = None,
        brokers: int = 1,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.simulation = Simulation(1, brokers=brokers, conditions=CALM, settings=settings)
        client = producer_client(Random(1), self.simulation.bootstrap, config)
        self.simulation.add("p", client)
        self.tokens = 0

    @property
    def said(self) -> list[object]:
        return self.simulation.news["p"]

    def send(
        self, value: bytes = b"v", key: bytes | None = None, topic: str = "t", **more: int
    ) -> int:
        self.tokens += 1
        partition = more.get("partition")
        self.simulation.send_event(
            "p", Send(self.tokens, topic, partition, key, value, 1_700_000_000_000)
        )
        return self.tokens

    def results(self) -> list[Delivered | Failed]:
        return [each for each in self.said if isinstance(each, Delivered | Failed)]

    def until(self, what: Callable[[], bool]) -> None:
        self.simulation.run(what)

    def settled(self) -> None:
        self.simulation.send_event("p", Flush("settled"))
        self.until(lambda: Flushed("settled") in self.said)
        self.said.remove(Flushed("settled"))

    def warm(self, topic: str = "t") -> None:
        """Let the topic be known and the producer have its id."""
        self.send(b"warm", topic=topic)
        self.settled()
        self.said.clear()


def test_records_linger_together() -> None:
    stage = Stage({"linger.ms": 100})
    stage.warm()
    began = stage.simulation.now
    for _ in range(3):
        stage.send()
    stage.until(lambda: bool(stage.results()))
    (delivered,) = stage.results()
    assert isinstance(delivered, Delivered)
    assert delivered.tokens == [2, 3, 4]
    assert delivered.base_offset == 1
    assert 0.1 <= stage.simulation.now - began < 0.11


def test_a_full_batch_does_not_linger() -> None:
    stage = Stage({"linger.ms": 10_000, "batch.size": 500, "delivery.timeout.ms": 60_000})
    stage.warm()
    for _ in range(9):
        stage.send(b"x" * 100)
    stage.simulation.pass_time(1.0)
    assert [each.tokens for each in stage.results()] == [[2, 3, 4], [5, 6, 7]]


def test_the_batch_that_a_sticky_partition_leaves_behind_does_not_linger() -> None:
    stage = Stage({"linger.ms": 10_000, "batch.size": 500, "delivery.timeout.ms": 60_000})
    stage.simulation.create("wide", [[1]] * 20)
    stage.warm("wide")
    for _ in range(4):
        stage.send(b"x" * 150, topic="wide")
    stage.simulation.pass_time(1.0)
    assert [each.tokens for each in stage.results()] == [[2, 3]]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_requests_are_at_a_broker_than_the_limit(most: int) -> None:
    """Without acknowledgements nothing else holds a batch back."""
    config: dict[str, Setting] = {
        "bootstrap.servers": "broker1:9092",
        "acks": "0",
        "linger.ms": 0,
        "batch.size": 1,
        "max.in.flight.requests.per.connection": most,
    }
    topic = Topic("t", partitions={0: Partition("t", 0, 1)})
    view = View({"t": topic}, {1: Broker(1, "broker1", 9092)})
    machine = Producer(
        producer_settings(read_config(PRODUCER_KEYS, config)), view, rng=Random(1).random
    )
    said = [each for n in range(9) for each in machine.handle(Send(n, "t", 0, None, b"v", n), 0.0)]
    requested = [each for each in said if isinstance(each, SendRequest)]
    assert len(requested) == most
    more = machine.handle(Sent(requested[0], 9), 0.0)
    assert [type(each) for each in more if isinstance(each, SendRequest | Delivered)] == [
        Delivered,
        SendRequest,
    ]


def test_flush_is_for_what_was_taken_before() -> None:
    stage = Stage({"linger.ms": 10_000, "delivery.timeout.ms": 60_000})
    stage.warm()
    stage.send()
    stage.simulation.send_event("p", Flush("f"))
    stage.until(lambda: Flushed("f") in stage.said)
    (delivered,) = stage.results()
    assert delivered.tokens == [2]
    assert stage.said.index(delivered) < stage.said.index(Flushed("f"))


def test_an_empty_flush_and_an_empty_close_are_done_at_once() -> None:
    stage = Stage()
    stage.simulation.send_event("p", Flush("f"))
    stage.simulation.send_event("p", CloseProducer())
    assert stage.said == [Flushed("f"), ProducerClosed()]


def test_close_delivers_what_was_taken_and_takes_no_more() -> None:
    stage = Stage({"linger.ms": 5_000})
    first = stage.send()
    stage.simulation.send_event("p", CloseProducer())
    late = stage.send()
    stage.until(lambda: ProducerClosed() in stage.said)
    failed, delivered = stage.results()
    assert isinstance(failed, Failed)
    assert (failed.tokens, failed.failure.reason) == ([late], Reason.CLOSED)
    assert isinstance(delivered, Delivered)
    assert delivered.tokens == [first]


def test_abandon_fails_what_has_no_result() -> None:
    stage = Stage({"linger.ms": 5_000})
    stage.warm()
    stage.send()
    stage.send(topic="unknown")
    stage.simulation.send_event("p", Abandon())
    failures = {tuple(each.tokens) for each in stage.results() if isinstance(each, Failed)}
    assert failures == {(2,), (3,)}
    stage.simulation.pass_time(10.0)
    assert len(stage.results()) == 2


def test_memory_is_bounded_and_records_wait_in_order() -> None:
    """Small memory, a broker that answers late: what does not fit is blocked, appended in order."""
    stage = Stage({"buffer.memory": 2_000, "max.request.size": 1_000, "linger.ms": 0})
    stage.warm()
    stage.simulation.brokers.faults.append(Fault("Produce", action=Action.DELAY, delay=0.5))
    tokens = [stage.send(b"x" * 300) for _ in range(20)]
    blocked = [each.token for each in stage.said if isinstance(each, Blocked)]
    assert 0 < len(blocked) < 20
    assert blocked == tokens[-len(blocked) :]
    stage.settled()
    stage.until(lambda: sum(len(each.tokens) for each in stage.results()) == 20)
    appended = [each.token for each in stage.said if isinstance(each, Appended)]
    assert appended == blocked
    assert [token for each in stage.results() for token in each.tokens] == tokens


def test_a_parked_record_can_be_withdrawn_and_then_never_is() -> None:
    stage = Stage()
    stage.simulation.stop(1)
    stage.send()
    assert stage.said == [Blocked(1)]
    stage.simulation.send_event("p", Cancel(1))
    stage.simulation.start(1)
    stage.send()
    stage.settled()
    assert [each.tokens for each in stage.results()] == [[2]]


def test_a_record_that_can_never_be_sent_fails_at_once() -> None:
    stage = Stage({"max.request.size": 500})
    token = stage.send(b"x" * 600)
    (failed,) = stage.results()
    assert isinstance(failed, Failed)
    assert failed.tokens == [token]
    assert failed.failure.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "max.request.size" in failed.failure.detail


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("topic", "topic nowhere, within max.block.ms"),
        ("partition", "topic t: no partition 77; it has 1 partition, within max.block.ms"),
    ],
)
def test_what_stays_unknown_fails_after_max_block(where: str, reason: str) -> None:
    stage = Stage({"max.block.ms": 3_000}, settings={"auto.create.topics.enable": "false"})
    stage.simulation.create("t", [[1]])
    stage.warm()
    if where == "topic":
        stage.send(topic="nowhere")
    else:
        stage.send(partition=77)
    began = stage.simulation.now
    stage.until(lambda: bool(stage.results()))
    assert 3.0 <= stage.simulation.now - began < 3.5
    (failed,) = stage.results()
    assert isinstance(failed, Failed)
    assert reason in failed.failure.detail


def test_what_finds_no_room_fails_after_max_block() -> None:
    settings: dict[str, Setting] = {"buffer.memory": 2_000, "max.request.size": 1_000}
    stage = Stage({**settings, "max.block.ms": 3_000})
    stage.warm()
    stage.simulation.stop(1)
    for _ in range(3):
        stage.send(b"x" * 900, partition=0)
    stage.until(lambda: bool(stage.results()))
    (failed,) = stage.results()
    assert isinstance(failed, Failed)
    assert "topic t: buffer.memory is full, within max.block.ms" in failed.failure.detail


def test_delivery_timeout_without_a_response() -> None:
    stage = Stage({"delivery.timeout.ms": 5_000, "request.timeout.ms": 1_000, "linger.ms": 0})
    stage.warm()
    stage.simulation.stop(1)
    stage.send()
    began = stage.simulation.now
    stage.until(lambda: bool(stage.results()))
    assert stage.simulation.now - began == pytest.approx(5.0)
    (failed,) = stage.results()
    assert isinstance(failed, Failed)
    assert failed.failure.reason is Reason.TIMED_OUT
    assert "delivery.timeout.ms" in failed.failure.detail


def test_a_batch_that_is_too_large_is_split_until_it_is_not() -> None:
    stage = Stage({"batch.size": 100_000, "linger.ms": 50})
    stage.warm()
    smaller = alter_topic("t", {"max.message.bytes": "1000"})
    stage.simulation.administer(smaller, IncrementalAlterConfigsResponse)
    tokens = [stage.send(b"x" * 200) for _ in range(20)]
    huge = stage.send(b"y" * 2_000)
    last = stage.send(b"z")
    stage.settled()
    results = stage.results()
    assert [token for each in results for token in each.tokens] == [*tokens, huge, last]
    assert [type(each) for each in results if huge in each.tokens] == [Failed]
    delivered = [each for each in results if isinstance(each, Delivered)]
    assert len(delivered) > 5
    assert sum(len(each.tokens) for each in delivered) == 21
    values = [value for _, _, value in stage.simulation.log("t", 0)]
    assert values == [b"warm", *[b"x" * 200] * 20, b"z"]


def test_acks_0_is_done_when_it_is_sent() -> None:
    stage = Stage({"acks": "0", "linger.ms": 0})
    stage.send()
    stage.settled()
    (delivered,) = stage.results()
    assert isinstance(delivered, Delivered)
    assert delivered.base_offset == -1
    stage.simulation.pass_time(1.0)
    assert stage.simulation.log("t", 0) == [(0, None, b"v")]


def test_a_new_leader_is_taken_from_the_response() -> None:
    """KIP-951: the broker that refuses says who leads; there is no wait for a refresh."""
    stage = Stage(
        {"linger.ms": 0, "retry.backoff.ms": 5_000, "retry.backoff.max.ms": 5_000}, brokers=3
    )
    stage.warm()
    partition = stage.simulation.brokers.partition("t", 0)
    assert partition is not None
    other = 1 + partition.leader % 3
    stage.simulation.move("t", 0, other)
    stage.until(lambda: stage.simulation.brokers.leads(other, "t", 0))
    began = stage.simulation.now
    stage.send()
    stage.until(lambda: bool(stage.results()))
    assert isinstance(stage.results()[0], Delivered)
    assert stage.simulation.now - began < 1.0


def test_a_producer_that_may_not_be_idempotent_says_so() -> None:
    stage = Stage()
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    stage.simulation.brokers.faults.append(
        Fault("InitProducerId", action=Action.ERROR, error=refused)
    )
    stage.send()
    stage.until(lambda: bool(stage.results()))
    later = stage.send()
    results = stage.results()
    assert all(isinstance(each, Failed) and each.failure.code is refused for each in results)
    assert results[-1].tokens == [later]


def test_a_lost_epoch_is_followed_by_the_next_one() -> None:
    """The broker forgot the producer's numbers (KIP-360): the record comes under a new epoch."""
    stage = Stage({"linger.ms": 0})
    stage.warm()
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    stage.simulation.brokers.faults.append(Fault("Produce", nth=1, action=Action.ERROR, error=code))
    stage.send(b"again")
    stage.settled()
    (delivered,) = stage.results()
    assert isinstance(delivered, Delivered)
    assert stage.simulation.log("t", 0)[-1] == (1, None, b"again")


def test_every_error_code_has_a_verdict() -> None:
    for code in ErrorCode:
        for records in (1, 2):
            for idempotent in (True, False):
                found = outcome_of(code, records, idempotent)
                if code in OUTCOMES:
                    assert found in (OUTCOMES[code], BatchOutcome.FAILED)
                else:
                    assert found is (BatchOutcome.RETRY if code.retriable else BatchOutcome.FAILED)
    assert outcome_of(ErrorCode.MESSAGE_TOO_LARGE, 1, True) is BatchOutcome.FAILED
    assert outcome_of(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, False) is BatchOutcome.FAILED


def test_identity_states_follow_only_the_table() -> None:
    assert set(LEGAL) == set(ProducerIdState)
    for before in ProducerIdState:
        for after in ProducerIdState:
            producer_ids = ProducerIdManager("p", 1.0, Backoff(0.1, 1.0), Random(1).random)
            producer_ids.state = before
            if after in LEGAL[before]:
                producer_ids._transition(after)
            else:
                with pytest.raises(LocalProtocolError):
                    producer_ids._transition(after)


def test_epochs_that_are_used_up_need_a_new_id() -> None:
    producer_ids = ProducerIdManager("p", 1.0, Backoff(0.1, 1.0), Random(1).random)
    producer_ids.state = ProducerIdState.KNOWN
    for epoch, fenced, left in (
        (0, False, ProducerIdAndEpoch(9, 1)),
        (32766, False, None),
        (3, True, None),
    ):
        producer_ids.state = ProducerIdState.KNOWN
        producer_ids.current = ProducerIdAndEpoch(9, epoch)
        producer_ids.invalidate(ProducerIdAndEpoch(9, epoch), fenced=fenced)
        assert producer_ids.current == left
    producer_ids.invalidate(ProducerIdAndEpoch(8, 1), fenced=True)
    assert producer_ids.state is ProducerIdState.NONE


def machine_with_three_batches() -> tuple[Producer, list[SendRequest]]:
    """A producer without idempotence, whose first batch is in flight."""
    config: dict[str, Setting] = {
        "bootstrap.servers": "broker1:9092",
        "enable.idempotence": False,
        "batch.size": 1,
    }
    topic = Topic("t", partitions={0: Partition("t", 0, 1)})
    view = View({"t": topic}, {1: Broker(1, "broker1", 9092)})
    machine = Producer(
        producer_settings(read_config(PRODUCER_KEYS, config)), view, rng=Random(1).random
    )
    said = [each for n in range(3) for each in machine.handle(Send(n, "t", 0, None, b"v", n), 0.0)]
    return machine, [each for each in said if isinstance(each, SendRequest)]


def produced(request: SendRequest, base_offset: int) -> ResponseReceived:
    row = PartitionProduceResponse(index=0, base_offset=base_offset)
    topic = TopicProduceResponse(name="t", partition_responses=[row])
    return ResponseReceived(request, 9, ProduceResponse(responses=[topic]), 1)


def test_the_next_batch_is_sent_before_results_are_reported() -> None:
    machine, [first] = machine_with_three_batches()
    said: list[object] = []
    names = names_called(lambda: said.extend(machine.handle(produced(first, 7), 1.0)))
    assert [type(each) for each in said] == [SendRequest], "the broker waits for it"
    later = {"_results", "_next_due", "_finished", "outcome_of"}
    assert later.isdisjoint(names)
    assert machine.next_deadline() == 1.0
    [delivered] = machine.advance(1.0)
    assert isinstance(delivered, Delivered)
    assert (delivered.tokens, delivered.base_offset) == ([0], 7)
    assert machine.advance(1.0) == []


def test_a_batch_that_leaves_its_partition_nothing_to_send_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, [first] = machine_with_three_batches()
    rounds: list[float] = []
    search = Sender._round

    def counted(sender: Sender, now: float, flush_to: int) -> Iterator[ProduceBatches]:
        rounds.append(now)
        return search(sender, now, flush_to)

    monkeypatch.setattr(Sender, "_round", counted)
    machine.handle(produced(first, 7), 1.0)
    assert rounds == [1.0]


def test_a_response_looks_for_no_deadline_and_hashes_no_enum_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage({"enable.idempotence": False, "batch.size": 200})
    stage.warm()
    names: set[str] = set()
    handle = Client.handle

    def profiled(client: Client[Any, Any], event: Any, now: float) -> list[Any]:
        if not isinstance(event, BytesReceived):
            return handle(client, event, now)
        effects: list[Any] = []
        names.update(names_called(lambda: effects.extend(handle(client, event, now))))
        return effects

    with monkeypatch.context() as patch:
        patch.setattr(Client, "handle", profiled)
        for _ in range(4):
            stage.send(bytes(100))
        stage.settled()
    assert {"_on_response", "_to_node"} <= names, "a request was sent, a response came"
    assert {"next_deadline", "__hash__"}.isdisjoint(names)


@pytest.mark.parametrize(
    ("partitions", "config", "requests"),
    [
        (1, {"acks": 0, "batch.size": 1}, 3),
        (3, {"acks": 1, "max.request.size": 1500}, 3),
        (3, {"acks": 1}, 1),
    ],
    ids=["several batches of a partition", "more than a request may have", "one request"],
)
def test_all_batches_that_may_be_sent_are_sent_at_once(
    partitions: int, config: dict[str, Setting], requests: int
) -> None:
    config = {"bootstrap.servers": "broker1:9092", "linger.ms": 0, **config}
    rows = {index: Partition("t", index, -1) for index in range(partitions)}
    topic = Topic("t", partitions=rows)
    view = View({"t": topic}, {1: Broker(1, "broker1", 9092)})
    machine = Producer(
        producer_settings(read_config(PRODUCER_KEYS, config)), view, rng=Random(1).random
    )
    for n in range(3):
        record = Send(n, "t", n % partitions, None, bytes(1000), n)
        assert not [each for each in machine.handle(record, 0.0) if isinstance(each, SendRequest)]
    rows.update({index: Partition("t", index, 1) for index in rows})
    said = machine.handle(MetadataChanged(frozenset({"t"})), 1.0)
    assert len([each for each in said if isinstance(each, SendRequest)]) == requests


def test_the_next_deadline_is_looked_for_once_after_an_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, [first] = machine_with_three_batches()
    looks: list[float] = []
    look = Producer._next_due

    def counted(producer: Producer, now: float, flush_to: int) -> float | None:
        looks.append(now)
        return look(producer, now, flush_to)

    monkeypatch.setattr(Producer, "_next_due", counted)
    machine.handle(produced(first, 7), 1.0)
    machine.advance(1.0)
    assert looks == []
    due = machine.next_deadline()
    assert (machine.next_deadline(), looks) == (due, [1.0])


def test_results_are_reported_with_the_next_event_at_the_latest() -> None:
    machine, [first] = machine_with_three_batches()
    [second] = machine.handle(produced(first, 7), 1.0)
    assert isinstance(second, SendRequest)
    said = machine.handle(Flush("f"), 1.0)
    assert [each.tokens for each in said if isinstance(each, Delivered)] == [[0]]
    machine.handle(produced(second, 8), 2.0)
    said = machine.handle(Abandon(), 2.0)
    assert [type(each) for each in said] == [Delivered, Failed, Flushed, ProducerClosed]


def test_full_batches_that_wait_for_a_response_cost_no_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage({"enable.idempotence": False, "batch.size": 200, "linger.ms": 1000})
    stage.warm()
    searches: list[float] = []
    drain = Sender.drain

    def counted(sender: Sender, now: float, flush_to: int) -> Iterator[ProduceBatches]:
        searches.append(now)
        return drain(sender, now, flush_to)

    with monkeypatch.context() as patch:
        patch.setattr(Sender, "drain", counted)
        for _ in range(20):
            stage.send(b"v" * 40)
        assert len(searches) == 1, "the first full batch is sent, the others wait"
    stage.settled()
    assert sum(len(each.tokens) for each in stage.results()) == 20
