"""kill -9 at any point, and a restart: all batches together have each message once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet as pq

from tests.conftest import ROOT, missing

from ..conftest import counted, rows_of
from .killed import RULES, TABLES
from .test_state import MIXED

POINTS = (
    ("batch 0: 1 file", True),
    ("batch 0: written", False),
    ("batch 1: committed", False),
    ("batch 2: decoded", False),
)
"""What is said last, and whether the test kills then, while the process goes on for a while, or the
process itself does at once.
"""

COMMAND = [
    "-m",
    "kafkawire_cli.main",
    "spark",
    "--option",
    "finished=renamed",
    "--master",
    "local[2]",
]


def started(arguments: list[str], log: Path) -> subprocess.Popen[str]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip


def killed(directory: Path, output: Path, log: Path, words: str, from_outside: bool) -> list[str]:
    """Run until killed."""
    last = "" if from_outside else words
    lines_read = []
    with started(
        ["-m", "tests.spark.watching.killed", str(directory), str(output), last], log
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            lines_read.append(line.strip())
            if from_outside and line.startswith(words):
                run.kill()
    assert run.returncode == -signal.SIGKILL, log.read_text(errors="replace")
    return lines_read


def commanded(directory: Path, output: Path, log: Path, *more: str, until: str = "") -> list[str]:
    """Run the command to its end, or send SIGTERM at the line `until`."""
    size = ["--option", f"batchBytes={RULES.batch_bytes}"]
    tables = [word for table in TABLES for word in ("--table", table)]
    arguments = ["--watch", str(directory), "--output", str(output), *size, *tables, *more]
    lines_read = []
    with started([*COMMAND, *arguments], log) as run, log.open() as lines:
        lines.seek(0, os.SEEK_END)
        line = ""
        while run.poll() is None:
            line += lines.readline()
            if line and not line.endswith("\n"):
                continue  # it is still being written
            lines_read.append(line.strip())
            if until and line.startswith(until):
                run.terminate()
            if not line:
                with suppress(subprocess.TimeoutExpired):
                    run.wait(0.2)
            line = ""
        lines_read += (line + lines.read()).splitlines()
    assert run.returncode == 0, log.read_text(errors="replace")
    return [line for line in lines_read if line.startswith("batch ")]


def test_each_message_once(sets: dict[str, list[str]], tmp_path: Path) -> None:
    if shutil.which("java") is None:
        missing("Java")
    (files,) = [files for name, files in sets.items() if name.endswith(MIXED)]
    directory, output, log = Path(files[0]).parent, tmp_path / "tables", tmp_path / "log"
    log.touch()
    for words, from_outside in POINTS:
        lines_read = killed(directory, output, log, words, from_outside)
        assert any(line.startswith(words) for line in lines_read), (words, lines_read)
    lines_read = commanded(directory, output, log, until="batch 3: decoded")
    assert lines_read[0].startswith("batch 2: 1 file"), (
        "what was decoded and not committed comes again"
    )
    last = number(lines_read[-1])  # 3, or a later one where the signal came late
    assert last >= 3
    ended = ", ".join(rf"\d+ {table}" for table in TABLES)
    assert re.fullmatch(rf"batch {last}: {ended}", lines_read[-1]), "behind the batch at work"
    lines_read = commanded(directory, output, log, "--end")
    assert number(lines_read[0]) == last + 1, lines_read
    for table in TABLES:
        assert counted(rows(output / table)) == counted(rows_of(files, table)), table
    # nothing that readers could trip over
    for path in output.rglob("*.parquet"):
        assert path.parent.name.startswith("batch=")
        assert pq.read_metadata(path).num_rows > 0
    assert not list((output / "_watch" / "staging").iterdir())
    (left,) = (output / "_watch" / "state").iterdir()
    assert [path.name for path in left.iterdir()] == ["known.json"]


def number(line: str) -> int:
    """Which batch a line is about."""
    return int(line.removeprefix("batch ").partition(":")[0])


def rows(folder: Path, *batches: int) -> list[dict[str, Any]]:
    """Read a table as others do, all that is below its folder; batches: of these alone."""
    data = pyarrow.dataset.dataset(folder, partitioning="hive")
    wanted = pyarrow.dataset.field("batch").isin(batches) if batches else None
    found: list[dict[str, Any]] = data.to_table(filter=wanted).drop_columns(["batch"]).to_pylist()
    return found
