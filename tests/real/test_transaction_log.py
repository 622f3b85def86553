"""Apache Kafka's dump tool and `kafkawire log` read `__transaction_state` as a node writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.log import InternalLog, RecordRow, read, recognise
from kafkawire.messages.transaction_log_value import TransactionLogValue
from kafkawire.protocol import ErrorCode as E
from tests.node.front_scene import NodeScene
from tests.node.test_transactions import find, started

from .dump import dump
from .java import Installation

SETTINGS = {"transaction.state.log.num.partitions": "1"}
FILE = "__transaction_state-0/00000000000000000000.log"
STATES = [0, 1, 2, 4, 1, 3, 5]
"""Empty, then a transaction that commits and one that aborts."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The log of two transactions."""
    scene = NodeScene(SETTINGS, topics={"t": 1})
    find(scene)
    scene.advance(1.0)
    producer = started(scene)
    for commit in (True, False):
        assert producer.begin(0) == E.NONE
        assert producer.end(commit) == E.NONE
        scene.advance(0.1)
    made = tmp_path / FILE
    made.parent.mkdir()
    made.write_bytes(scene.disk.read(FILE, 0, scene.disk.size(FILE)))
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
    assert states == STATES


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
