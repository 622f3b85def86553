"""Runs a notebook in IPython, and writes what its cells show into it.

python -m tests.notebook.running NOTEBOOK
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import IPython.core.interactiveshell

from tests.conftest import ROOT

NOTEBOOK = ROOT / "docs" / "guide" / "notebook.ipynb"
TYPES = ("text/html", "text/plain")


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of its cells; an error in a cell raises."""
    shell_class: Any = IPython.core.interactiveshell.InteractiveShell
    shell = shell_class()
    cells = []
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            with redirect_stdout(sys.stderr):
                found = shell.run_cell("".join(cell["source"]))
            found.raise_error()
            cell = cell | {"execution_count": number, "outputs": _outputs(shell, found, number)}
        cells.append(cell)
    return notebook | {"cells": cells}


def _outputs(shell: Any, found: Any, number: int) -> list[dict[str, Any]]:
    if found.result is None:
        return []
    data, _ = shell.display_formatter.format(found.result, include=TYPES)
    return [
        {
            "data": {name: text.splitlines(keepends=True) for name, text in data.items()},
            "execution_count": number,
            "metadata": {},
            "output_type": "execute_result",
        }
    ]


def main(path: Path, *, write: bool) -> None:
    """Run a notebook; write it, or its JSON to standard output."""
    text = path.read_text()
    os.chdir(path.parent)
    made = json.dumps(run(json.loads(text)), indent=1, ensure_ascii=False) + "\n"
    if write:
        path.write_text(made)
    else:
        sys.stdout.write(made)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), write="--check" not in sys.argv)
