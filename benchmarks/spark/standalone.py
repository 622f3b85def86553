"""Runs a standalone Spark cluster on loopback."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent


class Cluster:
    """A master and workers of one core each; leaving it stops all. java: options of their JVMs."""

    def __init__(self, folder: Path, workers: int = 2, java: str = "") -> None:
        self.folder = folder
        self._java = java
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
        """Kill a worker and its executors, like a machine that fails."""
        worker = self._started[1 + number]
        executors = children(worker.pid)
        worker.kill()
        worker.wait()
        for pid in executors:
            with suppress(ProcessLookupError):  # it has exited by itself
                os.kill(pid, 9)

    def _start(self, name: str, program: str, *arguments: str) -> None:
        environment = {
            **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": self._java,
        }  # fmt: skip
        java = str(HOME / "bin" / "spark-class")
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [java, f"org.apache.spark.{program}", "--host", "127.0.0.1", *arguments]
            self._started.append(
                subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
            )

    def _said(self, name: str, text: str) -> str:
        """Wait for a line of a log; return the rest of it after the text."""
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
