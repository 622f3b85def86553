"""TLS connections: decrypted with the keys of a key log, and what is said without them."""

from __future__ import annotations

import hashlib
import pickle
import ssl
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import padding

from kafkawire.capture import Engine, decode_capture
from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.frames.decoding import located
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segments import Segments
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tcp.connection import Connection, Run
from kafkawire.capture.tls.connection import MAX_WAITING, TlsConnection
from kafkawire.capture.tls.decryption import MAX_TRIES
from kafkawire.capture.tls.key_schedule import traffic_keys
from kafkawire.capture.tls.keylog import KeyLog, KeyLogError, read_key_log
from kafkawire.capture.tls.records import Opener
from kafkawire.capture.tls.suites import SUITES
from kafkawire.protocol.json_form import to_json
from tests.capture.tls.tls_wire import (
    V12,
    V13,
    TlsPair,
    client_context,
    encrypted,
    rsa_contexts,
    server_context,
)
from tests.capture.written import BROKER, CLIENT, Scenario, request, response
from tests.conftest import FIXTURES

TLS = FIXTURES / "tls"
PLAIN = FIXTURES / "captures" / "kcat-kf.pcap"
RECORDINGS = sorted(each.stem for each in TLS.glob("*.tshark"))
HEADERS = 54
"""Bytes of the Ethernet, IPv4 and TCP headers that `Scenario` writes."""

DECRYPTED = {Status.OK, Status.TLS}


def decoded(capture: Path, keylog: Path | KeyLog | None = None) -> list[Located]:
    return list(decode_capture(capture, keylog=keylog))


def recording(name: str) -> tuple[Path, Path]:
    return TLS / f"{name}.pcap", TLS / f"{name}.keys"


def captured_bytes(capture: Path) -> int:
    """The captured bytes, without those of retransmissions."""
    parser = PacketParser()
    captured = sum(int(parser.parse(block).captured.sum()) for block in read_capture(capture))
    return captured - sum(
        each.repeated_bytes for each in Traffic([capture]) if isinstance(each, Ended)
    )


def row_bytes(rows: Iterable[Located]) -> int:
    """The captured bytes that rows account for."""
    total = 0
    for each in rows:
        row = each.row
        if row.status is Status.TRUNCATED:
            total += len(row.raw) + 4
        elif row.status is not Status.GAP:
            total += row.length + (4 if row.is_message else 0)
    return total


def text(each: Located) -> tuple[Any, ...]:
    row = each.row
    assert row.message is not None
    assert row.body_version is not None
    body = repr(to_json(row.message, row.body_version))
    return row.direction, row.length, row.correlation_id, row.client_id, row.api_name, body


# -- recordings


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_have_the_messages_that_tshark_sees(name: str) -> None:
    """tshark 4.0 with the same keys: packet, direction, length, correlation id."""
    lines = (TLS / f"{name}.tshark").read_text().splitlines()
    expected: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        packet, direction, *lists = line.split("\t")
        for length, correlation in zip(*(each.split(",") for each in lists), strict=True):
            expected[packet, direction, length, correlation] += 1
    rows = decoded(*recording(name))
    found = Counter(
        (str(row.packet), row.direction, str(row.length), str(row.correlation_id))
        for _, _, _, row in rows
        if row.is_message
    )
    assert found == expected
    assert {each.row.status for each in rows} == DECRYPTED
    assert row_bytes(rows) == captured_bytes(recording(name)[0])


