"""What `make bench` prints and keeps: a suite run once; figures, with where they are from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import report
from benchmarks.jobs import run as run_jobs
from benchmarks.measure import figure

CODEC_CASES = 8


def test_a_suite_prints_its_tables_and_keeps_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.measure.LOOP_SECONDS", 0.001)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "codec", "--rounds", "1"])
    command.main()
    printed = capsys.readouterr().out
    assert printed.count("geometric mean") == 2  # decode, encode
    [path] = tmp_path.iterdir()
    kept = json.loads(path.read_text())
    where = kept["environment"]
    assert {"processor", "cpus", "system", "python", "revision", "taken"} <= set(where)
    assert all(where[package] for package in ("kafkawire", "kio", "kafka-python", "mypy"))
    rows = kept["figures"]
    assert len({row["case"] for row in rows}) == CODEC_CASES
    assert {row["contender"] for row in rows} == {"kafkawire", "kio", "kafka-python"}
    assert all(0 < row["low"] <= row["median"] <= row["high"] for row in rows)


def test_a_table_divides_by_the_first() -> None:
    figures = [
        figure("decode", case, contender, "µs", [value])
        for case, contender, value in (
            ("a", "ours", 1.0), ("a", "theirs", 2.0), ("b", "ours", 2.0), ("b", "theirs", 16.0)
        )
    ]  # fmt: skip
    last = report.table(figures).splitlines()[-1]
    assert last.split() == ["geometric", "mean", "4.00"]


@pytest.mark.timeout(120)
def test_processes_that_share_work_print_the_same_when_they_are_measured() -> None:
    figures = run_jobs(1, megabytes=3, traffic=["calls"])
    assert len(figures) == 8  # two captures, one process and two, clock and processor
