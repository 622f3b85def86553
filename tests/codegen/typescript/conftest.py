"""The generated package, and what checks its types: the TypeScript that Deno contains.

`make test` needs no npm registry. The build by npm's own TypeScript is in test_build.py, which
`make soak` collects.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from deno import find_deno_bin

from .node import package

collect_ignore = [] if "KAFKAWIRE_SOAK" in os.environ else ["test_build.py"]

Check = Callable[[Path], str]
"""A folder -> the errors in all of its TypeScript; empty if there are none."""

UNSUPPORTED: Final = {"rootDir", "outDir", "declaration", "rewriteRelativeImportExtensions"}
"""Options of a build, which has no part in a check of types."""


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the package of Kafka's messages."""
    return package(tmp_path_factory.mktemp("typescript"))


@pytest.fixture(scope="session")
def check(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Checks types as strictly as tsconfig.json of the package says, and for unused names."""
    folder = tmp_path_factory.mktemp("deno")
    options = json.loads((sources.parent / "tsconfig.json").read_text())["compilerOptions"]
    options = {name: value for name, value in options.items() if name not in UNSUPPORTED}
    config = folder / "deno.json"
    config.write_text(
        json.dumps(
            {
                "compilerOptions": {**options, "noUnusedLocals": True},
                "imports": {
                    "kafka-messages": str(sources / "index.ts"),
                    "kafka-messages/messages/fetch-request": str(
                        sources / "messages" / "fetch-request.ts"
                    ),
                },
            }
        )
    )
    quiet = {"DENO_DIR": str(folder), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}

    def errors(checked: Path) -> str:
        files = sorted(checked.rglob("*.ts"))
        assert files
        command = [find_deno_bin(), "check", "--quiet", "--no-remote", "--config", config, *files]
        ran = subprocess.run(
            command,
            env=os.environ | quiet,
            capture_output=True,
            text=True,
            check=False,
        )
        assert bool(ran.returncode) == ("[ERROR]" in ran.stderr), ran.stderr
        return ran.stderr

    return errors
