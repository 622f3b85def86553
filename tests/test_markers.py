"""Every test that needs Java, Spark or other implementations says so, whoever wrote it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests import markers

from .conftest import ROOT


def test_imports_are_followed_through_modules_of_tests() -> None:
    assert markers.imported(markers.TESTS / "records" / "test_peers.py") >= {"aiokafka", "kafka"}
    through_others = markers.imported(markers.TESTS / "net" / "server" / "test_surviving.py")
    assert through_others >= {"aiokafka", "confluent_kafka"}
    alone = markers.imported(Path(__file__).resolve())
    assert not alone & markers.PEERS


IMPORTS = """
import a.b, c as d  # e
from f import g
from . import h
from .i import j as k, l
if True:
    from ..m import (  # n
        o,
        p as q,  # r
    )
    from .. import s, \\
        t
"""


def test_names_are_those_of_import_statements() -> None:
    names = set(markers.names_in(IMPORTS, ("tests", "x")))
    of_ours = {"", ".h", ".i", ".i.j", ".i.l"}
    above = {"", ".m", ".m.o", ".m.p", ".s", ".t"}
    assert names == {
        *("a.b", "c", "f", "f.g"),
        *(f"tests.x{name}" for name in of_ours),
        *(f"tests{name}" for name in above),
    }


def test_every_place_named_exists() -> None:
    """A file that moves takes its marker along."""
    for places in (
        markers.BUILDS,
        markers.SIMULATION,
        markers.SLOW,
        markers.JAVA_FOLDERS,
        markers.SPARK_FOLDERS,
        markers.NO_SPARK_FOLDERS,
        markers.PEERS_FOLDERS,
        markers.SAMPLED,
        markers.MANY,
        markers.SIMULATION,
    ):
        for place in places:
            file, _, name = place.partition("::")
            assert (markers.TESTS / file).exists(), place
            assert name in (markers.TESTS / file).read_text("utf-8") if name else True, place


MARKED = {
    "client/real/test_admin.py": {"java", "peers"},
    "records/test_peers.py": {"peers"},
    "spark/test_options.py": {"spark"},
    "test_readme.py": set(),
}


@pytest.mark.parametrize("name", ["java", "peers", "spark"])
def test_what_is_collected_is_marked(name: str) -> None:
    """By pytest itself, so that the hook is known to run."""
    ran = subprocess.run(
        [
            sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", name,
            *(str(markers.TESTS / path) for path in MARKED),
        ],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    collected = {path for path in MARKED if f"tests/{path}::" in ran.stdout}
    assert collected == {path for path, marks in MARKED.items() if name in marks}


def test_what_is_not_marked_starts_no_java(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.markers"]\n')
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  java: x\n  spark: x\n  slow: x\n  builds: x\n"
    )
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
            import subprocess, pytest
            def start():
                subprocess.run(["/nowhere/java", "-version"])

            def test_unmarked():
                start()

            @pytest.mark.java
            def test_marked():
                with pytest.raises(FileNotFoundError):
                    start()
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist"]
    ran = subprocess.run(
        [*command, str(tmp_path)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in ran.stdout
    assert "test_unmarked starts Java, and is not marked java or spark" in ran.stdout


def test_one_with_other_programs_runs_once_more(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.markers"]\n')
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
            import pytest
            runs = []

            @pytest.mark.peers
            def test_marked():
                runs.append("marked")
                assert runs.count("marked") == 2

            def test_unmarked():
                runs.append("unmarked")
                assert runs.count("unmarked") == 2
        """)
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "."],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in ran.stdout
    assert "1 rerun" in ran.stdout
    assert "FAILED test_it.py::test_unmarked" in ran.stdout


@pytest.mark.parametrize(
    ("expression", "file", "is_left_out"),
    [
        ("simulation and not fuzz", "raft/test_simulation_seeds.py", None),
        ("simulation and not builds", "raft/test_simulation_seeds.py", None),
        ("simulation", "raft/test_simulation.py", True),
        ("builds", "net/server/test_streams.py", None),
        ("builds", "test_markers.py", True),
        ("not builds", "packaging/test_compile.py", True),
        ("not builds", "net/server/test_streams.py", None),
        ("not builds and not simulation", "raft/test_simulation_seeds.py", True),
        ("fuzz or simulation", "test_markers.py", None),
        ("third_party", "test_markers.py", None),
        ("", "test_markers.py", None),
    ],
)
def test_files_without_a_test_of_the_expression_are_left_out(
    expression: str, file: str, is_left_out: bool | None
) -> None:
    config = cast("pytest.Config", SimpleNamespace(getoption=lambda _name: expression))
    assert markers.pytest_ignore_collect(markers.TESTS / file, config) is is_left_out


def test_a_share_takes_each_sampled_test_with_some_seed() -> None:
    ids = [f"tests/messages/test_golden.py::test_it[{at}]" for at in range(400)]
    shares = [{each for each in ids if markers.chosen(each, 4, seed)} for seed in range(60)]
    assert set().union(*shares) == set(ids)
    assert all(50 < len(each) < 150 for each in shares)


def test_a_run_takes_a_share_of_the_tests_with_many_parameters() -> None:
    def collected(share: str, seed: str = "a commit") -> set[str]:
        ran = subprocess.run(
            [
                sys.executable, "-m", "pytest", "--collect-only", "-q",
                "tests/messages/test_round_trip.py", "tests/primitives/test_wire_types.py",
                "tests/capture/packets/test_encapsulations.py",
            ],
            cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "KAFKAWIRE_SHARE": share, "KAFKAWIRE_SHARE_SEED": seed},
        )  # fmt: skip
        return {line for line in ran.stdout.splitlines() if "::" in line}

    everything, some = collected("1"), collected("4")
    assert some < everything
    shared = set[str]()
    for folder in "messages", "packets":
        parametrised = {each for each in everything if "[" in each and folder in each}
        assert 0.1 * len(parametrised) < len(parametrised & some) < 0.5 * len(parametrised)
        shared |= parametrised
    assert everything - some <= shared
    assert collected("4") == some != collected("4", "another")
