"""The program that a test runs on a standalone cluster."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

BUCKETS: Final = 8


def program(master: str, table: str, output: str, how: str, files: list[str]) -> None:
    """Read a table; write its rows. how: "moved", say so when some of its packets are moved; or
    "visited", say so when all are decoded, and ask for the rows only when told to.
    """
    from kafkawire.spark import read, session

    spark = session(
        master,
        settings={
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
        },
    )
    frame: Any
    if how == "moved":
        tell = threading.Thread(target=_tell, args=(spark,), daemon=True)
        tell.start()
        frame = read(spark, files, table, splitBytes="40k", sets="directory", partitions=BUCKETS)
        tell.join(300)
    else:
        frame = read(spark, files, table, splitBytes="40k", sets="directory")
        print("visited", flush=True)
        sys.stdin.readline()
    rows = sorted(map(repr, frame.toArrow().to_pylist()))
    Path(output).write_text(json.dumps(rows))
    spark.stop()


def _tell(spark: Any) -> None:
    """Say `moved` when the first of the tasks that decode has finished; late rather than never,
    since stages that have ended are looked at, too.
    """
    tracker = spark.sparkContext.statusTracker()
    while True:
        for job in tracker.getJobIdsForGroup():
            about = tracker.getJobInfo(job)
            for stage in about.stageIds if about is not None else ():
                told = tracker.getStageInfo(stage)
                if told is not None and told.numTasks == BUCKETS and told.numCompletedTasks:
                    print("moved", flush=True)
                    return
        time.sleep(0.05)


if __name__ == "__main__":
    master, table, output, how, *files = sys.argv[1:]
    program(master, table, output, how, files)
