"""Measures time and size of builds: `python -m benchmarks.builds [off] [hot] [all]`.

Law: a wheel is built of this tree, without dependencies and without files of earlier builds;
installed size is the sum of its files, without byte code (`tests/packaging/test_native.py` limits
it to 15 MB).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple
from zipfile import ZipFile

from . import report
from .measure import Figure, figure

ROOT: Final = Path(__file__).resolve().parents[1]
MODES: Final = ("off", "hot", "all")
LEFT_OUT: Final = shutil.ignore_patterns(".venv", ".git", "build", "*.so", "__pycache__", "results")


class Built(NamedTuple):
    """Wall-clock and CPU seconds; bytes of the wheel, and of its files, all and native."""

    clock: float
    processor: float
    wheel: int
    installed: int
    native: int


def build(mode: str) -> Built:
    """Build a wheel of a copy of this tree."""
    with tempfile.TemporaryDirectory(prefix="kafkawire-build-") as folder:
        tree, out = Path(folder, "tree"), Path(folder, "out")
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
        command = [*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(tree)]
        environment = {
            **os.environ,
            "KAFKAWIRE_COMPILE": mode,
            "KAFKAWIRE_COMPILE_STRICT": "1",
        }
        before, start = os.times(), perf_counter()
        subprocess.run(command, env=environment, check=True)
        clock, after = perf_counter() - start, os.times()
        processor = sum(after[2:4]) - sum(before[2:4])  # CPU time of child processes
        [wheel] = out.glob("*.whl")
        with ZipFile(wheel) as packed:
            files = packed.infolist()
        native = sum(one.file_size for one in files if one.filename.endswith((".so", ".pyd")))
        installed = sum(one.file_size for one in files)
        return Built(clock, processor, wheel.stat().st_size, installed, native)


def run(modes: list[str]) -> list[Figure]:
    """Build each once."""
    figures = []
    for mode in modes:
        built = build(mode)
        for contender, value in zip(("clock", "processor"), built[:2], strict=True):
            figures.append(figure("build", mode, contender, "s", [value]))
        for contender, size in zip(("wheel", "installed", "native"), built[2:], strict=True):
            figures.append(figure("size", mode, contender, "MB", [size / 1e6]))
    return figures


def main() -> None:
    """Print the tables and write the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.builds", description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"of {', '.join(MODES)}")
    chosen = parser.parse_args()
    if unknown := set(chosen.modes) - set(MODES):
        parser.error(f"unknown mode {', '.join(sorted(unknown))}")
    figures = run(chosen.modes or list(MODES))
    print(report.tables(figures))
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
