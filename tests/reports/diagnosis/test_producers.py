"""Rules about producers: a story that has the trouble, and one that nearly has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .stories import LZ4, NOW_MS, Story, batch, batch_of, rules


def producing(
    times: int, records: str | None = None, every: float = 0, acks: int = -1, client: str = "tester"
) -> Story:
    story = Story()
    for _ in range(times):
        story.produce(records, acks=acks, client_id=client).wait(every)
    return story


def test_many_small_batches(tmp_path: Path) -> None:
    by_rule = rules(producing(600, batch(50)), tmp_path)
    assert list(by_rule) == ["tiny-batches"]
    one = by_rule["tiny-batches"]
    assert one["subject"] == {"client": "tester", "topic": "orders"}
    assert {setting["key"] for setting in one["settings"]} == {"linger.ms", "batch.size"}


def test_large_few_or_rare_batches_are_no_trouble(tmp_path: Path) -> None:
    assert rules(producing(600, batch(1500)), tmp_path) == {}
    assert rules(producing(400, batch(50)), tmp_path) == {}
    assert rules(producing(600, batch(50), every=0.1), tmp_path) == {}


def test_thresholds_can_be_changed(tmp_path: Path) -> None:
    story = producing(600, batch(1500))
    assert "tiny-batches" in rules(story, tmp_path, "--set", "tiny-batches.bytes=2000")


def test_one_producer_with_fewer_acks(tmp_path: Path) -> None:
    story = producing(3, every=1)
    for _ in range(12):
        story.produce(acks=1, client_id="careless").wait(1)
    by_rule = rules(story, tmp_path)
    assert list(by_rule) == ["acks-mixed"]
    assert by_rule["acks-mixed"]["subject"] == {"client": "careless", "topic": "orders"}
    assert by_rule["acks-mixed"]["settings"] == [{"key": "acks", "value": "1"}]


def test_the_same_acks_everywhere_or_of_another_topic(tmp_path: Path) -> None:
    assert rules(producing(12, acks=1, every=1), tmp_path) == {}
    story = producing(12, acks=1, every=1)
    story.produce(topic="payments")
    assert rules(story, tmp_path) == {}


SOME_BYTES = "--set", "compression.bytes=100000"
"""A threshold for short stories."""


def test_batches_without_compression(tmp_path: Path) -> None:
    full = batch_of([1000] * 40)
    by_rule = rules(producing(4, full), tmp_path, *SOME_BYTES)
    assert by_rule["compression"]["settings"] == [{"key": "compression.type", "value": "none"}]
    small = batch_of([1000] * 40, compression=LZ4)
    assert rules(producing(600, small, every=1), tmp_path, *SOME_BYTES) == {}
    assert rules(producing(2, full), tmp_path, *SOME_BYTES) == {}
    assert rules(producing(4, batch(40_000)), tmp_path, *SOME_BYTES) == {}


def test_several_codecs(tmp_path: Path) -> None:
    story = producing(4, batch(40_000))
    story.produce(batch(compression=LZ4), client_id="other")
    by_rule = rules(story, tmp_path, *SOME_BYTES)
    assert by_rule["compression"]["what"].endswith("none by tester, lz4 by other")


def idempotent(sequences: list[int], epoch: int = 0) -> Story:
    story = Story()
    for sequence in sequences:
        records = batch(producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        story.produce(records).wait(0.1)
    return story


def test_batches_that_are_sent_again(tmp_path: Path) -> None:
    by_rule = rules(idempotent([number // 2 for number in range(20)]), tmp_path)
    assert list(by_rule) == ["produce-retries"]
    assert by_rule["produce-retries"]["count"] == 10


def test_sequences_that_grow_or_begin_again(tmp_path: Path) -> None:
    assert rules(idempotent(list(range(200))), tmp_path) == {}
    assert rules(idempotent([number // 2 for number in range(18)]), tmp_path) == {}
    assert rules(idempotent([2**31 - 1, *range(20)]), tmp_path) == {}


def ending(committed: int, aborted: int, code: int = 0) -> Story:
    story = Story()
    for number in range(committed + aborted):
        story.exchange(
            "EndTxn",
            3,
            transactionalId="tx",
            producerId=7,
            committed=number < committed,
            response={"errorCode": code},
        )
    return story


def test_transactions_that_are_aborted(tmp_path: Path) -> None:
    by_rule = rules(ending(5, 5), tmp_path)
    assert list(by_rule) == ["aborted-transactions"]
    assert by_rule["aborted-transactions"]["subject"]["transactional_id"] == "tx"
    assert by_rule["aborted-transactions"]["severity"] == "warning"
    assert rules(ending(0, 5), tmp_path)["aborted-transactions"]["severity"] == "critical"
    assert rules(ending(5, 4), tmp_path) == {}
    assert rules(ending(30, 5), tmp_path) == {}


def spread(*sizes: int) -> Story:
    """Produce so many batches of 30 kB to each partition."""
    story = Story()
    for partition, times in enumerate(sizes):
        for _ in range(times):
            story.produce(batch(30_000), partition=partition).wait(0.1)
    return story


def test_a_partition_with_most_of_the_bytes(tmp_path: Path) -> None:
    by_rule = rules(spread(40, 3, 3, 3), tmp_path)
    assert list(by_rule) == ["hot-partitions"]
    assert by_rule["hot-partitions"]["subject"] == {"topic": "orders", "partition": 0}


def test_partitions_that_are_alike_few_or_small(tmp_path: Path) -> None:
    assert rules(spread(12, 10, 10, 8), tmp_path) == {}
    assert rules(spread(40, 2), tmp_path) == {}
    assert rules(spread(20, 1, 1, 1), tmp_path) == {}


HOUR_MS = 3_600_000


def stamped(times: int, timestamp: int) -> Story:
    return producing(times, batch_of([10], timestamp), every=0.1)


def test_records_of_another_time(tmp_path: Path) -> None:
    by_rule = rules(stamped(10, NOW_MS + 2 * HOUR_MS), tmp_path)
    assert list(by_rule) == ["record-timestamps"]
    assert "in the future" in by_rule["record-timestamps"]["what"]
    by_rule = rules(stamped(10, NOW_MS - 200 * HOUR_MS), tmp_path)
    assert "long ago" in by_rule["record-timestamps"]["what"]
    assert rules(stamped(10, NOW_MS // 1000), tmp_path) != {}


def test_records_of_now_or_last_week(tmp_path: Path) -> None:
    assert rules(stamped(9, NOW_MS + 2 * HOUR_MS), tmp_path) == {}
    assert rules(stamped(10, NOW_MS + HOUR_MS // 2), tmp_path) == {}
    assert rules(stamped(10, NOW_MS - 100 * HOUR_MS), tmp_path) == {}


def hanging(seconds: float, *, ends: bool = False) -> Story:
    same: Any = {"transactionalId": "tx", "producerId": 7, "producerEpoch": 0}
    story = Story()
    story.exchange("AddOffsetsToTxn", 3, groupId="g", **same)
    story.wait(seconds)
    if ends:
        story.exchange("EndTxn", 3, committed=True, **same)
    return story.exchange("InitProducerId", 4, transactionalId="other", transactionTimeoutMs=1000)


def test_a_transaction_without_an_end(tmp_path: Path) -> None:
    by_rule = rules(hanging(70), tmp_path)
    assert list(by_rule) == ["hanging-transactions"]
    assert by_rule["hanging-transactions"]["subject"]["transactional_id"] == "tx"
    assert rules(hanging(50), tmp_path) == {}
    others = hanging(1).wait(70).exchange("Metadata", 5, 1)
    assert list(rules(others, tmp_path)) == ["hanging-transactions"]
    assert "hanging-transactions" not in rules(hanging(70, ends=True), tmp_path)


def test_a_transaction_that_takes_long(tmp_path: Path) -> None:
    by_rule = rules(hanging(35, ends=True), tmp_path)
    assert list(by_rule) == ["long-transactions"]
    assert by_rule["long-transactions"]["what"] == "the longest of 1 transaction took 35 s"
    assert by_rule["long-transactions"]["subject"]["transactional_id"] == "tx"
    assert rules(hanging(25, ends=True), tmp_path) == {}
