"""A process is killed at random points while it appends, rolls, flushes, compacts and truncates."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kafkawire.log import Finding, read, recognise
from kafkawire.storage.disks.files import FileDisk
from tests.conftest import ROOT
from tests.fuzzing import replayable, seeds

from .killed import value
from .logs import ORDERS, SMALL, TIME, records
from .managers import started

CONFIG = replace(SMALL, file_delete_delay_ms=0)
LEAST_LINES = 20


def killed(folder: Path, seed: int) -> list[str]:
    """Run the writer until it has written some lines, and kill it; return all its lines."""
    wanted = LEAST_LINES + random.Random(seed).randrange(120)
    command = [sys.executable, "-m", "tests.storage.killed", str(folder), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(wanted)]
        process.kill()
        lines += process.stdout.readlines()
    return [line for line in lines if line.endswith("\n")]


@pytest.mark.fuzz
def test_what_was_appended_survives_a_kill(tmp_path: Path) -> None:
    for seed in seeds(4):
        folder = tmp_path / str(seed)
        with replayable(seed):
            lines = [line.split() for line in killed(folder, seed)]
            least = int(lines[-1][1])
            log = started({"a": FileDisk(folder)}, replace(SMALL, file_delete_delay_ms=0)).log(
                ORDERS
            )
            assert log is not None
            if lines[-1][0] == "truncated":
                least = max(0, least - 4)  # up to the batch with that offset
            assert log.log_end_offset >= least, lines[-1]
            expected = [(at, b"%d" % at, value(at)) for at in range(log.log_end_offset)]
            assert records(log) == expected
            for path in (folder / str(ORDERS)).iterdir():
                file = recognise(path)
                assert file is None or not [
                    each for each in read(file) if isinstance(each, Finding) and each.is_error
                ]
            log.close(TIME)