def test_recordings_cover_versions_and_ciphers() -> None:
    said = {each.row.error for name in RECORDINGS for each in decoded(*recording(name))}
    for version, suite in (
        ("1.3", "TLS_AES_128_GCM_SHA256"),
        ("1.3", "TLS_AES_256_GCM_SHA384"),
        ("1.3", "TLS_CHACHA20_POLY1305_SHA256"),
        ("1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        ("1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
        ("1.2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ):
        assert f"TLS {version} ({suite}, localhost): decrypted" in said


def test_other_suites_are_named() -> None:
    rows = decoded(*recording("cbc-tls12"))
    assert {(each.row.status, each.row.error) for each in rows} == {
        (
            Status.OTHER_PROTOCOL,
            "TLS 1.2 (TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, localhost): "
            "only AEAD cipher suites are decrypted",
        )
    }


@pytest.mark.parametrize("version", [V12, V13])
def test_rows_are_those_of_the_same_traffic_in_plaintext(version: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    capture = encrypted(PLAIN, keys, version).save(tmp_path / "a.pcap")
    found = [each for each in decoded(capture, keys) if each.row.is_message]
    expected = [each for each in decoded(PLAIN) if each.row.is_message]
    assert [text(each) for each in found] == [text(each) for each in expected]
    assert len(found) > 100


# -- without keys, with others


def test_without_keys_tls_is_named() -> None:
    capture, _ = recording("resumed-tls13")
    rows = decoded(capture)
    assert {(each.row.status, each.row.error) for each in rows} == {
        (
            Status.OTHER_PROTOCOL,
            "TLS 1.3 (TLS_AES_256_GCM_SHA384, localhost): no keys were given",
        )
    }
    assert row_bytes(rows) == captured_bytes(capture)
    assert {each.broker for each in rows} == {
        each.broker for each in decoded(capture, TLS / "resumed-tls13.keys")
    }


@pytest.mark.parametrize("name", ["resumed-tls13", "resumed-tls12"])
def test_connections_whose_keys_are_missing_say_so(name: str) -> None:
    capture, keys = recording(name)
    lines = keys.read_bytes().splitlines()
    random = lines[-1].split()[1]
    log = KeyLog(b"\n".join(line for line in lines if random not in line))
    rows = decoded(capture, log)
    missing = {each.connection for each in rows if "the key log has no" in each.row.error}
    assert len(missing) == 1
    assert {each.row.status for each in rows if each.connection in missing} == {
        Status.OTHER_PROTOCOL
    }
    others = {each.row.status for each in rows if each.connection not in missing}
    assert others == DECRYPTED
    assert row_bytes(rows) == captured_bytes(capture)


@pytest.mark.parametrize("name", ["ck-tls13-aes256", "kp-tls12-chacha20"])
def test_wrong_keys_do_not_authenticate(name: str) -> None:
    capture, keys = recording(name)
    wrong = b"\n".join(
        line[:-2] + (b"00" if line[-2:] != b"00" else b"01")
        for line in keys.read_bytes().splitlines()
    )
    rows = decoded(capture, KeyLog(wrong))
    assert {each.row.status for each in rows} == {Status.OTHER_PROTOCOL}
    assert all("does not authenticate" in each.row.error for each in rows)
    assert row_bytes(rows) == captured_bytes(capture)


def test_a_truncated_key_log_decrypts_what_it_has() -> None:
    capture, keys = recording("resumed-tls13")
    whole = keys.read_bytes()
    counts = []
    for size in range(0, len(whole) + 1, 97):
        rows = decoded(capture, KeyLog(whole[:size]))
        counts.append(sum(each.row.is_message for each in rows))
        assert row_bytes(rows) == captured_bytes(capture)
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_handshake_secrets_are_not_needed() -> None:
    """Some programs log the traffic secrets only."""
    capture, keys = recording("ck-tls13-aes256")
    lines = [each for each in keys.read_bytes().splitlines() if b"HANDSHAKE" not in each]
    rows = decoded(capture, KeyLog(b"\n".join(lines)))
    assert [each for each in rows if each.row.is_message] == [
        each for each in decoded(capture, keys) if each.row.is_message
    ]


def test_premaster_secrets(tmp_path: Path) -> None:
    """With RSA key exchange, the server's key decrypts them (extended master secret, RFC 7627)."""
    keys = tmp_path / "keys"
    private, contexts = rsa_contexts(tmp_path, keys)
    scenario = Scenario()
    pair = TlsPair(scenario, 0, contexts)
    pair.send(CLIENT, request("Heartbeat", 4, 1))
    pair.send(BROKER, response("Heartbeat", 4, 1))
    pair.close()
    capture = scenario.save(tmp_path / "a.pcap")
    sent = capture.read_bytes()
    at = sent.index(b"\x10\x00\x01\x02\x01\x00") + 6
    premaster = private.decrypt(sent[at : at + 256], padding.PKCS1v15())
    random = keys.read_bytes().split()[-2].decode()
    rows = decoded(capture, KeyLog(f"PMS_CLIENT_RANDOM {random} {premaster.hex()}".encode()))
    assert [each.row.api_name for each in rows if each.row.is_message] == ["Heartbeat"] * 2


# -- incomplete captures


def packets_of(name: str) -> list[bytes]:
    """The packets of a pcap, with their headers."""
    data = recording(name)[0].read_bytes()
    at, found = 24, [data[:24]]
    while at < len(data):
        size = 16 + struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at : at + size])
        at += size
    return found


@pytest.mark.parametrize("name", ["resumed-tls13", "resumed-tls12", "updated-tls13"])
def test_a_lost_packet_costs_its_own_messages(name: str, tmp_path: Path) -> None:
    header, *packets = packets_of(name)
    capture, keys = tmp_path / "a.pcap", read_key_log(recording(name)[1])
    whole = decoded(recording(name)[0], keys)
    complete = sum(each.row.is_message for each in whole)
    intact = set()
    for lost in range(len(packets)):
        capture.write_bytes(header + b"".join(packets[:lost] + packets[lost + 1 :]))
        rows = decoded(capture, keys)
        assert row_bytes(rows) == captured_bytes(capture)
        connections = {each.connection for each in whole}
        messages = Counter(each.connection for each in rows if each.row.is_message)
        damaged = [
            number for number in connections
            if messages[number] < complete // len(connections)
        ]  # fmt: skip
        assert len(damaged) <= 1
        intact.add(sum(messages.values()))
    assert complete in intact
    assert {complete - 1, complete - 2} & intact, "the rest of the connection is decrypted"


@pytest.mark.parametrize("name", ["resumed-tls13", "kp-tls12-chacha20"])
def test_a_capture_may_begin_and_end_anywhere(name: str, tmp_path: Path) -> None:
    header, *packets = packets_of(name)
    capture, keys = tmp_path / "a.pcap", read_key_log(recording(name)[1])
    for cut in range(0, len(packets), 3):
        for part in (packets[:cut], packets[cut:]):
            capture.write_bytes(header + b"".join(part))
            rows = decoded(capture, keys)
            assert row_bytes(rows) == captured_bytes(capture)
            for each in rows:
                assert each.row.status in {*DECRYPTED, Status.OTHER_PROTOCOL, Status.GAP}


def pair_of(tmp_path: Path, version: Any = V13) -> tuple[Scenario, TlsPair, Path]:
    keys = tmp_path / "keys"
    scenario = Scenario()
    return scenario, TlsPair(scenario, 0, (client_context(), server_context(keys, version))), keys


@pytest.mark.parametrize("version", [V12, V13])
def test_many_lost_records_are_counted_over(version: Any, tmp_path: Path) -> None:
    scenario, pair, keys = pair_of(tmp_path, version)
    for number in range(100):
        pair.send(CLIENT, request("Heartbeat", 4, number))
        pair.send(BROKER, response("Heartbeat", 4, number))
    del scenario.packets[40:120]
    rows = decoded(scenario.save(tmp_path / "a.pcap"), keys)
    messages = [each.row for each in rows if each.row.is_message]
    assert [row.correlation_id for row in messages][-20:] == [
        number for number in range(90, 100) for _ in range(2)
    ]
    assert len(messages) > 110


def test_a_record_with_other_bytes_costs_itself(tmp_path: Path) -> None:
    scenario, pair, keys = pair_of(tmp_path)
    for number in range(6):
        pair.send(CLIENT, request("Heartbeat", 4, number))
        pair.send(BROKER, response("Heartbeat", 4, number))
    packet = scenario.packets[-6]
    scenario.packets[-6] = packet._replace(data=packet.data[:-1] + bytes([packet.data[-1] ^ 1]))
    rows = decoded(scenario.save(tmp_path / "a.pcap"), keys)
    said = [each.row for each in rows if "does not authenticate" in each.row.error]
    assert [row.status for row in said] == [Status.UNPARSED]
    assert sum(each.row.is_message for each in rows) >= 10


def test_records_may_be_cut_anywhere_in_segments(tmp_path: Path) -> None:
    """Each byte in a segment of its own, and both hellos, too."""
    keys = tmp_path / "keys"
    scenario = Scenario()

    class Bytewise(Scenario):
        def send(self, side: int, data: bytes, connection: int = 0) -> Scenario:
            for at in range(len(data)):
                scenario.send(side, data[at : at + 1], connection)
            return scenario

    pair = TlsPair(Bytewise(), 0, (client_context(), server_context(keys, V13)))
    pair.send(CLIENT, request("Heartbeat", 4, 1))
    pair.send(BROKER, response("Heartbeat", 4, 1))
    capture = scenario.save(tmp_path / "a.pcap")
    rows = decoded(capture, keys)
    assert [each.row.api_name for each in rows if each.row.is_message] == ["Heartbeat"] * 2
    assert row_bytes(rows) == captured_bytes(capture)


# -- state


def blocks(capture: Path, packets: int) -> list[Segments]:
    parser = PacketParser()
    return [
        parser.parse(block[at : at + packets])
        for block in read_capture(capture)
        for at in range(0, len(block), packets)
    ]


def items(batches: Iterator[list[Any]]) -> list[str]:
    return [repr(located(item)) for batch in batches for item in batch]


@pytest.mark.parametrize("name", ["resumed-tls13", "kp-tls12-chacha20", "updated-tls13"])
def test_an_engine_continues_from_a_snapshot_anywhere(name: str) -> None:
    capture, keys = recording(name)
    engine = Engine(key_log=read_key_log(keys))
    expected, found = Engine(key_log=read_key_log(keys)), []
    whole = []
    secrets = [
        bytes.fromhex(line.split()[2].decode())
        for line in keys.read_bytes().splitlines()
        if line[:1] != b"#"
    ]
    for block in blocks(capture, 3):
        found += items(engine.handle(block))
        whole += items(expected.handle(block))
        state = engine.snapshot()
        assert not any(secret in state for secret in secrets)
        engine = Engine(key_log=read_key_log(keys))
        engine.restore(state)
    assert found + items(engine.handle(None)) == whole + items(expected.handle(None))


# -- hostile traffic


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x48\x00" + b"\x01\xff\xff\xff" + bytes(18000),
        b"\x16\x03\x01\x00\x04\x01\x00\xff\xff" + b"\x16\x03\x01\x00\x01\x00" * 3000,
        b"\x17\x03\x03\x00\x11" + bytes(17),
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03",
        b"\x16\x03\x03\x00\x06\x02\x00\x00\x02\x03\x03",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x16\x03\x01\xff\xff" + bytes(100),
        b"\x14\x03\x03\x00\x01\x01" * 1000,
    ],
)
def test_hostile_handshakes_are_counted(sent: bytes, tmp_path: Path) -> None:
    scenario = Scenario().send(CLIENT, sent).send(BROKER, sent).send(CLIENT, sent).close()
    capture = scenario.save(tmp_path / "a.pcap")
    rows = decoded(capture, KeyLog(b""))
    assert row_bytes(rows) == captured_bytes(capture) == 3 * len(sent)
    assert not any(each.row.is_message for each in rows)


