"""What wheel and sdist hold, and that generation is the same every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kafkawire
from kafkawire.messages import REGISTRY
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build wheel and sdist of this checkout, without compiling."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=ROOT,
        env={**os.environ, "KAFKAWIRE_COMPILE": "off"},
        check=True,
        capture_output=True,
    )
    return out


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> set[str]:
    (path,) = distributions.glob("*.whl")
    assert path.name == f"kafkawire-{kafkawire.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def sdist(distributions: Path) -> set[str]:
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_wheel_installs_three_packages_and_nothing_as_general_as_cli(wheel: set[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    # the last one is where Spark looks for data sources
    packages = {"kafkawire", "kafkawire_cli", "kafkawire_codegen", "pyspark_kafkapcap.py"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages


def test_wheel_holds_every_message_as_a_module(wheel: set[str]) -> None:
    folder = "kafkawire/messages/"
    modules = {info.module for info in REGISTRY} | {"__init__", "api_key"}
    assert {name for name in wheel if name.startswith(folder)} == {
        f"{folder}{module}.py" for module in modules
    }


def test_wheel_holds_schemas_and_templates_of_the_checkout(wheel: set[str]) -> None:
    schemas = {f"kafkawire_codegen/schemas/{p.name}" for p in ROOT.glob("schemas/*.json")}
    folder = ROOT / "codegen" / "kafkawire_codegen" / "templates"
    templates = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    wanted = schemas | {p.relative_to(ROOT / "codegen").as_posix() for p in templates}
    configs = ("broker_configs.json", "release_configs.json", "resource_configs.json")
    wanted |= {f"kafkawire/configs/{name}" for name in configs}
    in_templates = f"{folder.relative_to(ROOT / 'codegen').as_posix()}/"
    found = {name for name in wheel if name.endswith(".json") or name.startswith(in_templates)}
    assert found == wanted
    assert len(schemas) > len(REGISTRY)


@pytest.mark.parametrize("package", ["kafkawire", "kafkawire_cli", "kafkawire_codegen"])
def test_wheel_is_typed_and_holds_all_sources(wheel: set[str], package: str) -> None:
    (folder,) = (p.parent for p in ROOT.glob(f"**/{package}/py.typed") if ".venv" not in p.parts)
    sources = {f"{package}/{p.relative_to(folder)}" for p in folder.rglob("*.py")}
    assert sources | {f"{package}/py.typed"} <= wheel


def test_wheel_holds_the_parts_of_the_report_page(wheel: set[str]) -> None:
    folder = "cli/kafkawire_cli/render/page"
    parts = [path for path in (ROOT / folder).iterdir() if path.suffix in (".css", ".html", ".js")]
    assert {f"kafkawire_cli/render/page/{path.name}" for path in parts} <= wheel
    assert len(parts) >= 7


def test_wheel_names_its_licence_and_command(wheel: set[str]) -> None:
    information = {name.partition("/")[2] for name in wheel if ".dist-info/" in name}
    assert {"METADATA", "entry_points.txt", "licenses/LICENSE"} <= information


def test_sdist_holds_no_generated_and_no_native_file(sdist: set[str]) -> None:
    assert {
        n for n in sdist if n.startswith("kafkawire/messages") or n.endswith((".so", ".pyd"))
    } == set()


def test_sdist_holds_what_a_build_needs(sdist: set[str]) -> None:
    needed = {"pyproject.toml", "README.md", "LICENSE", "codegen/hatch_build.py"}
    assert needed | {f"schemas/{p.name}" for p in ROOT.glob("schemas/*.json")} <= sdist


def test_wheels_are_built_and_tested_for_each_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheels = project["tool"]["cibuildwheel"]
    of = "Programming Language :: Python :: 3."
    minors = [each.removeprefix(of) for each in project["project"]["classifiers"] if of in each]
    assert wheels["build"] == [f"cp3{minor}-*" for minor in minors]
    assert project["project"]["requires-python"] == f">=3.{minors[0]}"
    tests = [word for word in wheels["test-command"].split() if "/" in word]
    assert tests
    for path in (*tests, *wheels["test-sources"]):
        assert (ROOT / path).exists(), path


REFUSING: Final = """
import importlib, sys
from pathlib import Path

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"not installed where wheels are tested: {name}")

sys.meta_path.insert(0, Refusing())
for path in sys.argv[2:]:
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for plugin in getattr(module, "pytest_plugins", ()):
        importlib.import_module(plugin)
"""


def test_wheels_are_tested_with_what_their_tests_import() -> None:
    """They are installed with few of the packages that are here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheels = project["tool"]["cibuildwheel"]
    extras = project["project"]["optional-dependencies"].values()
    there = names(wheels["test-requires"]) | names(project["project"]["dependencies"])
    missing = names(each for extra in extras for each in extra) - there - {"kafkawire"}
    modules = [
        module
        for module, distributions in packages_distributions().items()
        if missing & names(distributions)
    ]
    assert {"jsonschema_rs", "pyarrow"} <= {*modules}
    paths = [ROOT / word for word in wheels["test-command"].split() if "/" in word]
    tests = [test for path in paths for test in (path.rglob("*.py") if path.is_dir() else [path])]
    imported = [each.relative_to(ROOT).as_posix() for each in tests if each.stem != "__init__"]
    ran = subprocess.run(
        [sys.executable, "-c", REFUSING, ",".join(modules), "tests/conftest.py", *imported],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def names(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def generated(out: Path, seed: str) -> dict[str, str]:
    """Generate everything in a fresh interpreter and return a digest of each file."""
    command = ["-m", "kafkawire_codegen", "--package", "kafkawire.messages", "--out", str(out)]
    subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
        check=True,
        capture_output=True,
    )
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in out.iterdir()}


def test_generation_gives_the_same_bytes_every_time(tmp_path: Path) -> None:
    first = generated(tmp_path / "first", seed="1")
    assert generated(tmp_path / "second", seed="2") == first
    assert len(first) == len(REGISTRY) + 2
