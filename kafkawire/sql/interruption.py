"""Ends a query at a signal, while DuckDB computes.

Python calls the handlers of signals in the main thread, between two instructions of Python: not
before DuckDB returns, which may be never. Here a thread reads the number of each signal from
Python's wakeup descriptor, which is written as the signal arrives, and interrupts the connection.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Final

ENDING: Final = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that end a query, if Python handles them."""

READ_BYTES: Final = 64


@contextmanager
def interrupted_by_signals(interrupt: Callable[[], object]) -> Iterator[list[int]]:
    """Call `interrupt` at signals during the block; yield the list of their numbers so far.

    It does nothing outside of the main thread, which alone handles signals.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    numbers: list[int] = []
    try:
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except ValueError:
        os.close(writer)
        os.close(reader)
        yield numbers
        return
    thread = Thread(target=_watch, args=(reader, before, numbers, interrupt), daemon=True)
    thread.start()
    try:
        yield numbers
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the thread
        thread.join()
        os.close(reader)


def _watch(reader: int, before: int, numbers: list[int], interrupt: Callable[[], object]) -> None:
    """Read the numbers of signals until the end. before: the descriptor that had them before."""
    while data := os.read(reader, READ_BYTES):
        if before >= 0:
            os.write(before, data)
        ending = [number for number in data if number in ENDING]
        if ending:
            numbers += ending
            interrupt()
