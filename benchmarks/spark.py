"""The Spark job beside the single process, on captures made of recordings:

    python -m benchmarks.spark --megabytes 1000 5000 [--masters 1 2] [--rounds N] [--table T]

Law: contenders read the same files, each as a program of its own, and must find as many rows; MB
are 10^6 bytes of capture, times those of the clock, from the first file looked at to the last row
written. What is measured of a size:

    decode       `kafkawire decode --table T -o x.parquet`: one process
    local[N]     the job of `kafkawire spark` in a session that runs; the session's start apart
    Spark's own  of local[1]: the part of the time in which Python's workers use no processor
    memory       the largest of Python's workers, and Java, at their peak, resident MiB
    processor    seconds of all processes but the driver's Python
    skew         local[N] again, where one connection has half the bytes

The rows that both find are compared by number here, and one by one in tests/spark.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from . import report
from .captures import Recorded, grown, recorded
from .measure import Figure, figure
from .pipeline import recordings
from .skew import hot

MEGABYTES: Final = 200
LOOK_SECONDS: Final = 0.1
"""Between two looks at the workers."""

FILE_BYTES: Final = 500 * 10**6
"""A capture is rotated at about that size."""


class Taken(NamedTuple):
    """What a run took: seconds of the clock, seconds of processor of Python's workers, MiB of the
    largest at its peak, rows; seconds of Java and its MiB.
    """

    wall: float
    cpu: float
    peak: float
    rows: int
    java_cpu: float = 0.0
    java_peak: float = 0.0


def rotated(pieces: Iterator[bytes], folder: Path, name: str) -> list[Path]:
    """Write a capture as files of FILE_BYTES."""
    header = next(pieces)
    paths: list[Path] = []
    rest = next(pieces, None)
    while rest is not None:
        paths.append(folder / f"{name}-{len(paths):03}.pcap")
        size = 0
        with paths[-1].open("wb", buffering=1 << 20) as out:
            out.write(header)
            while rest is not None and size < FILE_BYTES:
                size += out.write(rest)
                rest = next(pieces, None)
    return paths


def single(paths: Sequence[Path], table: str, folder: Path) -> Taken:
    """Decode in one process."""
    from pyarrow.parquet import read_metadata

    out = folder / "single.parquet"
    command = [sys.executable, "-m", "kafkawire_cli.main", "decode", *map(str, paths)]
    begun = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--table", table, "-o", str(out)], stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"decode ended with {process.returncode}")
    wall = time.perf_counter() - begun
    rows = read_metadata(out).num_rows
    return Taken(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, rows)


def spread(paths: Sequence[Path], table: str, folder: Path, cores: int) -> Taken:
    """Run the job in a process of its own; this one looks at its workers."""
    out = folder / f"spark-{cores}"
    command = [sys.executable, "-m", "benchmarks.spark", "--job", f"local[{cores}]", "--out"]
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(folder / "scratch")}
    with subprocess.Popen(
        [*command, str(out), "--table", table, *map(str, paths)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as job:  # fmt: skip
        workers = Workers(job.pid)
        assert job.stdout is not None
        said = job.stdout.read()
        workers.leave()
    if job.returncode:
        raise AssertionError(f"the job on local[{cores}] ended with {job.returncode}")
    shutil.rmtree(out)
    found = json.loads(said.splitlines()[-1])
    python, java = workers.cpu, workers.java_cpu - found["java_before"]
    return Taken(found["seconds"], python, workers.peak, found["rows"], java, workers.java_peak)


class Workers(threading.Thread):
    """Looks at the Python workers of a job: peak: MiB of the largest; cpu: seconds of all; and at
    its Java.
    """

    def __init__(self, job: int) -> None:
        super().__init__(daemon=True)
        self.peak = self.java_peak = self.java_cpu = 0.0
        self._job = job
        self._cpu: dict[int, float] = {}
        self._over = threading.Event()
        self.start()

    @property
    def cpu(self) -> float:
        """Seconds of processor of all workers."""
        return sum(self._cpu.values())

    def leave(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look, until told to leave."""
        while not self._over.wait(LOOK_SECONDS):
            for pid in below(self._job):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                    status = Path(f"/proc/{pid}/status").read_text()
                    seconds = processor(pid)
                except OSError:
                    continue  # it ended meanwhile
                said = status.partition("VmHWM:")[2].split()
                peak = int(said[0]) / 1024 if said else 0.0
                if b"java" in command:
                    self.java_peak = max(self.java_peak, peak)
                    self.java_cpu = seconds
                else:
                    self.peak = max(self.peak, peak)
                    self._cpu[pid] = seconds


