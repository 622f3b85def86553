"""Counts packets and bytes read, shows a progress bar on a terminal, notes what has no rows.

The bar appears only if standard error is a terminal and the files are large. It is drawn when
data was read, never by a thread, and erased at the end.

    ━━━━━━━━━━━━━━╸             52%   43.1 MB/s   210,000 packets/s   0:00:11
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from kafkawire.display import plural

from ...notes import print_note

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from kafkawire.capture.filters import Filter
    from kafkawire.capture.losses import Losses
    from kafkawire.capture.multifile import Traffic

MIN_BYTES: Final = 1 << 22
"""Total size of the files for which a bar is shown."""

INTERVAL: Final = 0.1
"""Minimum seconds between two updates of the bar."""

ADVICE: Final = "capture while clients send: tcpdump -s 0 -w FILE tcp port 9092"
"""What to do about captures without payload."""


class Progress:
    """Packets and bytes read so far; a `kafkawire.capture.files.source.Watch`.

    size: total size of the files. again: whether this is a second pass, which counts only for the
    bar.
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
        """Add bytes and packets that were read."""
        if not self.again:
            self.bytes += size
            self.packets += packets
        self._read += size
        self._total += packets
        if monotonic() - self._drawn >= INTERVAL:
            self.draw()

    def draw(self) -> None:
        """Draw the bar, if there is one."""
        bar = self._bar
        if bar is None or self._task is None:
            return
        self._drawn = monotonic()
        elapsed = max(self._drawn - self._began, 1e-3)
        passes = max(1, -(-self._read // self._size))  # topic ids may need a second pass
        bar.update(
            self._task,
            completed=self._read,
            total=passes * self._size,
            rate=f"{self._read / elapsed / 1e6:.1f} MB/s",
            packets=f"{self._total / elapsed:,.0f} packets/s",
        )
        bar.refresh()


@contextmanager
def progress(files: Iterable[object], *, drawn: bool = True) -> Iterator[Progress]:
    """Report progress while reading files; only regular files count for the bar.

    drawn: False if no bar shall be shown.
    """
    size = sum(file.stat().st_size for file in files if isinstance(file, Path) and file.is_file())
    if not drawn or size < MIN_BYTES or not sys.stderr.isatty():
        yield Progress(size)
        return
    with _bar() as bar:
        watch = Progress(size, bar)
        yield watch
        watch.draw()


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
        redirect_stdout=False,  # rows are written to stdout.buffer
        redirect_stderr=False,
    )


def note_without_messages(traffic: Traffic, packets: int) -> None:
    """Write a note on captures that were read, if they have packets but no message."""
    note_without_rows(traffic, packets)
    note_problems_alone(traffic, packets)


def note_problems_alone(traffic: Traffic, packets: int) -> None:
    """Write a note on captures that were read, if they have rows, but none of a message."""
    if traffic.has_rows and not traffic.has_messages and packets:
        print_note(f"no Kafka messages in {plural(packets, 'packet')}; see kafkawire summary")


def note_without_rows(traffic: Traffic, packets: int, name: str = "") -> None:
    """Write a note on captures that were read, if they have packets but no row.

    packets: those that were read. name: of the file, if others are read too.
    """
    if traffic.has_rows or not packets:
        return
    others = traffic.other_packets
    kinds = {"of TCP without payload": packets - others, "of other protocols": others}
    counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    before = f"{name}: " if name else ""
    print_note(f"{before}no Kafka messages in {plural(packets, 'packet')} ({counted}); {ADVICE}")


def note_tables(
    traffic: Traffic, names: Iterable[str], packets: int, where: Filter | None = None
) -> None:
    """Write notes on what tables of captures lack; of some rows only, where there is a filter.

    packets: those that were read, 0 if there are rows.
    """
    from kafkawire.capture.losses import lack

    note_without_messages(traffic, packets)
    if where is None and lack(names):
        note_losses(traffic.losses, "the tables lack")


def note_losses(losses: Losses, lacking: str) -> None:
    """Write a note on messages that what was made of a capture has only in part.

    lacking: what lacks the rest, and its verb.
    """
    if text := losses.text(lacking):
        print_note(f"{text}; see kafkawire diagnose")
