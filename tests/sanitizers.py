"""Runs the tests of our C modules against builds with AddressSanitizer and UBSan.

What is tested is what was built here: a run in which any C module came from elsewhere fails.

    python -m tests.sanitizers                  build, then run the tests of C modules
    python -m tests.sanitizers tests/x.py ...   or others

Builds lie in a temporary directory and are found before those beside the sources, which stay as
they are. `make soak` calls this; KAFKAWIRE_SOAK says how much is tried. An error of memory or an
undefined operation ends the run with a report that names the line in C.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUILDS: Final = "KAFKAWIRE_SANITIZED"
"""The variable that says where the builds are, to the process that tests them."""

SANITIZERS: Final = "-fsanitize=address,undefined"
UNSIGNED: Final = "-funsigned-char"
"""As on aarch64 Linux; `char` is signed in the builds of `make test` on x86-64."""
FLAGS: Final = (
    UNSIGNED,
    *("-O1", "-g", "-fPIC", "-shared", "-fno-omit-frame-pointer"),
    *(SANITIZERS, "-fno-sanitize-recover=all"),
)

TESTS: Final = (
    "tests/primitives/test_shared.py",
    "tests/records/test_checksum.py",
    "tests/records/test_fuzz.py",
    "tests/records/test_partial.py",
    "tests/records/test_rows.py",
    "tests/capture/frames/test_in_order.py",
    "tests/capture/jsonl/test_payload_texts.py",
    "tests/capture/jsonl/test_quick_text.py",
    "tests/capture/packets/test_ordinary.py",
    "tests/capture/tables/test_column_values.py",
    "tests/capture/tables/test_blocks.py",
    "tests/spark/test_plain_packets.py",
)
"""Those that give C modules what is malformed, or compare them with their twins in Python."""


def sources() -> list[Path]:
    """List our C sources, relative to the repository."""
    return sorted(path.relative_to(ROOT) for path in ROOT.glob("kafkawire/**/*.c"))


def module_name(source: Path) -> str:
    """Name the module that a source makes."""
    return ".".join(source.with_suffix("").parts)


def build(source: Path, folder: Path) -> None:
    """Compile a source into the folder. CalledProcessError if the compiler fails."""
    compiler = os.environ.get("CC", "gcc")
    made = folder / f"{module_name(source)}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run([compiler, *FLAGS, include, str(ROOT / source), "-o", str(made)], check=True)


def runtime() -> str:
    """Find the library of AddressSanitizer, which a program has to load before all others."""
    command = [os.environ.get("CC", "gcc"), "-print-file-name=libasan.so"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(tests: Sequence[str]) -> int:
    """Build all modules and run tests of them; returns pytest's exit status."""
    with TemporaryDirectory(prefix="kafkawire-sanitized-") as folder:
        for source in sources():
            build(source, Path(folder))
        environment = os.environ | {
            BUILDS: folder,
            "LD_PRELOAD": runtime(),
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        # a report goes to the descriptor of standard error: pytest must not take that
        options = ["-p", "tests.sanitizers", "-p", "no:xdist", "-q", "--capture=sys"]
        command = [sys.executable, "-m", "pytest", *options, *(tests or TESTS)]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


# -- in the process that tests: a plugin of pytest


class Builds:
    """Finds C modules among the builds, before any other finder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = {module_name(source) for source in sources()}

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            return None
        file = str(self._folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))


def pytest_configure() -> None:
    """Make sure that the builds are what will be tested."""
    if BUILDS not in os.environ:
        return
    for source in sources():
        found = import_module(module_name(source)).__file__
        if found is None or Path(found).parent != Path(os.environ[BUILDS]):
            raise RuntimeError(f"{source}: loaded from {found}, not from the build with sanitizers")
    maps = Path("/proc/self/maps")
    if maps.exists() and "libasan" not in maps.read_text():
        raise RuntimeError("AddressSanitizer is not loaded")


if BUILDS in os.environ:
    sys.meta_path.insert(0, Builds(Path(os.environ[BUILDS])))

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
