"""Starts a Spark session with the settings that this package needs.

These are Python, loopback and bounded batches.

Settings of the caller or the environment win; only what they leave open is set.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import TYPE_CHECKING, Final

from .errors import NoJava, UnsupportedSpark
from .shuffle.tasks import begin_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_SPARK: Final = (4, 3)
"""The oldest Spark whose Python API has all that is used; the tests run on it."""

MIN_JAVA: Final = 17
"""The oldest Java that Spark 4 supports."""

SMALL_JAVA: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms64m -XX:MinHeapFreeRatio=10 "
    "-XX:MaxHeapFreeRatio=20"
)
"""Python does the work. Java's optimising compiler, parallel garbage collectors and a large initial
heap would take cores and memory from it.
"""

SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.python.worker.reuse": "true",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.log.level": "ERROR",
    "spark.executor.extraJavaOptions": SMALL_JAVA,
    "spark.python.daemon.module": "kafkawire.spark.daemon",
    # Python workers reuse freed memory: pages returned to the kernel are cleared before they are
    # used again, for each block that is read and each column that is made.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": "33554432",
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": "134217728",
    "spark.executorEnv.MALLOC_TOP_PAD_": "4194304",
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Settings of every session; batches of at most 8 MB bound what crosses into Python at a time."""

PLAIN_PLANS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings for plans that only move a few large rows: code generation and adaptive planning would
take longer than they save.
"""

LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": SMALL_JAVA,
}
"""Additional settings of a local session, whose driver is its executor."""

SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
SOCKETS_IN: Final = "spark.python.unix.domain.socket.dir"
"""Unix domain sockets between Java and Python workers. Over TCP each task waits for delayed
acknowledgements.
"""

SOCKET_ROOT: Final = Path("/tmp")
"""Where sockets are made: their paths are limited to about 100 characters."""

STOP_SECONDS: Final = 5.0
"""How long stopping a session waits for its workers to start; a long job may come first."""


def session(
    master: str | None = None,
    *,
    name: str = "kafkawire",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a session, or return the running one.

    The workers of a new local session start in the background, if they run this Python. master: as
    for spark-submit; the default is that of spark-submit, or `local[*]`. settings: take precedence
    over those of this package. Raises NoJava, UnsupportedSpark.
    """
    from pyspark import SparkConf, SparkContext, __version__

    check_spark(__version__)
    if "SPARK_CONNECT_MODE_ENABLED" not in os.environ:
        check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Under spark-submit the JVM has the settings; a SparkConf made before the connection to
        # it has none.
        SparkContext._ensure_initialized()
    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    else:
        conf.setIfMissing("spark.master", "local[*]")
    local = (conf.get("spark.master") or "").startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for key, value in (settings or {}).items():
        conf.set(key, value)
    for key, value in {**SETTINGS, **(LOCAL if local else {})}.items():
        conf.setIfMissing(key, value)
    if local and SOCKET_ROOT.is_dir() and not conf.contains(SOCKETS):
        conf.set(SOCKETS, "true")
        conf.setIfMissing(SOCKETS_IN, _socket_directory())
    conf.setIfMissing("spark.app.name", name)
    is_new = SparkContext._active_spark_context is None
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    if local and is_new and spark.sparkContext.pythonExec == sys.executable:
        _start_workers(spark)
    return spark


def _start_workers(spark: SparkSession) -> None:
    """Start the workers of a session in the background; stopping it, and exiting, wait for them.

    Their tasks would log errors where the session has stopped meanwhile.
    """

    def begin() -> None:
        with suppress(Exception):  # a job that needs workers reports it
            begin_workers(spark).get()

    # A thread, since Java loads classes for its first task, which takes some 0.15 s.
    starting = Thread(target=begin, name="kafkawire-workers", daemon=True)
    stop = spark.stop

    def stop_when_started() -> None:
        starting.join(STOP_SECONDS)
        stop()

    spark.stop = stop_when_started  # type: ignore[method-assign]
    atexit.register(starting.join, STOP_SECONDS)
    starting.start()


@cache
def _socket_directory() -> str:
    """Make a directory that only this user can read and that is deleted at exit."""
    folder = mkdtemp(prefix="kafkawire-", dir=SOCKET_ROOT)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def job_session(spark: SparkSession) -> SparkSession:
    """Return a session of the same context for the job's own plans, with PLAIN_PLANS.

    Settings of the context win.
    """
    configured = spark.sparkContext.getConf()
    own = spark.newSession()
    for key, value in PLAIN_PLANS.items():
        if not configured.contains(key):
            own.conf.set(key, value)
    return own


def check_spark(version: str) -> None:
    """Raise UnsupportedSpark for an old version of Spark: calls would fail, and not say why."""
    numbers = tuple(int(each) for each in re.findall(r"\d+", version)[:2])
    if numbers < MIN_SPARK:
        raise UnsupportedSpark(version, f"{'.'.join(map(str, MIN_SPARK))} or newer")


def check_java() -> None:
    """Raise NoJava if Spark would find no Java, or an old one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    need = f"Spark needs Java {MIN_JAVA} or newer"
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} has no bin/java" if home else "java is not on the PATH"
        raise NoJava(f"{need}: {where}")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    if match is None:
        raise NoJava(f"{need}: cannot determine the version of {java}")
    if int(match[1]) < MIN_JAVA:
        raise NoJava(f"{need}: {java} is Java {match[1]}; set JAVA_HOME to a newer one")
