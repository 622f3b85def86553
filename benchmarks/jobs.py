"""Measures the wall-clock time of `decode --jobs` with one process, two and more.

Of one capture, and of several; as JSON lines with records, and as three tables (Parquet).

    python -m benchmarks.jobs [--traffic calls] [--megabytes 100] [--processes 1 2] [--rounds 3]

All of them write the same bytes, or the same rows of tables; they take turns; a figure is
wall-clock seconds, start-up included, so it is meaningful only on an idle machine with as many
cores. CPU time is shown too. Captures and output are in memory if there is a file system for that.
A first run does not count, and the others overwrite its output: the kernel writes pages to a disk
and clears new ones at times that do not depend on the contender.

"two commands" are two processes that share nothing, each with half of the files, at the same time:
what two cores of the machine give.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from filecmp import cmp
from itertools import zip_longest
from pathlib import Path
from typing import Final

from pyarrow.parquet import ParquetFile

from . import report
from .measure import Figure, figure
from .pipeline import TRAFFIC, Run, measured, ours, pieces

MEGABYTES: Final = 100
PROCESSES: Final = (1, 2)
FILES: Final = 4
"""Number of captures of the same total size."""

FORMS: Final = {
    "JSON lines": ("--format", "jsonl", "--records"),
    "tables": ("--table", "exchanges", "--table", "records", "--table", "partitions"),
}

COMPARED_ROWS: Final = 10_000

IN_MEMORY: Final = Path("/dev/shm")


def run_size(
    traffic: str, megabytes: int, processes: Sequence[int], rounds: int, folder: Path
) -> list[Figure]:
    """Measure captures of a size."""
    figures = []
    for case, number in (("one file", 1), (f"{FILES} files", FILES)):
        files = [folder / f"{number}-{at}.pcap" for at in range(number)]
        for at, file in enumerate(files):
            with file.open("wb", buffering=1 << 20) as out:
                out.writelines(pieces(traffic, megabytes * 10**6 // number, folder, at))
        for form, options in FORMS.items():
            name = f"{traffic}, {megabytes} MB, {case}, {form}"
            figures += _compared(name, files, options, processes, rounds, folder)
    return figures


def _compared(
    name: str,
    files: Sequence[Path],
    options: Sequence[str],
    processes: Sequence[int],
    rounds: int,
    folder: Path,
) -> list[Figure]:
    """Measure a command with each number of processes."""
    taken: dict[str, list[Run]] = defaultdict(list)
    written = folder / "first"
    tables = folder / "tables"
    to = ["--output", str(tables)] if "--table" in options else []
    for turn in range(rounds + 1):
        for number in processes:
            command = ours(*files, *options, *to, "--jobs", str(number))
            ran = measured(command, folder / "out", over=True)
            if turn:
                taken[f"--jobs {number}"].append(ran)
            if not turn and number == processes[0]:
                shutil.copytree(tables, written) if to else shutil.copy(folder / "out", written)
            elif not (_same_tables(tables, written) if to else cmp(folder / "out", written, False)):
                raise AssertionError(f"{name}: not all of them wrote the same")
        if len(files) > 1:
            ran = _two_commands(files, options, folder)
            if turn:
                taken["two commands"].append(ran)
    shutil.rmtree(written) if to else written.unlink()
    figures = []
    for contender, runs in taken.items():
        clock, processor = [each.wall for each in runs], [each.cpu for each in runs]
        suite = "--jobs, one file" if len(files) == 1 else "--jobs, several files"
        figures.append(figure(f"{suite}, wall-clock", name, contender, "s", clock))
        figures.append(figure(f"{suite}, processor", name, contender, "s", processor))
    return figures


def _two_commands(files: Sequence[Path], options: Sequence[str], folder: Path) -> Run:
    """Run two commands at the same time, each with half of the files and an output of its own."""

    def run_half(at: int) -> Run:
        to = ["--output", str(folder / f"tables-{at}")] if "--table" in options else []
        command = ours(*files[at::2], *options, *to)
        return measured(command, folder / f"out-{at}", over=True)

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(run_half, range(2)))
    clock, processor = max(one.wall for one in runs), sum(one.cpu for one in runs)
    return Run(processor, clock, max(one.peak for one in runs))


def _same_tables(folder: Path, other: Path) -> bool:
    """Whether the rows of all tables are equal, however they are divided into row groups."""
    return all(
        mine.equals(theirs)
        for file in sorted(folder.iterdir())
        for mine, theirs in zip_longest(
            ParquetFile(file).iter_batches(COMPARED_ROWS),
            ParquetFile(other / file.name).iter_batches(COMPARED_ROWS),
        )
    )


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
