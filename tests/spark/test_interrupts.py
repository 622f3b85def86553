"""An interrupt cancels jobs, and the work cleans up before the command ends."""

from __future__ import annotations

import _thread
from threading import Event
from typing import Any

import pytest

from kafkawire.spark.interrupts import interruptible


class Context:
    """A Spark context whose jobs end when they have been cancelled twice."""

    def __init__(self) -> None:
        self.levels: list[str] = []
        self.cancelled = 0
        self.ended = Event()

    def setLogLevel(self, level: str) -> None:
        self.levels.append(level)

    def cancelAllJobs(self) -> None:
        self.cancelled += 1
        if self.cancelled == 2:
            self.ended.set()


class Session:
    def __init__(self) -> None:
        self.sparkContext = Context()


def test_an_interrupt() -> None:
    session: Any = Session()
    events: list[str] = []

    def work() -> None:
        _thread.interrupt_main()
        session.sparkContext.ended.wait()
        events.append("cleaned up")
        raise ValueError("job cancelled")

    with pytest.raises(KeyboardInterrupt):
        interruptible(session, work, lambda: events.append("stopping"))
    assert events == ["stopping", "cleaned up"]
    assert session.sparkContext.levels == ["OFF"]


def test_results_and_errors_pass() -> None:
    session: Any = Session()
    assert interruptible(session, lambda: 7) == 7

    def fail() -> None:
        raise ValueError("from the work")

    with pytest.raises(ValueError, match="from the work"):
        interruptible(session, fail)
    assert session.sparkContext.cancelled == 0
