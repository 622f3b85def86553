"""Ends the work of a driver in order when it is interrupted.

The work runs in a thread, so SIGINT reaches a main thread that is not in a call to Java: jobs
can be cancelled, and the work cleans up before the interrupt is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

AGAIN_SECONDS: Final = 0.2
"""How often jobs are cancelled until the work has ended: it may start another one."""


def interruptible(
    spark: SparkSession, work: Callable[[], T], stop: Callable[[], object] = lambda: None
) -> T:
    """Call a function that runs jobs; on SIGINT cancel them, wait, and raise KeyboardInterrupt.

    stop: called on SIGINT. What the function raises is raised here. A second SIGINT does not wait.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            result.set_exception(error)

    try:
        Thread(target=run, name="kafkawire-driver", daemon=True).start()
        return result.result()
    except KeyboardInterrupt:
        stop()
        context = spark.sparkContext
        context.setLogLevel("OFF")  # tasks that are cancelled report what they miss
        while not result.done():
            context.cancelAllJobs()
            wait([result], AGAIN_SECONDS)
        raise
