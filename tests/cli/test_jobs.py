"""`decode --jobs`: what several processes print is what one prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, shared

from .test_decode import run

CAPTURES = FIXTURES / "captures"
PCAPS = sorted(str(path) for path in CAPTURES.glob("*.pcap*"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["jsonl", "tree", "table"])
def test_several_files_come_out_in_order(form: str) -> None:
    alone = run(*PCAPS, "--format", form, "--records")
    both = run(*PCAPS, "--format", form, "--records", "--jobs", "2")
    assert both.stdout == alone.stdout
    assert both.exit_code == alone.exit_code == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["fg-max-v0.11.0.pcap", "kcat-kf--loss.pcap", "ck-848.pcap"])
def test_one_file_comes_out_in_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkawire_cli.jobs.BATCH_ROWS", 7)
    alone = run(str(CAPTURES / name), "--format", "jsonl", "--records", "--strict")
    both = run(str(CAPTURES / name), "--format", "jsonl", "--records", "--strict", "-j", "3")
    assert both.stdout == alone.stdout
    assert both.exit_code == alone.exit_code == int("loss" in name)


@pytest.mark.timeout(600)
def test_filters_hold_in_every_process() -> None:
    given = [*PCAPS, "--filter", "api=Fetch", "--filter", "direction=request"]
    alone, both = run(*given), run(*given, "--jobs", "2")
    assert alone.stdout.count("\n") > 20
    assert both.stdout == alone.stdout


@pytest.mark.timeout(600)
def test_what_is_no_capture_is_said_as_ever(tmp_path: Path) -> None:
    (tmp_path / "notes.pcap").write_bytes(b"no capture at all")
    given = [PCAPS[0], str(tmp_path / "notes.pcap"), PCAPS[1], "--input-format", "capture"]
    alone, both = run(*given), run(*given, "--jobs", "2")
    assert alone.exit_code == both.exit_code == 2
    assert both.stdout == alone.stdout
    assert both.stderr == alone.stderr
    missing = run(str(tmp_path / "none.pcap"), "--jobs", "2")
    assert missing.exit_code == 2
    assert "none.pcap: No such file" in missing.stderr


def test_tables_are_made_by_one_process() -> None:
    refused = run(PCAPS[0], "--table", "exchanges", "--jobs", "2")
    assert refused.exit_code == 2
    assert "is for rows" in refused.stderr


@pytest.mark.parametrize("name", ["kcat-kf", "mixed-a"])
def test_rotated_files_are_one_capture(name: str) -> None:
    folder = shared("captures/variants")
    parts = sorted(folder.glob(f"{name}--rot?.pcap"))
    told = (folder / f"{name}--rot.truth.jsonl").read_text().splitlines()
    result = run("--rotated", *map(str, reversed(parts)), "--format", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    places = [(row["capture"], row["packet"], row["length"]) for row in rows]
    truth = [(str(parts[row["file"]]), row["frame"], row["len"]) for row in map(json.loads, told)]
    assert places == truth
    bodies = [row["body"] for row in rows]
    whole = run(str(folder.parent / "live" / f"{name}.pcap"), "--format", "jsonl")
    assert bodies == [json.loads(line)["body"] for line in whole.stdout.splitlines()]


def test_what_cannot_be_one_capture_is_refused() -> None:
    assert run("--rotated", *PCAPS, "--jobs", "2").exit_code == 2
    assert run("--rotated", "0267000000").exit_code == 2
