"""Compares the Spark job with a single process, on captures made of recordings.

    python -m benchmarks.spark --megabytes 1000 5000 [--masters 1 2] [--rounds N] [--table T]...
                               [--shapes many hot varied] [--cluster]
    python -m benchmarks.spark --files 10000 100000    planning of so many small captures

Contenders read the same files, each as a program of its own, and must find as many rows; MB
are 10^6 bytes of capture, times are wall-clock time. For Spark they begin where Java runs, with a
session as `session()` starts it: with a local master, with its Python workers. They end with the
last row written; a second figure has the session's start, too. What is measured of a size: with
many connections, with half of the bytes on one, and with the few hundred connections of varied
traffic (`benchmarks.varied`), most of which never end:

    decode       `kafkawire decode --table T -o x-{table}.parquet`: one process
    local[N]     the job of `kafkawire spark`
    cluster      the same on a standalone cluster of two executors of one core (--cluster), whose
                 Java is not the driver's
    CPU time     seconds of all processes, without the session's start, but with that of workers;
                 Java's part of them is Spark's own
    memory       the largest of Python's workers, an executor's Java, and both: resident MiB at
                 their peak

The rows that both find are compared by number here, and one by one in tests/spark.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from .. import report, varied
from ..captures import Recorded, grown, recorded
from ..measure import Figure, figure
from ..pipeline import recordings
from ..processes import children_of, cpu_seconds
from .contenders import Taken, clustered, rotated, single, spread
from .planning import run_files
from .skew import hot

MEGABYTES: Final = 200
SHAPES: Final = {"many": "many connections", "hot": "half on one", "varied": "varied traffic"}


def job(master: str, out: str, tables: Sequence[str], paths: Sequence[str]) -> None:
    """Run the job in this process; print its cost as JSON."""
    started = time.perf_counter()
    from kafkawire.spark import session
    from kafkawire.spark.job import run as run_job
    from kafkawire.spark.options import parse
    from kafkawire_cli.pipes import keep_memory

    keep_memory()  # as the command does
    spark = session(master, settings={"spark.log.level": "OFF", "spark.executor.memory": "512m"})
    spark.range(1).count()
    java = sum(map(cpu_seconds, children_of(os.getpid(), b"java")))
    begun, used = time.perf_counter(), time.process_time()
    manifest = run_job(spark, paths, out, tables, parse({}))
    seconds, driver = time.perf_counter() - begun, time.process_time() - used
    if manifest["payload"]["unaccounted"]:
        raise AssertionError(f"bytes unaccounted for: {manifest['payload']}")
    rows = [manifest["tables"][table]["rows"] for table in tables]
    figures = {"seconds": seconds, "rows": rows, "driver": driver, "start": begun - started}
    print(json.dumps({**figures, "java_before": java}))
    spark.stop()


def run_size(
    megabytes: int,
    cores: Sequence[int],
    rounds: int,
    tables: Sequence[str],
    shapes: Collection[str] = SHAPES,
    *,
    cluster: bool = False,
) -> list[Figure]:
    """Measure captures of a size."""
    figures: list[Figure] = []
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="kafkawire-spark-") as name:
            folder = Path(name)
            paths = rotated(made(shape, megabytes * 10**6), folder, "capture")
            size = sum(path.stat().st_size for path in paths) / 1e6
            taken = run_rounds(paths, tables, folder, cores, rounds, cluster=cluster)
            figures += shown(f"{size:.0f} MB, {SHAPES[shape]}, {', '.join(tables)}", size, taken)
    return figures


def made(shape: str, size: int) -> Iterator[bytes]:
    """Make a capture of a shape, piece by piece."""
    if shape == "varied":
        return varied.capture(size)
    sources: list[list[Recorded]] = [recorded(path) for path, _ in recordings()]
    return hot(sources, size) if shape == "hot" else grown(sources, size)


def run_rounds(
    paths: Sequence[Path],
    tables: Sequence[str],
    folder: Path,
    cores: Sequence[int],
    rounds: int,
    *,
    cluster: bool,
) -> dict[str, list[Taken]]:
    """Let the contenders take turns; all must find as many rows."""
    taken: dict[str, list[Taken]] = {}
    for _ in range(rounds):
        taken.setdefault("decode", []).append(single(paths, tables, folder))
        for count in cores:
            taken.setdefault(f"local[{count}]", []).append(spread(paths, tables, folder, count))
        if cluster:
            taken.setdefault("cluster", []).append(clustered(paths, tables, folder))
    rows = {one.rows for runs in taken.values() for one in runs}
    if len(rows) != 1:
        raise AssertionError(f"different numbers of rows: {sorted(rows)}")
    return taken


def shown(case: str, size: float, taken: dict[str, list[Taken]]) -> list[Figure]:
    """Make figures of runs."""
    figures = []
    for name, runs in taken.items():
        by_case: dict[tuple[str, str], list[float]] = {
            ("rate", "MB/s"): [size / run.wall for run in runs],
            ("CPU time", "s"): [run.cpu + run.java_cpu for run in runs],
            ("Python's memory", "MiB"): [run.peak for run in runs],
        }
        if runs[0].java_peak:
            every = [run.cpu + run.java_cpu for run in runs]
            by_case["Java's part of the CPU time", "%"] = [
                100 * run.java_cpu / total for run, total in zip(runs, every, strict=True)
            ]
            by_case["rate with the session's start", "MB/s"] = [
                size / (run.wall + run.start) for run in runs
            ]
            by_case["Java's memory", "MiB"] = [run.java_peak for run in runs]
            by_case["memory, Java and a worker", "MiB"] = [run.peak + run.java_peak for run in runs]
        figures += [
            figure(f"spark: {what}", case, name, unit, values)
            for (what, unit), values in by_case.items()
        ]
    return figures


def run(rounds: int, sizes: Sequence[int] = (MEGABYTES,)) -> list[Figure]:
    """Measure captures of the given sizes, in MB."""
    return [each for size in sizes for each in run_size(size, (1, 2), rounds, ["exchanges"])]


def main() -> None:
    """Print the tables and write the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark", description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[MEGABYTES])
    parser.add_argument("--files", type=int, nargs="+", help="plan so many small captures instead")
    parser.add_argument("--masters", type=int, nargs="+", default=[1, 2], metavar="CORES")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--table", action="append", help="exchanges by default; repeatable")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=[*SHAPES])
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    tables = chosen.table or ["exchanges"]
    if chosen.job:
        job(chosen.job, chosen.out, tables, chosen.paths)
        return
    figures: list[Figure] = [] if not chosen.files else run_files(chosen.files, chosen.rounds)
    for size in [] if chosen.files else chosen.megabytes:
        figures += run_size(
            size, chosen.masters, chosen.rounds, tables, chosen.shapes,
            cluster=chosen.cluster,
        )  # fmt: skip
    for suite in dict.fromkeys(each.suite for each in figures):
        print(f"\n{report.table([each for each in figures if each.suite == suite])}")
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
