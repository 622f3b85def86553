"""The C sources compile, without warnings, for the platforms of wheels that are built elsewhere.

The compiler is the Clang of the package ziglang, which has the headers of each C library. It is
large: `make soak` runs these tests, `make test` does not collect them. What runs is compiled for
this machine alone.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.conftest import ROOT
from tests.sanitizers import sources

TARGETS: Final = (
    "x86_64-linux-gnu",
    "x86_64-linux-musl",
    "aarch64-linux-gnu",
    "aarch64-linux-musl",
    "x86_64-macos",
    "aarch64-macos",
)
"""The platforms of `[tool.cibuildwheel]` in pyproject.toml."""
FLAGS: Final = (
    *("-O2", "-fPIC", "-Wall", "-Wextra", "-Werror"),
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
)


@pytest.fixture(scope="module")
def compiler() -> Iterator[tuple[str, ...]]:
    """Install the compiler in an environment of its own (300 MB); returns its command."""
    with TemporaryDirectory(prefix="kafkawire-zig-") as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder, "bin", "python"))
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, "ziglang==0.17.1"], check=True)
        yield python, "-m", "ziglang", "cc"


@pytest.mark.parametrize("target", TARGETS)
def test_the_c_sources_compile(target: str, compiler: tuple[str, ...], tmp_path: Path) -> None:
    include = f"-I{sysconfig.get_path('include')}"
    for source in sources():
        output = ("-o", str(tmp_path / "object.o"))
        command = (*compiler, "-target", target, *FLAGS, include, "-c", str(ROOT / source), *output)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{source}: {result.stderr}"
