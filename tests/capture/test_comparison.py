"""The comparison with truth sees what is wrong: each kind of fault is made, one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES

from . import report, truth
from .comparison import Case, compare

KCAT = FIXTURES / "captures" / "kcat-kf.pcap"
Rows = list[dict[str, Any]]


def without_one(rows: Rows) -> Rows:
    return rows[:-1]


def with_one_more(rows: Rows) -> Rows:
    return [*rows, {**rows[-1], "correlation_id": 4711}]


def of_another_version(rows: Rows) -> Rows:
    return [{**rows[0], "api_version": 4}, *rows[1:]]


def in_another_packet(rows: Rows) -> Rows:
    at = max(i for i, row in enumerate(rows) if row["dir"] == "resp")
    return [*rows[:at], {**rows[at], "frame": rows[at]["frame"] + 1}, *rows[at + 1 :]]


def on_another_connection(rows: Rows) -> Rows:
    return [{**row, "stream": row["stream"] + (i == len(rows) - 1)} for i, row in enumerate(rows)]


def in_another_order(rows: Rows) -> Rows:
    pairs = enumerate(pairwise(rows))
    at = next(i for i, (one, next_) in pairs if one["dir"] == next_["dir"] == "req")
    return [*rows[:at], rows[at + 1], rows[at], *rows[at + 2 :]]


def requested_elsewhere(rows: Rows) -> Rows:
    return [{**rows[0], "frame": rows[0]["frame"] - 1}, *rows[1:]]


FAULTS: list[tuple[Callable[[Rows], Rows], dict[str, int]]] = [
    (without_one, {"invented": 1}),
    (with_one_more, {"missing": 1}),
    (of_another_version, {"missing": 1, "invented": 1}),
    (in_another_packet, {"packet": 1}),
    (in_another_order, {"order": 1}),
    (requested_elsewhere, {"packet": 1, "pairing": 1}),
]


@pytest.mark.parametrize(("changed", "wrong"), FAULTS)
def test_a_fault_is_seen(
    changed: Callable[[Rows], Rows], wrong: dict[str, int], tmp_path: Path
) -> None:
    assert _faults(changed, tmp_path) == wrong


def test_a_message_on_another_connection_is_seen(tmp_path: Path) -> None:
    """Its response, or request, is then without the other one."""
    assert _faults(on_another_connection, tmp_path)["connection"] == 1


def _faults(changed: Callable[[Rows], Rows], folder: Path) -> dict[str, int]:
    rows = truth.lines(truth_of(KCAT))
    path = folder / "kcat-kf.truth.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in changed(rows)), encoding="utf-8")
    verdict = compare(Case("kcat-kf", (KCAT,), path))
    found = verdict._asdict()
    kinds = ("missing", "invented", "packet", "connection", "pairing", "order")
    assert verdict.faults == sum(found[kind] for kind in kinds) > 0
    return {kind: found[kind] for kind in kinds if found[kind]}


def truth_of(capture: Path) -> Path:
    return capture.with_name(capture.stem + ".truth.jsonl.gz")


def test_the_report_fails_where_a_capture_lost_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Case("kcat-kf", (KCAT,), truth_of(KCAT))
    lossy = whole._replace(files=(KCAT.with_name("kcat-kf--loss.pcap"),))
    monkeypatch.setattr(report, "files", list)
    monkeypatch.setattr(report, "cases", lambda: [whole])
    assert report.main() == 0
    monkeypatch.setattr(report, "cases", lambda: [whole, lossy])
    assert report.main() == 1
    first = capsys.readouterr().out.splitlines()[1]
    assert first.split() == ["kcat-kf", "114", "114", *["0"] * 7]
