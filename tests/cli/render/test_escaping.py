"""What comes from outside is escaped before a person sees it, whatever the verb."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kafkawire
from kafkawire.broker import Close
from kafkawire.client.failures import ClientError
from kafkawire.display import csv_text, printable, printable_lines
from kafkawire_cli.input import cluster as live
from kafkawire_cli.live import delivery_report, node
from kafkawire_cli.render import request_lines
from kafkawire_cli.render.consumed_records import writer
from kafkawire_cli.render.messages import Shape
from tests.capture.written import BROKER, Scenario
from tests.cli.reports import run

HOSTILE = (
    "a\x1b]0;owned\x07\x1b[31m\r\n00:00:00 forged\x9b\x7f\x85\u202e\u2066\u200b\u2028\u2029[red]"
)
ESCAPED = (
    r"a\x1b]0;owned\x07\x1b[31m\r\n00:00:00 forged\x9b\x7f\x85\u202e\u2066\u200b\u2028\u2029[red]"
)
PORT = ("--port", "9092")
"""Else such client ids are not taken for Kafka's."""

SILENT = ("latency", "topics")
"""Reports in which no text of this capture stands."""

RAW = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def assert_clean(*outputs: str) -> None:
    for output in outputs:
        found = RAW.search(output)
        assert found is None, f"{found[0]!r} in {output[:3000]!r}"
        assert not any(line.startswith("00:00:00 forged") for line in output.split("\n"))


# -- the function


@pytest.mark.parametrize(
    "code", [*range(0x20), *range(0x7F, 0xA0), 0xAD, *range(0x200B, 0x2010), 0x2028, 0x2029,
             *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF, 0xD800, 0xDFFF, 0x34F, 0x3164,
             0xFE0F, 0xE0001, 0xE0100]
)  # fmt: skip
def test_control_and_invisible_characters_are_escaped(code: int) -> None:
    assert printable(f"a{chr(code)}b") == f"a{chr(code).encode('unicode_escape').decode()}b"


@pytest.mark.parametrize("text", ["", "plain", "héllo", "日本語", "😀", "[red]", "C:\\temp", "a b"])
def test_other_text_is_kept(text: str) -> None:
    assert printable(text) == text


def test_lines_keep_their_ends() -> None:
    assert printable_lines("a\x1b\nb\r\nc") == "a\\x1b\nb\\r\nc"


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"), ("\t=1", "'\\t=1"),
     ("\r=1", "'\\r=1"), ("a=1", "a=1"), ("", ""), ("x\x1b", "x\\x1b")],
)  # fmt: skip
def test_formulas_in_csv_are_escaped(text: str, cell: str) -> None:
    assert csv_text(text) == cell


