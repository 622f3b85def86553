"""Models the Spark job on more cores from measured stages: `python -m benchmarks.spark.scaling`.

Every figure follows from two jobs measured here and from the assumptions printed with it.

    two sizes --job, Spark's event log--> tasks: seconds, number | serial seconds | bytes moved
    each of them = fixed + by MB (two points) --size, cores--> seconds, what bounds them

Serial is the time in which no task runs: the driver plans, sums facts, collects. From
LOCAL_PLANNING on executors index the files, so there the planning is counted as work of tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..captures import grown, recorded
from ..pipeline import recordings
from ..report import aligned
from .contenders import rotated, single

SPLIT_MB: Final = 33.6
"""Bytes that a task reads: the default of splitBytes."""

MACHINE_CORES: Final = 8
MACHINE_MB_S: Final = 1000.0
"""Assumed: cores of a machine, and what it reads and writes in a second, all cores together."""

TASK_SECONDS: Final = 0.005
"""Assumed: what the driver needs to start a task and to take its result, one after the other."""

LOCAL_PLANNING: Final = 1074
"""MB from which on executors index local files (`LOCAL_PLANNING_BYTES`)."""


class Measured(NamedTuple):
    """A job on two cores. mb: of captures; moved: read, spilled, read again and written.

    serial: seconds without a task, besides planning; slowest: the longest task of each stage, as a
    multiple of its mean, weighted by time.
    """

    mb: float
    seconds: float
    planning: float
    serial: float
    work: float
    stages: int
    slowest: float
    moved: float
    decode: float


class Line(NamedTuple):
    """A quantity that grows with the size."""

    fixed: float
    by_mb: float

    def at(self, mb: float) -> float:
        """Return the quantity for a size."""
        return self.fixed + self.by_mb * mb


class Predicted(NamedTuple):
    """A job on some cores: seconds of its parts."""

    serial: float
    work: float
    moving: float

    @property
    def seconds(self) -> float:
        """The tasks compute while others read and write, so the larger of both counts."""
        return self.serial + max(self.work, self.moving)


def job(out: str, log: str, paths: Sequence[str]) -> None:
    """Run a job in this process; print what only the driver knows as JSON."""
    from kafkawire.spark import session
    from kafkawire.spark.job import run
    from kafkawire.spark.options import parse

    settings = {
        "spark.log.level": "OFF", "spark.eventLog.enabled": "true", "spark.eventLog.dir": log,
        "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false",
    }  # fmt: skip
    spark = session("local[2]", settings=settings)
    spark.range(1).count()
    figures: dict[str, float] = {"begun": time.time()}

    def note(line: str) -> None:
        if line.startswith("plan:"):
            figures["planned"] = time.time()
        elif "decoded" in line:
            figures["spilled"] = size_of(Path(out, ".rows"))

    run(spark, paths, out, ["exchanges"], parse({}), note)
    print(json.dumps({**figures, "ended": time.time(), "written": size_of(Path(out))}))
    spark.stop()


def size_of(folder: Path) -> float:
    """Return the MB of the files in a directory."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def measured(megabytes: int) -> Measured:
    """Run the job and the single process on a capture of a size."""
    sources = [recorded(path) for path, _ in recordings()]
    with tempfile.TemporaryDirectory(prefix="kafkawire-scaling-") as name:
        folder = Path(name)
        paths = rotated(grown(sources, megabytes * 10**6), folder, "capture")
        mb = sum(path.stat().st_size for path in paths) / 1e6
        decode = single(paths, ["exchanges"], folder).wall
        log = folder / "log"
        log.mkdir()
        command = [sys.executable, "-m", "benchmarks.spark.scaling", "--job", str(folder / "out")]
        done = subprocess.run(
            [*command, "--log", str(log), *map(str, paths)],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "SPARK_LOCAL_DIRS": str(folder / "scratch")},
        )  # fmt: skip
        figures = json.loads(done.stdout.splitlines()[-1])
        (events,) = log.iterdir()
        tasks = task_times(events, figures["planned"], figures["ended"])
    every = [each for stage in tasks.values() for each in stage]
    work = sum(end - begin for begin, end in every)
    longest = sum(max(end - begin for begin, end in stage) * len(stage) for stage in tasks.values())
    return Measured(
        mb=mb,
        seconds=figures["ended"] - figures["begun"],
        planning=figures["planned"] - figures["begun"],
        serial=figures["ended"] - figures["planned"] - covered(every),
        work=work,
        stages=len(tasks),
        slowest=longest / work,
        moved=2 * mb + 2 * figures["spilled"] + figures["written"],
        decode=decode,
    )


