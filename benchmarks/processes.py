"""Samples CPU time and memory of the processes of a Spark job: proc(5)."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

SAMPLE_SECONDS: Final = 0.25
"""Seconds between two samples of the workers."""

EXECUTOR: Final = b"CoarseGrainedExecutorBackend"
"""The Java class name of an executor of a cluster."""


class Workers(threading.Thread):
    """Samples the processes below one.

    peak: MiB of the largest Python worker; cpu: seconds of all; java_peak, java_cpu: the same of
    Java. driver: is not counted; apart: nor is Java other than executors.
    """

    def __init__(self, above: int, driver: int, *, apart: bool) -> None:
        super().__init__(daemon=True)
        self.peak = self.java_peak = 0.0
        self._above, self._driver, self._apart = above, driver, apart
        self._cpu: dict[int, float] = {}
        self._java: dict[int, float] = {}
        self._over = threading.Event()
        self.start()

    @property
    def cpu(self) -> float:
        """CPU seconds of all Python workers."""
        return sum(self._cpu.values())

    @property
    def java_cpu(self) -> float:
        """CPU seconds of Java."""
        return sum(self._java.values())

    def leave(self) -> None:
        """Stop sampling."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Sample until stopped."""
        while not self._over.wait(SAMPLE_SECONDS):
            for pid in below(self._above):
                if pid != self._driver:
                    with suppress(OSError):  # it has exited
                        self._sample(pid)

    def _sample(self, pid: int) -> None:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        status = Path(f"/proc/{pid}/status").read_text()
        seconds = cpu_seconds(pid)
        fields = status.partition("VmHWM:")[2].split()
        peak = int(fields[0]) / 1024 if fields else 0.0
        if b"java" not in command.split(b"\0")[0]:
            self.peak = max(self.peak, peak)
            self._cpu[pid] = seconds
            return
        if not self._apart or EXECUTOR in command:
            self.java_peak = max(self.java_peak, peak)
            self._java[pid] = seconds


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def below(pid: int) -> list[int]:
    """List the descendants of a process."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue  # it ended meanwhile
        parent = int(text.rpartition(")")[2].split()[1])
        parents.setdefault(parent, []).append(int(path.parent.name))
    descendants, rest = [], [pid]
    while rest:
        children = parents.get(rest.pop(), [])
        descendants += children
        rest += children
    return descendants


def children_of(pid: int, program: bytes) -> list[int]:
    """List the processes below one that run a program."""
    return [
        each
        for each in below(pid)
        if program in Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0")[0]
    ]
