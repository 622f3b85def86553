"""Functions called on the workers, where what is given and what they make is small.

Law: results come in the order of what was given, whoever made them. What is large goes by files,
or by frames (`reading`), never through here.

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
    """Call a function for each item, in so many tasks: one for each, if not said otherwise.

    Spark's rows would do, too, but Java plans, and loads much more, to move them.
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
    """Have Spark start a worker for each core, and do not wait for them: meanwhile the driver has
    work of its own.
    """
    cores = spark.sparkContext.defaultParallelism
    numbers: Any = spark.sparkContext.parallelize(range(cores), cores).mapPartitions(iter)
    numbers._jrdd.countAsync()
