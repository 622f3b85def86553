"""Ends reading at the first interrupt (Ctrl-C), so that a report shows what was read until then.

A capture that is interrupted is read as if it ended there, between two packets: nothing is
half counted. A second interrupt ends the command. A pipe is read for DRAIN_SECONDS more: Ctrl-C in
a shell also reaches the `tcpdump` in front of it, which then writes its last packets.
"""

from __future__ import annotations

import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from mmap import mmap
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kafkawire.capture.multifile import Blocks, Source, Traffic
from kafkawire.errors import CaptureError, TruncatedCapture

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from kafkawire.capture.files.blocks import Block

DRAIN_SECONDS: Final = 1.0
"""How long a pipe is read after an interrupt, unless it ends earlier."""


class _WaitEndedError(Exception):
    """An interrupt while a read waits for data."""


class Interrupts:
    """Whether the user has interrupted the command. at: when, in monotonic seconds.

    Processes that are forked later see it, too.
    """

    def __init__(self) -> None:
        self.at: float | None = None
        self._waiting = False
        self._requested = mmap(-1, 1)  # shared memory

    @property
    def requested(self) -> bool:
        return self._requested[0] != 0

    def handle(self, *_: object) -> None:
        """Handle SIGINT: note the first one, and end a read that waits for data."""
        if self.at is not None:
            raise KeyboardInterrupt
        self.at = monotonic()
        self._requested[0] = 1
        if self._waiting:
            raise _WaitEndedError

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let an interrupt end what is done here."""
        try:
            self._waiting = True
            if not self.requested:
                yield
        except _WaitEndedError:
            pass
        finally:
            self._waiting = False


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Note interrupts; where they are ignored, as in background jobs, they stay ignored."""
    noted = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield noted
        return
    signal.signal(signal.SIGINT, noted.handle)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


class _Stream(RawIOBase):
    """A stream that ends soon after an interrupt."""

    def __init__(self, stream: BinaryIO, noted: Interrupts) -> None:
        self._stream: Any = stream
        self._noted = noted

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = None
        while data is None:
            if self._noted.requested and not self._more_comes():
                return 0
            if self._noted.requested:
                data = self._stream.read1(len(view))
            else:
                with self._noted.waiting():
                    data = self._stream.read1(len(view))
        view[: len(data)] = data
        return len(data)

    def _more_comes(self) -> bool:
        """Wait for data of an interrupted pipe, or its end."""
        left = (self._noted.at or 0) + DRAIN_SECONDS - monotonic()
        try:
            return left > 0 and bool(select.select([self._stream], [], [], left)[0])
        except (OSError, ValueError):  # not a file of the system
            return False


class _Blocks:
    """The packet blocks of a capture up to an interrupt."""

    def __init__(self, capture: Blocks, noted: Interrupts, *, stream: bool) -> None:
        self.problems: list[CaptureError] = []
        self._capture = capture
        self._noted = noted
        self._stream = stream

    @property
    def key_logs(self) -> list[bytes]:
        """The TLS key logs in the file so far."""
        return self._capture.key_logs

    def blocks(self) -> Iterator[Block]:
        """Read the file."""
        if self._noted.requested:
            return
        for block in self._capture.blocks():
            yield block
            if self._noted.requested and not self._stream:
                break
        self.problems = self._capture.problems
        if self._noted.requested:  # a capture that was not read to its end has no problem for that
            self.problems = [one for one in self.problems if not isinstance(one, TruncatedCapture)]


class InterruptibleTraffic(Traffic):
    """Captures that end at an interrupt."""

    noted: Interrupts

    @classmethod
    def of(cls, traffic: Traffic, noted: Interrupts) -> InterruptibleTraffic:
        """Make the captures of another reader interruptible."""
        interruptible = cls(
            traffic.sources,
            traffic.ports,
            traffic.limits,
            brokers=traffic.brokers,
            watch=traffic.watch,
            reassembly=traffic.reassembly,
            keylog=traffic.key_log,
            package=traffic.package,
            tunnels=traffic.tunnels,
        )
        interruptible.noted = noted
        return interruptible

    def open(self, source: Source) -> Blocks:
        """Open a file."""
        if isinstance(source, str | Path):
            return _Blocks(super().open(source), self.noted, stream=False)
        stream = BufferedReader(_Stream(source, self.noted))
        return _Blocks(super().open(stream), self.noted, stream=True)

    def again(self) -> Traffic:
        """Return another reader of the same captures, which the same interrupt ends."""
        return self.of(super().again(), self.noted)
