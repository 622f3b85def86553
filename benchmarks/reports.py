"""Measures the CPU time of reports, beside tshark, which prints the fields that they are made of.

    python -m benchmarks.reports [--traffic varied] [--megabytes 100] [--rounds N]

As in `pipeline`. tshark pairs no requests with responses by group, topic or client: a report
needs more than the fields, so the ratio is a lower bound of what a script on its output would take.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import report
from .measure import Figure, figure, rotated
from .pipeline import MEGABYTES, TRAFFIC, measured, ours, pieces, tshark_fields

REPORTS: Final[dict[str, tuple[str, ...]]] = {
    "summary": (),
    "diagnose": (),
    "latency": (),
    "groups": (),
    "topics": (),
    "clients": (),
    "readiness": ("--target", "4.0"),
    "transactions": (),
}
"""Report -> its options."""

FINDINGS: Final = 1
"""Exit code of a report that found something."""


def run_traffic(traffic: str, megabytes: int, rounds: int, folder: Path) -> list[Figure]:
    """Measure a capture of a kind of traffic."""
    capture = folder / "capture.pcap"
    with capture.open("wb", buffering=1 << 20) as out:
        out.writelines(pieces(traffic, megabytes * 10**6, folder))
    contenders = {name: ours(capture, *options, verb=name) for name, options in REPORTS.items()}
    if shutil.which("tshark") is not None:
        contenders["tshark fields"] = tshark_fields(capture)
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name in rotated(contenders, turn):
            ran = measured(contenders[name], folder / "out", ends=(0, FINDINGS))
            taken[name].append(ran.cpu)
    size = f"{traffic}, {megabytes} MB"
    figures = []
    for name in REPORTS:
        case = f"{size}, {name}"
        figures.append(figure("reports", case, "kafkawire", "s", taken[name]))
        if "tshark fields" in taken:
            others = taken["tshark fields"]
            figures.append(figure("reports", case, "tshark fields", "s", others))
    return figures


def run(rounds: int, megabytes: int = MEGABYTES, traffic: Sequence[str] = TRAFFIC) -> list[Figure]:
    """Measure each kind of traffic."""
    figures: list[Figure] = []
    for kind in traffic:
        with tempfile.TemporaryDirectory(prefix="kafkawire-reports-") as folder:
            figures += run_traffic(kind, megabytes, rounds, Path(folder))
    return figures


def main() -> None:
    """Print the table and write the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.reports", description=__doc__)
    parser.add_argument("--traffic", choices=TRAFFIC, nargs="+", default=list(TRAFFIC))
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    figures = run(chosen.rounds, chosen.megabytes, chosen.traffic)
    print(report.tables(figures))
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
