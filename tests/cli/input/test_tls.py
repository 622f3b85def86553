"""`--keylog` in every verb that reads captures; no key reaches any output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kafkawire
from kafkawire_cli.main import app
from tests.conftest import FIXTURES

TLS = FIXTURES / "tls"
CAPTURE, KEYS = str(TLS / "kp-tls13-aes128.pcap"), str(TLS / "kp-tls13-aes128.keys")
SECRETS = {line.split()[2] for line in Path(KEYS).read_text().splitlines() if line[0] != "#"}


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == code, result.output
    assert not any(secret in result.output for secret in SECRETS)
    return result


def decoded(*arguments: str) -> str:
    return run("decode", CAPTURE, "--format", "jsonl", *arguments).stdout


def test_rows_are_decrypted_in_one_process_and_in_several() -> None:
    text = decoded("--keylog", KEYS, "--strict")
    statuses = [json.loads(line)["status"] for line in text.splitlines()]
    assert set(statuses) == {"ok", "tls"}
    assert statuses.count("ok") == 28
    assert decoded("--keylog", KEYS, "--jobs", "2") == text
    assert decoded("--keylog", KEYS, "--rotated") == text
    produced = decoded("--keylog", KEYS, "--filter", "api == Produce")
    assert len(produced.splitlines()) == 6


def test_without_keys_the_rows_say_what_it_is() -> None:
    run("decode", CAPTURE, "--strict", code=1)
    errors = {json.loads(line)["error"] for line in decoded().splitlines()}
    assert "TLS 1.3 (TLS_AES_128_GCM_SHA256, localhost): no keys were given" in errors


def test_tables_are_decrypted(tmp_path: Path) -> None:
    output = tmp_path / "records.jsonl"
    run("decode", CAPTURE, "--keylog", KEYS, "--table", "records", "-o", str(output))
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert {line["topic"] for line in lines} == {"secret"}
    assert len(lines) == 6
    problems = run("decode", CAPTURE, "--keylog", KEYS, "--table", "problems").stdout
    assert problems == ""


@pytest.mark.parametrize("verb", ["summary", "latency", "topics", "clients", "groups"])
def test_reports_are_decrypted(verb: str) -> None:
    encrypted = run(verb, CAPTURE, "--format", "json").stdout
    readable = run(verb, CAPTURE, "--keylog", KEYS, "--format", "json").stdout
    assert verb == "groups" or readable != encrypted
    if verb == "summary":
        payload = json.loads(readable)["payload"]
        assert payload["unaccounted"] == 0 < payload["tls"]
        assert json.loads(readable)["problems"] == []


def test_a_key_log_that_cannot_be_read(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong\x1b[31m"
    wrong.write_text("hunter2\n")
    for verb in ("decode", "summary"):
        output = run(verb, CAPTURE, "--keylog", str(wrong), code=2).output
        assert "not a key log in NSS format" in " ".join(output.split())
        assert "hunter2" not in output
        assert "\x1b[31m" not in output
        missing = run(verb, CAPTURE, "--keylog", str(tmp_path / "none"), code=2).output
        assert "No such file" in " ".join(missing.split())


def test_queries_pages_and_live_rates_are_decrypted(tmp_path: Path) -> None:
    query = "SELECT count(*) AS n FROM exchanges"
    assert json.loads(run("sql", query, CAPTURE, "--keylog", KEYS, "-f", "jsonl").stdout)["n"] == 14
    assert json.loads(run("sql", query, CAPTURE, "-f", "jsonl").stdout)["n"] == 0
    page = tmp_path / "page.html"
    run("report", CAPTURE, "--keylog", KEYS, "-o", str(page))
    assert '"Produce"' in page.read_text()
    assert not any(secret in page.read_text() for secret in SECRETS)
    assert "ApiVersions" in run("top", CAPTURE, "--keylog", KEYS).stdout


def test_in_python() -> None:
    with kafkawire.open_capture(CAPTURE, keylog=KEYS) as capture:
        assert sum(batch.num_rows for batch in capture.read("exchanges")) == 14
        assert len(list(capture.messages(api="Produce"))) == 6
        assert capture.summary()
