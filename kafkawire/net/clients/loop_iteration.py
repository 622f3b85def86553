"""When sends let the event loop run.

Responses are handled, and other tasks run, however fast records come; senders that wait keep
their order. Records that come faster than brokers take them are slowed down, a little for each
batch, before buffer.memory is full.

    begin ─▶ look_at ─▶ look: nothing received ─▶ later look_at ... yield_at ─▶ run_loop
                              received ─────────────────────────────────────────▶ run_loop
    new batch, long backlog ─▶ pace ─▶ next send: run_loop, until a result or PACE_SECONDS are over
"""

from __future__ import annotations

import asyncio
from typing import Final

from ..sockets.readiness import Readiness

YIELD_SECONDS: Final = 0.001
"""How long sends may run without yielding to the loop; a yield costs a fiftieth of that."""
LOOK_SECONDS: Final = 0.000_05
"""How often they look for received bytes, for which they yield at once, while full batches wait:
a response that is handled late delays them all.
"""
PACE_SECONDS: Final = 0.001
"""How long the next send waits for a result after a new batch while there is a long backlog."""


class LoopIteration:
    """The sends since the loop last ran.

    look_at: when to look whether to yield; 0 before its first send. yield_at: when to yield
    at the latest. waiting: senders that wait for the loop to run. paced: whether the next one waits
    for a result.
    """

    def __init__(self) -> None:
        self.look_at = 0.0
        self.yield_at = 0.0
        self.waiting = 0
        self.paced = False
        self.begun = False
        self._lock = asyncio.Lock()
        self._result: asyncio.Future[None] | None = None

    def begin(self, now: float, loop: asyncio.AbstractEventLoop, *, has_backlog: bool) -> None:
        """Begin with the first send; has_backlog: whether full batches wait for responses."""
        self.begun = True
        self.yield_at = now + YIELD_SECONDS
        self.look_at = now + LOOK_SECONDS if has_backlog else self.yield_at
        loop.call_soon(self._end)

    def look(self, now: float, readiness: Readiness) -> bool:
        """Return whether sends may go on after `look_at`: nothing was received meanwhile."""
        if now >= self.yield_at or readiness.any():
            return False
        self.look_at = min(now + LOOK_SECONDS, self.yield_at)
        return True

    def is_over(self, now: float) -> bool:
        """Whether the next send must wait until the loop has run."""
        return self.waiting > 0 or self.paced or (self.begun and now >= self.look_at)

    def pace(self) -> None:
        """Have the next send wait for a result, unless one comes before it."""
        self.paced = True
        self.look_at = self.yield_at = 0.0

    async def run_loop(self) -> None:
        """Let the loop run; records that come meanwhile keep their order after this one."""
        self.waiting += 1
        try:
            async with self._lock:
                if self.begun:
                    await asyncio.sleep(0)  # polls the sockets: what they received is handled
                    await asyncio.sleep(0)  # after this task, and before it goes on here
                if self.paced:
                    self.paced = False
                    await self._wait_for_result()
        finally:
            self.waiting -= 1

    def on_result(self) -> None:
        """Let the send go on that waits for the result of a batch."""
        self.paced = False
        if self._result is not None:
            _complete(self._result)

    async def _wait_for_result(self) -> None:
        """Wait until any batch has its result, at most PACE_SECONDS."""
        loop = asyncio.get_running_loop()
        self._result = loop.create_future()
        timer = loop.call_later(PACE_SECONDS, _complete, self._result)
        try:
            await self._result
        finally:
            timer.cancel()
            self._result = None

    def _end(self) -> None:
        self.begun = False
        self.look_at = self.yield_at = 0.0


def _complete(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
