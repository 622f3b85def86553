"""Runs a consumer until it is interrupted, or its output is closed: it closes in order then."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from errno import EPIPE
from typing import TYPE_CHECKING, Any, Final

from ..pipes import at_closed_pipe

if TYPE_CHECKING:
    from kafkawire.net.consumer import Consumer
    from kafkawire.net.share_consumer import ShareConsumer

LEAVE_SECONDS: Final = 1.0
"""How long an interrupted consumer may take to commit and to leave its group."""
END_SECONDS: Final = 3.0
"""How long after an interrupt the process ends at the latest, whatever it still does."""


@asynccontextmanager
async def closed_soon(consumer: Consumer | ShareConsumer) -> AsyncIterator[None]:
    """Start and close a consumer; one that is interrupted does not wait long for its brokers."""
    await consumer.start()
    try:
        yield
    except asyncio.CancelledError:
        await consumer.close(LEAVE_SECONDS)
        raise
    finally:
        await consumer.close()


async def until_interrupted(work: Any) -> None:
    """Run until done or interrupted; an interrupt cancels the task, which closes in order.

    So does a closed output; BrokenPipeError then. A second interrupt, or a close that takes too
    long (records in a full pipe), ends the process.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def interrupt(number: int) -> None:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
        task.cancel()
        loop.call_later(END_SECONDS, os.kill, os.getpid(), number)

    output_closed = asyncio.Event()

    def closed() -> None:
        output_closed.set()
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    with at_closed_pipe(closed):
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    if output_closed.is_set():
        raise BrokenPipeError(EPIPE, os.strerror(EPIPE))
