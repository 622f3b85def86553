"""`kafkawire decode` as a person meets it: every input, every form of output, every mistake."""

from __future__ import annotations

import array
import base64
import fcntl
import gzip
import hashlib
import json
import os
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import kafkawire
from kafkawire.protocol.error_code import ErrorCode
from kafkawire_cli.main import app
from tests.capture import truth
from tests.conftest import FIXTURES

CAPTURES = FIXTURES / "captures"
KCAT = str(CAPTURES / "kcat-kf.pcap")
OPTIONAL = ("errors", "embedded", "records")
COLUMNS = [
    "capture", "packet", "time", "connection", "client", "broker", "direction", "api_key",
    "api_name", "api_version", "correlation_id", "client_id", "length", "status", "error", "body",
]  # fmt: skip


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["decode", *arguments], input=stdin)


def rows(*arguments: str, stdin: bytes | None = None) -> list[dict[str, Any]]:
    result = run(*arguments, "--format", "jsonl", stdin=stdin)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def frame(correlation_id: int = 7) -> bytes:
    message = kafkawire.from_json("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"})
    return kafkawire.encode_frame(message, 4, correlation_id, client_id="me")


# -- inputs


def test_a_capture_is_a_row_a_message_in_the_documented_columns() -> None:
    made = rows(KCAT)
    wanted = truth.lines(CAPTURES / "kcat-kf.truth.jsonl.gz")
    assert len(made) == len(wanted)
    for row, true in zip(made, wanted, strict=True):
        assert [key for key in row if key not in OPTIONAL] == COLUMNS
        assert (row["packet"], row["connection"]) == (true["frame"], true["stream"])
        assert (row["api_key"], row["api_version"]) == (true["api_key"], true["api_version"])
        assert (row["correlation_id"], row["length"]) == (true["correlation_id"], true["len"])
        assert row["status"] == "ok"
    first = made[0]
    assert first["capture"] == KCAT
    assert first["time"].endswith("Z")
    assert first["broker"] == "127.0.0.1:19092"
    assert first["body"]["clientSoftwareName"] == "librdkafka"


@pytest.mark.parametrize("name", ["kcat-kf--ng.pcapng", "kcat-kf--z.pcap.gz"])
def test_other_wrappings_are_recognised(name: str) -> None:
    plain = [{**row, "capture": ""} for row in rows(KCAT)]
    assert [{**row, "capture": ""} for row in rows(str(CAPTURES / name))] == plain


def test_a_directory_stands_for_its_captures() -> None:
    files = {row["capture"] for row in rows(str(CAPTURES))}
    assert {Path(name).name for name in files} == {
        path.name for path in CAPTURES.iterdir() if ".pcap" in path.name
    }


def test_standard_input_is_read_as_it_comes() -> None:
    """Rows of a pipe that stays open must be there before it ends."""
    command = [sys.executable, "-m", "kafkawire_cli.main", "decode", "-", "--format", "jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(Path(KCAT).read_bytes())
        process.stdin.flush()
        first = json.loads(process.stdout.readline())
        assert first["api_name"] == "ApiVersions"
        assert process.poll() is None
        process.stdin.close()
        assert len(process.stdout.read().splitlines()) >= 100
    assert process.returncode == 0


def test_a_pipe_may_bring_a_byte_at_a_time() -> None:
    command = [sys.executable, "-m", "kafkawire_cli.main", "decode", "-", "--format", "jsonl"]
    reader, writer = os.pipe()
    with subprocess.Popen(command, stdin=reader, stdout=subprocess.PIPE) as process:
        os.close(reader)
        data = Path(KCAT).read_bytes()
        for i in range(30):
            while pending(writer):  # until the byte before was taken alone
                assert process.poll() is None
                time.sleep(0.001)
            os.write(writer, data[i : i + 1])
        with open(writer, "wb") as rest:
            rest.write(data[30:])
        assert process.stdout is not None
        assert len(process.stdout.read().splitlines()) == 114
    assert process.returncode == 0


def pending(descriptor: int) -> int:
    """Count the bytes in a pipe that nobody has read yet."""
    size = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, size)
    return size[0]