def task_times(events: Path, begin: float, end: float) -> dict[int, list[tuple[float, float]]]:
    """Read when the tasks of each stage ran from an event log, between two times."""
    by_phase: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    with events.open() as lines:
        for line in lines:
            if '"SparkListenerTaskEnd"' in line:
                event: dict[str, Any] = json.loads(line)
                info = event["Task Info"]
                launched, finished = info["Launch Time"] / 1e3, info["Finish Time"] / 1e3
                if begin - 1e-3 <= launched and finished <= end + 1e-3:
                    by_phase[event["Stage ID"]].append((launched, finished))
    return dict(by_phase)


def covered(times: Sequence[tuple[float, float]]) -> float:
    """Return the seconds in which any task ran."""
    total, reached = 0.0, 0.0
    for begin, end in sorted(times):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def line(few: tuple[float, float], many: tuple[float, float]) -> Line:
    """Draw a line through two points; what grows does so by no less than nothing."""
    by_mb = max(0.0, (many[1] - few[1]) / (many[0] - few[0]))
    return Line(max(0.0, many[1] - by_mb * many[0]), by_mb)


def predict(runs: tuple[Measured, Measured], mb: float, cores: int) -> Predicted:
    """Model a job of a size on a number of cores."""
    few, many = runs

    def of(name: str) -> float:
        return line((few.mb, getattr(few, name)), (many.mb, getattr(many, name))).at(mb)

    on_executors = mb >= LOCAL_PLANNING
    work = of("work") + (of("planning") if on_executors else 0)
    tasks = max(ceil(mb / SPLIT_MB), 2 * cores)
    # Whole waves of equal tasks, and in the last wave the slowest one.
    mean = work / tasks
    waves = ceil(tasks / cores) * mean + (many.slowest - 1) * mean
    serial = of("serial") + (0 if on_executors else of("planning"))
    serial += TASK_SECONDS * tasks * many.stages
    machines = ceil(cores / MACHINE_CORES)
    return Predicted(serial, waves, of("moved") / machines / MACHINE_MB_S)


def show(runs: tuple[Measured, Measured], sizes: Sequence[int], cores: Sequence[int]) -> str:
    """Format what was measured, the assumptions and the model."""
    many = runs[1]
    head = ["measured on local[2]", "MB", "s", "planning s", "serial s", "tasks' s", "moved MB"]
    rows = [head]
    for run in runs:
        values = (run.mb, run.seconds, run.planning, run.serial, run.work, run.moved)
        rows.append(["exchanges", *(f"{value:.2f}" for value in values)])
    model = [["model", "cores", "serial s", "tasks s", "moving s", "MB/s", "of one process"]]
    for size in sizes:
        for count in cores:
            predictions = predict(runs, size, count)
            alone = size / many.mb * many.decode
            parts = (predictions.serial, predictions.work, predictions.moving)
            model.append(
                [
                    f"{size} MB", str(count), *(f"{part:.1f}" for part in parts),
                    f"{size / predictions.seconds:.0f}", f"{alone / predictions.seconds:.1f}",
                ]
            )  # fmt: skip
    assumed = (
        f"assumed: {MACHINE_CORES} cores of a machine share {MACHINE_MB_S:.0f} MB/s; the driver "
        f"needs {1e3 * TASK_SECONDS:.0f} ms for each task;\nconnections are many; the slowest task "
        f"of a stage takes {many.slowest:.2f} times the mean, as measured"
    )
    return f"{aligned(rows)}\n\n{aligned(model)}\n\n{assumed}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark.scaling", description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs=2, default=[150, 450], help="measured")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 16, 64])
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.job:
        job(chosen.job, chosen.log, chosen.paths)
        return
    few, many = sorted(chosen.megabytes)
    print(show((measured(few), measured(many)), chosen.sizes, chosen.cores))


if __name__ == "__main__":
    main()