@pytest.mark.parametrize(
    ("alert", "error"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x30", "alert unknown_ca (fatal)"),
        (b"\x15\x03\x03\x00\x02\x01\x00", ""),  # close_notify
        (b"\x15\x03\x03\x00\x02\x03\x30", ""),  # no level of an alert
    ],
)
def test_alerts_without_keys(alert: bytes, error: str, tmp_path: Path) -> None:
    scenario, pair, _ = pair_of(tmp_path, V12)
    scenario.send(CLIENT, b"\x16\x03\x03\x00\x01\x00" + alert, pair.number).close()
    capture = scenario.save(tmp_path / "a.pcap")
    rows = decoded(capture, KeyLog(b""))
    alerts = [each.row for each in rows if "alert" in each.row.error]
    assert [row.error.rpartition(": ")[2] for row in alerts] == ([error] if error else [])
    assert all(row.direction == "request" for row in alerts)
    assert row_bytes(rows) == captured_bytes(capture)


def test_what_waits_for_a_server_hello_is_bounded(tmp_path: Path) -> None:
    scenario, _, _ = pair_of(tmp_path)
    hello = scenario.packets[2].data[HEADERS:]
    connection = Connection(0, bytes(36), 0, 0)
    machine = TlsConnection(KeyLog(b""))
    assert machine.handle(Run(connection, 0, 0, hello, 1, 1, 1)) == []
    record = b"\x17\x03\x03\x40\x00" + bytes(1 << 14)
    given = 0
    for packet in range(2, 40):
        given += len(record)
        out = machine.handle(Run(connection, 0, 0, record, packet, 1, packet))
        if out:
            break
    assert MAX_WAITING < given < MAX_WAITING + 2 * len(record)
    assert "ServerHello was not captured" in str(out[0])


