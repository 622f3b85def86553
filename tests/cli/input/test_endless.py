"""Input that does not end is refused with the reason; pipes that end are read, once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafkawire.capture.tls import keylog
from kafkawire.capture.tls.keylog import KeyLogError, read_key_log
from kafkawire_cli.input import inputs
from kafkawire_cli.main import app
from kafkawire_cli.verbs.captures import sql

from .test_tls import CAPTURE, KEYS, run

LIMIT = 1 << 16


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_BYTES", LIMIT)
    monkeypatch.setattr(inputs, "READ_AT_ONCE", 1000)
    monkeypatch.setattr(sql, "MAX_STATEMENT", LIMIT)


ENDLESS = {
    "hex": (["decode", "-"], b"00"),
    "frames": (["decode", "-"], b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"),
    "explain": (["explain", "-"], b"00"),
    "encode": (["encode", "-", "--api", "Heartbeat", "--version", "4"], b"["),
    "sql": (["sql", CAPTURE], b"SELECT\n"),
    "one line": (["sql", CAPTURE], b"x"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_input_beyond_the_limit_is_an_error(kind: str) -> None:
    arguments, text = ENDLESS[kind]
    result = CliRunner().invoke(app, arguments, input=text * (3 * LIMIT // len(text)))
    assert result.exit_code == 2, result.output
    assert "more than" in " ".join(result.stderr.split())


def test_a_small_file_may_decompress_to_endless_hex(tmp_path: Path) -> None:
    import gzip

    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(b"0" * (LIMIT + 2)))
    result = CliRunner().invoke(app, ["decode", str(file)])
    assert result.exit_code == 2
    assert "more than" in result.stderr


@pytest.mark.parametrize("verb", ["decode", "summary", "explain"])
def test_a_key_log_that_is_a_device(verb: str) -> None:
    more = ("--packet", "1") if verb == "explain" else ()
    output = run(verb, CAPTURE, *more, "--keylog", "/dev/zero", code=2).output
    assert "not a key log in NSS format" in " ".join(output.split())


def test_a_key_log_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keylog, "MAX_BYTES", LIMIT)
    file = tmp_path / "keys"
    file.write_bytes(Path(KEYS).read_bytes() * (1 + LIMIT // Path(KEYS).stat().st_size))
    with pytest.raises(KeyLogError, match="more than"):
        read_key_log(file)


@pytest.mark.parametrize("more", [(), ("--rotated",), ("--jobs", "2"), ("--table", "exchanges")])
def test_a_key_log_may_be_a_pipe(more: tuple[str, ...], tmp_path: Path) -> None:
    pipe = tmp_path / "keys"
    os.mkfifo(pipe)
    expected = run("decode", CAPTURE, CAPTURE, "--keylog", KEYS, *more).stdout
    writer = threading.Thread(target=pipe.write_bytes, args=(Path(KEYS).read_bytes(),))
    writer.start()
    assert run("decode", CAPTURE, CAPTURE, "--keylog", str(pipe), *more).stdout == expected
    writer.join()
