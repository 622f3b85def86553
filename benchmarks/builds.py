"""Measures time and size of builds, what extras install, and `make demo` in a fresh clone.

    python -m benchmarks.builds [off] [hot] [all] [extras] [demo]

A wheel is built of this tree, without dependencies and without files of earlier builds; installed
size is the sum of its files, without byte code. Of the packages that kafkawire requires, and that
each of its extras adds, the files in this environment are added up; the ten largest are printed.
The demo runs in a clone of what is committed, and its time includes the download of what it
installs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from . import report
from .measure import Figure, figure

ROOT: Final = Path(__file__).resolve().parents[1]
MODES: Final = ("off", "hot", "all")
DEMO: Final = "demo"
EXTRAS: Final = "extras"
CASES: Final = (*MODES, EXTRAS, DEMO)
OF_USERS: Final = ("", "tables", "report", "sql", "notebook", "spark")
"""What README names: no extra, and those that add packages."""
LARGEST: Final = 10
LEFT_OUT: Final = shutil.ignore_patterns(".venv", ".git", "build", "*.so", "__pycache__", "results")


class Spent(NamedTuple):
    """Wall-clock seconds, and CPU seconds of child processes."""

    clock: float
    processor: float

    def figures(self, name: str, case: str) -> list[Figure]:
        """Make figures of both."""
        return [
            figure(name, case, contender, "s", [value])
            for contender, value in self._asdict().items()
        ]


class Wheel(NamedTuple):
    """Bytes of a wheel, and of its files, all and native."""

    wheel: int
    installed: int
    native: int


def spent(command: list[str], **settings: Any) -> Spent:
    """Run a command that succeeds."""
    before, start = os.times(), perf_counter()
    subprocess.run(command, check=True, **settings)
    clock, after = perf_counter() - start, os.times()
    return Spent(clock, sum(after[2:4]) - sum(before[2:4]))


def build(mode: str) -> tuple[Spent, Wheel]:
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
        taken = spent(command, env=environment)
        [wheel] = out.glob("*.whl")
        with ZipFile(wheel) as packed:
            files = packed.infolist()
        native = sum(one.file_size for one in files if one.filename.endswith((".so", ".pyd")))
        installed = sum(one.file_size for one in files)
        return taken, Wheel(wheel.stat().st_size, installed, native)


def required(extra: str) -> dict[str, int]:
    """Return the bytes of each package that kafkawire with an extra requires, by its name."""
    sizes: dict[str, int] = {}
    todo = [Requirement(f"kafkawire[{extra}]" if extra else "kafkawire")]
    passed: set[tuple[str, frozenset[str]]] = set()
    while todo:
        requirement = todo.pop()
        package = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if package not in passed:
            passed.add(package)
            installed = distribution(requirement.name)
            sizes[package[0]] = _size(installed)
            todo += _requirements(installed, requirement.extras)
    del sizes["kafkawire"]  # its size is that of a build
    return sizes


def _requirements(installed: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for text in installed.requires or ():
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            yield requirement


def _size(installed: Distribution) -> int:
    """Add up the bytes of a distribution's files, without byte code."""
    files = [file.locate() for file in installed.files or () if file.suffix != ".pyc"]
    return sum(Path(str(file)).stat().st_size for file in files)


def sizes_of_extras() -> Iterator[Figure]:
    """Add up what kafkawire requires, and what each extra adds to it."""
    alone = required("")
    for extra in OF_USERS:
        added = required(extra).items() - (alone.items() if extra else ())
        case = f"kafkawire[{extra}]" if extra else "kafkawire"
        yield figure("packages", case, "size", "MB", [sum(size for _, size in added) / 1e6])
        for name, size in sorted(added, key=lambda each: -each[1])[:LARGEST]:
            yield figure("packages", f"{case}: {name}", "size", "MB", [size / 1e6])


def demo() -> Spent:
    """Run `make demo` in a clone of what is committed, which installs what the demo needs."""
    with tempfile.TemporaryDirectory(prefix="kafkawire-demo-") as folder:
        clone = Path(folder, "kafkawire")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        return spent(["make", "demo"], cwd=clone, stdout=subprocess.DEVNULL)


def run(cases: list[str]) -> list[Figure]:
    """Run each once."""
    figures: list[Figure] = []
    for case in cases:
        if case == DEMO:
            figures += demo().figures("set-up", "make demo")
            continue
        if case == EXTRAS:
            figures += sizes_of_extras()
            continue
        taken, wheel = build(case)
        figures += taken.figures("build", case)
        for contender, size in wheel._asdict().items():
            figures.append(figure("size", case, contender, "MB", [size / 1e6]))
    return figures


def main() -> None:
    """Print the tables and write the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.builds", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    chosen = parser.parse_args()
    if unknown := set(chosen.cases) - set(CASES):
        parser.error(f"unknown case {', '.join(sorted(unknown))}")
    figures = run(chosen.cases or list(CASES))
    print(report.tables(figures))
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