def test_server_names_are_escaped(tmp_path: Path) -> None:
    scenario, _, keys = pair_of(tmp_path)
    packet = scenario.packets[2]
    hostile = packet.data.replace(b"localhost", b"\x1b[31mhost")
    assert hostile != packet.data
    scenario.packets[2] = packet._replace(data=hostile)
    rows = decoded(scenario.save(tmp_path / "a.pcap"), keys)
    assert any(r", \x1b[31mhost)" in each.row.error for each in rows)


# -- key logs


def test_key_logs_show_no_secrets() -> None:
    _, keys = recording("resumed-tls13")
    log = read_key_log(keys)
    secret = keys.read_bytes().split()[-1].decode()
    assert secret not in repr(log)
    assert repr(log) == f"<key log of {len(log)} secrets>"
    with pytest.raises(TypeError):
        pickle.dumps(log)


def test_files_that_are_not_key_logs(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"hunter2 is my password\n")
    with pytest.raises(KeyLogError, match="not a key log in NSS format") as caught:
        read_key_log(file)
    assert "hunter2" not in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).reason == caught.value.reason
    file.write_bytes(b"# comment\r\n\r\nCLIENT_RANDOM 12")
    assert (len(read_key_log(file)), read_key_log(file).invalid) == (0, 1)
    file.write_bytes(b"")
    assert len(read_key_log(file)) == 0


