"""Runs reports for tests; results are cached."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from typer.testing import CliRunner, Result

from kafkawire_cli.main import app


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, [str(one) for one in arguments], input=stdin)


@cache
def report(verb: str, *captures: Path, options: tuple[str, ...] = (), code: int = 0) -> Any:
    """Run a verb and return its JSON."""
    result = run(verb, *captures, *options, "--format", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@cache
def text(verb: str, *captures: Path, code: int = 0) -> str:
    """Run a verb and return its text, as in a pipe."""
    result = run(verb, *captures)
    assert result.exit_code == code, result.output
    return result.stdout


COMMAND = [sys.executable, "-m", "kafkawire_cli.main"]


@contextmanager
def terminal(columns: int = 100) -> Iterator[tuple[int, int]]:
    """Open a pseudo-terminal; yield both ends."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def on_a_terminal(
    *arguments: object,
    out: int | IO[bytes] | None = None,
    columns: int = 100,
    **more: str,
) -> str:
    """Run a verb on a terminal and return its output. out: redirects standard output. more:
    environment variables.
    """
    plain = {key: value for key, value in os.environ.items() if key not in UNSET}
    with terminal(columns) as (ours, theirs):
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=theirs if out is None else out,
            stderr=theirs,
            env={**plain, "TERM": "xterm", **more},
        )
        os.close(theirs)
        output = b"".join(read_terminal(ours))
        assert process.wait() == 0, output
    return output.decode()


UNSET = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
"""Environment variables that override properties of the terminal."""


def read_terminal(ours: int) -> Iterator[bytes]:
    """Read the output on a terminal until its other end is closed."""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other end is closed
            return
        if not data:
            return
        yield data
