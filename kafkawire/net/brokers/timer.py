"""One timer of the running event loop, moved as the next deadline of a machine changes.

It wakes its owner once for each time that is set, and not after `set(None)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timer:
    """A timer. wake: called when its time has come."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at: float | None) -> None:
        """Wake the owner at this time of the loop; None: not at all."""
        if self._handle is not None:
            if at == self._handle.when() and not self._handle.cancelled():
                return
            self._handle.cancel()
            self._handle = None
        if at is not None:
            self._handle = asyncio.get_running_loop().call_at(at, self._due)

    def _due(self) -> None:
        self._handle = None
        self._wake()
