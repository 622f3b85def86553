"""The generated package decodes Apache Kafka's bytes to its values, and encodes the same bytes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.conftest import FIXTURES

from .node import HERE, run, types

VECTORS = FIXTURES / "golden"
FILES = ("messages", "log_records", "frames", "negatives", "quirks")


def _rows(file: str) -> int:
    with gzip.open(VECTORS / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def test_every_golden_vector_both_ways(sources: Path, tmp_path: Path) -> None:
    """In one process: all versions of all messages, frames, refused bytes, oddities."""
    result = json.loads(run(HERE / "golden.mjs", sources, types(tmp_path), VECTORS))
    assert result["wrong"] == 0, "\n".join(result["shown"])
    assert result["agreed"] == {file: _rows(file) for file in FILES}
