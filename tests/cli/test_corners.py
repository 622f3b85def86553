"""What people do to a command line: bad files, closed pipes, odd ways to write things."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import kafkawire
from tests.capture import wire
from tests.capture.written import Scenario
from tests.conftest import FIXTURES

from .reports import COMMAND, run

CAPTURES = FIXTURES / "captures"
KCAT = CAPTURES / "kcat-kf.pcap"
OLD = CAPTURES / "kp22-old-0.9.pcap"
VERBS = [
    ["summary"],
    ["latency"],
    ["topics"],
    ["clients"],
    ["groups"],
    ["transactions"],
    ["readiness", "--target", "4.0"],
    ["decode", "--table", "exchanges"],
    ["decode"],
]
READINESS = VERBS[6]
every_verb = pytest.mark.parametrize("verb", VERBS, ids=" ".join)


# -- files


def bad(folder: Path, kind: str) -> Path:
    """Create something that is not a capture."""
    path = folder / f"{kind}.pcap"
    if kind == "directory":
        path.mkdir()
        (path / "notes.txt").write_text("no capture")
    elif kind != "missing":
        path.write_bytes(
            {
                "empty": b"",
                "text": b"no capture at all",
                "three bytes": KCAT.read_bytes()[:3],
                "packed text": gzip.compress(b"no capture at all"),
                "broken gzip": b"\x1f\x8b\x08\xff" + bytes(20),
            }[kind]
        )
    return path


BAD = {
    "missing": "No such file or directory",
    "empty": "empty",
    "directory": "no capture files in this directory",
    "text": "not a capture file",
    "three bytes": "not a capture file",
    "packed text": "not a capture file",
    "broken gzip": "corrupt compressed data",
}


@every_verb
@pytest.mark.parametrize("kind", BAD)
def test_inputs_that_are_not_captures_are_named(verb: list[str], kind: str, tmp_path: Path) -> None:
    path = bad(tmp_path, kind)
    result = run(*verb, path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"kafkawire {verb[0]}: {path}: {BAD[kind]}")


@every_verb
def test_the_other_files_of_a_set_are_read(verb: list[str], tmp_path: Path) -> None:
    """As in a directory in which the next rotated file has just been created."""
    (tmp_path / "1.pcap").write_bytes(KCAT.read_bytes())
    (tmp_path / "0.pcap").touch()
    alone = run(*verb, tmp_path / "1.pcap")
    for given in ([tmp_path], [tmp_path / "0.pcap", tmp_path / "1.pcap"]):
        result = run(*verb, *given)
        assert result.exit_code == 2
        refused, *others = result.stderr.splitlines()
        assert refused == f"kafkawire {verb[0]}: {tmp_path / '0.pcap'}: empty"
        assert all("the other inputs" in line for line in others)
        assert result.stdout == alone.stdout != ""


@every_verb
@pytest.mark.parametrize("size", [10, 24, 40, 20_000])
def test_a_file_that_is_cut_is_read_as_far_as_it_goes(
    verb: list[str], size: int, tmp_path: Path
) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(KCAT.read_bytes()[:size])
    assert run(*verb, path).exit_code == 0


def test_a_cut_is_a_problem_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(KCAT.read_bytes()[:20_000])
    made = json.loads(run("summary", path, "--format", "json").stdout)
    assert "unreadable" in {problem["kind"] for problem in made["problems"]}
    assert made["payload"]["unaccounted"] == 0


@every_verb
def test_an_empty_capture_is_not_an_error(verb: list[str], tmp_path: Path) -> None:
    path = tmp_path / "nothing.pcap"
    path.write_bytes(KCAT.read_bytes()[:24])
    result = run(*verb, path)
    assert (result.exit_code, result.stderr) == (0, "")


@every_verb
def test_a_stream_must_be_the_only_input(verb: list[str]) -> None:
    if verb == ["decode"]:
        return  # which reads one after the other
    result = run(*verb, KCAT, "-", stdin=KCAT.read_bytes())
    assert result.exit_code == 2
    assert "is a stream: it must be the only input" in " ".join(result.stderr.split())


def test_a_named_pipe_is_a_stream(tmp_path: Path) -> None:
    """Like the shell's `<(...)`: it can be read only once."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    capture = CAPTURES / "ck-848.pcap"
    command = [*COMMAND, "summary", str(path), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        path.write_bytes(capture.read_bytes())
        out, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["groups"][0]["lag"] == 0


# -- pipes

BODY = ["explain", "--api", "Heartbeat", "--version", "4", "0862696c6c696e6700000007046d2d310000"]
CLOSED = [
    (["version"], 0),
    (["--version"], 0),
    (["--help"], 0),
    (["summary", "--help"], 0),
    (BODY, 0),
    (["schema", "show", "FetchRequest"], 0),
    (["encode", "{}", "--api", "Heartbeat", "--version", "1"], 0),
    (["decode", str(KCAT)], 0),
    (["decode", str(KCAT), "--table", "messages"], 0),
    (["summary", str(KCAT)], 0),
    (["groups", str(KCAT), "--format", "json"], 0),
    (["readiness", str(OLD), "--target", "4.0"], 1),
    (["nonsense"], 2),
]


@pytest.mark.parametrize(("arguments", "code"), CLOSED, ids=lambda value: str(value)[:40])
def test_a_closed_pipe_is_not_a_failure(arguments: list[str], code: int) -> None:
    """What was found stays the exit code, as of `kafkawire readiness ... | head -1`."""
    assert into_a_closed_pipe(arguments, "") == code


@pytest.mark.parametrize(("arguments", "code"), [CLOSED[4], CLOSED[9], CLOSED[11]])
def test_nor_is_it_where_nothing_is_buffered(arguments: list[str], code: int) -> None:
    assert into_a_closed_pipe(arguments, "1") == code


def into_a_closed_pipe(arguments: list[str], unbuffered: str) -> int:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        result = subprocess.run(
            [*COMMAND, *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (b"rror" in result.stderr) is (result.returncode == 2), result.stderr
    return result.returncode


def test_a_report_on_a_full_disk_is_a_failure() -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*COMMAND, "summary", str(KCAT)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 2
    assert b"No space left on device" in result.stderr


@pytest.mark.parametrize(
    "words", [["summary", KCAT], ["sql", "SELECT 1", KCAT], ["report", KCAT, "-o", "-"]]
)
def test_an_output_that_cannot_be_written_is_reported_once(words: list[object]) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*COMMAND, *map(str, words)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 2
    assert result.stderr.count(b"No space left on device") == 1


def with_closed(stream: str, *words: object) -> tuple[int, str]:
    """Run a command with a standard stream closed, as by `>&-` of a shell."""
    shell = ["/bin/sh", "-c", f'exec "$@" {stream}', "sh", *COMMAND, *map(str, words)]
    result = subprocess.run(
        shell, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.stdout == ""
    return result.returncode, result.stderr


@pytest.mark.parametrize("verb", [["version"], *([*verb, KCAT] for verb in VERBS)], ids=str)
def test_a_closed_output_is_a_failure(verb: list[object]) -> None:
    code, errors = with_closed(">&-", *verb)
    assert (code, errors) == (2, f"kafkawire {verb[0]}: output: Bad file descriptor\n")


def test_a_closed_input_is_empty() -> None:
    assert with_closed("<&-", "summary", "-") == (2, "kafkawire summary: -: empty\n")
    assert with_closed("<&- >&-", "summary", KCAT)[0] == 2


def test_without_standard_error_the_exit_code_remains() -> None:
    assert with_closed("2>&-", "sumary") == (2, "")
    assert with_closed("2>&-", "summary", "missing.pcap") == (2, "")


# -- options


def test_a_page_can_be_written_to_standard_output(tmp_path: Path) -> None:
    command = [*COMMAND, "report", str(KCAT), "-o", "-"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert result.stdout.startswith(b"<!doctype html>")
    assert (result.stderr, list(tmp_path.iterdir())) == (b"", [])


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["help"], "use --help"),
        (["help", "decode"], "use --help"),
        (["-V"], "did you mean --version?"),
        (["-v"], "did you mean --version?"),
    ],
)
def test_habits_of_other_tools_are_explained(words: list[str], meant: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert meant in result.stderr


@pytest.mark.parametrize("words", [[], ["schema"]], ids=" ".join)
def test_without_arguments_the_help_is_shown(words: list[str]) -> None:
    result, requested = run(*words), run(*words, "--help")
    assert result.exit_code == 2
    assert result.output.splitlines() == requested.stdout.splitlines()


def test_words_of_usage_errors() -> None:
    for words in (["summary", KCAT, "--port", "abc"], ["encode", "{}", "--version", "abc"]):
        result = run(*words)
        assert result.exit_code == 2
        assert "must be an integer, got 'abc'" in result.stderr


def test_the_version_is_an_option_too() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"kafkawire {kafkawire.__version__}\n")
    assert run("version").stdout.startswith(result.stdout)


@pytest.mark.parametrize(
    "words",
    [
        "0862696c6c696e6700000007046d2d310000",
        "0862 696c 6c69 6e67 0000 0007 046d 2d31 0000",
        "08:62:69:6c:6c:69:6e:67:00:00:00:07:04:6d:2d:31:00:00",
        "08-62-69-6C-6C-69-6E-67_00000007_046D2D31_0000",
        "0x08, 0x62, 0x69, 0x6c, 0x6c, 0x69, 0x6e, 0x67, 0X00000007, 0x046d2d310000",
        r"\x08\x62\x69\x6c\x6c\x69\x6e\x67\x00\x00\x00\x07\x04\x6d\x2d\x31\x00\x00",
        "0862696c6c696e67\n00000007\r\n046d2d310000\n",
    ],
)
def test_hex_is_read_in_one_way(words: str) -> None:
    options = ["--api", "Heartbeat", "--version", "4"]
    explained = run("explain", *options, words)
    assert explained.exit_code == 0, explained.output
    assert '"billing"' in explained.stdout
    decoded = run("decode", *options, words, "--format", "jsonl")
    assert decoded.exit_code == 0, decoded.output
    assert json.loads(decoded.stdout)["body"]["groupId"] == "billing"


@pytest.mark.parametrize("words", ["08 6x", "0a0x0b", "08 6", "08;62"])
def test_explain_and_decode_report_the_same_error_for_invalid_hex(words: str) -> None:
    options = ["--api", "Heartbeat", "--version", "4", "-"]
    explained = run("explain", *options, stdin=words.encode())
    decoded = run("decode", *options, "--input-format", "hex", stdin=words.encode())
    assert (explained.exit_code, decoded.exit_code) == (2, 2)
    message = " ".join(decoded.stderr.split()).removeprefix("kafkawire decode: -: ")
    assert "hex digit" in message
    assert message in " ".join(explained.stderr.split())


# -- who is the broker


def far_end(path: Path) -> Path:
    """Write a capture in which a broker is seen first, and says nothing of itself."""
    packets = []
    for side in (1, 0):
        ports, hosts = (40000, 9092), (wire.CLIENT, wire.BROKER)
        segment = wire.tcp(ports[side], ports[1 - side], 5, b"", ack=5)
        packet = wire.ipv4(segment, source=hosts[side], destination=hosts[1 - side])
        packets.append(wire.Packet(wire.ethernet(packet)))
    path.write_bytes(wire.pcap(packets))
    return path


def ends(path: Path, *options: str) -> tuple[Any, Any]:
    result = run("decode", path, "--table", "connections", *options)
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    return row["client"], row["broker"]


CLIENT, BROKER = f"{wire.CLIENT}:40000", f"{wire.BROKER}:9092"


def test_a_broker_may_be_named(tmp_path: Path) -> None:
    path = far_end(tmp_path / "a.pcap")
    assert ends(path) == (BROKER, CLIENT)
    assert ends(path, "--port", "9092") == (CLIENT, BROKER)
    assert ends(path, "--broker", BROKER) == (CLIENT, BROKER)
    assert ends(path, "--broker", "[::1]:9092", "--broker", BROKER) == (CLIENT, BROKER)
    assert ends(path, "--broker", f"{wire.CLIENT}:9092") == (BROKER, CLIENT)
    assert ends(path, "--broker", f"[::ffff:{wire.BROKER}]:9092") == (CLIENT, BROKER)


@every_verb
def test_every_verb_takes_a_broker(verb: list[str]) -> None:
    plain = run(*verb, CAPTURES / "ck-offsets-v6.pcap")
    for options in (["--broker", "[::1]:9092"], ["--broker", "localhost:9092"], ["--port", "9092"]):
        plain_result = run(*verb, CAPTURES / "ck-offsets-v6.pcap", *options)
        assert (plain_result.exit_code, plain_result.stdout) == (plain.exit_code, plain.stdout), (
            plain_result.stderr
        )


@pytest.mark.parametrize(
    "broker", ["9092", "localhost", "localhost:", "localhost:http", "127.0.0.1:70000", "[::1:9092"]
)
def test_invalid_broker_addresses_are_refused(broker: str) -> None:
    result = run("summary", KCAT, "--broker", broker)
    assert result.exit_code == 2
    assert "--broker" in result.stderr


def test_reports_without_content_say_nothing_found(tmp_path: Path) -> None:
    path = Scenario().request("ApiVersions", 0).respond("ApiVersions", 0).save(tmp_path / "a.pcap")
    assert run("groups", path).stdout == "  No consumer groups found.\n"
    made = json.loads(run("groups", path, "--format", "json").stdout)
    assert made == {"groups": [], "left_out": 0}


def no_kafka(path: Path) -> Path:
    """Write a capture of two packets of HTTP."""
    segment = wire.tcp(40000, 80, 1, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ack=1)
    packet = wire.Packet(wire.ethernet(wire.ipv4(segment)))
    path.write_bytes(wire.pcap([packet, packet]))
    return path


@pytest.mark.parametrize(
    "verb",
    [["latency"], ["topics"], ["groups"], ["transactions"], ["clients"], READINESS],
    ids=" ".join,
)
def test_a_report_on_a_capture_without_kafka_says_so(verb: list[str], tmp_path: Path) -> None:
    result = run(*verb, no_kafka(tmp_path / "a.pcap"))
    assert result.exit_code == 0
    note = "no Kafka messages in 2 packets; see kafkawire summary"
    assert result.stderr == f"kafkawire {verb[0]}: {note}\n"
    assert run(*verb, KCAT).stderr == ""


def test_without_clients_there_is_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "nothing.pcap"
    path.write_bytes(KCAT.read_bytes()[:24])
    assert run(*READINESS, path).stdout == "  No clients found.\n"
