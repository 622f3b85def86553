"""Builds the projects of docs/examples/build, each in a folder of its own, and uses what they made.

A project is copied before it is built; its messages are imported by another process, from
what was built alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from tests.conftest import ROOT
from tests.pages import blocks, commands, environment

EXAMPLES: Final = ROOT / "docs" / "examples" / "build"
TOOLS: Final = ("hatchling", "setuptools", "meson-python", "make")
INSTALLED: Final = "--no-isolation --skip-dependency-check --outdir ../wheels"
"""Builds with what is installed, where the page has a build fetch what it needs."""

EXERCISE: Final = """
import pickle, sys
from pathlib import Path
from pinger.messages import ping_request, ping_response
from pinger.messages.ping_request import PingRequest
from pinger.messages.ping_response import PingResponse

assert Path(ping_request.__file__).is_relative_to(sys.argv[1]), ping_request.__file__
sent = PingRequest(payload="hello", count=3)
assert PingRequest.decode(sent.encode(1), 1) == sent
answer = PingResponse(payloads=["hello"] * 3)
assert PingResponse.decode(answer.encode(0), 0) == answer
assert pickle.loads(pickle.dumps(answer)) == answer
suffixes = {Path(module.__file__).suffix for module in (ping_request, ping_response)}
print("interpreted" if suffixes == {".py"} else "compiled")
"""


def built(tool: str, folder: Path, *, compiled: bool) -> Path:
    """Copy a project into a folder and build it; return the folder to import it from."""
    project = folder / "project"
    shutil.copytree(EXAMPLES / tool, project)
    line = command(tool, compiled=compiled)
    _run(["bash", "-c", line if tool == "make" else f"{line} {INSTALLED}"], project)
    if tool == "make":
        return project / "build"
    (wheel,) = (folder / "wheels").glob("*.whl")
    assert ("none-any" in wheel.name) is not compiled, wheel.name
    shutil.rmtree(project)
    installed = folder / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    names = {path.name for path in installed.iterdir() if "__mypyc" not in path.name}
    assert names == {"pinger", "pinger-1.dist-info"}, names
    return installed


def command(tool: str, *, compiled: bool) -> str:
    """Return the command that docs/build.md shows: first to compile, then not to."""
    shown = commands(blocks("docs/build.md", "sh")[TOOLS.index(tool)])
    return shown[0 if compiled else 1].line


def exercised(folder: Path) -> str:
    """Use the messages of a folder in another process; return whether they are compiled."""
    path = os.pathsep.join((str(folder), environment()["PYTHONPATH"]))
    command = [sys.executable, "-X", "faulthandler", "-c", EXERCISE, str(folder)]
    return _run(command, folder, PYTHONPATH=path).strip()


def _run(command: list[str], folder: Path, **variables: str) -> str:
    tools = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment(), "PATH": tools, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
