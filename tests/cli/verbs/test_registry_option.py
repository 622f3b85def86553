"""`--registry`: decode, explain and encode messages of a package that others generated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kafkawire import Registry
from kafkawire.records import BatchBuilder
from kafkawire_cli.main import app
from tests.capture.written import Scenario
from tests.generated import generated, keyvalue, write_capture

PUT = json.dumps({"bucket": "b", "entries": [{"key": "k", "contentType": "text"}]})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with keyvalue(folder):
        write_capture(folder)
    (folder / "broken.py").write_text("value = 1 +\n")
    (folder / "not_generated.py").write_text("REGISTRY = 5\n")
    (folder / "failing.py").write_text("import there_is_no_such_module\n")
    return folder


@pytest.fixture
def folder(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, which is not on Python's path; modules in it are forgotten."""
    monkeypatch.chdir(store)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(store))])
    before = set(sys.modules)
    yield store
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("keyvalue", "broken", "failing", "not_generated"):
            del sys.modules[name]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("form", [[], ["--table", "messages"]], ids=["rows", "table"])
def test_the_package_may_be_in_the_current_directory(store: Path, form: list[str]) -> None:
    program = "import sys; sys.path.remove(''); from kafkawire_cli.main import main; main()"
    command = [sys.executable, "-c", program, "decode", "--registry", "keyvalue.messages"]
    path = os.pathsep.join(one for one in sys.path if one and one != str(store))
    one, many = [
        subprocess.run(
            [*command, "keyvalue.pcap", *form, *jobs],
            cwd=store,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        for jobs in ([], ["--jobs", "2"])
    ]
    assert (one.returncode, one.stderr, one.stdout.count("\n")) == (0, "", 8)
    assert many.stdout == one.stdout


@pytest.mark.usefixtures("folder")
def test_captures_are_decoded_with_the_package() -> None:
    options = ["--registry", "keyvalue.messages", "keyvalue.pcap"]
    done = run("decode", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["api_name"] for row in rows[::2]] == ["Hello", "Put", "Get", "Get"]
    assert {row["status"] for row in rows} == {"ok"}
    assert rows[2]["embedded"]["entries[1].value"]["value"]["title"] == "Notes"
    assert "errors" not in rows[3]
    assert run("decode", *options, "--rotated").stdout == done.stdout
    tree = run("decode", *options, "--format", "tree", "--filter", "api == Put").stdout
    assert 'title: "Notes"' in tree
    lines = run("decode", *options, "--table", "messages", "--filter", "api == Put").stdout
    bodies = [json.loads(json.loads(line)["body"]) for line in lines.splitlines()]
    assert bodies[0]["entries"][1]["valueDecoded"]["value"]["title"] == "Notes"
    assert bodies[1] == {"errorCode": 0, "revision": 7}
    table = run("decode", *options, "--format", "table").stdout
    assert "bucket=notes key=k2" in table


@pytest.mark.usefixtures("folder")
def test_error_codes_of_others_have_no_names_of_kafka() -> None:
    body = ["--api", "Put", "--version", "0", "--direction", "response", "0023" + "00" * 8]
    done = run("decode", "--registry", "keyvalue.messages", *body, "--format", "tree")
    assert "errorCode: 35\n" in done.stdout
    line = run("decode", "--registry", "keyvalue.messages", *body)
    assert "UNSUPPORTED" not in line.stdout
    kafka = ["--api", "Heartbeat", "--version", "0", "--direction", "response", "0023"]
    assert "(UNSUPPORTED_VERSION)" in run("decode", *kafka, "--format", "tree").stdout


@pytest.mark.usefixtures("folder")
def test_messages_are_encoded_and_explained() -> None:
    options = ["--registry", "keyvalue.messages"]
    frame = run("encode", *options, PUT, "--api", "put", "--version", "1", "--frame")
    assert frame.stdout.startswith("000000180002000100000000ffff00")
    decoded = run("decode", *options, frame.stdout.strip())
    assert json.loads(decoded.stdout)["body"]["entries"][0]["key"] == "k"
    shown = run("explain", *options, "--frame", frame.stdout.strip())
    assert shown.exit_code == 0
    assert "PutRequest" in shown.stdout
    packet = run("explain", *options, "keyvalue.pcap", "--packet", "5", "--json")
    (found,) = json.loads(packet.stdout)
    assert (found["api_name"], found["status"]) == ("Put", "ok")
    body = run("explain", *options, "--api", "Document", "--version", "1", "0005")
    assert (body.exit_code, "Document.title: 5 bytes wanted" in body.stdout) == (1, True)
    response = ["--direction", "response", "--api", "Put", "--version", "1"]
    answer = "0000001000000001000003000000000000000700"
    shown = run("explain", *options, *response, "--frame", answer)
    assert "error_code" in shown.stdout
    assert "version 1" in shown.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("there_is.no_package", "no package 'there_is.no_package' on the Python path or in the"),
        ("keyvalue.nothing", "no package 'keyvalue.nothing' on the Python path or in the"),
        ("kafkawire", "kafkawire is not a package that kafkawire codegen generates"),
        ("not_generated", "not_generated is not a package that kafkawire codegen generates"),
        ("broken", "cannot import 'broken': SyntaxError"),
        ("failing", "cannot import 'failing': ModuleNotFoundError"),
        ("\x1b[31m", "no package '\\x1b[31m' on the Python path"),
        (".relative", "cannot import '.relative': TypeError"),
        ("", "Empty module name"),
    ],
)
@pytest.mark.parametrize("verb", ["decode", "explain", "encode"])
@pytest.mark.usefixtures("folder")
def test_a_package_that_cannot_be_used_is_a_usage_error(verb: str, name: str, reason: str) -> None:
    more = {"explain": ["00"], "encode": ["{}", "--api", "Put", "--version", "0"]}
    done = run(verb, *more.get(verb, ["keyvalue.pcap"]), "--registry", name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Invalid value for --registry" in done.stderr
    assert reason in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["decode", "keyvalue.pcap", "--table", "records"],
            "records has only Kafka's messages",
        ),
        (["decode", "keyvalue.pcap", "--filter", "api == Fetch"], "unknown API 'Fetch'"),
        (["decode", "keyvalue.pcap", "--filter", "group == g"], "unknown field 'group'"),
        (["decode", "00", "--api", "Fetch", "--version", "0"], "unknown API 'Fetch'"),
        (["explain", "--api", "Git", "--version", "0", "00"], "did you mean Get?"),
        (["encode", "{}", "--api", "Get", "--version", "9"], "GetRequest has versions 0-1"),
        (["explain", "keyvalue.pcap", "--packet", "2"], "no message ends in packet 2"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_usage_errors_name_what_the_package_has(arguments: list[str], reason: str) -> None:
    done = run(*arguments, "--registry", "keyvalue.messages")
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


APPEND = {
    "apiKey": 0, "type": "request", "name": "AppendRequest", "validVersions": "0",
    "flexibleVersions": "0+",
    "fields": [
        {"name": "Records", "type": "string", "versions": "0+"},
        {"name": "Log", "type": "Log", "versions": "0+", "fields": [
            {"name": "Entries", "type": "records", "versions": "0+"},
            {"name": "More", "type": "records", "versions": "0+", "taggedVersions": "0+", "tag": 0},
        ]},
    ],
}  # fmt: skip


def test_records_of_a_packages_own_are_shown_and_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that is named as Kafka's records is not records; one inside a struct is."""
    batch = BatchBuilder(base_offset=0)
    batch.append(b"key", b"secret value")
    data = batch.build()
    text = b64encode(data).decode()
    with generated(tmp_path, "append_a", APPEND):
        messages = Registry("append_a")
        fields = {"records": "plain", "log": {"entries": text}}
        request = messages.from_json("AppendRequest", 0, fields)
        scenario = Scenario().send(0, messages.encode_frame(request, 0, 1, client_id="c"))
        scenario.save(tmp_path / "append.pcap")
        monkeypatch.chdir(tmp_path)
        options = ["decode", "--registry", "append_a", "append.pcap"]
        shown = json.loads(run(*options, "--records").stdout)
        assert shown["body"] == fields
        records, more = shown["records"]
        assert (more["path"], more["records"]) == ("log.more", 0)
        assert (records["path"], records["records"]) == ("log.entries", 1)
        assert records["content"][0]["value"] == {"text": "secret value"}
        for form in ("jsonl", "tree"):
            hidden = run(*options, "--records", "--redact", "--format", form)
            assert hidden.exception is None
            assert text not in hidden.stdout
            assert "secret value" not in hidden.stdout
            assert "plain" in hidden.stdout
        table = run(*options, "--table", "messages", "--redact").stdout
        assert "AppendRequest" in table or "Append" in table
        assert text not in table


def test_a_package_in_the_folder_of_sources_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src/ping/messages").mkdir(parents=True)
    done = run("encode", "{}", "--api", "Put", "--version", "0", "--registry", "ping.messages")
    assert (done.exit_code, "set PYTHONPATH=src" in " ".join(done.stderr.split())) == (2, True)
    done = run("encode", "{}", "--api", "Put", "--version", "0", "--registry", "pong.messages")
    assert (done.exit_code, "PYTHONPATH" in done.stderr) == (2, False)
