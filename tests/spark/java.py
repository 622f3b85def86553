"""Starts Spark's Java processes in half the time and CPU time: class data sharing (JEP 350).

Loading Spark's 15,000 classes takes most of a JVM's start. An archive of them is made once for each
Java and pyspark, in the virtual environment, whose jars it is of; a JVM for which it does not fit
ignores it. Making it takes as long as it saves in eight starts, and others wait for it meanwhile:
`make builds`, which starts dozens, makes it; `make test`, which starts few, uses what is there.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyspark

from kafkawire.spark import session

FAST: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for minutes."""
MAKING_SECONDS: Final = 240


@cache
def archive_path() -> Path:
    """Return where the archive for this Java and pyspark is, or would be."""
    key = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    key += f"{pyspark.__version__} {Path(pyspark.__file__).parent}".encode()
    return Path(sys.prefix) / f"spark-{hashlib.sha256(key).hexdigest()[:16]}.jsa"


def options_now() -> str:
    """Return the options of a JVM of Spark's, with the archive if there is one."""
    return options() if archive_path().exists() else FAST


@cache
def options() -> str:
    """Return the options of a JVM of Spark's; make the archive if there is none."""
    archive = archive_path()
    folder = archive.parent
    with (folder / "spark-lock").open("w") as lock:  # pytest-xdist: one worker makes it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch) / "spark.jsa"
                subprocess.run(
                    [sys.executable, "-m", "tests.spark.java", str(made)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=MAKING_SECONDS,
                    check=True,
                )
                made.rename(archive)
    return f"{FAST} -XX:SharedArchiveFile={archive}"


def main(archive: str) -> None:
    """Load the classes of a job with Python in it, and leave them in an archive."""
    spark = session(
        "local[2]",
        settings={"spark.driver.extraJavaOptions": f"{FAST} -XX:ArchiveClassesAtExit={archive}"},
    )
    spark.range(9, numPartitions=2).mapInArrow(lambda batches: batches, "id long").groupBy(
        "id"
    ).count().collect()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # its end is the JVM's, which writes the archive then
    gateway.proc.wait(MAKING_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
