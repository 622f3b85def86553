"""Compressed captures, whose content begins anywhere in the file, are read by every verb."""

from __future__ import annotations

import gzip
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from kafkawire_cli.main import app

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CAPTURE: Final = Path(__file__).parents[3] / "fixtures" / "captures" / "aio-sll2.pcap"
DATA: Final = CAPTURE.read_bytes()
COMPRESSED: Final[dict[str, Callable[[], bytes]]] = {
    "zst": lambda: zstd.compress(DATA),
    "skippable.zst": lambda: (
        struct.pack("<II", 0x184D2A50, 10_000) + bytes(10_000) + zstd.compress(DATA)
    ),
    "gz": lambda: gzip.compress(DATA),
    "name.gz": lambda: (
        ((packed := gzip.compress(DATA))[:3] + b"\x08" + packed[4:10] + b"n" * 9999 + b"\0")
        + packed[10:]
    ),
}
VERBS: Final = {
    "decode": ["decode", "FILE", "-f", "jsonl"],
    "decode --table": ["decode", "FILE", "--table", "exchanges"],
    "summary": ["summary", "FILE"],
    "sql": ["sql", "SELECT count(*) FROM exchanges", "FILE"],
}


def run(verb: str, name: str, stdin: bytes | None = None) -> str:
    arguments = [name if each == "FILE" else each for each in VERBS[verb]]
    result = CliRunner().invoke(app, arguments, input=stdin)
    assert result.exit_code == 0, result.stderr
    return re.sub(r"[\d.]+ \w?B\n", "SIZE\n", result.stdout).replace(name, "FILE")


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("verb", VERBS)
def test_the_output_is_that_of_the_uncompressed_capture(
    verb: str, kind: str, tmp_path: Path
) -> None:
    assert len(zstd.compress(DATA[: 1 << 17])) > 4096, "the first block is large"
    file = tmp_path / f"capture.pcap.{kind}"
    file.write_bytes(COMPRESSED[kind]())
    assert run(verb, str(file)) == run(verb, str(CAPTURE))
    assert run(verb, "-", COMPRESSED[kind]()) == run(verb, "-", DATA)
