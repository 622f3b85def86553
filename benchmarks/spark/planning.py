"""Measures planning of many small captures: `python -m benchmarks.spark --files 10000 100000`.

A process of its own plans each directory as the driver of a job does, without Spark. Files are
in the page cache. Memory is the process's resident peak, and what it grew by for each file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

from ..measure import Figure, figure
from .small_captures import make

SUITE = "spark: planning of small files"


def planned(folder: str) -> None:
    """Plan a directory in this process; print the cost as JSON."""
    from kafkawire.spark.options import parse
    from kafkawire.spark.plan.planning import make_plan

    before, begun, used = _peak(), perf_counter(), process_time()
    plan = make_plan(None, [folder], parse({}), lenient=True)
    figures = {
        "files": len(plan.files),
        "wall": perf_counter() - begun,
        "cpu": process_time() - used,
        "before": before,
        "peak": _peak(),
    }
    print(json.dumps(figures))


def _peak() -> float:
    """Return the resident peak in MiB."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


def run_files(counts: Sequence[int], rounds: int) -> list[Figure]:
    """Measure directories of so many files; the smaller ones are links into the largest."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="kafkawire-planning-") as name:
        every = list(make(Path(name, "every"), max(counts)))
        for count in counts:
            folder = Path(name, str(count))
            folder.mkdir()
            for path in every[:count]:
                os.link(path, folder / path.name)
            runs = [_run(folder) for _ in range(rounds)]
            values = {
                ("wall-clock time", "s"): [run["wall"] for run in runs],
                ("CPU time", "s"): [run["cpu"] for run in runs],
                ("CPU time of a file", "µs"): [run["cpu"] / count * 1e6 for run in runs],
                ("memory", "MiB"): [run["peak"] for run in runs],
                ("memory of a file", "bytes"): [
                    (run["peak"] - run["before"]) / count * 2**20 for run in runs
                ],
            }
            for (what, unit), each in values.items():
                figures.append(figure(f"{SUITE}, {what}", f"{count} files", "driver", unit, each))
    return figures


def _run(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.spark.planning", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    planned(sys.argv[1])
