"""A standalone cluster has the same rows, also when workers are lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.spark.standalone import Cluster
from tests.conftest import ROOT, missing

from .conftest import rows_of
from .java import options

TABLE = "exchanges"


@pytest.mark.timeout(900)
def test_rows_are_those_of_one_process(sets: dict[str, list[str]], tmp_path: Path) -> None:
    """Three of the four workers are lost, one in each way of reading."""
    if shutil.which("java") is None:
        missing("Java")
    (files,) = [files for name, files in sets.items() if name.endswith("mixed-a--rot")]
    want = sorted(map(repr, rows_of(files, TABLE)))
    assert want
    with (
        Cluster(tmp_path, workers=4, java=options()) as cluster,
        running(cluster, files, tmp_path / "log") as driver,
    ):
        for number, how in enumerate(("moved", "visited", "written")):
            assert decoded(driver, how, tmp_path / f"{how}-again", cluster, number) == want, how


@contextmanager
def running(cluster: Cluster, files: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the program on the cluster until its end."""
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.spark.cluster", cluster.url, options(), TABLE, *files],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as driver,
    ):
        try:
            yield driver
            driver.communicate()
        except BaseException as error:
            driver.kill()
            error.add_note(log.read_text(errors="replace"))
            raise
    assert driver.returncode == 0, log.read_text(errors="replace")


def decoded(
    driver: subprocess.Popen[str],
    how: str,
    output: Path,
    cluster: Cluster | None = None,
    number: int = -1,
) -> list[str]:
    """Have the program read the rows; cluster, number: kill this worker once some are decoded."""
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(f"{how} {output}\n")
    driver.stdin.flush()
    assert wait_for(driver, how)
    if cluster is not None:
        cluster.lose(number)
    if how != "moved":
        driver.stdin.write("\n")
        driver.stdin.flush()
    assert wait_for(driver, "done")
    rows: list[str] = json.loads(output.read_text())
    return rows


def wait_for(driver: subprocess.Popen[str], word: str) -> bool:
    """Read lines until one is the word; return whether there was one."""
    assert driver.stdout is not None
    return any(line == f"{word}\n" for line in iter(driver.stdout.readline, ""))
