"""What a connection begins with, from its SYN on: other protocols, SASL tokens, odd client ids."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafkawire.capture import decode_capture
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tables import read as read_table
from kafkawire_cli.main import app
from tests.capture.written import BROKER, CLIENT, Scenario
from tests.conftest import FIXTURES

Dialogue = list[tuple[int, bytes]]


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def zookeeper(zxid: int, session: int, password: bytes, end: bytes) -> bytes:
    head = struct.pack(">iqiq", 0, zxid, 30_000, session)
    return sized(head + struct.pack(">i", len(password)) + password + end)


def located(scenario: Scenario, tmp_path: Path, **options: object) -> list[Located]:
    return list(decode_capture(scenario.save(tmp_path / "made.pcap"), **options))  # type: ignore[arg-type]


def sent(dialogue: Dialogue, size: int = 1 << 14) -> Scenario:
    scenario = Scenario()
    for side, data in dialogue:
        for at in range(0, len(data), size):
            scenario.send(side, data[at : at + size])
    return scenario


GET_DATA = [(CLIENT, sized(struct.pack(">iii", xid, 4, 5) + b"/path\x01")) for xid in range(1, 5)]
MYSQL = b"\x4a\x00\x00\x00\x0a8.0.36\x00" + bytes(66)
STARTUP = sized(b"\x00\x03\x00\x00user\x00postgres\x00database\x00orders\x00\x00")
OTHERS: dict[str, tuple[str, Dialogue]] = {
    "ZooKeeper": ("ZooKeeper", [(CLIENT, zookeeper(0, 0, bytes(16), b"\0")), *GET_DATA]),
    "ZooKeeper without read-only": ("ZooKeeper", [(CLIENT, zookeeper(0, 0, bytes(16), b""))]),
    "ZooKeeper again": (
        "ZooKeeper",
        [(CLIENT, zookeeper(2 << 32 | 77, 1 << 56 | 5, b"p" * 16, b"\0")), *GET_DATA],
    ),
    "ZooKeeper without a password": ("ZooKeeper", [(CLIENT, zookeeper(9, 0, b"", b"\0"))]),
    "ZooKeeper's four letters": ("ZooKeeper", [(CLIENT, b"ruok"), (BROKER, b"imok")]),
    "HTTP": ("HTTP", [(CLIENT, b"GET / HTTP/1.1\r\n\r\n"), (BROKER, b"HTTP/1.1 200 OK\r\n\r\n")]),
    "TLS": ("TLS", [(CLIENT, b"\x16\x03\x01\x00\x10\x01\x00\x00\x0c\x03\x03" + bytes(10))]),
    "SSH": ("SSH", [(BROKER, b"SSH-2.0-OpenSSH_9\r\n"), (CLIENT, b"SSH-2.0-x\r\n")]),
    "Redis": ("Redis", [(CLIENT, b"*1\r\n$4\r\nPING\r\n"), (BROKER, b"+PONG\r\n")]),
    "PostgreSQL": ("PostgreSQL", [(CLIENT, STARTUP), (BROKER, b"R\x00\x00\x00\x08" + bytes(4))]),
    "PostgreSQL in TLS": ("PostgreSQL", [(CLIENT, b"\0\0\0\x08\x04\xd2\x16\x2f"), (BROKER, b"N")]),
    "MySQL": ("MySQL", [(BROKER, MYSQL), (CLIENT, b"\x20\0\0\x01\x85\xa6\xff\x01" + bytes(28))]),
    "AMQP": ("AMQP", [(CLIENT, b"AMQP\0\0\x09\x01"), (BROKER, b"\x01\0\0\0\0\0\x08")]),
    "MQTT": ("MQTT", [(CLIENT, b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\1a"), (BROKER, b" \2\0\0")]),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 9, 1 << 14])
@pytest.mark.parametrize("name", OTHERS)
def test_other_protocols_are_named(name: str, size: int, tmp_path: Path) -> None:
    protocol, dialogue = OTHERS[name]
    found = located(sent(dialogue, size), tmp_path)
    assert {one.row.status for one in found} <= {Status.OTHER_PROTOCOL, Status.UNPARSED}
    assert sum(one.row.length for one in found) == sum(len(data) for _, data in dialogue)
    if size > 1:
        assert any(protocol in one.row.error for one in found)


def test_zookeeper_of_the_field() -> None:
    found = list(decode_capture(FIXTURES / "field" / "01-zookeeper-syn.pcap"))
    assert {(one.row.status, one.row.error) for one in found} == {
        (Status.OTHER_PROTOCOL, "ZooKeeper")
    }


# -- SASL tokens

KERBEROS = b"\x60\x81\x90\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00" + bytes(134)
GSSAPI: Dialogue = [
    (CLIENT, sized(KERBEROS)),
    (BROKER, sized(b"\x60\x40\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x02\x00" + bytes(50))),
    (CLIENT, sized(b"")),
    (BROKER, sized(b"\x05\x04\x05\xff" + bytes(28))),
    (CLIENT, sized(b"\x05\x04\x04\xff" + bytes(40))),
]
TOKENS = {
    "GSSAPI": GSSAPI,
    "PLAIN": [(CLIENT, sized(b"\0alice\0hunter2")), (BROKER, sized(b""))],
    "SCRAM": [
        (CLIENT, sized(b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL")),
        (BROKER, sized(b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096")),
        (CLIENT, sized(b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGb")),
        (BROKER, sized(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")),
    ],
}


def heartbeats(scenario: Scenario) -> Scenario:
    for _ in range(3):
        scenario.request("Heartbeat", 3, groupId="billing", generationId=1, memberId="m")
        scenario.respond("Heartbeat", 3)
    return scenario


@pytest.mark.parametrize("size", [1, 11, 1 << 14])
@pytest.mark.parametrize("name", TOKENS)
def test_tokens_without_a_handshake(name: str, size: int, tmp_path: Path) -> None:
    found = located(heartbeats(sent(TOKENS[name], size)), tmp_path)
    count = len(TOKENS[name])
    assert [one.row.status for one in found] == [Status.SASL_TOKEN] * count + [Status.OK] * 6
    directions = [("request", "response")[side] for side, _ in TOKENS[name]]
    assert sorted(one.row.direction for one in found[:count]) == sorted(directions)


def test_kerberos_without_a_request(tmp_path: Path) -> None:
    found = located(sent(GSSAPI[:2]), tmp_path)
    assert [one.row.status for one in found] == [Status.SASL_TOKEN] * 2


def test_an_unknown_beginning_hides_no_requests(tmp_path: Path) -> None:
    scenario = Scenario().send(CLIENT, b"\x7fhello\r\n").send(BROKER, b"\x7fwelcome")
    found = located(heartbeats(scenario), tmp_path)
    assert [one.row.status for one in found if one.row.is_message] == [Status.OK] * 6
    assert {one.row.status for one in found} == {Status.OK, Status.UNPARSED}


# -- client ids

IDS = {
    "newline": b"my\napp",
    "tab": b"my\tapp",
    "DEL": b"my\x7fapp",
    "NUL": b"\0",
    "long": b"x" * 1025,
    "the longest": b"x" * 32767,
    "not UTF-8": b"my\xffapp",
    "not UTF-8, with controls": b"\xff\x00\xfe",
}


def heartbeat(correlation_id: int, client_id: bytes) -> bytes:
    head = struct.pack(">hhih", 12, 0, correlation_id, len(client_id))
    return sized(head + client_id + b"\0\1g\0\0\0\3\0\3m-1")


@pytest.mark.parametrize("opened", [True, False], ids=["with SYN", "without SYN"])
@pytest.mark.parametrize("size", [5, 1 << 14])
@pytest.mark.parametrize("ports", [(), (9092,)])
@pytest.mark.parametrize("name", IDS)
def test_client_ids_are_bytes_of_strangers(
    name: str, ports: tuple[int, ...], size: int, opened: bool, tmp_path: Path
) -> None:
    scenario = Scenario(opened)
    for number in range(4):
        request = heartbeat(number, IDS[name])
        step = max(size, len(request) // 20)
        for at in range(0, len(request), step):
            scenario.send(CLIENT, request[at : at + step])
        scenario.send(BROKER, struct.pack(">iih", 6, number, 0))
    found = located(scenario, tmp_path, ports=ports)
    status = Status.LENIENT if b"\xff" in IDS[name] else Status.OK
    assert [one.row.status for one in found] == [status, Status.OK] * 4
    assert {one.row.client_id for one in found} == {IDS[name].decode("utf-8", "replace")}
    shown = [IDS[name].hex() in one.row.error for one in found]
    assert shown == [status is Status.LENIENT, False] * 4


FORMATS = ["jsonl", "tree", "table"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_client_id_that_is_not_utf_8_is_replaced_with_its_bytes_beside_it(
    format: str, tmp_path: Path
) -> None:
    scenario = Scenario().send(CLIENT, heartbeat(1, b"my\xffapp"))
    path = scenario.save(tmp_path / "made.pcap")
    arguments = ["decode", str(path), "--format", format, "--strict"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert result.exit_code == 1
    shown = json.loads(result.stdout)["client_id"] if format == "jsonl" else result.stdout
    assert "my\ufffdapp" in shown
    assert b"my\xffapp".hex() in result.stdout


def test_tables_replace_it(tmp_path: Path) -> None:
    path = Scenario().send(CLIENT, heartbeat(1, b"my\xffapp")).save(tmp_path / "made.pcap")
    (batch,) = read_table(path, "messages")
    (row,) = batch.to_pylist()
    assert row["client_id"] == "my\ufffdapp"
    assert b"my\xffapp".hex() in row["error"]
    (batch,) = read_table(path, "exchanges")
    assert batch.to_pylist()[0]["client_id"] == "my\ufffdapp"


def test_a_client_id_with_a_newline_of_the_field() -> None:
    found = list(decode_capture(FIXTURES / "field" / "10-client-id-newline.pcap"))
    assert [one.row.status for one in found] == [Status.OK] * 8
