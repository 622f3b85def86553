"""Measures the wall-clock time of `decode --jobs` with one process, two and more.

Once on one capture, and once on several.

    python -m benchmarks.jobs [--traffic calls] [--megabytes 100] [--processes 1 2] [--rounds 3]

Law: all of them print the same bytes to a file; they take turns; a figure is wall-clock seconds,
start-up included, so it is meaningful only on an idle machine with as many cores. CPU time is shown
too. Captures and output are in memory if there is a file system for that. A first run does not
count, and the others overwrite its output: writing pages to a disk, and clearing new ones, takes
time by turns that no contender answers for.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import report
from .measure import Figure, figure
from .pipeline import TRAFFIC, Run, measured, ours, pieces

MEGABYTES: Final = 100
PROCESSES: Final = (1, 2)
FILES: Final = 4
"""Number of captures of the same total size."""

IN_MEMORY: Final = Path("/dev/shm")


def run_size(
    traffic: str, megabytes: int, processes: Sequence[int], rounds: int, folder: Path
) -> list[Figure]:
    """Measure captures of a size."""
    cases: dict[str, list[Path]] = {}
    for case, number in (("one file", 1), (f"{FILES} files", FILES)):
        cases[case] = [folder / f"{number}-{at}.pcap" for at in range(number)]
        for at, file in enumerate(cases[case]):
            with file.open("wb", buffering=1 << 20) as out:
                out.writelines(pieces(traffic, megabytes * 10**6 // number, folder, at))
    figures = []
    for case, files in cases.items():
        taken: dict[int, list[Run]] = {number: [] for number in processes}
        printed = set()
        out_file = folder / "out"
        for turn in range(rounds + 1):
            for number in processes:
                command = ours(*files, "--format", "jsonl", "--records", "--jobs", str(number))
                ran = measured(command, out_file, over=True)
                if turn:
                    taken[number].append(ran)
                with out_file.open("rb") as rows:
                    printed.add(hashlib.file_digest(rows, "blake2b").digest())
        if len(printed) > 1:
            raise AssertionError(f"{case}: not all of them printed the same")
        name = f"{traffic}, {megabytes} MB, {case}"
        for number, runs in taken.items():
            contender = f"--jobs {number}"
            clock, processor = [each.wall for each in runs], [each.cpu for each in runs]
            figures.append(figure("--jobs, wall-clock", name, contender, "s", clock))
            figures.append(figure("--jobs, processor", name, contender, "s", processor))
    return figures


def run(
    rounds: int,
    megabytes: int = MEGABYTES,
    traffic: Sequence[str] = TRAFFIC,
    processes: Sequence[int] = PROCESSES,
) -> list[Figure]:
    """Measure each kind of traffic."""
    figures: list[Figure] = []
    for kind in traffic:
        above = IN_MEMORY if IN_MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="kafkawire-jobs-", dir=above) as folder:
            figures += run_size(kind, megabytes, processes, rounds, Path(folder))
    return figures


def main() -> None:
    """Print the tables and write the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.jobs", description=__doc__)
    parser.add_argument("--traffic", choices=TRAFFIC, nargs="+", default=list(TRAFFIC))
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--processes", type=int, nargs="+", default=list(PROCESSES))
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    figures = run(chosen.rounds, chosen.megabytes, chosen.traffic, chosen.processes)
    print(report.tables(figures))
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
