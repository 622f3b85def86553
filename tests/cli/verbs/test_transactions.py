"""`kafkawire transactions`: what became of each transaction."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kafkawire.records import BatchBuilder
from tests.capture.written import Scenario
from tests.cli.reports import on_a_terminal, report, text
from tests.conftest import FIXTURES

CAPTURES = FIXTURES / "captures"
FENCED, BAD_EPOCH, CONCURRENT, INVALID_STATE = 90, 47, 51, 48


class Story(Scenario):
    """Requests of a transactional producer, with their responses."""

    def init(self, epoch: int = 0, error: int = 0, at: int = 0, **fields: Any) -> Story:
        given = {"transactionalId": "tx", "transactionTimeoutMs": 60_000, **fields}
        self.request("InitProducerId", 4, at, **given)
        self.respond("InitProducerId", 4, at, errorCode=error, producerId=7, producerEpoch=epoch)
        return self

    def add(self, partitions: list[int], error: int = 0, at: int = 0, epoch: int = 0) -> Story:
        self.request(
            "AddPartitionsToTxn", 3, at, v3AndBelowTransactionalId="tx", v3AndBelowProducerId=7,
            v3AndBelowProducerEpoch=epoch,
            v3AndBelowTopics=[{"name": "orders", "partitions": partitions}],
        )  # fmt: skip
        results = [{"partitionIndex": one, "partitionErrorCode": error} for one in partitions]
        self.respond(
            "AddPartitionsToTxn", 3, at,
            resultsByTopicV3AndBelow=[{"name": "orders", "resultsByPartition": results}],
        )  # fmt: skip
        return self

    def produce(self, partition: int, version: int = 9, error: int = 0, at: int = 0) -> Story:
        batch = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        batch.append(None, b"value")
        data = [{"index": partition, "records": b64encode(batch.build()).decode()}]
        self.request(
            "Produce", version, at, transactionalId="tx", acks=-1,
            topicData=[{"name": "orders", "partitionData": data}],
        )  # fmt: skip
        responses = [{"index": partition, "errorCode": error}]
        self.respond(
            "Produce", version, at,
            responses=[{"name": "orders", "partitionResponses": responses}],
        )  # fmt: skip
        return self

    def end(
        self, committed: bool = True, error: int = 0, version: int = 3, at: int = 0,
        respond: bool = True, epoch: int = 0,
    ) -> Story:  # fmt: skip
        self.request(
            "EndTxn", version, at, transactionalId="tx", producerId=7, producerEpoch=epoch,
            committed=committed,
        )  # fmt: skip
        if respond:
            new = {"producerId": 7, "producerEpoch": epoch + 1} if version >= 5 else {}
            self.respond("EndTxn", version, at, errorCode=error, **new)
        return self


def the_id(story: Scenario, tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = report("transactions", story.save(tmp_path / "txn.pcap"))["transactional_ids"]
    return found


def ends(story: Scenario, tmp_path: Path) -> list[tuple[str, str | None]]:
    found = the_id(story, tmp_path)["transactions"]
    return [(one["state"], one["reason"]) for one in found]


def test_a_capture_of_commit_and_abort() -> None:
    (found,) = report("transactions", CAPTURES / "ck-txn.pcap")["transactional_ids"]
    assert found["transactional_id"] == "tx-орд-1"
    assert (found["committed"], found["aborted"], found["hanging"]) == (1, 1, 0)
    committed, aborted = found["transactions"]
    assert (committed["state"], committed["reason"]) == ("committed", None)
    assert (aborted["state"], aborted["reason"]) == ("aborted", "by the client")
    for one in committed, aborted:
        assert one["partitions"] == [{"topic": "tx-topic", "topic_id": None, "partitions": [0, 1]}]
        assert (one["producer_id"], one["producer_epoch"]) == (879817000, 0)
        assert one["bytes"] == 197


def test_offsets_are_committed_with_a_transaction(tmp_path: Path) -> None:
    story = Story().init()
    same: Any = {"transactionalId": "tx", "producerId": 7, "producerEpoch": 0, "groupId": "g"}
    story.request("AddOffsetsToTxn", 3, **same).respond("AddOffsetsToTxn", 3)
    offsets = [{"partitionIndex": one, "committedOffset": 5} for one in (0, 1)]
    story.request("TxnOffsetCommit", 3, **same, topics=[{"name": "t", "partitions": offsets}])
    done = [{"partitionIndex": one} for one in (0, 1)]
    story.respond("TxnOffsetCommit", 3, topics=[{"name": "t", "partitions": done}])
    (one,) = the_id(story.end(), tmp_path)["transactions"]
    assert (one["state"], one["partitions"]) == ("committed", [])
    assert one["offsets"] == [{"group_id": "g", "offsets": 2}]


def test_produce_adds_partitions_and_end_txn_the_next_epoch(tmp_path: Path) -> None:
    story = Story().init().produce(3, 12).produce(1, 12).produce(3, 12).end(version=5)
    found = the_id(story, tmp_path)
    (one,) = found["transactions"]
    assert one["partitions"][0]["partitions"] == [1, 3]
    assert one["implicit_partitions"] == 2
    assert [each["producer_epoch"] for each in found["producers"]] == [0, 1]
    assert "orders 1,3 (by Produce)" in text("transactions", tmp_path / "txn.pcap")


def test_a_hanging_transaction(tmp_path: Path) -> None:
    story = Story().init().add([0]).produce(0).end().add([1])
    assert ends(story, tmp_path) == [("committed", None), ("hanging", None)]
    shown = text("transactions", tmp_path / "txn.pcap")
    assert "Hanging transactions" in shown


def test_a_hanging_transaction_whose_timeout_passed(tmp_path: Path) -> None:
    story = Story().init(transactionTimeoutMs=1).add([0]).produce(0)
    for _ in range(10):
        story.request("Metadata", 1).respond("Metadata", 1)
    assert ends(story, tmp_path) == [("hanging", "the timeout of 1 ms passed")]


@pytest.mark.parametrize(
    ("story", "wanted"),
    [
        (Story().init().add([0]).init(1), ("aborted", "fenced by InitProducerId")),
        (
            Story().init().add([0]).init(1, at=1, producerId=7),
            ("aborted", "fenced by InitProducerId of the same producer, epoch 1"),
        ),
        (
            Story().init().add([0]).end(error=FENCED),
            ("aborted", "fenced: PRODUCER_FENCED at EndTxn (commit)"),
        ),
        (
            Story().init().add([0]).produce(0, error=BAD_EPOCH),
            ("aborted", "fenced: INVALID_PRODUCER_EPOCH"),
        ),
        (
            Story().init().add([0]).produce(0, error=3).end(committed=False),
            ("aborted", "by the client after UNKNOWN_TOPIC_OR_PARTITION"),
        ),
        (
            Story().init().add([0]).end(error=INVALID_STATE),
            ("unknown", "INVALID_TXN_STATE at EndTxn (commit)"),
        ),
        (Story().init().add([0]).end(respond=False), ("unknown", "no response to EndTxn (commit)")),
        (Story().init().add([0]).end(error=CONCURRENT).end(), ("committed", None)),
        (Story().end(), ("committed", None)),
    ],
)
def test_ends_and_their_reasons(
    story: Story, wanted: tuple[str, str | None], tmp_path: Path
) -> None:
    (found,) = ends(story, tmp_path)
    assert found[0] == wanted[0]
    assert found[1] == wanted[1] or str(found[1]).startswith(str(wanted[1]))


def test_a_transaction_that_began_before_the_capture(tmp_path: Path) -> None:
    (one,) = the_id(Story().end(), tmp_path)["transactions"]
    assert (one["begin_time"], one["duration_ns"]) == (None, None)
    assert "before the capture" in text("transactions", tmp_path / "txn.pcap")


def test_a_fenced_producer_says_nothing_of_the_next(tmp_path: Path) -> None:
    story = Story().init().add([0]).init(1).add([1], epoch=1, at=1)
    story.produce(0, error=BAD_EPOCH).end(error=FENCED)  # with epoch 0
    found = the_id(story, tmp_path)
    first, second = found["transactions"]
    assert (first["state"], second["state"], second["reason"]) == ("aborted", "hanging", None)
    assert second["errors"] == {}
    assert found["errors"] == {"INVALID_PRODUCER_EPOCH": 1, "PRODUCER_FENCED": 1}


def test_the_producer_is_known_by_its_batches(tmp_path: Path) -> None:
    (one,) = the_id(Story().produce(0, 12), tmp_path)["transactions"]
    assert (one["producer_id"], one["producer_epoch"]) == (7, 0)


def test_errors_outside_of_transactions(tmp_path: Path) -> None:
    found = the_id(Story().init(error=CONCURRENT).add([0], error=FENCED), tmp_path)
    assert found["transactions"] == []
    assert found["errors"] == {"CONCURRENT_TRANSACTIONS": 1, "PRODUCER_FENCED": 1}
    assert "tx: PRODUCER_FENCED, 1 time" in text("transactions", tmp_path / "txn.pcap")


def test_many_transactions_are_counted_and_the_last_are_kept(tmp_path: Path) -> None:
    story = Story().init()
    for number in range(130):
        story.add([number]).end(committed=number % 2 == 0)
    found = the_id(story, tmp_path)
    assert (found["committed"], found["aborted"]) == (65, 65)
    assert len(found["transactions"]) == 130
    for number in range(130, 330):
        story.add([number]).end()
    more = tmp_path / "more"
    more.mkdir()
    found = the_id(story, more)
    assert (found["committed"], found["aborted"]) == (265, 65)
    assert len(found["transactions"]) == 165
    assert found["transactions_left_out"] == 165
    assert found["transactions"][-1]["partitions"][0]["partitions"] == [329]


def test_nothing_was_transactional() -> None:
    assert text("transactions", CAPTURES / "kcat-kf.pcap") == "  No transactions found.\n"


def test_hostile_names_and_a_narrow_terminal(tmp_path: Path) -> None:
    story = Scenario()
    hostile = "\x1b[2J=1+1\u202e" + "x" * 200
    story.request(
        "EndTxn", 3, transactionalId=hostile, producerId=7, producerEpoch=0,
        committed=True,
    ).respond("EndTxn", 3)  # fmt: skip
    path = story.save(tmp_path / "txn.pcap")
    assert "\x1b" not in text("transactions", path)
    shown = on_a_terminal("transactions", path, columns=80, NO_COLOR="1").replace("\r\n", "\n")
    assert "[2J" in shown
    assert "\x1b[2J" not in shown
