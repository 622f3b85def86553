"""Reports how many of Spark's tasks have finished, while a job runs.

running stages --after 10, 20, 40, 60, 60 ... seconds--> a line
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..display import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_SECONDS: Final = 10.0
MOST_SECONDS: Final = 60.0
"""Time before the first line, and the longest time between two lines."""


class StageTasks(Protocol):
    """What Spark knows of a stage."""

    @property
    def numTasks(self) -> int:
        """Tasks of the stage."""

    @property
    def numCompletedTasks(self) -> int:
        """Tasks that have finished."""


class Tracker(Protocol):
    """The part of `pyspark.StatusTracker` that is used."""

    def getActiveStageIds(self) -> list[int]:
        """Return the stages that run."""

    def getStageInfo(self, stageId: int) -> StageTasks | None:
        """Return what is known of a stage."""


class Tasks(NamedTuple):
    """Tasks of the running stages."""

    finished: int
    total: int

    def __str__(self) -> str:
        return f"{self.finished} of {plural(self.total, 'task')} finished"


def running_tasks(tracker: Tracker) -> Tasks | None:
    """Return the tasks of the running stages; None if no stage runs."""
    stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    stage_infos = [each for each in stages if each is not None]
    if not stage_infos:
        return None
    return Tasks(
        sum(each.numCompletedTasks for each in stage_infos),
        sum(each.numTasks for each in stage_infos),
    )


def report(tracker: Tracker, log: Callable[[str], object], ended: Callable[[float], bool]) -> None:
    """Log the running tasks until the end. ended: waits for so many seconds, or for the end."""
    seconds = FIRST_SECONDS
    while not ended(seconds):
        tasks = running_tasks(tracker)
        if tasks is not None:
            log(str(tasks))
        seconds = min(2 * seconds, MOST_SECONDS)


@contextmanager
def reported(spark: SparkSession, log: Callable[[str], object]) -> Iterator[None]:
    """Report progress in the background while the block runs."""
    from py4j.protocol import Py4JError

    ended = Event()
    tracker = spark.sparkContext.statusTracker()

    def run() -> None:
        try:
            report(tracker, log, ended.wait)
        except (Py4JError, OSError):
            return  # Spark has ended; the job itself reports why

    thread = Thread(target=run, name="kafkawire-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
