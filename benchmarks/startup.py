"""Measures start-up time: imports, the command line, the generator, a user's first test.

Byte code is cached, as after pip: with PYTHONDONTWRITEBYTECODE a changed tree would be
compiled each time.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Final

import kafkawire
import kafkawire_cli
import kafkawire_codegen

from .measure import Figure, figure

CAPTURE: Final = Path(__file__).resolve().parents[1] / "fixtures" / "captures" / "kp22-old-0.9.pcap"
"""12 kB: decoding it takes no measurable time."""

PACKAGES: Final = (kafkawire, kafkawire_cli, kafkawire_codegen)

COMMAND: Final = """
import sys
from kafkawire_cli.main import main
sys.argv[1:] = {}
main()
"""

DECODED: Final = """
from kafkawire.messages.fetch_request import FetchRequest
data = FetchRequest().encode(12)
FetchRequest.decode(data, 12)
"""

FAILED: Final = """
try:
    FetchRequest.decode(data[:-3], 12)
except ValueError as error:
    assert error.path == "FetchRequest.forgotten_topics_data"
"""

TESTED: Final = """
import asyncio
from kafkawire.net.producer import Producer

def test_orders(kafka_broker):
    async def send():
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            await (await producer.send("orders", b"apples"))

    asyncio.run(send())
    assert [record.value for record in kafka_broker.records("orders")] == [b"apples"]
"""
"""What a user of pytest writes first."""

FIRST_TEST: Final = f"""
import sys
from pathlib import Path
import pytest
Path(sys.argv[1], "test_orders.py").write_text({TESTED!r})
sys.exit(pytest.main(["--quiet", "--rootdir", sys.argv[1], sys.argv[1]]))
"""

SCRIPTS: Final = {
    "python -c pass": "pass",
    "import kafkawire": "import kafkawire",
    "import one message": "from kafkawire.messages.fetch_request import FetchRequest",
    "one message decoded": DECODED,
    "and a truncated one, whose error names its field": DECODED + FAILED,
    "import numpy": "import numpy",
    "import typer": "import typer",
    "kafkawire --help": COMMAND.format(["--help"]),
    "kafkawire version": COMMAND.format(["version"]),
    "kafkawire decode, 12 kB": COMMAND.format(["decode", str(CAPTURE)]),
    "pytest, a first test with a broker": FIRST_TEST,
    "generate all messages": (
        "import sys; from pathlib import Path; from kafkawire_codegen import generate, schemas_dir;"
        "generate(schemas_dir(), Path(sys.argv[1]), 'kafkawire.messages')"
    ),
}


def milliseconds(script: str) -> tuple[float, float]:
    """Run a script in a fresh interpreter, and return its wall-clock and CPU time.

    The argument of the script is a folder for the files that it writes.
    """
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        command = [sys.executable, "-c", script, folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        clock = perf_counter() - start
    if process.returncode:
        raise AssertionError(f"{script} ended with {process.returncode}")
    return clock * 1000, (used.ru_utime + used.ru_stime) * 1000


def run(rounds: int) -> list[Figure]:
    """Measure; milliseconds, the interpreter's own start included."""
    for package in PACKAGES:
        compileall.compile_dir(package.__path__[0], quiet=1)
    taken: dict[str, list[tuple[float, float]]] = {case: [] for case in SCRIPTS}
    for _ in range(rounds):
        for case, script in SCRIPTS.items():
            taken[case].append(milliseconds(script))
    return [
        figure("startup", case, contender, "ms", [both[at] for both in values])
        for case, values in taken.items()
        for at, contender in enumerate(("clock", "processor"))
    ]
