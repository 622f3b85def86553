"""Fuzz target: damaged captures through every report.

Whatever the bytes, a report ends with exit code 0, 1 or 2, never with a traceback; 2 comes
with a message, and a report that is printed accounts for every byte.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from typer.testing import Result

from tests.conftest import FIXTURES
from tests.fuzzing import mutate, replayable, seeds

from .reports import run

SEEDS = sorted(
    path
    for path in (FIXTURES / "captures").iterdir()
    if ".pcap" in path.name and "jsonl" not in path.name
)
REPORTS = [
    ["summary"],
    ["diagnose"],
    ["latency", "--by", "client"],
    ["topics", "--sort", "records"],
    ["clients"],
    ["groups"],
    ["transactions"],
    ["readiness", "--target", "4.0"],
    ["decode", "--format", "table"],
    ["decode", "--table", "group_events"],
]


def damaged(path: Path, rng: random.Random) -> bytes:
    """Damage a recording: its file, or only what is in its packets."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if rng.random() < 0.5:
        data = data[: 24 + rng.randint(100, 20_000)]
    kept = 24 if rng.random() < 0.7 else 0  # the header of the file
    data = data[:kept] + mutate(data[kept:], rng, rounds=12)
    if rng.random() < 0.2:
        data = gzip.compress(data)
        data = mutate(data, rng) if rng.random() < 0.5 else data
    return data


def check(result: Result, form: str) -> None:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1, 2), result.output
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert result.stderr.strip()
    if form == "json" and result.stdout:
        made = json.loads(result.stdout)
        payload = made.get("payload", {})
        assert payload.get("unaccounted", 0) == 0
        assert all(size >= 0 for size in payload.values())


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(24))
def test_reports_of_damaged_captures(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    with replayable(seed):
        path = tmp_path / "damaged.pcap"
        path.write_bytes(damaged(rng.choice(SEEDS), rng))
        captures = [path, *rng.sample(SEEDS, rng.choice((0, 0, 1)))]
        for verb, *options in REPORTS:
            form = rng.choice(("table", "json"))
            more = [] if verb == "decode" else ["--format", form]
            check(run(verb, *captures, *options, *more), form if more else "table")
