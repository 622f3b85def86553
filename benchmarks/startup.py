"""How long it takes before anything happens: imports, the command line, the generator."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from time import perf_counter
from typing import Final

from .measure import Figure, figure

COMMAND: Final = """
import sys
from kafkawire_cli.main import main
sys.argv[1:] = ["{}"]
main()
"""

PYTHON: Final = "python -c pass"

SCRIPTS: Final = {
    PYTHON: "pass",
    "import kafkawire": "import kafkawire",
    "import one message": "from kafkawire.messages.fetch_request import FetchRequest",
    "kafkawire --help": COMMAND.format("--help"),
    "kafkawire version": COMMAND.format("version"),
    "generate all messages": (
        "import sys; from pathlib import Path; from kafkawire_codegen import generate, schemas_dir;"
        "generate(schemas_dir(), Path(sys.argv[1]), 'kafkawire.messages')"
    ),
}


def milliseconds(script: str) -> float:
    """Run a script in a fresh interpreter; the files it may write go to a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        command = [sys.executable, "-c", script, folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return (perf_counter() - start) * 1000


def run(rounds: int) -> list[Figure]:
    """Measure; milliseconds, the interpreter's own start included."""
    values: dict[str, list[float]] = {case: [] for case in SCRIPTS}
    for _ in range(rounds):
        for case, script in SCRIPTS.items():
            values[case].append(milliseconds(script))
    return [figure("startup", case, "kafkawire", "ms", taken) for case, taken in values.items()]
