"""A program of the command server has what it would have if Python itself were started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command_server import python

SHOWING = "import os, sys; print(sys.argv, os.getcwd(), os.environ['WHO'], input(), __name__)"
WAITING = "import time; print('started', flush=True)\nfor _ in range(10_000): time.sleep(0.01)"
"""In short sleeps: Python notices a signal that comes just before one when that ends."""


def ran(program: str, *arguments: str, folder: Path) -> tuple[int, str, list[str]]:
    """Return its exit code, output and errors, without the frames of a traceback."""
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**os.environ, "WHO": "me \udcff"},
        input="line\n",
        capture_output=True,
        errors="surrogateescape",
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if not line.startswith("  ")]
    return done.returncode, done.stdout, errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", SHOWING, "a", "b c"),
        ("-c", "import sys; sys.exit(3)"),
        ("-c", "import os; os.kill(os.getpid(), 9)"),
        ("-c", "import os; os.kill(os.getpid(), 15)"),
        ("-c", "import sys; print('shown', file=sys.stderr); raise ValueError"),
        ("-W", "error", "-c", "import warnings; warnings.warn('shown')"),
        ("-c", "import beside"),
        ("-m", "beside"),
        ("-m", "kafkawire_cli.main", "--version"),
        ("-m", "kafkawire_cli.main", "nonsense"),
    ],
)
def test_it_does_what_python_does(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import sys; print(__name__, sys.path[0])")
    there = ran(python(), *arguments, folder=tmp_path)
    assert there == ran(sys.executable, *arguments, folder=tmp_path)


@contextmanager
def waiting() -> Iterator[subprocess.Popen[str]]:
    """Start a program that waits; yield what stands for it."""
    command = [python(), "-c", WAITING]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process


def test_an_interrupt_is_passed_on() -> None:
    with waiting() as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.endswith("KeyboardInterrupt\n")


def test_a_program_ends_with_what_stands_for_it() -> None:
    with waiting() as process:
        process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == "", "its end comes when no process can write any more"
