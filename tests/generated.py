"""Packages that tests generate, and import."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafkawire_codegen import generate
from tests.conftest import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "keyvalue"


@contextmanager
def importable(folder: Path, top: str) -> Iterator[None]:
    """Make the packages in a folder importable; afterwards, those under `top` are forgotten."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.path_importer_cache.pop(str(folder), None)
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]


@contextmanager
def generated(folder: Path, name: str, *schemas: Mapping[str, Any]) -> Iterator[None]:
    """Generate a package of some schemas and make it importable."""
    (folder / f"{name}-schemas").mkdir()
    for schema in schemas:
        file = folder / f"{name}-schemas" / f"{schema['name']}.json"
        file.write_text(json.dumps(schema))
    generate(folder / f"{name}-schemas", folder / name, name)
    with importable(folder, name):
        yield


@contextmanager
def keyvalue(folder: Path) -> Iterator[None]:
    """Generate the package of docs/examples/keyvalue, with its payloads."""
    messages = folder / "keyvalue" / "messages"
    generate(EXAMPLE / "schemas", messages, "keyvalue.messages")
    shutil.copy(EXAMPLE / "payloads.py", messages)
    with importable(folder, "keyvalue"):
        yield


def write_capture(folder: Path) -> Path:
    """Run the script of docs/examples/keyvalue that writes a capture."""
    import os
    import subprocess

    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    subprocess.run(
        [sys.executable, str(EXAMPLE / "make_capture.py")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    return folder / "keyvalue.pcap"
