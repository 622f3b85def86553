"""A standalone cluster on loopback, and the program that a test runs on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyspark

HOME = Path(pyspark.__file__).parent


class Cluster:
    """A master and workers of one core each; leave it and all are gone."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._count = workers

    def __enter__(self) -> Cluster:
        self._start("master", "deploy.master.Master", "--port", "0", "--webui-port", "0")
        self.url = self._said("master", "Starting Spark master at ").split()[0]
        for number in range(self._count):
            name = f"worker{number}"
            where = ["--work-dir", str(self.folder / name), "--webui-port", "0"]
            self._start(
                name, "deploy.worker.Worker", "--cores", "1", "--memory", "1g", *where, self.url
            )
        for number in range(self._count):
            self._said(f"worker{number}", "Successfully registered with master")
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._started:
            each.kill()
            each.wait()

    def lose(self, number: int) -> None:
        """Kill a worker and the executors it started, as a machine that fails does."""
        worker = self._started[1 + number]
        executors = children(worker.pid)
        worker.kill()
        worker.wait()
        for pid in executors:
            os.kill(pid, 9)

    def _start(self, name: str, program: str, *arguments: str) -> None:
        environment = {
            **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_MEMORY": "256m",
        }  # fmt: skip
        java = str(HOME / "bin" / "spark-class")
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [java, f"org.apache.spark.{program}", "--host", "127.0.0.1", *arguments]
            self._started.append(
                subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
            )

    def _said(self, name: str, text: str) -> str:
        """Wait for a line of a log; give what stands behind the text."""
        log = self.folder / f"{name}.log"
        while True:
            found = log.read_text(errors="replace")
            if text in found:
                return found.partition(text)[2]
            for each in self._started:
                assert each.poll() is None, found
            time.sleep(0.2)


def children(pid: int) -> list[int]:
    """List the processes that a process started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


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
        frame = read(spark, files, table, splitBytes="40k", sets="directory", partitions=8)
    else:
        frame = read(spark, files, table, splitBytes="40k", sets="directory")
        print("visited", flush=True)
        sys.stdin.readline()
    rows = sorted(map(repr, frame.toArrow().to_pylist()))
    Path(output).write_text(json.dumps(rows))
    spark.stop()


def _tell(spark: Any) -> None:
    """Say `moved` when the first of the tasks that decode has finished."""
    tracker = spark.sparkContext.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            about = tracker.getStageInfo(stage)
            if about is not None and about.numTasks == 8 and about.numCompletedTasks:
                print("moved", flush=True)
                return
        time.sleep(0.05)


if __name__ == "__main__":
    master, table, output, how, *files = sys.argv[1:]
    program(master, table, output, how, files)