@pytest.mark.parametrize("order", "<>")
def test_pcapng_files_bring_their_own_keys(order: str, tmp_path: Path) -> None:
    """A Decryption Secrets Block in front of the packets (`editcap --inject-secrets`)."""
    capture, keys = recording("resumed-tls12")

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack(f"{order}I", len(body) + 12)
        return struct.pack(f"{order}I", kind) + size + body + size

    header, *packets = packets_of("resumed-tls12")
    secrets = keys.read_bytes()
    written = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    written += block(1, struct.pack(f"{order}HHI", struct.unpack_from("<I", header, 20)[0], 0, 0))
    written += block(10, struct.pack(f"{order}II", 0x544C534B, len(secrets)) + secrets)
    for packet in packets:
        size = len(packet) - 16
        fields = struct.pack(f"{order}5I", 0, 0, 0, size, size)
        written += block(6, fields + packet[16:])
    file = tmp_path / "a.pcapng"
    file.write_bytes(written)
    found = [each.row.correlation_id for each in decoded(file) if each.row.is_message]
    assert found == [
        each.row.correlation_id for each in decoded(capture, keys) if each.row.is_message
    ]
    assert len(Traffic([file]).again().key_log) == 0


def test_the_key_schedule_is_that_of_rfc_8448() -> None:
    secret = "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"
    keys = traffic_keys(bytes.fromhex(secret), SUITES[0x1301])
    assert keys.key.hex() == "3fce516009c21727d0f2e4e86ee403bc"
    assert keys.iv.hex() == "5d313eb2671276ee13000b30"
    assert repr(keys) == "<keys>"


def test_a_capture_that_begins_inside_a_record_is_tls(tmp_path: Path) -> None:
    """Long connections, of which the capture has the middle."""
    scenario, pair, _ = pair_of(tmp_path)
    for number in range(5):
        pair.send(CLIENT, request("Heartbeat", 4, number))
        pair.send(BROKER, response("Heartbeat", 4, number))
    packets = scenario.packets[-6:]
    first = packets[0].data
    packets[0] = packets[0]._replace(data=first[:HEADERS] + first[HEADERS + 7 :])
    scenario.packets = packets
    rows = decoded(scenario.save(tmp_path / "a.pcap"))
    said = {(each.row.status, each.row.error) for each in rows}
    assert (Status.OTHER_PROTOCOL, "TLS: the handshake was not captured") in said
    assert not any(each.row.is_message for each in rows)


