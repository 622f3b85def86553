"""docs/examples: from schemas to a decoded capture, as their pages show it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.generated import EXAMPLE
from tests.pages import Playground, agrees, blocks, commands

PAGE = "docs/examples/keyvalue/README.md"


def test_a_protocol_from_schemas_to_the_command_line(tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    playground.folder = folder
    example = []
    for block in blocks(PAGE):
        if block.language == "py":
            example.append(block.text)
        if block.language == "python":
            assert block.text.strip() in (folder / "payloads.py").read_text("utf-8")
        if block.language != "console":
            continue
        for line, shown in commands(block):
            ran = playground.run(line)
            assert (ran.returncode, ran.stderr) == (0, ""), line
            assert not shown or agrees(shown, ran.stdout), f"{line}\n{ran.stdout}"
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            f"import sys; sys.path.append('')\n{''.join(example)}",
        ],
        cwd=folder,
        env=playground.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
