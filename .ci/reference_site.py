"""Adds the protocol reference (`kafkawire codegen --target site`) to the documentation site.

A hook of MkDocs: the files are part of the site, so that links to them are checked.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from kafkawire_cli.input.protocol_facts import protocol_facts
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.targets import generate_target

FOLDER: Final = "reference"


def on_files(files: Any, config: Any) -> Any:
    """Generate the reference, and add its files."""
    from mkdocs.structure.files import File

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        generate_target("site", schemas_dir(), out, None, protocol_facts(schemas_dir()))
        for made in sorted(out.rglob("*.*")):
            if made.is_file() and not made.name.startswith("."):
                path = f"{FOLDER}/{made.relative_to(out).as_posix()}"
                files.append(File.generated(config, path, content=made.read_text("utf-8")))
    return files
