"""A project with schemas of its own builds them compiled, as docs/build.md says, and uses them.

What is built is installed into a folder of its own and exercised by another process: a fault in
native code ends that process, not this one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kafkawire_codegen import generate, schemas_dir
from kafkawire_codegen.compile import NotCompiled, compile_modules, native_files
from tests.codegen import hostile
from tests.conftest import ROOT

from .build_examples import EXAMPLES

pytestmark = pytest.mark.xdist_group("packaging/test_users_builds")  # one build
KAFKAS = ("HeartbeatRequest", "LeaderChangeMessage", "MetadataResponse")
EXERCISE = (sys.executable, "-X", "faulthandler", "-m", "tests.codegen.exercise")


def example(file: str) -> str:
    """Take a file of the project that docs/build.md shows, for another package."""
    return (EXAMPLES / "hatchling" / file).read_text("utf-8").replace("pinger", "mine")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay out a project as the documentation says: hostile schemas, and some of Kafka's."""
    root = tmp_path_factory.mktemp("project")
    hostile.write(root / "schemas", hostile.COMPILED)
    for name in KAFKAS:
        shutil.copy(schemas_dir() / f"{name}.json", root / "schemas")
    (root / "pyproject.toml").write_text(example("pyproject.toml"))
    (root / "hatch_build.py").write_text(example("hatch_build.py"))
    (root / "mine").mkdir()
    (root / "mine" / "__init__.py").touch()
    return root


@pytest.fixture(scope="module")
def installed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the project's wheel with hatchling and unpack it where pip would."""
    ran = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(project / "dist")],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    target = tmp_path_factory.mktemp("installed")
    (wheel,) = (project / "dist").glob("*.whl")
    assert "none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def run_exercise(*path: Path, schemas: Path) -> str:
    """Exercise `mine.messages` in a process that finds modules in these folders first."""
    ran = subprocess.run(
        [*EXERCISE, "mine.messages", str(schemas)],
        cwd=path[0],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert int(ran.stdout.split()[0]) > 30
    return ran.stdout


def test_every_message_of_a_users_compiled_package_works(project: Path, installed: Path) -> None:
    schemas = list((project / "schemas").glob("*.json"))
    native = native_files(installed, "mine", "mine")
    assert len(native) == len(schemas) + 1
    run_exercise(installed, schemas=project / "schemas")


def test_it_works_with_an_interpreted_kafkawire(
    project: Path, installed: Path, tmp_path: Path
) -> None:
    """A base class in Python has another layout than a compiled one."""
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "kafkawire", tmp_path / "kafkawire", ignore=ignored)
    shown = run_exercise(installed, tmp_path, schemas=project / "schemas")
    assert "interpreted kafkawire" in shown


REGISTRY = """
import pickle
from kafkawire import DecodeError, Registry
from kafkawire.errors import OutOfRange

registry = Registry("mine.messages")
message = registry.from_json("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"})
assert type(message).__module__ == "mine.messages.heartbeat_request"
frame = registry.encode_frame(message, 4, 7, client_id="me")
assert registry.decode_frame(frame).body == message
assert registry.explain_frame(frame).error is None
assert registry.verify("HeartbeatRequest", 4, message.encode(4))
assert pickle.loads(pickle.dumps(message)) == message
try:
    registry.decode("HeartbeatRequest", 4, message.encode(4)[:-4])
except DecodeError as error:
    assert error.path == "HeartbeatRequest.member_id", error
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
try:
    registry.load("HeartbeatRequest")(generation_id=2**40).encode(4)
except OutOfRange as error:
    print(error.path)
"""


def test_a_compiled_package_has_all_of_the_api(installed: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", REGISTRY],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "HeartbeatRequest.generation_id\n"), ran.stderr


def test_messages_of_the_runtimes_own_package_are_not_compiled_without_it(tmp_path: Path) -> None:
    """They trust the layout of classes that are elsewhere: they would end the process."""
    (tmp_path / "schemas").mkdir()
    shutil.copy(schemas_dir() / "LeaderChangeMessage.json", tmp_path / "schemas")
    generate(tmp_path / "schemas", tmp_path / "mine", "kafkawire.mine")
    with pytest.raises(NotCompiled, match="must be compiled with it"):
        compile_modules(tmp_path, ["mine/leader_change_message.py"], library="x", out=tmp_path)
