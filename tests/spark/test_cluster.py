"""A standalone cluster has the same rows, also when a worker is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.standalone import Cluster
from tests.conftest import ROOT, missing

from .conftest import rows_of


@pytest.mark.timeout(900)
def test_rows_are_those_of_one_process(sets: dict[str, list[str]], tmp_path: Path) -> None:
    if shutil.which("java") is None:
        missing("Java")
    (files,) = [files for name, files in sets.items() if name.endswith("mixed-a--rot")]
    want = sorted(map(repr, rows_of(files, "exchanges")))
    assert want
    with Cluster(tmp_path) as cluster:
        assert decode_on_cluster(cluster, tmp_path / "whole", files, "moved", lost=False) == want
        assert decode_on_cluster(cluster, tmp_path / "lost", files, "moved", lost=True) == want
    (tmp_path / "visits").mkdir()
    with Cluster(tmp_path / "visits") as cluster:
        assert decode_on_cluster(cluster, tmp_path / "again", files, "visited", lost=True) == want
    (tmp_path / "job").mkdir()
    with Cluster(tmp_path / "job") as cluster:
        assert decode_on_cluster(cluster, tmp_path / "written", files, "written", lost=True) == want


def decode_on_cluster(
    cluster: Cluster, output: Path, files: list[str], how: str, *, lost: bool
) -> list[str]:
    """Run the program on the cluster; lost: kill a worker once rows have been decoded."""
    log = output.with_suffix(".log")
    command = [
        sys.executable,
        "-m",
        "tests.spark.cluster",
        cluster.url,
        "exchanges",
        str(output),
        how,
    ]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*command, *files],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as driver,
    ):
        assert driver.stdout is not None
        line = next((line for line in driver.stdout if line == f"{how}\n"), "")
        if lost and line:
            cluster.lose(0)
        driver.communicate("\n")
    assert driver.returncode == 0, log.read_text(errors="replace")
    assert line == f"{how}\n"
    rows: list[str] = json.loads(output.read_text())
    return rows
