"""Notes and errors begin with the name of the verb, in every verb."""

from __future__ import annotations

import re
from collections.abc import Iterator
from socket import socket
from typing import Final

import pytest

from kafkawire_cli.kafka_tools import LIVE
from kafkawire_cli.notes import keep_verb, print_note
from tests.cli.reports import run
from tests.conftest import ROOT

PREFIX: Final = re.compile(r'"kafkawire(?: [a-z]+| \{\w+\})?: ')
ARGUMENTS: Final = {"consume": ("orders",), "produce": ("orders",)}


@pytest.fixture
def closed_port() -> Iterator[str]:
    """The address of a port that is bound and does not listen."""
    with socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("verb", sorted(LIVE))
def test_errors_of_a_cluster_begin_with_the_verb(closed_port: str, verb: str) -> None:
    soon = ("-X", "bootstrap.timeout.ms=1")
    done = run(verb, *ARGUMENTS.get(verb, ()), "-b", closed_port, *soon, stdin=b"a\n")
    assert done.exit_code == 1
    lines = done.stderr.splitlines()
    assert any(line.startswith(f"kafkawire {verb}: ") for line in lines), lines
    assert not any(line.startswith("kafkawire: ") for line in lines), lines


def test_a_note_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    keep_verb("summary")
    print_note("a\nb\x1b")
    assert capsys.readouterr().err == "kafkawire summary: a\\nb\\x1b\n"


def test_only_one_function_writes_the_prefix() -> None:
    sources = (ROOT / "cli" / "kafkawire_cli").rglob("*.py")
    written = [path.name for path in sources if PREFIX.search(path.read_text("utf-8"))]
    assert written == []
