"""Progress of a job, from what Spark knows of its stages."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kafkawire.spark.errors import UnsupportedSpark
from kafkawire.spark.progress import MOST_SECONDS, report, running_tasks
from kafkawire.spark.session import check_spark


class Stage(NamedTuple):
    numTasks: int
    numCompletedTasks: int


class Stages:
    """Stages by their numbers; None for one that Spark has forgotten meanwhile."""

    def __init__(self, stages: dict[int, Stage | None]) -> None:
        self.stages = stages

    def getActiveStageIds(self) -> list[int]:
        return [*self.stages]

    def getStageInfo(self, stageId: int) -> Stage | None:
        return self.stages[stageId]


def test_tasks_of_all_stages_are_counted() -> None:
    assert running_tasks(Stages({})) is None
    assert running_tasks(Stages({1: None})) is None
    assert running_tasks(Stages({1: Stage(10, 4), 2: None, 3: Stage(5, 0)})) == (4, 15)


def test_lines_until_the_end_ever_less_often() -> None:
    waits: list[float] = []
    lines: list[str] = []

    def ended(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) > 6

    report(Stages({1: Stage(1, 0)}), lines.append, ended)
    assert lines == ["0 of 1 task finished"] * 6
    assert waits == sorted(waits)
    assert waits[-1] == MOST_SECONDS


@pytest.mark.parametrize("version", ["3.5.1", "4.0.0", "4.2.0.dev1"])
def test_an_old_spark_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedSpark, match=rf"Spark {version} is not supported: expected 4\.3"):
        check_spark(version)


def test_a_newer_spark_is_not_refused() -> None:
    for version in ("4.3.0", "4.10.1", "5.0.0-SNAPSHOT"):
        check_spark(version)
