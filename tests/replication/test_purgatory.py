"""Delayed operations: work grows with what completes, not with what waits."""

from __future__ import annotations

import pytest

from kafkawire.replication import MemoryLog
from kafkawire.replication.purgatory import SLACK, Purgatory, Thresholds

from .clients import batch
from .harness import KEY, Harness


def test_thresholds_in_order() -> None:
    waiting: Thresholds[str, str] = Thresholds()
    waiting.add("a", 5, "later")
    first = waiting.add("a", 3, "first")
    waiting.add("b", 1, "other")
    assert waiting.lowest("a") == 3
    waiting.discard(first)
    assert waiting.lowest("a") == 5
    assert waiting.take_reached("a", 4) == []
    assert waiting.take_reached("a", 5) == ["later"]
    assert (len(waiting), waiting.lowest("a")) == (1, None)
    assert list(waiting.live) == ["b"]


def test_what_was_discarded_takes_no_memory() -> None:
    waiting: Thresholds[str, int] = Thresholds()
    waiting.add("a", 1e9, 0)
    for each in range(10 * SLACK):
        waiting.discard(waiting.add("a", each, each))
    assert len(waiting._heaps["a"]) <= 2 + SLACK + 1


def test_an_operation_completes_once() -> None:
    purgatory: Purgatory[int] = Purgatory()
    purgatory.add(7, 1.0)
    purgatory.watch(7, KEY, "x", 5)
    assert purgatory.next_deadline() == 1.0
    assert purgatory.reached(KEY, "x", 5) == [7]
    assert [purgatory.remove(7), purgatory.remove(7)] == [True, False]
    assert purgatory.take_expired(2.0) == []
    assert len(purgatory) == 0


@pytest.mark.parametrize("count", [50, 500])
def test_appends_look_only_at_what_completes(count: int) -> None:
    """A hundred appends beside many that wait."""
    harness = Harness()
    harness.metadata()
    for _ in range(count):
        harness.fetch(-1, 0, min_bytes=1 << 20, max_wait_ms=60_000)
    harness.fetch(2, 0, min_bytes=1 << 20, max_wait_ms=60_000)
    before = harness.machine.fetches.purgatory.work
    tokens = [harness.produce(b"a" * 10, acks=-1) for _ in range(20)]
    for each in range(1, 21):
        harness.fetch(2, each)
        harness.fetch(3, each)
    assert all(token in harness.responses for token in tokens)
    assert harness.machine.appends.purgatory.work <= 2 * len(tokens)
    assert harness.machine.fetches.purgatory.work - before <= 40


def test_bytes_are_counted_only_for_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch waits for as many bytes after many appends as at first; those are not counted."""
    harness, counted = Harness(min_isr=1), []
    harness.metadata(isr=(1,))
    size_between = MemoryLog.size_between

    def counting(self: MemoryLog, start: int, end: int) -> int:
        counted.append((start, end))
        return size_between(self, start, end)

    monkeypatch.setattr(MemoryLog, "size_between", counting)
    for _ in range(100):
        harness.produce(b"a" * 10, acks=1)
    assert counted == []
    size = len(batch([b"a" * 10]))
    token = harness.fetch(-1, 100, min_bytes=2 * size, max_wait_ms=60_000)
    harness.produce(b"a" * 10, acks=1)
    assert token not in harness.responses
    harness.produce(b"a" * 10, acks=1)
    assert len(harness.fetched(token).records) == 2 * size
    assert all(start >= 100 for start, _ in counted)
