"""`python -m benchmarks.compare BASE [HEAD]`: compares the codec suite of two commits, as ratios.

Both are built as wheels from git, and measured by the suite of this checkout, in fresh
interpreters that take turns.

    git archive --> wheel --> folder on PYTHONPATH --> python -m benchmarks.compare --measure
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from . import report
from .codec import copies
from .measure import Figure, figure

ROOT: Final = Path(__file__).resolve().parents[1]


def build(revision: str, folder: Path) -> Path:
    """Build a commit and unpack its wheel; returns the folder to import it from."""
    source, installed = folder / "source", folder / "installed"
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install = ["install", "--no-deps", "--no-build-isolation", "--target", str(installed)]
    environment = {**os.environ, "KAFKAWIRE_COMPILE_STRICT": "1"}
    subprocess.run([*pip, *install, str(source)], env=environment, check=True)
    return installed


def measured(installed: Path) -> dict[tuple[str, str], float]:
    """Run one round of the suite on a build, in an interpreter of its own."""
    path = os.pathsep.join([str(installed), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.compare", "--measure", str(installed)],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    return {(suite, case): value for suite, case, value in json.loads(ran.stdout)}


def measure(installed: str) -> None:
    """Print one round of the suite on the imported kafkawire, as JSON."""
    import kafkawire

    if not str(kafkawire.__file__).startswith(installed):
        raise AssertionError(f"{kafkawire.__file__} is not the build in {installed}")
    figures = copies.run(1, ["kafkawire"])
    print(json.dumps([(f.suite, f.case, f.median) for f in figures]))


def compare(base: str, head: str, rounds: int) -> list[Figure]:
    """Build two commits and measure them in turns."""
    with tempfile.TemporaryDirectory(prefix="kafkawire-compare-") as folder:
        builds = {name: build(name, Path(folder, str(i))) for i, name in enumerate((head, base))}
        taken: dict[tuple[str, str, str], list[float]] = {}
        for _ in range(rounds):
            for name, installed in builds.items():
                for (suite, case), value in measured(installed).items():
                    taken.setdefault((suite, case, name), []).append(value)
    return [figure(suite, case, name, "µs", vs) for (suite, case, name), vs in taken.items()]


def main() -> None:
    """Compare two commits."""
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description=__doc__)
    parser.add_argument("base", nargs="?", help="the commit to compare with")
    parser.add_argument("head", nargs="?", default="HEAD", help="the commit to judge")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure is not None:
        measure(chosen.measure)
        return
    if chosen.base is None:
        parser.error("BASE is missing")
    if chosen.base == chosen.head:
        parser.error(f"both are {chosen.head}")
    figures = compare(chosen.base, chosen.head, chosen.rounds)
    for suite in (copies.DECODE, copies.ENCODE):
        print(f"\n{report.table([f for f in figures if f.suite == suite])}")
    print(f"\nabove 1: {chosen.head} is faster than {chosen.base}\n{report.save(figures)}")


if __name__ == "__main__":
    main()
