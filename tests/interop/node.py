"""Node and kafkajs: found, or fetched once by npm into a cache.

Law: as in `tests.real.java`: what is missing is named, and a half-filled cache is never used.

    package.json ─▶ npm install ─▶ cache/<digest of package.json>/node_modules ─▶ node
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tests.conftest import missing

HERE: Final = Path(__file__).parent
PACKAGE: Final = HERE / "package.json"
SCRIPT: Final = HERE / "makes" / "kafkajs_client.js"
FETCH_SECONDS: Final = 180


class Node(NamedTuple):
    """The interpreter, and the folder where it finds packages."""

    node: str
    modules: Path

    def popen(self, *words: str) -> subprocess.Popen[str]:
        """Run our script of kafkajs; stdin tells it to go on, and it says what it has by lines."""
        return subprocess.Popen(
            [self.node, str(SCRIPT), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={
                **os.environ,
                "NODE_PATH": str(self.modules),
                "KAFKAJS_NO_PARTITIONER_WARNING": "1",
                "NODE_NO_WARNINGS": "1",
            },
        )


def install() -> Node:
    """Find node and kafkajs, fetching this if need be; skip the test where that cannot be."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        missing("node")
    if npm is None:
        missing("npm")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkawire"
    place = cache / f"node-{hashlib.sha256(PACKAGE.read_bytes()).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "node-lock").open("w") as lock:  # pytest-xdist: one fetches, the others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _fetch(npm, place)
    return Node(node, place / "node_modules")


def _fetch(npm: str, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        folder = Path(scratch) / "fetched"
        folder.mkdir()
        shutil.copy(PACKAGE, folder)
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
        if done.returncode:
            missing(f"what npm should have fetched ({done.stderr.strip()[:400]})")
        folder.rename(place)
