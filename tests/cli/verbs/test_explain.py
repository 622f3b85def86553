"""`kafkawire explain` as its user meets it: rows, the bad byte, exit codes, wrong questions."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kafkawire import encode_frame, from_json
from kafkawire_cli.main import app
from tests.conftest import FIXTURES

BODY = "0261026200"
FRAME = encode_frame(from_json("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"}), 4, 7)


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], input=text)


def test_a_body_is_explained_row_by_row() -> None:
    result = run("--api", "ApiVersions", "--version", "3", BODY)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["0", "ApiVersionsRequest", "version", "3"],
        ["0", "02", "client_software_name", "compact", "string", "1", "byte"],
        ["1", "61", "UTF-8", '"a"'],
        ["2", "02", "client_software_version", "compact", "string", "1", "byte"],
        ["3", "62", "UTF-8", '"b"'],
        ["4", "00", "tagged", "fields", "tags", "0", "fields"],
    ]


@pytest.mark.parametrize("api", ["ApiVersions", "ApiVersionsRequest", "18"])
def test_an_api_is_named_in_three_ways(api: str) -> None:
    assert "client_software_name" in run("--api", api, "--version", "3", BODY).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["02 61 02 62 00"],
        ["0x02610262", "0x00"],
        ["02:61:02:62:00"],
        ["02\n61 02\r\n62 00\n"],
        ["02", "61", "02", "62", "00"],
        ["0261026200".upper()],
    ],
)
def test_hex_is_taken_as_people_write_it(words: list[str]) -> None:
    result = run("--api", "18", "--version", "3", *words)
    assert result.exit_code == 0
    assert '"b"' in result.stdout


def test_hex_comes_from_standard_input_and_from_files(tmp_path: Path) -> None:
    assert '"b"' in run("--api", "18", "--version", "3", "-", text=f"{BODY}\n").stdout
    file = tmp_path / "body.hex"
    file.write_text(BODY)
    assert '"b"' in run("--api", "18", "--version", "3", f"@{file}").stdout
    file.write_bytes(b"\x02a\xff")
    wrong = run("--api", "18", "--version", "3", f"@{file}")
    assert wrong.exit_code == 2
    assert "is not hex text" in wrong.stderr
    missing = run("--api", "18", "--version", "3", f"@{tmp_path}/none")
    assert missing.exit_code == 2
    assert "No such file" in missing.stderr


def test_the_first_bad_byte_is_marked_and_the_rest_shown() -> None:
    result = run("--api", "ApiVersions", "--version", "3", "0361c3026200")
    assert result.exit_code == 1
    rows = result.stdout.splitlines()
    assert rows[-3].split() == ["1", "61", "not", "decoded", "1", "byte"]
    assert rows[-2].split() == ["2", "c3", "02", "62", "00", "not", "decoded", "4", "bytes"]
    assert rows[-1].index("^") == rows[-2].index("c3")
    assert "ApiVersionsRequest.client_software_name: the byte 0xc3 is not UTF-8" in rows[-1]


def test_a_request_frame_explains_itself() -> None:
    result = run("--frame", FRAME.hex())
    assert result.exit_code == 0
    for word in ("size", "RequestHeader", "correlation_id", "HeartbeatRequest", "generation_id"):
        assert word in result.stdout


def test_a_response_frame_needs_api_and_version() -> None:
    frame = "0000000c000000010000000000000000"
    given = run("--frame", "--direction", "response", "--api", "Heartbeat", "--version", "1", frame)
    assert "ResponseHeader" in given.stdout
    missing = run("--frame", "--direction", "response", frame)
    assert missing.exit_code == 2
    assert "--api" in missing.stderr


def test_a_response_that_is_explained_as_a_request_has_a_hint() -> None:
    response = "0000000a00000005000000000000"
    hint = "for a response, add --direction response --api API --version N"
    result = run("--frame", response)
    assert result.exit_code == 1
    assert hint in result.stderr
    assert hint not in run("--frame", FRAME.hex()).stderr
    named = ["--frame", "--direction", "response", "--api", "Heartbeat", "--version", "1"]
    result = run(*named, response[:-4])
    assert result.exit_code == 1
    assert hint not in result.stderr


def test_json_has_every_byte() -> None:
    result = run("--frame", "--json", FRAME.hex())
    trees = json.loads(result.stdout)["nodes"]
    assert [tree["name"] for tree in trees] == ["size", "RequestHeader", "HeartbeatRequest"]

    def leaves(node: dict[str, object]) -> str:
        children = node.get("children")
        if not isinstance(children, list):
            return str(node["hex"])
        return "".join(leaves(child) for child in children)

    assert "".join(leaves(tree) for tree in trees) == FRAME.hex()


def test_json_contains_the_error() -> None:
    result = run("--api", "18", "--version", "3", "--json", "026102")
    assert result.exit_code == 1
    made = json.loads(result.stdout)
    assert made["error"] == {
        "kind": "Truncated",
        "reason": "1 byte wanted, 0 left",
        "path": "ApiVersionsRequest.client_software_version",
        "offset": 3,
    }
    assert "not_decoded" not in made


CAPTURE = FIXTURES / "captures" / "kcat-kf.pcap"
USAGE = [
    (["--api", "18", "--version", "3", "02 6g"], "invalid hex digit 'g' at character 5"),
    (["--api", "18", "--version", "3", "026"], "odd number of hex digits (3)"),
    (["--api", "Fetsh", "--version", "3", "00"], "did you mean Fetch?"),
    (["--api", "9999", "--version", "3", "00"], "unknown API key 9999"),
    (["--api", "Fetch", "00"], "FetchRequest has versions 0-18"),
    (["--api", "Fetch", "--version", "99", "00"], "unsupported version 99"),
    (["--version", "3", "00"], "Missing --api: required without --frame"),
    (["0000000b00120000000000010001", "63"], "Missing --frame: the 15 bytes"),
    ([str(CAPTURE)], "Missing --packet or --exchange"),
    (
        ["--frame", "--direction", "response", "00"],
        "Missing --api: required with --direction response",
    ),
    (["--frame", "--api", "Fetch", "00"], "only allowed with --direction response"),
    (
        ["--api", "FetchRequest", "--direction", "response", "--version", "3", "00"],
        "FetchRequest is a request",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[message for _, message in USAGE])
def test_invalid_arguments_are_usage_errors(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


def on_a_terminal(environment: dict[str, str]) -> str:
    """Run the verb in a process whose standard output is a terminal; what it printed."""
    ours, theirs = pty.openpty()
    arguments = ["explain", "--api", "18", "--version", "3", "0361c3026200"]
    with os.fdopen(ours, "rb") as terminal:
        subprocess.run(
            [sys.executable, "-m", "kafkawire_cli.main", *arguments],
            stdout=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200", **environment},
            check=False,
        )
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while more := terminal.read1():
                printed += more
    return printed.decode()


def test_a_terminal_gets_colour_and_the_same_text() -> None:
    plain = run("--api", "18", "--version", "3", "0361c3026200").stdout
    coloured = on_a_terminal({"NO_COLOR": ""})
    assert "\x1b[" in coloured
    text = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in text.splitlines()] == plain.splitlines()
    assert on_a_terminal({"NO_COLOR": "1"}).splitlines() == plain.splitlines()


def test_help_has_examples() -> None:
    text = run("--help").stdout
    assert text.count("kafkawire explain") >= 2
