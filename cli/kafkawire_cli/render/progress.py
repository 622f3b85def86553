"""How far reading is: a bar with rates on a terminal, and the counts that a report begins with.

Law: nothing is drawn unless standard error is a terminal and a file is long enough to wait for;
it is drawn when something was read, never by a thread, and wiped when the reading ends.

    ━━━━━━━━━━━━━━╸             52%   43.1 MB/s   210,000 packets/s   0:00:11
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

LEAST: Final = 1 << 22
"""Bytes of files that are read before a bar could tell anything."""

EVERY: Final = 0.1
"""Seconds between two drawings, at least."""


class Progress:
    """What was read so far; call it as `kafkawire.capture.files.source.Watch` says.

    size: bytes of the files. again: whether this is a second reading, which counts for nothing but
    the bar.
    """

    def __init__(self, size: int, bar: Bar | None = None) -> None:
        self.packets = 0
        self.bytes = 0
        self.again = False
        self._size = size
        self._bar = bar
        self._task: TaskID | None = None
        self._read = self._total = 0
        self._began = self._drawn = monotonic()
        if bar is not None:
            self._task = bar.add_task("", total=size, rate="", packets="")

    def __call__(self, size: int, packets: int) -> None:
        """Note bytes and packets that were read."""
        if not self.again:
            self.bytes += size
            self.packets += packets
        self._read += size
        self._total += packets
        if monotonic() - self._drawn >= EVERY:
            self.draw()

    def draw(self) -> None:
        """Draw the bar as it is now, if there is one."""
        bar = self._bar
        if bar is None or self._task is None:
            return
        self._drawn = monotonic()
        passed = max(self._drawn - self._began, 1e-3)
        passes = max(1, -(-self._read // self._size))  # names of topics may need a second one
        bar.update(
            self._task,
            completed=self._read,
            total=passes * self._size,
            rate=f"{self._read / passed / 1e6:.1f} MB/s",
            packets=f"{self._total / passed:,.0f} packets/s",
        )
        bar.refresh()


@contextmanager
def progress(files: Iterable[object], *, drawn: bool = True) -> Iterator[Progress]:
    """Watch the reading of files; those that are no regular files have no length to tell.

    drawn: False where a bar would stand in the way.
    """
    size = sum(file.stat().st_size for file in files if isinstance(file, Path) and file.is_file())
    if not drawn or size < LEAST or not sys.stderr.isatty():
        yield Progress(size)
        return
    with _bar() as bar:
        made = Progress(size, bar)
        yield made
        made.draw()


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[packets]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        expand=True,
        redirect_stdout=False,  # rows are none of the bar's business
        redirect_stderr=False,
    )
