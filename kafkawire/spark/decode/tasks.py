"""Calls functions on the workers, with small arguments and results.

Law: results have the order of the items, whichever worker made them. Large values go through files
or frames (`reading`), never through here.

    items --some to a task--> function --> results
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ascii_safe
from .decoding import tune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


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
        for at in numbers:
            yield function(items[at])

    count = max(1, min(len(items), tasks or len(items)))
    found: list[Any] = (
        spark.sparkContext.parallelize(range(len(items)), count).mapPartitions(task).collect()
    )
    return found


def begin_workers(spark: SparkSession) -> None:
    """Start a worker for each core without waiting, while the driver does other work."""
    cores = spark.sparkContext.defaultParallelism
    numbers: Any = spark.sparkContext.parallelize(range(cores), cores).mapPartitions(iter)
    numbers._jrdd.countAsync()
