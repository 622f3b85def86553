"""`kafkawire encode`, `codegen` and `version`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kafkawire
from kafkawire_cli.main import app


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


HEARTBEAT = json.dumps({"groupId": "g", "generationId": 1, "memberId": "m"})
BODY = "026700000001026d0000"


@pytest.mark.parametrize("api", ["Heartbeat", "heartbeat", "HeartbeatRequest", "12"])
def test_json_becomes_bytes(api: str) -> None:
    result = run("encode", HEARTBEAT, "--api", api, "--version", "4")
    assert (result.exit_code, result.stdout) == (0, BODY + "\n")


def test_json_from_a_file_or_stdin(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(HEARTBEAT)
    options = ["--api", "Heartbeat", "--version", "4"]
    assert run("encode", f"@{tmp_path / 'h.json'}", *options).stdout.strip() == BODY
    assert run("encode", "-", *options, stdin=HEARTBEAT).stdout.strip() == BODY
    raw = run("encode", HEARTBEAT, *options, "--raw")
    assert raw.stdout_bytes == bytes.fromhex(BODY)


def test_a_frame_has_size_and_header() -> None:
    options = ["--api", "Heartbeat", "--version", "4", "--frame", "--correlation-id", "9"]
    data = bytes.fromhex(run("encode", HEARTBEAT, *options, "--client-id", "me").stdout)
    frame = kafkawire.decode_frame(data)
    assert (frame.correlation_id, frame.body.encode(4).hex()) == (9, BODY)


NO_INT32 = "99999999999 is not in -2147483648 to 2147483647"
FRAME_MISTAKES = [
    (
        ["--correlation-id", "99999999999"],
        f"RequestHeader.correlation_id: {NO_INT32}",
    ),
    (["--client-id", "\udcff"], "RequestHeader.client_id: character 0 cannot be written as UTF-8"),
]


@pytest.mark.parametrize(("options", "message"), FRAME_MISTAKES)
def test_invalid_header_fields_are_refused(options: list[str], message: str) -> None:
    result = run("encode", "{}", "--api", "Heartbeat", "--version", "4", "--frame", *options)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())


MISTAKES = [
    ("{", 2, "invalid JSON"),
    ("[]", 1, "HeartbeatRequest: is an array, not an object"),
    ('{"groupId": 5}', 1, "HeartbeatRequest.groupId: is a number, not a string"),
    ('{"groupID": "g"}', 1, "did you mean 'groupId'?"),
    (
        '{"generationId": 99999999999}',
        1,
        f"HeartbeatRequest.generation_id: {NO_INT32}",
    ),
    ('{"groupId": null}', 1, "HeartbeatRequest.group_id"),
    ("@/nowhere.json", 2, "/nowhere.json: No such file"),
    ("@{latin}", 2, "invalid UTF-8 at byte 16"),
    ("[" * 200_000, 2, "invalid JSON"),
    (f'{{"generationId": {"9" * 5000}}}', 2, "invalid JSON"),
]


@pytest.mark.parametrize("options", [["--correlation-id", "9"], ["--client-id", "x"]])
def test_a_body_has_no_header_fields(options: list[str]) -> None:
    result = run("encode", "{}", "--api", "Heartbeat", "--version", "4", *options)
    assert result.exit_code == 2
    assert "only allowed with --frame" in result.stderr


def test_an_unknown_version_is_a_usage_error() -> None:
    result = run("encode", "{}", "--api", "Heartbeat", "--version", "44")
    assert result.exit_code == 2
    assert "unsupported version 44: HeartbeatRequest has versions 0-4" in result.stderr


def test_without_a_version_those_that_exist_are_named() -> None:
    result = run("encode", "{}", "--api", "Heartbeat")
    assert result.exit_code == 2
    assert "Missing --version: HeartbeatRequest has versions 0-4" in result.stderr


@pytest.mark.parametrize(("text", "code", "message"), MISTAKES)
def test_mistakes(text: str, code: int, message: str, tmp_path: Path) -> None:
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"groupId": "caf\xe9"}')
    given = text.replace("{latin}", str(latin))
    result = run("encode", given, "--api", "Heartbeat", "--version", "4")
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["version"],
        ["explain", "00", "--api", "Heartbeat", "--version", "4"],
        ["encode", "{}", "--api", "Heartbeat", "--version", "4", "--raw"],
        ["decode", "00000010001200030000000100016100"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_full_disk_is_reported_and_exits_2(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kafkawire_cli.main", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (
        2,
        f"kafkawire {arguments[0]}: output: No space left on device\n",
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("verb", ["encode", "decode", "schema"])
def test_a_partial_write_is_a_failure(verb: str, unbuffered: str, tmp_path: Path) -> None:
    frame = kafkawire.encode_frame(
        kafkawire.from_json("HeartbeatRequest", 4, {"groupId": "g" * 20_000}), 4, 7, client_id="me"
    )
    (tmp_path / "frame.bin").write_bytes(frame)
    (tmp_path / "group.json").write_text(json.dumps({"groupId": "g" * 20_000}))
    arguments = {
        "encode": ["encode", f"@{tmp_path}/group.json", "--api", "12", "--version", "4", "--raw"],
        "decode": ["decode", str(tmp_path / "frame.bin")],
        "schema": ["schema", "show", "FetchRequest", "--each", "--json"],
    }[verb]
    command = [sys.executable, "-m", "kafkawire_cli.main", *arguments]
    with (tmp_path / "out").open("wb") as out:
        ran = subprocess.run(
            ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", *command],  # 2 or 4 KiB
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert (ran.returncode, ran.stderr) == (2, f"kafkawire {verb}: output: File too large\n")


def test_codegen_makes_a_package(tmp_path: Path) -> None:
    result = run("codegen", "--package", "made", "--out", str(tmp_path / "made"))
    assert result.exit_code == 0
    assert "292 messages" in result.stdout
    assert (tmp_path / "made" / "fetch_request.py").exists()
    assert run("codegen", "--package", "x", "--out", "y", "--schemas", "/no").exit_code == 2


PING = {
    "apiKey": 900,
    "type": "request",
    "name": "PingRequest",
    "validVersions": "0",
    "flexibleVersions": "none",
    "fields": [{"name": "Payload", "type": "string", "versions": "0+"}],
}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (["--package", "ping"], ["__init__.py", "_facts.py", "ping_request.py"]),
        (["--target", "wireshark", "--package", "ping"], ["ping.lua"]),
        (["--templates", "templates"], ["names.txt"]),
    ],
)
def test_codegen_checks_what_is_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], changed: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schemas").mkdir()
    Path("templates").mkdir()
    Path("schemas/PingRequest.json").write_text(json.dumps(PING))
    text = "{% for m in messages %}{{ m.name }}{{ m.versions }}{% endfor %}"
    Path("templates/names.txt.j2").write_text(text)
    command = ["codegen", "--schemas", "schemas", "--output", "out", *options]
    missing = run(*command, "--check")
    assert (missing.exit_code, Path("out").exists()) == (1, False)
    assert set(changed) <= set(missing.stdout.split())
    assert run(*command).exit_code == 0
    assert run(*command, "--check").exit_code == 0
    Path("schemas/PingRequest.json").write_text(json.dumps(PING | {"validVersions": "0-1"}))
    before = {path: path.read_bytes() for path in Path("out").iterdir() if path.is_file()}
    differing = run(*command, "--check")
    assert (differing.exit_code, differing.stdout.split()) == (1, changed)
    assert before == {path: path.read_bytes() for path in Path("out").iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--package", "x", "--schemas", "{tmp}"], "no schemas (*.json)"),
        (["--package", "1 x"], "invalid package name '1 x'"),
        (["--target", "wireshark", "--package", "A.b"], "invalid protocol name 'A.b'"),
        (["--package", "x", "--out", "{tmp}/file"], "file: File exists"),
    ],
)
def test_codegen_explains_mistakes(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "file").write_text("")
    given = [option.format(tmp=tmp_path) for option in ["--out", "{tmp}/o", *options]]
    result = run("codegen", *given)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_codegen_reports_every_fault(tmp_path: Path) -> None:
    (tmp_path / "BadRequest.json").write_text(
        '{"apiKey": 1, "type": "request", "name": "BadRequest", "validVersions": "0",\n'
        ' "flexibleVersions": "none", "fields": [\n'
        '   {"name": "A", "type": "int33", "versions": "0+"},\n'
        '   {"name": "A", "type": "int32", "versions": "x"}]}\n'
    )
    result = run(
        "codegen", "--schemas", str(tmp_path), "--package", "x", "--out", str(tmp_path / "o")
    )
    assert result.exit_code == 1
    assert "BadRequest.json:3:" in result.stderr
    assert "BadRequest.json:4:" in result.stderr
    assert not (tmp_path / "o").exists()


def test_version_shows_what_is_installed() -> None:
    text = run("version").stdout
    assert f"kafkawire {kafkawire.__version__}" in text
    assert re.search(r"codecs\s+(interpreted|compiled: \d+ of 292 messages)", text)


def test_every_command_has_help_with_an_example() -> None:
    for command in ("decode", "encode", "explain", "codegen", "schema"):
        assert "kafkawire" in run(command, "--help").stdout, command
