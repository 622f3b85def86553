"""On a standalone cluster: the same rows, also when a machine fails in the middle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, missing

from .cluster import Cluster
from .conftest import rows_of


@pytest.mark.parametrize("lost", [False, True], ids=["whole", "one worker lost"])
def test_rows_are_those_of_one_process(
    sets: dict[str, list[str]], tmp_path: Path, lost: bool
) -> None:
    if shutil.which("java") is None:
        missing("Java")
    (files,) = [files for name, files in sets.items() if name.endswith("mixed-a--rot")]
    output = tmp_path / "rows.json"
    with Cluster(tmp_path) as cluster:
        command = [sys.executable, "-m", "tests.spark.cluster", cluster.url, "exchanges"]
        driver = subprocess.Popen(
            [*command, str(output), *files],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "driver.log").open("wb"),
            text=True,
        )
        with driver:
            assert driver.stdout is not None
            said = next((line for line in driver.stdout if line == "moved\n"), "")
            if lost and said:
                cluster.lose(0)
            driver.wait()
        assert driver.returncode == 0, (tmp_path / "driver.log").read_text(errors="replace")
        assert said == "moved\n"
    assert json.loads(output.read_text()) == sorted(map(repr, rows_of(files, "exchanges")))
