"""Output files of the command: complete, or as before, whatever ends the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.command_server import python

CAPTURES: Final = Path(__file__).parents[2] / "fixtures" / "captures"
CAPTURE: Final = CAPTURES / "aio-sll2.pcap"
OLD: Final = b"the good one before"
LARGEST: Final = 2048
LARGEST_OF_SQL: Final = 1 << 21
"""Bytes of a file where the disk is full; the database of `sql` has a file of its own."""

DISK_FULL: Final = f"""
import resource, signal, sys
sys.dont_write_bytecode = True  # Python 3.11 keeps a compiled module that was cut off
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
largest = {LARGEST_OF_SQL} if sys.argv[1] == "sql" else {LARGEST}
resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
from kafkawire_cli.main import main
main()
"""


LARGE: Final = "SELECT random() AS number FROM range(1000000)"


def segments(folder: Path) -> Path:
    """Make a segment of many records."""
    from kafkawire.records import BatchBuilder, Record

    builder = BatchBuilder()
    builder.extend(Record(at, at, None, os.urandom(32)) for at in range(1000))
    log = folder / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(builder.build())
    return log


VERBS: Final[dict[str, tuple[str, Callable[[Path, Path], list[str]]]]] = {
    "decode --table": (
        "out.parquet",
        lambda out, _: ["decode", str(CAPTURE), "--table", "records", "-o", str(out)],
    ),
    "decode --jobs": (
        "out.parquet",
        lambda out, _: ["decode", str(CAPTURE), "--table=records", "-o", str(out), "--jobs=3"],
    ),
    "decode to csv": (
        "out.csv",
        lambda out, _: ["decode", str(CAPTURE), "--table=exchanges", "-o", str(out), "-j3"],
    ),
    "decode to arrow": (
        "out.arrow",
        lambda out, _: ["decode", str(CAPTURE), "--table", "exchanges", "-o", str(out)],
    ),
    "sql": ("out.jsonl", lambda out, _: ["sql", LARGE, str(CAPTURE), "-o", str(out)]),
    "sql to parquet": ("out.parquet", lambda out, _: ["sql", LARGE, str(CAPTURE), "-o", str(out)]),
    "report": ("out.html", lambda out, _: ["report", str(CAPTURE), "-o", str(out)]),
    "log": ("out.jsonl", lambda out, at: ["log", str(segments(at)), "-o", str(out)]),
    "log to parquet": (
        "out.parquet",
        lambda out, at: ["log", str(segments(at)), "-o", str(out), "--format", "parquet"],
    ),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("before", [{}, {"old": OLD}], ids=["new", "replaced"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_leaves_the_folder_as_before(
    verb: str, before: dict[str, bytes], tmp_path: Path
) -> None:
    name, arguments = VERBS[verb]
    folder = tmp_path / "out"
    folder.mkdir()
    before = dict.fromkeys([name] * len(before), OLD)
    for each, data in before.items():
        (folder / each).write_bytes(data)
    command = [python(), "-c", DISK_FULL, *arguments(folder / name, tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert ".part" not in done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("more", [(), ("--jobs", "3")], ids=["one", "jobs"])
def test_a_signal_leaves_the_folder_as_before(
    more: tuple[str, ...], ending: signal.Signals, tmp_path: Path
) -> None:
    out = tmp_path / "records.parquet"
    out.write_bytes(OLD)
    tables = ("--table", "records", "--table", "exchanges", "-o", f"{tmp_path}/{{table}}.parquet")
    command = [sys.executable, "-m", "kafkawire_cli.main", "decode", "-", *tables, *more]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(CAPTURE.read_bytes()[: 1 << 15])
        process.stdin.flush()
        while len(contents(tmp_path)) == 1 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(ending)
        if ending == signal.SIGINT:  # the first one ends the capture: the tables are complete
            process.send_signal(ending)
        process.wait(timeout=100)
    assert process.returncode == 128 + ending
    if ending != signal.SIGINT:
        assert contents(tmp_path) == {out.name: OLD}
    assert not [name for name in contents(tmp_path) if name.endswith(".part")]


def test_standard_output_by_its_name(tmp_path: Path) -> None:
    out = tmp_path / "rows"
    link = tmp_path / "rows.jsonl"
    link.symlink_to("/dev/stdout")
    command = [sys.executable, "-m", "kafkawire_cli.main", "decode", str(CAPTURE)]
    with out.open("wb") as stdout:
        subprocess.run(
            [*command, "--table", "exchanges", "-o", str(link)], stdout=stdout, check=True
        )
    expected = subprocess.run(
        [*command, "--table", "exchanges"], capture_output=True, check=True
    ).stdout
    assert out.read_bytes() == expected
    assert sorted(contents(tmp_path)) == ["rows", "rows.jsonl"]
