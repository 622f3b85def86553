"""Reports run for tests: each once, whoever asks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

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
def text(verb: str, *captures: Path, columns: int | None = None, code: int = 0) -> str:
    """Run a verb for what a person sees, on a terminal that is so wide."""
    env = {} if columns is None else {"COLUMNS": str(columns)}
    result = CliRunner(env=env).invoke(app, [verb, *map(str, captures)])
    assert result.exit_code == code, result.output
    return result.stdout