def processor(pid: int) -> float:
    """Say how many seconds of processor a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def below(pid: int) -> list[int]:
    """List the processes that a process started, and those they started."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue  # it ended meanwhile
        parent = int(text.rpartition(")")[2].split()[1])
        parents.setdefault(parent, []).append(int(path.parent.name))
    found, rest = [], [pid]
    while rest:
        children = parents.get(rest.pop(), [])
        found += children
        rest += children
    return found


def children_of(pid: int, program: bytes) -> list[int]:
    """List the processes below one that run a program."""
    return [
        each
        for each in below(pid)
        if program in Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0")[0]
    ]


def job(master: str, out: str, table: str, paths: Sequence[str]) -> None:
    """Run the job in this process; say what it took."""
    from kafkawire.spark import session
    from kafkawire.spark.job import run as run_job
    from kafkawire.spark.options import parse

    spark = session(master, settings={"spark.log.level": "OFF"})
    spark.range(1).count()
    java = sum(map(processor, children_of(os.getpid(), b"java")))
    begun = time.perf_counter()
    manifest = run_job(spark, paths, out, [table], parse({}))
    seconds = time.perf_counter() - begun
    if manifest["payload"]["unaccounted"]:
        raise AssertionError(f"bytes unaccounted for: {manifest['payload']}")
    rows = manifest["tables"][table]["rows"]
    print(json.dumps({"seconds": seconds, "rows": rows, "java_before": java}))
    spark.stop()


def run_size(megabytes: int, cores: Sequence[int], rounds: int, table: str) -> list[Figure]:
    """Measure captures of a size."""
    figures: list[Figure] = []
    sources: list[list[Recorded]] = [recorded(path) for path, _ in recordings()]
    shapes = {"many connections": grown(sources, megabytes * 10**6)}
    shapes["half on one"] = hot(sources, megabytes * 10**6)
    for shape, pieces in shapes.items():
        with tempfile.TemporaryDirectory(prefix="kafkawire-spark-") as name:
            folder = Path(name)
            paths = rotated(pieces, folder, "capture")
            size = sum(path.stat().st_size for path in paths) / 1e6
            taken: dict[str, list[Taken]] = {}
            for _ in range(rounds):
                taken.setdefault("decode", []).append(single(paths, table, folder))
                for count in cores:
                    ran = spread(paths, table, folder, count)
                    taken.setdefault(f"local[{count}]", []).append(ran)
            rows = {one.rows for runs in taken.values() for one in runs}
            if len(rows) != 1:
                raise AssertionError(f"different numbers of rows: {sorted(rows)}")
            figures += shown(f"{size:.0f} MB, {shape}, {table}", size, taken)
    return figures


def shown(case: str, size: float, taken: dict[str, list[Taken]]) -> list[Figure]:
    """Make figures of runs."""
    figures = []
    for name, runs in taken.items():
        rates = [size / run.wall for run in runs]
        figures.append(figure("spark: rate", case, name, "MB/s", rates))
        peaks = [run.peak for run in runs]
        figures.append(figure("spark: Python's memory", case, name, "MiB", peaks))
        used = [run.cpu + run.java_cpu for run in runs]
        figures.append(figure("spark: processor", case, name, "s", used))
        if runs[0].java_peak:
            java = [run.java_peak for run in runs]
            figures.append(figure("spark: Java's memory", case, name, "MiB", java))
        if name == "local[1]":
            idle = [100 * max(0.0, 1 - run.cpu / run.wall) for run in runs]
            figures.append(figure("spark: Spark's own", case, name, "%", idle))
    return figures


def run(rounds: int, sizes: Sequence[int] = (MEGABYTES,)) -> list[Figure]:
    """Measure captures of some sizes, in MB."""
    return [each for size in sizes for each in run_size(size, (1, 2), rounds, "exchanges")]


def main() -> None:
    """Print the tables and keep the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark", description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[MEGABYTES])
    parser.add_argument("--masters", type=int, nargs="+", default=[1, 2], metavar="CORES")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--table", default="exchanges")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.job:
        job(chosen.job, chosen.out, chosen.table, chosen.paths)
        return
    figures: list[Figure] = []
    for size in chosen.megabytes:
        figures += run_size(size, chosen.masters, chosen.rounds, chosen.table)
    for suite in dict.fromkeys(each.suite for each in figures):
        print(f"\n{report.table([each for each in figures if each.suite == suite])}")
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
