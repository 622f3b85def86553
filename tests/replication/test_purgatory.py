"""Delayed operations: work grows with what completes, not with what waits."""

from __future__ import annotations

import pytest

from kafkawire.replication.purgatory import SLACK, Purgatory, Thresholds

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
