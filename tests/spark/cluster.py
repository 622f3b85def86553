"""The program that a test runs on a standalone cluster."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

BUCKETS: Final = 8


def program(master: str, java: str, table: str, files: list[str]) -> None:
    """Read a table as often as lines on standard input say how, and to which file its rows go.

    How: "moved": print it when some packets of the table are shuffled; "visited": print it when all
    rows are decoded, and fetch them only after a line on standard input; "written": write the table
    with the job, print it when the first rows are spilled, and end only after a line on standard
    input. "done" is printed at the end of each.
    """
    from kafkawire.spark import session

    spark = session(
        master,
        settings={
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.extraJavaOptions": java,
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
        },
    )
    for line in iter(sys.stdin.readline, ""):
        how, output = line.split()
        if how == "moved":
            found = _moved(spark, files, table)
        elif how == "visited":
            found = _visited(spark, files, table)
        else:
            found = _written(spark, files, table, Path(output).with_suffix(".tables"))
        Path(output).write_text(json.dumps(sorted(map(repr, found.to_pylist()))))
        spark.catalog.clearCache()  # Spark would find the rows of the same files and options there
        print("done", flush=True)
    spark.stop()


def _moved(spark: Any, files: list[str], table: str) -> pa.Table:
    """Read a table in buckets, to which packets are shuffled."""
    from kafkawire.spark import read

    before = frozenset(spark.sparkContext.statusTracker().getJobIdsForGroup())
    report = threading.Thread(target=_report_shuffle, args=(spark, before), daemon=True)
    report.start()
    frame = read(spark, files, table, splitBytes="40k", sets="directory", partitions=BUCKETS)
    report.join(300)
    return frame.toArrow()


def _visited(spark: Any, files: list[str], table: str) -> pa.Table:
    """Read a table in visits, and fetch its rows later."""
    from kafkawire.spark import read

    frame = read(spark, files, table, splitBytes="40k", sets="directory")
    print("visited", flush=True)
    sys.stdin.readline()
    return frame.toArrow()


def _written(spark: Any, files: list[str], table: str, to: Path) -> pa.Table:
    """Write a table with the job, and read it."""
    from pyarrow.dataset import dataset

    from kafkawire.capture.tables import TABLES
    from kafkawire.spark import job
    from kafkawire.spark.options import parse
    from kafkawire.spark.write.output_directory import SCRATCH

    ended = threading.Event()

    def report() -> None:
        while not ended.wait(0.01):
            if any(path.stat().st_size for path in to.glob(f"{SCRATCH}*/*")):
                print("written", flush=True)
                return

    def log(text: str) -> None:
        if "decoded" in text:
            sys.stdin.readline()

    reporter = threading.Thread(target=report)
    reporter.start()
    try:
        options = parse({"splitBytes": "40k", "sets": "directory", "partitions": str(BUCKETS)})
        job.run(spark, files, str(to), [table], options, log)
    finally:
        ended.set()
        reporter.join()
    schema = TABLES[table].schema
    return dataset(to / table, schema, partitioning=None).to_table(schema.names)


def _report_shuffle(spark: Any, before: frozenset[int]) -> None:
    """Print `moved` when the first decoding task has finished. Stages that have ended are checked,
    too, so that it is always printed; before: jobs of other tables.
    """
    tracker = spark.sparkContext.statusTracker()
    while True:
        for job in set(tracker.getJobIdsForGroup()) - before:
            about = tracker.getJobInfo(job)
            for stage in about.stageIds if about is not None else ():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numTasks == BUCKETS and info.numCompletedTasks:
                    print("moved", flush=True)
                    return
        time.sleep(0.05)


if __name__ == "__main__":
    master, java, table, *files = sys.argv[1:]
    program(master, java, table, files)
