"""`--values` of decode, consume, produce and log."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import Result

from kafkawire import encode_frame
from kafkawire.client.consumer import TopicPartition
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.net.brokers.recording import Recording
from kafkawire.net.consumer import Consumer
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import BatchBuilder
from kafkawire_cli.live.outputs import RecordOutput
from kafkawire_cli.live.reader import Reader, Until
from tests.cli.reports import COMMAND, on_a_terminal, run
from tests.conftest import FIXTURES
from tests.values.registry import SchemaRegistry, running

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
GOOD = b"\0\0\0\0\x01\x54\0"
BAD = b"\0\0\0\0\x01\x54\x09"
VALUE = {"id": 42, "note": None}
DECODED = {"format": "avro", "schemaId": 1, "type": "Order", "value": VALUE}


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with running() as one:
        one.register("orders-value", {"schema": json.dumps(ORDER)})
        yield one


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(topics={"orders": 1, "plain": 1, "beats": 1})) as started:
        yield started


@pytest.fixture
def frame(tmp_path: Path) -> Path:
    """A Produce request with two records and a tombstone."""
    batch = BatchBuilder()
    batch.append(b"k", GOOD, timestamp=1)
    batch.append(b"k\x1b", BAD, timestamp=1)
    batch.append(b"k", None, timestamp=1)
    partition = PartitionProduceData(index=0, records=batch.build())
    topics = [TopicProduceData(name="orders", partition_data=[partition])]
    path = tmp_path / "frame.bin"
    path.write_bytes(encode_frame(ProduceRequest(acks=1, topic_data=topics), 9, 7))
    return path


@pytest.fixture
def capture(frame: Path, tmp_path: Path) -> Path:
    """The same request, captured."""
    path = tmp_path / "frame.pcap"
    recording = Recording(path)
    connection = recording.open(("10.0.0.1", 50000), ("10.0.0.2", 9092))
    recording.received(connection, frame.read_bytes())
    recording.close()
    return path


def produce(server: ServerThread, folder: Path, data: bytes, *options: str) -> Result:
    """Produce lines, from a file."""
    source = folder / "lines"
    source.write_bytes(data)
    return run("produce", *options, "-b", server.bootstrap, "-i", source)


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_registry_with_the_api_of_apicurio(registry: SchemaRegistry, frame: Path) -> None:
    url = f"{registry.url}/apis/registry/v3/"
    options = ("--records", "--values", "auto", "--registry-url", url)
    done = run("decode", frame, *options, "-f", "jsonl")
    assert done.exit_code == 0, done.output
    good, *_ = lines(done.stdout)[0]["records"][0]["content"]
    assert good["valueDecoded"] == DECODED
    assert "/apis/registry/v3/ids/contentIds/1" in registry.requests


def test_decode_shows_values_beside_the_bytes(registry: SchemaRegistry, frame: Path) -> None:
    options = ("--records", "--values", "auto", "--keys", "string", "--registry-url", registry.url)
    done = run("decode", frame, *options, "-f", "jsonl")
    assert done.exit_code == 0, done.output
    good, bad, tombstone = lines(done.stdout)[0]["records"][0]["content"]
    assert (good["value"], good["valueDecoded"]) == ({"hex": GOOD.hex()}, DECODED)
    assert good["keyDecoded"] == {"format": "string", "value": "k"}
    assert "value" not in bad["valueDecoded"]
    assert bad["valueDecoded"]["schemaId"] == 1
    assert bad["valueDecoded"]["error"]
    assert "valueDecoded" not in tombstone
    tree = run("decode", frame, *options, "-f", "tree").stdout
    assert '{"id": 42, "note": null}' in tree or "id: 42" in tree
    assert "\x1b" not in tree


def test_decode_with_schemas_in_a_directory(frame: Path, tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders.avsc").write_text(json.dumps(ORDER))
    options = ("--records", "--values", "avro", "--value-schemas", tmp_path / "schemas")
    done = run("decode", frame, *options, "-f", "jsonl")
    assert lines(done.stdout)[0]["records"][0]["content"][0]["valueDecoded"] == DECODED


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_table_has_decoded_values_beside_its_columns(jobs: int, tmp_path: Path) -> None:
    capture = FIXTURES / "captures" / "kcat-kf.pcap"
    table = ("decode", capture, "--table", "records", "--jobs", jobs, "-o")
    plain, decoded = tmp_path / "plain.parquet", tmp_path / "decoded.parquet"
    assert run(*table, plain).exit_code == 0
    done = run(*table, decoded, "--values", "string", "--keys", "auto")
    assert done.exit_code == 0, done.output
    rows, usual = pq.read_table(decoded).to_pylist(), pq.read_table(plain).to_pylist()
    values = [row.pop("value_decoded") for row in rows]
    keys = [row.pop("key_decoded") for row in rows]
    assert rows == usual
    for row, value, key in zip(rows, values, keys, strict=True):
        assert (value is None, key is None) == (row["value"] is None, row["key"] is None)
        if value is not None and value["error"] is None:
            assert json.loads(value["value"]) == row["value"].decode()
    assert any(value is not None for value in values)


def test_a_table_as_lines(registry: SchemaRegistry, capture: Path) -> None:
    options = ("--values", "auto", "--registry-url", registry.url)
    good, bad, tombstone = lines(run("decode", capture, "--table", "records", *options).stdout)
    assert json.loads(good["value_decoded"].pop("value")) == VALUE
    shown = {name: value for name, value in good["value_decoded"].items() if value is not None}
    assert shown == {"format": "avro", "schema_id": 1, "type": "Order"}
    assert bad["value_decoded"]["value"] is None
    assert bad["value_decoded"]["error"]
    assert tombstone["value_decoded"] is None


@pytest.mark.parametrize("jobs", [1, 2])
def test_decode_adds_decoded_values_and_changes_nothing_else(jobs: int) -> None:
    capture = str(FIXTURES / "captures" / "kcat-kf.pcap")
    options = ["decode", capture, "--records", "-f", "jsonl"]
    plain = run(*options).stdout
    command = [*COMMAND, *options, "--values", "auto", "--jobs", str(jobs)]
    decoded = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True)
    rows = lines(decoded.stdout)
    count = 0
    for row in rows:
        for field in row.get("records", []):
            for record in field.get("content", []):
                count += record.pop("valueDecoded", None) is not None
    assert rows == lines(plain)
    assert count


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--values", "avro"), "--records"),
        (("--table", "messages", "--values", "auto"), "--table records"),
        (("--table", "records", "--values", "auto", "--redact"), "not allowed with --redact"),
        (("--records", "--values", "avr"), "did you mean 'avro'"),
        (("--records", "--registry-url", "http://h"), "--values"),
        (("--records", "--redact", "--values", "auto"), "not allowed with --redact"),
        (("--records", "--values", "auto", "--registry-url", "h:s3cret@8081"), "invalid URL"),
        (("--records", "--values", "auto", "--value-schemas", "missing"), "No such file"),
    ],
)
def test_usage_errors(options: tuple[str, ...], reason: str, frame: Path) -> None:
    done = run("decode", frame, *options)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())
    assert "s3cret" not in done.output


def test_what_is_produced_is_consumed(
    server: ServerThread,
    registry: SchemaRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKAWIRE_REGISTRY_URL", registry.url)
    monkeypatch.setenv("KAFKAWIRE_REGISTRY_USER", "alice:s3cret")
    cluster = ("-b", server.bootstrap)
    sent = b'{"id": 42, "note": null}\n{"id": "x"}\n{\n'
    done = produce(server, tmp_path, sent, "orders", "--values", "avro")
    assert done.exit_code == 1
    assert "1 delivered, 2 failed" in done.stderr
    assert "line 2: not a value of the schema" in done.stderr
    assert "line 3: invalid JSON" in done.stderr
    assert registry.authorization[-1] == "Basic YWxpY2U6czNjcmV0"
    read = ("consume", "orders", *cluster, "-e", "--values", "avro", "-f")
    assert lines(run(*read, "json").stdout)[0]["valueDecoded"] == DECODED
    assert lines(run(*read, "value").stdout) == [VALUE]
    assert run(*read, "%o %v\\n").stdout == '0 {"id":42,"note":null}\n'
    assert '{"id":42,"note":null}' in run(*read, "table").stdout


def test_produce_without_a_schema(
    server: ServerThread, registry: SchemaRegistry, tmp_path: Path
) -> None:
    options = ("plain", "--registry-url", registry.url, "--values")
    done = produce(server, tmp_path, b"1\n2\n", *options, "avro")
    assert done.exit_code == 1
    assert "line 1: plain-value: no schema" in done.stderr
    assert "0 delivered, 1 failed" in done.stderr
    assert produce(server, tmp_path, b"", *options, "auto").exit_code == 2


@pytest.mark.parametrize(
    ("form", "name", "schema"),
    [
        ("protobuf", "checked.proto", 'syntax = "proto3"; message Plain { int32 n = 1; }'),
        ("json-schema", "checked.json", '{"properties": {"n": {"type": "integer"}}}'),
    ],
)
def test_a_line_that_its_schema_does_not_allow(
    form: str, name: str, schema: str, server: ServerThread, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(schema)
    options = ("checked", "--values", form, "--value-schemas", str(tmp_path))
    done = produce(server, tmp_path, b'{"n": 1}\n{"n": "x"}\n{"n": 3}\n', *options)
    assert done.exit_code == 1
    assert "line 2: not a" in done.stderr
    assert "2 delivered, 1 failed" in done.stderr


def test_numbers_and_text_are_produced(server: ServerThread, tmp_path: Path) -> None:
    options = ("--values", "int64", "--keys", "uuid", "-K", ";")
    key = "00000000-0000-0000-0000-000000000007"
    produce(server, tmp_path, f"{key};42\n".encode(), "plain", *options)
    done = run("consume", "plain", "-b", server.bootstrap, "-e", "-f", "json", "--values", "int64")
    row = lines(done.stdout)[0]
    assert row["valueDecoded"] == {"format": "int64", "value": 42}
    assert row["key"] == {"text": key}


@pytest.mark.parametrize("form", ["json", "value", "table", "%v", "arrow"])
def test_what_is_not_decoded_is_counted_at_the_end(
    server: ServerThread, tmp_path: Path, form: str
) -> None:
    topic = f"undecoded-{form.strip('%')}"
    server.create_topic(topic)
    produce(server, tmp_path, b'1;{"a": 1}\n2;x\n3;y\n', topic, "-K", ";")
    read = ("consume", topic, "-b", server.bootstrap, "-e", "-f", form)
    assert run(*read, "--values", "string").exit_code == 0
    done = run(*read, "--values", "json")
    assert done.exit_code == 1
    assert "kafkawire consume: 2 of 3 values not decoded; the first: " in done.stderr
    done = run(*read, "--values", "avro", "-n", "1")
    assert done.exit_code == 1
    [note] = done.stderr.splitlines()
    reason = f"names no schema, and there is none for {topic}"
    assert note.startswith(f"kafkawire consume: 1 of 1 value not decoded; the first: {reason}")


def test_heartbeats_go_on_while_values_are_decoded(server: ServerThread, tmp_path: Path) -> None:
    """A registry may take seconds to answer: the event loop does not wait for it."""

    async def decode() -> bool:
        loop, went_on = asyncio.get_running_loop(), threading.Event()
        seen: list[bool] = []

        def write(_: object) -> bytes:
            loop.call_soon_threadsafe(went_on.set)
            seen.append(went_on.wait(10))
            return b""

        async with Consumer({"bootstrap.servers": server.bootstrap}) as consumer:
            consumer.assign([TopicPartition("beats", 0)])
            consumer.seek(TopicPartition("beats", 0), 0)
            await Reader(consumer, RecordOutput(write), Until(most=1)).run()
        return seen == [True]

    produce(server, tmp_path, b"1\n", "beats")
    assert asyncio.run(decode())


def test_log(tmp_path: Path, registry: SchemaRegistry) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batch = BatchBuilder()
    batch.append(b"k", GOOD, timestamp=1)
    segment = folder / f"{0:020}.log"
    segment.write_bytes(batch.build())
    options = ("--values", "auto", "--registry-url", registry.url)
    row = lines(run("log", segment, *options, "-f", "jsonl").stdout)[0]
    assert (row["value"], row["valueDecoded"]) == ({"hex": GOOD.hex()}, DECODED)
    assert '{"id": 42, "note": null}' in run("log", segment, *options, "-f", "table").stdout
    assert run("log", segment, *options, "--batches").exit_code == 2
    undecoded = run("log", segment, "--values", "avro", "--keys", "int64")
    assert undecoded.exit_code == 1
    assert "1 of 1 value not decoded" in undecoded.stderr
    assert "1 of 1 key not decoded" in undecoded.stderr


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("form", ["jsonl", "tree"])
def test_decode_counts_what_is_not_decoded(capture: Path, form: str, jobs: int) -> None:
    """With four jobs and files, each worker decodes files of its own."""
    copies = [capture.with_name(f"{number}.pcap") for number in range(4)]
    for copy in copies:
        copy.write_bytes(capture.read_bytes())
    read = ("decode", *copies, "--records", "-f", form, "-j", jobs)
    assert run(*read, "--values", "json", "--strict").exit_code == 1
    done = run(*read, "--values", "json", "--keys", "string")
    assert done.exit_code == 0
    [note] = done.stderr.splitlines()
    assert note.startswith("kafkawire decode: 8 of 12 values not decoded; the first: ")
    done = run(*read, "--keys", "json", "--strict")
    assert done.exit_code == 1
    [note] = done.stderr.splitlines()
    assert note.startswith("kafkawire decode: 12 of 12 keys not decoded; the first: ")
    assert run(*read, "--keys", "string", "--strict").exit_code == 0


def test_values_are_shown_on_a_terminal_and_not_in_a_table(capture: Path) -> None:
    shown = on_a_terminal("decode", capture, "--records", "--values", "string")
    assert "valueDecoded" in shown
    refused = run("decode", capture, "--records", "--values", "string", "-f", "table")
    assert refused.exit_code == 2
    assert "--values" in refused.stderr
    assert "shows no records" in refused.stderr


def test_decode_counts_values_of_frames_and_rotated_files(frame: Path, capture: Path) -> None:
    for words in ((frame,), (capture, "--rotated")):
        done = run("decode", *words, "--records", "--values", "json", "--strict")
        assert done.exit_code == 1
        assert "2 of 3 values not decoded" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_decode_counts_values_of_a_table(capture: Path, tmp_path: Path, jobs: int) -> None:
    read = ("decode", capture, "--table", "records", "-j", jobs, "-o", tmp_path / "r.parquet")
    done = run(*read, "--values", "json")
    assert done.exit_code == 0
    [note] = done.stderr.splitlines()
    assert note.startswith("kafkawire decode: 2 of 3 values not decoded; the first: ")
    assert run(*read, "--values", "json", "--strict").exit_code == 1
    assert run(*read, "--keys", "string", "--strict").exit_code == 0