# -- captures


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which every name is hostile, in a file whose name is."""
    scenario = Scenario()
    made = kafkawire.from_json("ApiVersionsRequest", 3, {
        "clientSoftwareName": HOSTILE, "clientSoftwareVersion": HOSTILE,
    })  # fmt: skip
    scenario.send(0, kafkawire.encode_frame(made, 3, 1, client_id=HOSTILE))
    scenario.last_request = 1
    scenario.respond("ApiVersions", 0, errorCode=35)
    scenario.request("Metadata", 4, topics=[{"name": HOSTILE}], allowAutoTopicCreation=True)
    scenario.respond("Metadata", 4, brokers=[{"nodeId": 1, "host": HOSTILE, "port": 9092}],
                  clusterId=HOSTILE, topics=[{"name": HOSTILE, "errorCode": 3}])  # fmt: skip
    scenario.request("JoinGroup", 5, groupId=HOSTILE, memberId=HOSTILE, groupInstanceId=HOSTILE,
               protocolType=HOSTILE, protocols=[{"name": HOSTILE, "metadata": "AAAA"}])  # fmt: skip
    scenario.respond("JoinGroup", 5, memberId=HOSTILE, leader=HOSTILE, protocolName=HOSTILE,
                  members=[{"memberId": HOSTILE, "metadata": "AAAA"}])  # fmt: skip
    scenario.request("OffsetCommit", 7, groupId=HOSTILE, memberId=HOSTILE, topics=[
        {"name": HOSTILE, "partitions": [
            {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": HOSTILE},
        ]}])  # fmt: skip
    scenario.respond("OffsetCommit", 7, topics=[
        {"name": HOSTILE, "partitions": [{"partitionIndex": 0, "errorCode": 3}]}])  # fmt: skip
    scenario.request("CreateTopics", 1, topics=[{"name": HOSTILE, "numPartitions": 1,
               "configs": [{"name": "cleanup.policy", "value": HOSTILE}]}])  # fmt: skip
    scenario.respond("CreateTopics", 1, topics=[
        {"name": HOSTILE, "errorCode": 17, "errorMessage": HOSTILE}])  # fmt: skip
    scenario.request("InitProducerId", 1, transactionalId=HOSTILE)
    scenario.send(BROKER, b"\0\0\0\5\xff\x1b[31", 0)
    folder = tmp_path_factory.mktemp("hostile")
    return scenario.save(folder / "c\x1b[31m\u202e\n00:00:00 forged.pcap")


@pytest.mark.parametrize("form", [*Shape])
def test_decode(hostile: Path, form: Shape) -> None:
    for more in ((), ("--records",), ("--show-secrets",)):
        result = run("decode", hostile, *PORT, "--format", form.value, *more)
        assert result.exit_code == 0, result.output
        assert "JoinGroup" in result.stdout
        assert_clean(result.stdout, result.stderr)


def test_json_lines_lose_nothing(hostile: Path) -> None:
    lines = run("decode", hostile, *PORT, "--format", "jsonl").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert HOSTILE in {row["body"].get("groupId") for row in rows if isinstance(row["body"], dict)}
    assert rows[0]["client_id"] == HOSTILE
    assert all(line.isascii() for line in lines)


@pytest.mark.parametrize("verb", ["summary", "latency", "topics", "clients", "groups", "readiness"])
def test_reports(hostile: Path, verb: str) -> None:
    more = ("--target", "4.0") if verb == "readiness" else ()
    for form in ("table", "json"):
        result = run(verb, hostile, *PORT, "--format", form, *more)
        assert_clean(result.stdout, result.stderr)
        assert verb in SILENT or "owned" in result.stdout


def test_csv(hostile: Path, tmp_path: Path) -> None:
    from kafkawire.capture.tables import TABLES

    names = [word for name in TABLES for word in ("--table", name)]
    result = run("decode", hostile, *PORT, *names, "-o", tmp_path / "{table}.csv")
    assert result.exit_code == 0, result.output
    for path in tmp_path.glob("*.csv"):
        assert_clean(path.read_text(encoding="utf-8"))
    with (tmp_path / "messages.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert first["client_id"] == ESCAPED


def test_numbers_in_csv_stay_numbers(tmp_path: Path) -> None:
    scenario = Scenario()
    scenario.send(
        0,
        kafkawire.encode_frame(
            kafkawire.from_json("HeartbeatRequest", 0, {"groupId": "g"}), 0, -7, client_id="-7"
        ),
    )
    path, out = scenario.save(tmp_path / "c.pcap"), tmp_path / "m.csv"
    assert run("decode", path, *PORT, "--table", "messages", "-o", out).exit_code == 0
    with out.open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["correlation_id"], row["client_id"]) == ("-7", "'-7")


# -- usage errors, names of files, other verbs


@pytest.mark.parametrize(
    "words",
    [
        ("decode", f"/nowhere/{HOSTILE}"),
        ("summary", f"/nowhere/{HOSTILE}"),
        ("log", f"/nowhere/{HOSTILE}"),
        (HOSTILE,),
        ("decode", f"--{HOSTILE}"),
        ("decode", "x", "--filter", HOSTILE),
        ("decode", "x", "--table", HOSTILE),
        ("decode", "x", "--table", "messages", "-o", HOSTILE),
        ("explain", "--api", HOSTILE, "00"),
        ("explain", "--api", "Metadata", "--version", "1", f"@/nowhere/{HOSTILE}"),
        ("explain", "--api", "Metadata", "--version", "1", HOSTILE),
        ("encode", HOSTILE, "--version", "1", "{}"),
        ("encode", "Metadata", "--version", "1", json.dumps({HOSTILE: 1})),
        ("schema", "show", HOSTILE),
        ("schema", "lint", f"/nowhere/{HOSTILE}"),
        ("schema", "diff", HOSTILE, "4.0"),
        ("codegen", "--schemas", HOSTILE, "--package", "x", "--out", "y"),
        ("serve", "--set", HOSTILE),
        ("serve", "--topic", HOSTILE),
        ("consume", "t", "--offset", HOSTILE),
        ("groups", "-b", HOSTILE),
        ("topics", "-b", HOSTILE),
        ("produce", "t", "-b", HOSTILE),
        ("consume", "t", "-b", HOSTILE),
        ("consume", "t", "--offset", f"{HOSTILE}=1"),
    ],
)
def test_errors(words: tuple[str, ...]) -> None:
    result = run(*words, stdin=b"")
    assert result.exit_code != 0
    assert_clean(result.stdout, result.stderr)


def test_explain() -> None:
    body = kafkawire.from_json("HeartbeatRequest", 0, {"groupId": HOSTILE}).encode(0)
    result = run("explain", "--api", "Heartbeat", "--version", "0", body.hex())
    assert_clean(result.stdout, result.stderr)
    bad = b"\0\4a\x1b\xff\xfe" + body[2:]
    result = run("explain", "--api", "Heartbeat", "--version", "0", bad.hex())
    assert_clean(result.stdout, result.stderr)


def test_schemas(tmp_path: Path) -> None:
    (tmp_path / "XRequest.json").write_text(json.dumps({
        "apiKey": 1, "type": "request", "name": f"X{HOSTILE}Request", "validVersions": HOSTILE,
        "flexibleVersions": "none",
        "fields": [{"name": HOSTILE, "type": HOSTILE, "versions": "0+"}],
    }))  # fmt: skip
    (tmp_path / f"Y{HOSTILE.replace('/', '')}.json").write_text("{")
    for words in (
        ("schema", "lint", tmp_path),
        ("codegen", "--schemas", tmp_path, "--package", "x", "--out", tmp_path / "out"),
        ("schema", "show", tmp_path / "XRequest.json"),
    ):
        result = run(*words)
        assert result.exit_code != 0
        assert RAW.search(result.output) is None


def test_a_log(tmp_path: Path) -> None:
    from kafkawire.records import BatchBuilder, Record

    folder = tmp_path / "t\x1b[31m\u202e-0"
    folder.mkdir()
    builder = BatchBuilder()
    value = HOSTILE.encode()
    builder.extend([Record(0, 0, value, value, ((HOSTILE, value),))])
    (folder / "00000000000000000000.log").write_bytes(builder.build() + b"\x1b" * 20)
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{HOSTILE}\n")
    (folder / f"x{HOSTILE}").write_text("")
    for form in ("table", "jsonl"):
        result = run("log", folder, "--format", form)
        assert_clean(result.stdout, result.stderr)


# -- a hostile broker, a hostile client


def test_messages_of_a_broker_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        raise ClientError(HOSTILE)

    with pytest.raises(Exception):  # noqa: B017  # Typer's own
        live.run(work, live.Configuration({}, {}))
    assert_clean(capsys.readouterr().err)


async def _fail_one(report: Any) -> None:
    import asyncio

    future = asyncio.get_running_loop().create_future()
    future.set_exception(ClientError(HOSTILE))
    await report.add(future)
    future = asyncio.get_running_loop().create_future()
    future.set_result(SimpleNamespace(topic=HOSTILE, partition=0, offset=1))
    await report.add(future)


def test_produce(capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    asyncio.run(_fail_one(delivery_report.DeliveryReport(True, "line {}")))
    out, err = capsys.readouterr()
    assert "owned" in out
    assert "owned" in err
    assert_clean(out, err)


def record(value: bytes) -> Any:
    return SimpleNamespace(
        topic=HOSTILE, partition=0, offset=1, timestamp=0, key=value, value=value,
        headers=((HOSTILE, value),), timestamp_type=SimpleNamespace(name="CREATE_TIME"),
    )  # fmt: skip


def test_consume(monkeypatch: pytest.MonkeyPatch) -> None:
    one = record(HOSTILE.encode() + b"\xff")
    for form in ("table", "json"):
        assert_clean(writer(form, ["t"])(one).decode())
    assert writer("value", ["t"])(one) == one.value + b"\n", "as kcat does"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    on_terminal = writer("value", ["t"])(one).decode()
    assert RAW.search(on_terminal) is None


def test_serve(capsys: pytest.CaptureFixture[str]) -> None:
    from kafkawire.messages.heartbeat_request import HeartbeatRequest
    from kafkawire.metadata import TopicIdPartition
    from kafkawire.node import LogRecovered, LogSetAside, PartitionDamaged, SegmentRolled
    from kafkawire.replication import IsrChanged, IsrState, ReplicaChanged, ReplicaState
    from kafkawire.storage import TopicPartition

    request = SimpleNamespace(
        body=HeartbeatRequest(group_id=HOSTILE), version=0, node_id=1, connection=1,
        api_key=12, correlation_id=1, size=1, client_id=HOSTILE,
    )  # fmt: skip
    lines = request_lines.RequestLines()
    lines.report(SimpleNamespace(request=request, response=None, took=0))  # type: ignore[arg-type]
    heading, line = capsys.readouterr().out.splitlines()
    for name, value in {"api": "Heartbeat", "node": "   1", "client": r"a\x1b"}.items():
        assert line[heading.index(name) :].startswith(value)
    assert " ms " not in line  # by the broker's clock it did not wait
    lines.report(SimpleNamespace(request=request, response=None, took=0.1))  # type: ignore[arg-type]
    lines.close(Close(1, HOSTILE))
    key = TopicIdPartition(bytes(16), 0)
    node._print_effect(lines, ReplicaChanged(key, ReplicaState.LEADER, 1), lambda _: HOSTILE)
    node._print_effect(
        lines, IsrChanged(key, IsrState.COMMITTED, frozenset({1})), lambda _: HOSTILE
    )
    partition = TopicPartition(HOSTILE, 0)
    node._print_effect(lines, LogRecovered(partition, 7, 4), str)
    node._print_effect(lines, SegmentRolled(partition, 7), str)
    node._print_effect(lines, LogSetAside(partition, HOSTILE, HOSTILE), str)
    node._print_effect(lines, PartitionDamaged(partition, HOSTILE), str)
    out = capsys.readouterr().out
    assert out.count("\n") == 8
    assert_clean(out)