def test_hello_retry_request(tmp_path: Path) -> None:
    """The server wants another curve: HelloRetryRequest (RFC 8446, 4.1.4)."""
    keys = tmp_path / "keys"
    server = server_context(keys, V13)
    server.set_ecdh_curve("secp384r1")
    scenario = Scenario()
    pair = TlsPair(scenario, 0, (client_context(), server))
    for number in range(5):
        pair.send(CLIENT, request("Heartbeat", 4, number))
        pair.send(BROKER, response("Heartbeat", 4, number))
    path = scenario.save(tmp_path / "a.pcap")
    random_of_a_retry = hashlib.sha256(b"HelloRetryRequest").digest()
    assert path.read_bytes().count(random_of_a_retry) == 1
    rows = decoded(path, keys)
    assert [each.row.correlation_id for each in rows if each.row.is_message] == [
        number for number in range(5) for _ in range(2)
    ]


def test_early_data_is_said(tmp_path: Path) -> None:
    """A record of 0-RTT data in front of the client's handshake."""
    scenario, pair, keys = pair_of(tmp_path)
    pair.send(CLIENT, request("Heartbeat", 4, 1))
    capture = scenario.save(tmp_path / "a.pcap")
    session = decoded(capture, keys)
    assert not any("0-RTT" in each.row.error for each in session)
    machine = TlsConnection(read_key_log(keys))
    connection = Connection(0, bytes(36), 0, 0)
    hello, answer = (packet.data[HEADERS:] for packet in scenario.packets[2:4])
    # an empty early_data extension at the end of the ClientHello
    body = hello[9:]
    extension = b"\0\x2a\0\0"
    at = 2 + 32 + 1 + 32
    at += 2 + int.from_bytes(body[at : at + 2]) + 2
    longer = int.from_bytes(body[at : at + 2]) + 4
    body = body[:at] + longer.to_bytes(2) + body[at + 2 :] + extension
    message = b"\1" + len(body).to_bytes(3) + body
    record = b"\x16\3\1" + len(message).to_bytes(2) + message
    out = []
    early = b"\x17\3\3\0\x40" + bytes(64)
    for number, (side, data) in enumerate([(0, record + early), (1, answer)]):
        out += machine.handle(Run(connection, side, 0, data, number, number, number))
    assert "0-RTT data is not decrypted" in str(out)


def test_what_looks_like_records_behind_gaps_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0
    original = Opener.open

    def counting(self: Opener, record: Any, sequence: int) -> Any:
        nonlocal tried
        tried += 1
        return original(self, record, sequence)

    monkeypatch.setattr(Opener, "open", counting)
    scenario, pair, keys = pair_of(tmp_path)
    pair.send(CLIENT, request("Heartbeat", 4, 1))
    fake = b"\x17\x03\x03\x00\x11" + bytes(17)
    for _ in range(50):
        scenario.send(CLIENT, bytes(40_000))
        scenario.packets.pop()
        scenario.send(CLIENT, fake * 20)
    capture = scenario.save(tmp_path / "a.pcap")
    rows = decoded(capture, keys)
    assert MAX_TRIES <= tried < MAX_TRIES + 100
    assert sum(each.row.is_message for each in rows) == 1
    assert row_bytes(rows) == captured_bytes(capture)
    assert any("too many records are missing" in each.row.error for each in rows)


def test_master_secrets_by_session_id(tmp_path: Path) -> None:
    """As the key logs of Java agents have them for TLS 1.2."""
    keys = tmp_path / "keys"
    server = server_context(keys, V12)
    server.options |= ssl.OP_NO_TICKET
    scenario = Scenario()
    pair = TlsPair(scenario, 0, (client_context(), server))
    pair.send(CLIENT, request("Heartbeat", 4, 1))
    pair.send(BROKER, response("Heartbeat", 4, 1))
    capture = scenario.save(tmp_path / "a.pcap")
    session = pair.ends[CLIENT].session
    assert session is not None
    line = f"RSA Session-ID:{session.id.hex()} Master-Key:{keys.read_text().split()[-1]}".encode()
    rows = decoded(capture, KeyLog(line))
    assert [each.row.api_name for each in rows if each.row.is_message] == ["Heartbeat"] * 2
    assert KeyLog(line[:-1]).invalid == 1