@pytest.mark.parametrize("content", [Path(KCAT).read_bytes(), frame() * 500])
def test_a_named_pipe_is_read_once(tmp_path: Path, content: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-m", "kafkawire_cli.main", "decode", str(pipe), "--format", "jsonl"],
        stdout=subprocess.PIPE,
    ) as process:
        pipe.write_bytes(content)
        assert process.stdout is not None
        made = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert {row["status"] for row in made} == {"ok"}
    assert len(made) == (114 if content[:4] != frame()[:4] else 500)


def test_text_is_not_taken_for_frames(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    result = run(str(tmp_path / "script"))
    assert result.exit_code == 2
    assert "not a capture file, hex text or frames" in result.stderr


def test_long_hex_is_not_a_file_name() -> None:
    assert len(rows((frame() * 40).hex())) == 40


def test_frames_in_a_file_pair_requests_and_responses(tmp_path: Path) -> None:
    answer = kafkawire.encode_frame(kafkawire.from_json("HeartbeatResponse", 4, {}), 4, 7)
    path = tmp_path / "frames.bin"
    path.write_bytes(frame() + answer)
    made = rows(str(path))
    assert [(r["direction"], r["api_name"], r["status"]) for r in made] == [
        ("request", "Heartbeat", "ok"),
        ("response", "Heartbeat", "ok"),
    ]
    (tmp_path / "frames.bin.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert len(rows(str(tmp_path / "frames.bin.gz"))) == 2


@pytest.mark.parametrize("form", ["{}", "0x{}", "{} \n"])
def test_hex_text_as_an_argument_or_from_stdin(form: str) -> None:
    text = form.format(frame().hex(":"))
    assert rows(text.strip())[0]["body"]["groupId"] == "g"
    assert rows("-", stdin=text.encode())[0]["client_id"] == "me"


@pytest.mark.parametrize("digits", [2, 4])
def test_hex_text_as_an_argument_for_each_byte(digits: int) -> None:
    text = (frame() + frame()).hex()
    pieces = [text[at : at + digits] for at in range(0, len(text), digits)]
    assert [row["body"]["groupId"] for row in rows(*pieces)] == ["g", "g"]
    assert len(rows(frame().hex(), frame().hex())) == 2


def test_a_response_in_hex_is_not_taken_for_a_request_silently() -> None:
    answer = kafkawire.encode_frame(kafkawire.from_json("HeartbeatResponse", 4, {}), 4, 7)
    options = ("--api", "Heartbeat", "--version", "4", "--direction", "response")
    for each in ((), options):
        assert "explain --frame --direction response" in run(answer.hex(), *each).stderr
    assert run(frame().hex()).stderr == ""
    assert run(answer[8:].hex(), *options).stderr == ""
    assert "sizes" in run(frame()[4:].hex()).stderr


def test_a_request_in_hex_may_lack_its_size() -> None:
    result = run(frame()[4:].hex())
    assert json.loads(result.stdout)["body"]["groupId"] == "g"
    assert "no size" in result.stderr
    token = kafkawire.from_json("SaslAuthenticateRequest", 0, {"authBytes": "AHNlY3JldA=="})
    made = rows(kafkawire.encode_frame(token, 0, 1)[4:].hex())[0]
    assert (made["status"], made["api_name"]) == ("ok", "SaslAuthenticate")
    assert "AHNlY3JldA" not in json.dumps(made)


@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_hex_that_is_too_short_for_a_frame_is_an_error(count: int) -> None:
    result = run(frame()[:count].hex())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "too short for a frame" in result.stderr
    hint = "for a body without a header: kafkawire explain --api API --version N"
    assert result.stderr.endswith(f"; {hint}\n")
    assert hint in run("0862696c6c696e6700000007046d2d310000").stderr
    assert run(frame()[:8].hex()).exit_code == 0


def test_a_bare_body_is_decoded_by_api_and_version(tmp_path: Path) -> None:
    body = kafkawire.from_json("MetadataResponse", 9, {"controllerId": 3}).encode(9)
    path = tmp_path / "body.bin"
    path.write_bytes(body)
    options = ["--api", "Metadata", "--version", "9", "--direction", "response"]
    assert rows(str(path), *options)[0]["body"]["controllerId"] == 3
    assert rows(body.hex(), *options)[0]["api_key"] == 3
    assert rows("-", *options, stdin=body)[0]["status"] == "ok"


# -- what is not whole


def test_unknown_keys_and_versions_keep_header_and_bytes() -> None:
    unknown_key = "0000000c03e7000100000005000178aa"
    unknown_version = "0000000c000c00630000000600017800"
    made = rows(unknown_key + unknown_version)
    assert [(r["status"], r["api_key"], r["client_id"]) for r in made] == [
        ("unknown_api", 999, "x"),
        ("unknown_version", 12, "x"),
    ]
    assert made[0]["body"] == "(redacted, 1 byte)", "a secret, for all that is known"
    assert rows(unknown_key, "--show-secrets")[0]["body"] == "aa"


def test_a_truncated_capture_is_decoded_up_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(Path(KCAT).read_bytes()[:5000])
    made = rows(str(path))
    assert len(made) > 10
    assert made[-1]["status"] == "unreadable"
    assert "at byte 4992" in made[-1]["error"]


def test_strict_exits_1_when_anything_was_bent() -> None:
    assert run(KCAT, "--strict").exit_code == 0
    assert run(str(CAPTURES / "kjs-all.pcap"), "--strict").exit_code == 1


# -- forms of output


def test_the_table_has_a_line_a_message() -> None:
    lines = run(KCAT, "--format", "table").stdout.splitlines()
    assert len(lines) == 1 + 1 + 114  # the heading, the date
    assert lines[0].split()[:6] == ["packet", "time", "(UTC)", "connection", "api", "ver"]
    assert lines[1].strip() == "2026-11-21"
    assert " Metadata " in lines[4]


def test_the_tree_shows_fields_and_embedded_payloads() -> None:
    shown = run(
        str(CAPTURES / "ck-group-range.pcap"), "--format", "tree", "--filter", "api == SyncGroup"
    )
    assert "ConsumerProtocolAssignment" in shown.stdout
    assert "groupId:" in shown.stdout


def test_names_cannot_steer_the_terminal() -> None:
    message = kafkawire.from_json("HeartbeatRequest", 4, {"groupId": "\x1b[31m\u202e"})
    data = kafkawire.encode_frame(message, 4, 1, client_id="\x1b]0;gotcha\x07").hex()
    for form in ("table", "tree"):
        shown = run(data, "--format", form).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_credentials_are_hidden_by_default() -> None:
    message = kafkawire.from_json(
        "SaslAuthenticateRequest", 2, {"authBytes": "AGFsaWNlAHNlY3JldA=="}
    )
    data = kafkawire.encode_frame(message, 2, 1).hex()
    assert "AGFsaWNl" not in run(data, "--format", "jsonl").stdout
    assert rows(data, "--show-secrets")[0]["body"]["authBytes"] == "AGFsaWNlAHNlY3JldA=="


FILTERS = [
    ("api == Produce", lambda r: r["api_name"] == "Produce"),
    ("api ~ prod* or api == 18", lambda r: r["api_name"] in ("Produce", "ApiVersions")),
    (
        "connection == 1 and direction == request",
        lambda r: (r["connection"], r["direction"]) == (1, "request"),
    ),
    ("client == rdkafka", lambda r: r["client_id"] == "rdkafka"),
    ("api == list_offsets", lambda r: r["api_name"] == "ListOffsets"),
    ("status ~ O? and api ~ '*e*'", lambda r: r["status"] == "ok" and "e" in r["api_name"].lower()),
    ("connection in (0, 1)", lambda r: r["connection"] in (0, 1)),
    ("size > 100 and version != 0", lambda r: r["length"] > 100 and r["api_version"]),
    ("packet <= 20", lambda r: r["packet"] <= 20),
]


@pytest.mark.parametrize(("where", "keeps"), FILTERS)
def test_filters(where: str, keeps: Any) -> None:
    made = rows(KCAT, "--filter", where)
    assert made
    assert made == [row for row in rows(KCAT) if keeps(row)]
    assert made == [
        {**row, "capture": KCAT}
        for row in rows("-", "--filter", where, stdin=Path(KCAT).read_bytes())
    ]


def test_several_filters_must_all_match() -> None:
    made = rows(KCAT, "--filter", "api == Fetch or api == Produce", "--filter", "latency > 100ms")
    assert made == rows(KCAT, "--filter", "(api in (Fetch, Produce)) and latency > 100ms")
    assert {row["api_name"] for row in made} == {"Fetch"}
    assert {row["direction"] for row in made} == {"request", "response"}


@pytest.mark.parametrize("form", ["table", "tree", "jsonl"])
def test_filters_in_every_format(form: str) -> None:
    """A filtered output is a part of the whole output, in every format."""
    whole = run(KCAT, "--format", form).stdout
    part = run(KCAT, "--format", form, "--filter", "api == Metadata").stdout
    lines = iter(whole.splitlines())
    assert all(line in lines for line in part.splitlines())
    assert 0 < len(part) < len(whole) / 2


def test_filters_of_bare_frames() -> None:
    frame = "0000000b00120000000000010001" + "63"
    assert rows(frame, "--filter", "api == ApiVersions and client == c")
    assert rows(frame, "--filter", "api == Fetch or latency > 1s or topic == x") == []


def test_filter_by_error() -> None:
    path = str(CAPTURES / "kp22-old-0.9.pcap")
    made = rows(path, "--filter", "error ~ 'UNSUPPORTED*'")
    assert {row["api_name"] for row in made} == {"Produce"}
    assert rows(path, "--filter", "error == 35") == made


def codes(value: Any) -> Iterator[int]:
    """The error codes in a body."""
    if isinstance(value, list):
        for one in value:
            yield from codes(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key.endswith(("errorCode", "ErrorCode")) and isinstance(one, int):
                yield one
            else:
                yield from codes(one)


@pytest.mark.parametrize("name", ["kcat-kf.pcap", "ck-group-range.pcap", "kp22-old-0.9.pcap"])
@pytest.mark.parametrize("options", [(), ("--records",), ("--redact",)])
def test_errors_are_the_names_of_error_codes(name: str, options: tuple[str, ...]) -> None:
    """Apart from `error`, which is about decoding; of a filter, the same rows."""
    path = str(CAPTURES / name)
    made = rows(path, *options)
    for row in made:
        names = [ErrorCode.name_of(code) for code in dict.fromkeys(codes(row["body"])) if code]
        assert row.get("errors", []) == names
    failed = [row for row in made if "errors" in row]
    assert failed
    assert failed == rows(path, *options, "--filter", "error != NONE and direction == response")
    assert list(failed[0])[14:17] == ["error", "errors", "body"]


def test_filter_by_unknown_keys_and_codes() -> None:
    """Keys and codes of other releases may be in a capture: they are valid, by number."""
    for text in ("api == 999", "error == 999", "error == ERROR_999"):
        assert rows(KCAT, "--filter", text) == []


# -- mistakes

MISTAKES = [
    (["/nowhere/at/all.pcap"], "/nowhere/at/all.pcap: No such file or directory"),
    ([KCAT, "--filter", "colour == red"], "unknown field 'colour'; fields: api, client"),
    ([KCAT, "--filter", "red"], "unknown field 'red'"),
    ([KCAT, "--filter", "api=Fetch"], "use =="),
    ([KCAT, "--filter", "api == Fech"], "unknown API 'Fech'; did you mean Fetch?"),
    ([KCAT, "--filter", "api == 1", "--filter", "api == x"], "unknown API 'x'"),
    ([KCAT, "--table", "records", "--filter", "latency > 1s"], "table records has no latency"),
    ([KCAT, "--table", "exchange"], "group_events, problems; did you mean exchanges?"),
    ([KCAT, "--version", "3"], "required by --version and --direction"),
    (["00", "--api", "Fetch"], "Missing --version: FetchRequest has versions"),
    (["x.pcap", "--api", "fetch"], "to select from captures: --filter 'api == Fetch'"),
    (["00", "--api", "Fetsh", "--version", "1"], "did you mean Fetch?"),
    (
        ["00", "--api", "Fetch", "--version", "1", "--direction", "up"],
        "'up' is not a valid direction",
    ),
    (["0"], "odd number of hex digits (1)"),
    (["0" * 999], "odd number of hex digits (999)"),
    (["caf\udce9"], "No such file or directory"),
]


def test_mistakes_in_filters_are_shown_in_their_place() -> None:
    result = run(KCAT, "--filter", "latency > 1s and api == Fech\x1b[0m or size > 3kB")
    assert result.exit_code == 2
    assert result.stderr.endswith(
        f"\n\n  latency > 1s and api == Fech\\x1b[0m or size > 3kB\n  {' ' * 24}{'^' * 11}\n"
    )
    assert "did you mean Fetch?" in result.stderr


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_are_explained_and_exit_2(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_wrong_file_does_not_stop_the_others(tmp_path: Path) -> None:
    wrong = tmp_path / "notes.txt"
    wrong.write_text("Dear diary")
    result = run(str(wrong), KCAT, "--format", "jsonl")
    assert result.exit_code == 2
    assert "notes.txt: not a capture file, hex text or frames" in result.stderr
    assert len(result.stdout.splitlines()) == 114


def test_an_empty_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "nothing").write_bytes(b"")
    result = run(str(tmp_path / "nothing"))
    assert result.exit_code == 2
    assert "empty" in result.stderr


def test_a_closed_pipe_ends_it_quietly() -> None:
    decode = f"{sys.executable} -m kafkawire_cli.main decode {CAPTURES}/*.pcap --format jsonl"
    command = f"{decode} | head -n 1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False
    )
    assert ran.stderr == b""
    assert ran.returncode in (0, 141)


# -- records


def test_records_are_counted_or_decoded() -> None:
    produce = [KCAT, "--filter", "api == Produce and direction == request"]
    counted = rows(*produce)[0]["records"]
    assert counted == [
        {
            "path": "topic_data[0].partition_data[0].records",
            "topic": "kc",
            "partition": 1,
            "bytes": 87,
            "batches": 1,
            "records": 1,
            "codecs": ["none"],
        }
    ]
    opened = rows(*produce, "--records")
    assert opened[0]["records"][0]["content"][0]["value"] == {"text": "kcat none one"}
    franz = rows(str(CAPTURES / "fg-max-v0.11.0.pcap"), "--filter", "api == Produce", "--records")
    codecs = {name for row in franz for held in row.get("records", ()) for name in held["codecs"]}
    assert codecs == {"none", "gzip", "snappy", "lz4"}


def test_redaction_keeps_sizes_and_hashes_and_nothing_else() -> None:
    made = rows(KCAT, "--filter", "api == Produce", "--records", "--redact")
    text = json.dumps(made)
    assert "kcat none one" not in text
    assert base64.b64encode(b"kcat none one").decode().rstrip("=")[:-1] not in text
    value = made[0]["records"][0]["content"][0]["value"]
    assert value == {"bytes": 13, "sha256": hashlib.sha256(b"kcat none one").hexdigest()}
    assert made[0]["body"]["topicData"][0]["partitionData"][0]["records"].startswith("87 bytes: 1 ")


def test_a_corrupt_batch_does_not_affect_the_others() -> None:
    record = "AAAAAAAAAAAAAABLAAAAAAKGNA6JAAAAAAAAAAABofxMSlcAAAGh/ExKV///////////////////AAAAAQ=="
    partition = {"index": 0, "records": record}
    topic = {"name": "t", "partitionData": [partition]}
    message = kafkawire.from_json("ProduceRequest", 7, {"acks": 1, "topicData": [topic]})
    data = kafkawire.encode_frame(message, 7, 1).hex()
    made = rows(data, "--records")[0]
    assert made["status"] == "ok"
    assert made["records"][0]["cut_tail"] == 61


def test_tokens_and_passwords_are_hidden_even_where_nothing_decodes() -> None:
    handshake = kafkawire.from_json("SaslAuthenticateRequest", 0, {"authBytes": "AHNlY3JldA=="})
    broken = bytearray(kafkawire.encode_frame(handshake, 0, 1))
    broken[14] = 0x7F  # the length of the token
    made = rows(bytes(broken).hex())[0]
    assert made["status"] == "malformed"
    assert made["body"].startswith("(redacted, ")
