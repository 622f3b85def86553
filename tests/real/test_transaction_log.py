"""Apache Kafka and `kafkawire log` read `__transaction_state` as a node writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkawire.log import InternalLog, RecordRow, read, recognise
from kafkawire.messages.transaction_log_value import TransactionLogValue
from kafkawire.protocol import ErrorCode as E
from kafkawire.transactions.states import TransactionState
from tests.interop.implementations import until
from tests.net.server.transactional import Actor, prepared
from tests.node.front_harness import NodeHarness
from tests.node.transactional import find, started

from .broker import NODE_ID, Broker, free_ports
from .dump import dump
from .java import Installation
from .own_node import serving
from .wire import HOST, Wire

pytestmark = pytest.mark.xdist_group("directories")

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
FILE = "__transaction_state-0/00000000000000000000.log"
STATES = [0, 1, 2, 4, 1, 3, 5]
"""Empty, then a transaction that commits and one that aborts."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The log of two transactions."""
    harness = NodeHarness(SETTINGS, topics={"t": 1})
    find(harness)
    harness.advance(1.0)
    producer = started(harness)
    for commit in (True, False):
        assert producer.begin(0) == E.NONE
        assert producer.end(commit) == E.NONE
        harness.advance(0.1)
    made = tmp_path / FILE
    made.parent.mkdir()
    made.write_bytes(harness.disk.read(FILE, 0, harness.disk.size(FILE)))
    return made


def test_kafka_reads_it(file: Path, installation: Installation) -> None:
    [found] = dump(installation, [file], InternalLog.TRANSACTIONS).values()
    states = []
    for batch in found.batches:
        for record in batch.records:
            assert isinstance(record.content, list)
            key, payload = record.content[1], record.content[3]
            assert key["data"] == {"transactionalId": "x"}
            states.append(payload["data"]["transactionStatus"])
    assert states == [TransactionState(state).label for state in STATES]


def test_kafkawire_log_reads_it(file: Path) -> None:
    states = []
    log = recognise(file)
    assert log is not None
    for row in read(log, InternalLog.TRANSACTIONS):
        assert isinstance(row, RecordRow)
        assert row.decoded is not None
        assert row.decoded.value is not None
        message = row.decoded.value.message
        assert isinstance(message, TransactionLogValue)
        states.append(message.transaction_status)
    assert states == STATES


def test_a_transaction_goes_on_where_it_was(installation: Installation, tmp_path: Path) -> None:
    """It begins at a node of ours, ends at a Kafka on its directory; the next one the other way."""
    port, sasl_port, controller_port = free_ports(3)
    broker = Broker(installation, tmp_path, port, sasl_port, controller_port)
    controllers = f"{NODE_ID}@{HOST}:{broker.controller_port}"
    with serving(broker.data, broker.port, controllers, SETTINGS), Wire(broker.port) as wire:
        prepared(wire, "x")
        actor = Actor(wire, "x")
        begun(actor, 1)
        first = seen(actor)
    broker.configure({"controller.quorum.voters": controllers})
    try:
        broker.start()
        with Wire(broker.port) as actor.wire:
            until(lambda: not actor.described().error_code)
            assert seen(actor) == first
            ended(actor, 1)
            prepared(actor.wire, "y")
            begun(actor, 2)
            second = seen(actor)
    finally:
        broker.stop()
    with serving(broker.data, broker.port, controllers, SETTINGS), Wire(broker.port) as actor.wire:
        until(lambda: not actor.described().error_code)
        assert seen(actor) == second
        ended(actor, 2)


def begun(actor: Actor, offset: int) -> None:
    """Let a transaction write a record and an offset."""
    actor.init()
    actor.send(0, version=12)
    actor.commit_offset(offset, version=5)
    assert [each[-1] for each in actor.trace[-2:]] == ["NONE", "NONE"], actor.trace


def ended(actor: Actor, offset: int) -> None:
    """Let it commit: its offset is there."""
    until(lambda: committed(actor) == ["OffsetFetch", True, "UNSTABLE_OFFSET_COMMIT", -1])
    actor.end(True, version=5)
    assert actor.trace[-1][3] == "NONE", actor.trace
    until(lambda: committed(actor) == ["OffsetFetch", True, "NONE", offset])


def committed(actor: Actor) -> Any:
    actor.committed(True)
    return actor.trace[-1]


def seen(actor: Actor) -> Any:
    actor.state()
    return actor.trace[-1]
