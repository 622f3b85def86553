"""Compiles a Java program of the tests once, into a cache.

Program.java ─▶ javac ─▶ cache/<digest of the source and the jars' folder>/ ─▶ java -cp
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.conftest import missing

from .java import Installation

COMPILE_SECONDS: Final = 120


def compiled(installation: Installation, source: Path) -> Installation:
    """Compile a program, if it is not yet in the cache; skip the test without a compiler.

    Returns an installation that has its classes, too.
    """
    digest = hashlib.sha256(source.read_bytes() + os.fsencode(installation.jars)).hexdigest()
    folder = installation.jars.with_name(f"{source.stem}-{digest[:16]}")
    with installation.jars.with_name("compiler-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                _compile(installation, source, Path(scratch) / "classes")
                (Path(scratch) / "classes").rename(folder)
    return installation.with_classes(folder)


def _compile(installation: Installation, source: Path, classes: Path) -> None:
    jars = os.pathsep.join(map(str, installation.jars.glob("*.jar")))
    done = subprocess.run(
        [
            *(installation.java, "--module", "jdk.compiler/com.sun.tools.javac.Main"),
            *("-cp", jars, "-d", str(classes), str(source)),
        ],
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS,
        check=False,
    )
    if "jdk.compiler not found" in done.stdout + done.stderr:
        missing("a JDK (java has no compiler)")
    assert done.returncode == 0, done.stderr
