"""Calls the methods of kadm, franz-go's admin client, by a Go program; returns what each did."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = Path(__file__).parent / "kadm"
SECONDS: Final = 180
PATTERNS: Final = (
    (r'"(?:ID|TopicID)": (?:\[[\d, ]+\]|"[^"]{24}")', '"ID": "UUID"'),
    (r"127\.0\.0\.1:\d+", "HOST:PORT"),
    (r'"Port": \d+', '"Port": "PORT"'),
    (r'"/[\w./-]*/(?:data|node)\b[\w./-]*"', '"LOG_DIR"'),
)
"""What differs from run to run, and what stands for it."""


def fetch(folder: Path) -> None:
    """Compile the program, with the modules of `kadm/go.mod`."""
    subprocess.run(("go", "build", "-o", str(folder / "kadm"), "."), cwd=PROGRAM, check=True)


def transcript(folder: Path, bootstrap: str) -> dict[str, str]:
    """Make all calls at a broker. folder: of the broker, beside the program."""
    done = subprocess.run(
        (str(folder.parent / "kadm"), bootstrap),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=SECONDS,
        check=True,
    )
    return dict(map(result, done.stdout.splitlines()))


def result(line: str) -> tuple[str, str]:
    """Return the name of a call and its result, without what differs from run to run."""
    row = json.loads(line)
    text = json.dumps(_sorted(row), sort_keys=True, indent=0)
    for pattern, name in PATTERNS:
        text = re.sub(pattern, name, text)
    return row["call"], text


def _sorted(value: Any) -> Any:
    """Return a value with its lists sorted: brokers order them differently."""
    if isinstance(value, dict):
        return {name: _sorted(part) for name, part in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=lambda part: json.dumps(part, sort_keys=True))
    return value
