"""Runs the Spark job and a single process on the same captures, each as a program of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ..processes import Workers
from .standalone import Cluster

FILE_BYTES: Final = 500 * 10**6
"""The approximate size at which a capture is rotated."""


class Taken(NamedTuple):
    """Cost of a run, and the rows of each table.

    wall: wall-clock seconds. cpu: CPU seconds of Python. peak: MiB of the largest worker. java_cpu,
    java_peak: the same of Java. start: seconds of the session's start.
    """

    wall: float
    cpu: float
    peak: float
    rows: tuple[int, ...]
    java_cpu: float = 0.0
    java_peak: float = 0.0
    start: float = 0.0


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


def single(paths: Sequence[Path], tables: Sequence[str], folder: Path) -> Taken:
    """Decode in one process."""
    from pyarrow.parquet import read_metadata

    out = f"{folder}/single-{{table}}.parquet"
    command = [sys.executable, "-m", "kafkawire_cli.main", "decode", *map(str, paths)]
    begun = time.perf_counter()
    process = subprocess.Popen([*command, *options(tables), "-o", out], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"decode ended with {process.returncode}")
    wall = time.perf_counter() - begun
    rows = tuple(read_metadata(out.format(table=table)).num_rows for table in tables)
    return Taken(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, rows)


def options(tables: Sequence[str]) -> list[str]:
    """Return the options for tables."""
    return [each for table in tables for each in ("--table", table)]


def spread(paths: Sequence[Path], tables: Sequence[str], folder: Path, cores: int) -> Taken:
    """Run the job in a process of its own."""
    return watched(f"local[{cores}]", paths, tables, folder)


def clustered(paths: Sequence[Path], tables: Sequence[str], folder: Path) -> Taken:
    """Run the job on a cluster of its own."""
    where = folder / "cluster"
    where.mkdir(exist_ok=True)
    with Cluster(where) as cluster:
        return watched(cluster.url, paths, tables, folder)


def watched(master: str, paths: Sequence[Path], tables: Sequence[str], folder: Path) -> Taken:
    """Run the job in a process of its own; this one samples its processes."""
    out = folder / "spark"
    command = [sys.executable, "-m", "benchmarks.spark", "--job", master, "--out", str(out)]
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(folder / "scratch")}
    with subprocess.Popen(
        [*command, *options(tables), *map(str, paths)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as job:  # fmt: skip
        workers = Workers(os.getpid(), job.pid, apart=not master.startswith("local"))
        assert job.stdout is not None
        output = job.stdout.read()
        workers.leave()
    if job.returncode:
        raise AssertionError(f"the job on {master} ended with {job.returncode}")
    shutil.rmtree(out)
    figures = json.loads(output.splitlines()[-1])
    before = figures["java_before"] if master.startswith("local") else 0.0
    python, java = workers.cpu + figures["driver"], workers.java_cpu - before
    return Taken(
        figures["seconds"], python, workers.peak, tuple(figures["rows"]), java, workers.java_peak,
        figures["start"],
    )  # fmt: skip
