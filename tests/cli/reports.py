"""Reports run for tests: each once, whoever asks."""

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
    """Run a verb for its JSON."""
    result = run(verb, *captures, *options, "--format", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@cache
def text(verb: str, *captures: Path, code: int = 0) -> str:
    """Run a verb for what a person sees, in a pipe."""
    result = run(verb, *captures)
    assert result.exit_code == code, result.output
    return result.stdout


COMMAND = [sys.executable, "-m", "kafkawire_cli.main"]


@contextmanager
def terminal(columns: int = 100) -> Iterator[tuple[int, int]]:
    """Open a terminal: our end of it, and the end that a program is given."""
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
    """Run a verb on a terminal; give what that was told. out: where standard output goes instead.
    more: of the environment.
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
        told = b"".join(said_to(ours))
        assert process.wait() == 0, told
    return told.decode()


UNSET = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
"""What would say more of the terminal than it does itself."""


def said_to(ours: int) -> Iterator[bytes]:
    """Read what a terminal is told, until nobody holds its other end."""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            return
        if not data:
            return
        yield data
