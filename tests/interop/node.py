"""Finds Node.js and kafkajs, or installs kafkajs with npm into a cache.

As in `tests.real.java`: a skipped test names what is missing; a partial cache is never used.

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
SCRIPT: Final = HERE / "implementations" / "kafkajs_client.js"
FETCH_SECONDS: Final = 180


class Node(NamedTuple):
    """The Node.js executable and the install_folder of its packages."""

    node: str
    modules: Path

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        """Run the kafkajs script: commands on stdin, events as lines on stdout."""
        return subprocess.Popen(
            [self.node, str(SCRIPT), *arguments],
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
    """Find Node.js and kafkajs, installing kafkajs if needed; skip the test if that fails."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        missing("node")
    if npm is None:
        missing("npm")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkawire"
    folder = cache / f"node-{hashlib.sha256(PACKAGE.read_bytes()).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "node-lock").open("w") as lock:  # pytest-xdist: one fetches, the others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(npm, folder)
    return Node(node, folder / "node_modules")


def _fetch(npm: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        install_folder = Path(scratch) / "fetched"
        install_folder.mkdir()
        shutil.copy(PACKAGE, install_folder)
        done = subprocess.run(
            [
                npm,
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                install_folder,
            ],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
        if done.returncode:
            missing(f"what npm should have fetched ({done.stderr.strip()[:400]})")
        install_folder.rename(folder)
