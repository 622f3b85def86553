"""Prints figures as tables, and writes them as JSON to benchmarks/results.

Ratios are to the first contender of a suite; the last line of a table is their geometric mean.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import geometric_mean
from typing import Final

from .measure import Figure

RESULTS: Final = Path(__file__).resolve().parent / "results"
PACKAGES: Final = (
    "kafkawire", "kio", "kafka-python", "aiokafka", "confluent-kafka", "mypy", "librt", "numpy",
    "pyarrow", "cramjam", "zlib-ng", "zstandard", "typer", "pydantic",
)  # fmt: skip
CPUS: Final = Path("/proc/cpuinfo")


def table(figures: Sequence[Figure]) -> str:
    """Format one suite, one case per line.

    For each contender the median and the range (lowest to highest round), then the ratio of its
    median to that of the first.
    """
    contenders = list(dict.fromkeys(f.contender for f in figures))
    cases = list(dict.fromkeys(f.case for f in figures))
    by_contender = {(f.case, f.contender): f for f in figures}
    first, *others = contenders
    unit = figures[0].unit
    head = [figures[0].suite, *(f"{name} {unit}" for name in contenders)]
    lines = [[*head, *(f"{name} / {first}" for name in others)]]
    ratios: dict[str, list[float]] = {name: [] for name in others}
    for case in cases:
        medians = {name: by_contender[case, name].median for name in contenders}
        for name in others:
            ratios[name].append(medians[name] / medians[first])
        values = [_with_range(by_contender[case, name]) for name in contenders]
        lines.append([case, *values, *(f"{ratios[name][-1]:.2f}" for name in others)])
    if others and len(cases) > 1:
        means = [f"{geometric_mean(ratios[name]):.2f}" for name in others]
        lines.append(["geometric mean", *("" for _ in contenders), *means])
    return aligned(lines)


def _with_range(taken: Figure) -> str:
    return f"{taken.median:.2f} ({taken.low:.2f}-{taken.high:.2f})"


def tables(figures: Sequence[Figure]) -> str:
    """Format all suites, in the order of their first figures."""
    suites = dict.fromkeys(each.suite for each in figures)
    return "\n\n".join(table([one for one in figures if one.suite == suite]) for suite in suites)


def aligned(lines: list[list[str]]) -> str:
    """Pad the cells of a table: the first column left-aligned, figures right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    padded = [
        [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def environment() -> dict[str, str | int | None]:
    """Describe the machine and versions."""
    versions: dict[str, str | int | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processor": _processor(),
        "revision": _said("git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"),
        "tshark": _said("tshark", "--version"),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def _processor() -> str:
    """Name the CPU, and whether it has carry-less multiplication in wide registers.

    The checksum uses it.
    """
    if not CPUS.exists():
        return platform.processor()
    lines = dict(line.split("\t", 1) for line in CPUS.read_text().splitlines() if "\t" in line)
    flags = lines.get("flags", "")
    wide = "vpclmulqdq" in flags and "avx512vl" in flags
    return lines.get("model name", "").strip(" :\t") + (" (vpclmulqdq)" if wide else "")


def _said(*command: str) -> str | None:
    """Return the first line that a command prints; None if there is no such command."""
    if shutil.which(command[0]) is None:
        return None
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stdout.partition("\n")[0] or None


def save(figures: Sequence[Figure]) -> Path:
    """Write figures and environment to a file named by the time."""
    RESULTS.mkdir(exist_ok=True)
    where = environment()
    path = RESULTS / f"{str(where['taken']).replace(':', '')}.json"
    rows = [figure._asdict() for figure in figures]
    path.write_text(json.dumps({"environment": where, "figures": rows}, indent=1) + "\n")
    return path
