"""The setup for YARN and Kubernetes in docs/spark.md, on a standalone cluster: executors get the
package from an archive only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

import kafkawire
from benchmarks.spark.standalone import HOME, Cluster
from kafkawire.spark import submit
from tests.conftest import FIXTURES, ROOT, missing

from .conftest import rows_of
from .java import options

FILE = FIXTURES / "captures" / "ck-848.pcap"


def packed(folder: Path) -> Path:
    """Pack an environment as `venv-pack` does: with the package as it is built here, and the rest
    of what it needs by reference, which saves packing half a gigabyte.
    """
    venv = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = (venv / "lib").glob("python3*/site-packages")
    built = Path(kafkawire.__file__).parent
    shutil.copytree(built, site / "kafkawire", ignore=shutil.ignore_patterns("__pycache__"))
    for compiled in built.parent.glob("kafkawire__mypyc*.so"):
        shutil.copy(compiled, site)
    (site / "rest.pth").write_text(sysconfig.get_path("purelib") + "\n")
    archive = folder / "env.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as out:
        for each in venv.iterdir():
            out.add(each, each.name)
    shutil.rmtree(venv)
    return archive


@pytest.mark.timeout(900)
def test_an_archive_brings_the_package(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        missing("Java")
    script = Path(submit.__file__)
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME)}
    environment.pop("PYSPARK_PYTHON", None)
    with Cluster(tmp_path, workers=1, java=options()) as cluster:
        command = [
            str(HOME / "bin" / "spark-submit"), "--master", cluster.url,
            "--archives", f"{packed(tmp_path)}#env",
            "--conf", "spark.pyspark.python=./env/bin/python",
            "--conf", f"spark.pyspark.driver.python={sys.executable}",
            "--conf", "spark.executor.memory=512m",
            "--conf", f"spark.executor.extraJavaOptions={options()}",
            "--conf", "spark.driver.host=127.0.0.1",
            "--conf", "spark.driver.bindAddress=127.0.0.1",
            str(script), str(FILE), "--output", str(tmp_path / "tables"),
            "--option", "splitBytes=9k",
        ]  # fmt: skip
        completed = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip
        unpacked = list(tmp_path.glob("worker*/app-*/*/env/bin/python"))
    assert completed.returncode == 0, completed.stderr
    assert unpacked
    manifest = json.loads((tmp_path / "tables" / "_manifest").read_text())
    assert manifest["tables"]["exchanges"]["rows"] == len(rows_of([str(FILE)], "exchanges"))
