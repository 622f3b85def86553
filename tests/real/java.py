"""Finds Java and the jars of Apache Kafka, or fetches the jars once with Maven into a cache.

Missing programs are named (`tests.conftest.missing`); jars are fetched into a temporary folder
and moved as a whole, so a partial cache is never used.

    pom.xml ─▶ mvn dependency:copy-dependencies ─▶ cache/kafka-VERSION-DIGEST/*.jar ─▶ java -cp

`class_archive` makes the archive of classes with which a JVM starts in half the CPU time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.conftest import missing

KAFKA_VERSION: Final = os.environ.get("KAFKAWIRE_KAFKA", "4.4.0")
"""The version of the real Kafka; `make soak` also tries the release before."""
RELEASE: Final = KAFKA_VERSION.rpartition(".")[0]
POM: Final = Path(__file__).with_name("pom.xml")
OLDEST_JAVA: Final = 17
FETCH_SECONDS: Final = 300
TOOL_SECONDS: Final = 240
OPTIONS: Final = (
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""Quick to start and small, for JVMs that live for seconds."""


@dataclass(frozen=True)
class Installation:
    """Java and a folder of jars, to run any program of Apache Kafka.

    options: of each JVM; classes: folders of further classes.
    """

    java: str
    jars: Path
    options: tuple[str, ...] = OPTIONS
    classes: tuple[Path, ...] = ()

    @property
    def kafka_version(self) -> str:
        """The version of Kafka, as `4.4.0`."""
        return next(self.jars.glob("kafka-clients-*.jar")).stem.removeprefix("kafka-clients-")

    @property
    def class_path(self) -> str:
        """Where classes are. An archive of classes fits a path that begins with the jars."""
        return os.pathsep.join([f"{self.jars}/*", *map(str, self.classes)])

    def with_classes(self, folder: Path) -> Installation:
        """Return an installation that has the classes in a folder, too."""
        return replace(self, classes=(*self.classes, folder))

    def command(self, main: str, *arguments: str) -> list[str]:
        """Return the command line of a main class."""
        return [self.java, *self.options, "-cp", self.class_path, main, *arguments]

    def run(self, main: str, *arguments: str, stdin: str = "") -> str:
        """Run a tool and return its output; AssertionError if it failed."""
        done = subprocess.run(
            self.command(main, *arguments),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            timeout=TOOL_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{main} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout


def install(pom: Path = POM, name: str = "kafka", version: str = KAFKA_VERSION) -> Installation:
    """Find Java and the jars, fetching these if necessary; skip the test if that fails.

    pom: lists the jars. name: of their folder in the cache. version: of Kafka.
    """
    java = find_java()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkawire"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    jars = cache / f"{name}-{version}-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:  # pytest-xdist: one worker fetches, the others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.exists():
            fetch(jars, pom, version)
    return Installation(java, jars)


def find_java() -> str:
    java = shutil.which("java")
    if java is None:
        missing("java")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < OLDEST_JAVA:
        missing(f"java {OLDEST_JAVA} or newer")
    return java


def fetch(jars: Path, pom: Path = POM, version: str = KAFKA_VERSION) -> None:
    """Have Maven fetch the jars into a new folder."""
    mvn = shutil.which("mvn")
    if mvn is None:
        missing("mvn (Maven)")
    with tempfile.TemporaryDirectory(dir=jars.parent) as scratch:
        copied = shutil.copy(pom, scratch)
        fetched = Path(scratch) / "jars"
        done = subprocess.run(
            [
                *(mvn, "--batch-mode", "--quiet", f"--file={copied}"),
                f"-Dkafka.version={version}",
                *("dependency:copy-dependencies", f"-DoutputDirectory={fetched}"),
            ],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
        if done.returncode:
            missing(f"what Maven should have fetched ({done.stdout.strip()[:400]})")
        fetched.rename(jars)
