"""Calls functions on the workers, with small arguments and results.

Results have the order of the items, whichever worker made them. Large values go through files
or frames (`reading`), never through here.

    items --some to a task--> function --> results
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ..errors import ascii_safe

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

IDLE_SECONDS: Final = 45.0
"""How long workers are expected to stay: Spark ends them when they were idle for a minute."""

_begun: Final[WeakKeyDictionary[SparkContext, tuple[float, Any]]] = WeakKeyDictionary()
"""When the workers of a context were started, and the `Future`."""


class Run(Protocol):
    """Calls a function for each item; the results have the order of the items."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]: ...


@cache
def tune() -> None:
    """Tune the cyclic GC of a worker, once: counting what is frozen takes Python milliseconds.

    It runs less often, since decoded messages have no cycles; what is loaded is frozen, since Spark
    collects after each task.
    """
    gc.set_threshold(1 << 18, 4, 2)
    if not gc.get_freeze_count():
        gc.freeze()


def on_workers(
    spark: SparkSession,
    function: Callable[[T], R],
    items: Sequence[T],
    tasks: int | None = None,
) -> list[R]:
    """Call a function for each item, in `tasks` tasks (default: one for each item).

    An RDD is used because a DataFrame would need Java to plan and to load more.
    """
    if not items:
        return []

    @ascii_safe
    def task(numbers: Iterable[int]) -> Iterator[R]:
        tune()
        for number in numbers:
            yield function(items[number])

    count = max(1, min(len(items), tasks or len(items)))
    results: list[Any] = (
        spark.sparkContext.parallelize(range(len(items)), count).mapPartitions(task).collect()
    )
    return results


def begin_workers(spark: SparkSession, clock: Callable[[], float] = monotonic) -> Any:
    """Start a worker for each core without waiting, while the driver does other work.

    Nothing is started if that was done in the last IDLE_SECONDS. Returns the Java `Future`.
    """
    context = spark.sparkContext
    since, future = _begun.get(context, (-inf, None))
    now = clock()
    if now - since >= IDLE_SECONDS:
        cores = core_count(spark)
        numbers: Any = context.parallelize(range(cores), cores).mapPartitions(iter)
        future = numbers._jrdd.countAsync()
        _begun[context] = now, future
    return future


def core_count(spark: SparkSession | None) -> int:
    """Return the number of cores of a session; without one, one."""
    return 1 if spark is None else spark.sparkContext.defaultParallelism


def number_frame(spark: SparkSession, count: int, tasks: int | None = None) -> Any:
    """Make a frame of the numbers below `count`.

    tasks: its partitions; by default one for each number.
    """
    return spark.range(0, count, 1, max(1, min(count, tasks or count)))
