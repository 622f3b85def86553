"""What proxies send in front of Kafka is named and shown, and Kafka begins behind it."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.engine import Engine
from kafkawire.capture.packet_messages import Search
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.proxy.layer import MAX_HELD, ProxyLayer
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tables import read as read_table
from tests.capture import wire
from tests.capture.tls.tls_wire import V13, TlsPair, client_context, server_context
from tests.capture.written import BROKER, CLIENT, Scenario, request, response
from tests.conftest import FIXTURES

V1 = b"PROXY TCP4 203.0.113.7 10.1.0.9 40123 9092\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v2(command: int, family: int, addresses: bytes, tlvs: bytes = b"") -> bytes:
    body = addresses + tlvs
    return SIGNATURE + struct.pack(">BBH", 0x20 | command, family, len(body)) + body


def ends(first: str, second: str) -> bytes:
    return ip_address(first).packed + ip_address(second).packed + struct.pack(">HH", 40123, 9092)


INET = ends("203.0.113.7", "10.1.0.9")
INET6 = ends("2001:db8::7", "2001:db8::9")
UNIX = b"/run/a".ljust(108, b"\0") + b"/run/b".ljust(108, b"\0")
TLVS = b"\x01\0\x05kafka" + b"\x05\0\x04uniq" + b"\x20\0\x05\0\0\0\0\0"
TCP_CLIENT = "10.0.0.1:50000"
REAL, REAL6 = "203.0.113.7:40123", "[2001:db8::7]:40123"

# prefix of the client, client in the rows, what the row says
PROXIED = {
    "v1": (V1, REAL, f"PROXY protocol v1: {REAL} to 10.1.0.9:9092, sent by {TCP_CLIENT}"),
    "v1 IPv6": (b"PROXY TCP6 2001:db8::7 2001:db8::9 40123 9092\r\n", REAL6, REAL6),
    "v1 unknown": (b"PROXY UNKNOWN\r\n", TCP_CLIENT, "UNKNOWN"),
    "v1 unknown with text": (b"PROXY UNKNOWN a b\r\n", TCP_CLIENT, "UNKNOWN"),
    "v2": (v2(1, 0x11, INET), REAL, f"PROXY protocol v2: {REAL} to 10.1.0.9:9092"),
    "v2 with TLVs": (v2(1, 0x11, INET, TLVS), REAL, REAL),
    "v2 IPv6": (v2(1, 0x21, INET6, TLVS), REAL6, REAL6),
    "v2 unix": (v2(1, 0x31, UNIX), TCP_CLIENT, "unix:/run/a to unix:/run/b"),
    "v2 local": (v2(0, 0, b""), TCP_CLIENT, "LOCAL"),
    "v2 local with addresses": (v2(0, 0x11, INET), TCP_CLIENT, "LOCAL"),
    "v2 unspecified": (v2(1, 0, b"", TLVS), TCP_CLIENT, "UNSPEC"),
    "v2 with a family of its own": (v2(1, 0x51, bytes(40)), TCP_CLIENT, "UNSPEC"),
    "v2 cut addresses": (v2(1, 0x11, INET[:8]), TCP_CLIENT, "cut off"),
    "v2 of the largest size": (v2(1, 0x11, INET, bytes((1 << 16) - 1 - 12)), REAL, REAL),
    "chained": (v2(0, 0, b"") + V1, REAL, REAL),
}

Dialogue = list[tuple[int, bytes]]
SECRET = b"hunter2"
HOST = b"\x03\x08broker-1" + struct.pack(">H", 9092)
SOCKS_BEGIN: Dialogue = [(CLIENT, b"\x05\x02\x00\x02")]
CONNECT = b"CONNECT broker-1:9092 HTTP/1.1\r\nHost: b\r\nProxy-Authorization: Basic hunter2\r\n\r\n"
TUNNELS: dict[str, tuple[Dialogue, str]] = {
    "SOCKS5": (
        [
            *SOCKS_BEGIN,
            (BROKER, b"\x05\x00"),
            (CLIENT, b"\x05\x01\x00" + HOST),
            (BROKER, b"\x05\x00\x00\x01" + bytes(6)),
        ],
        "SOCKS5 to broker-1:9092",
    ),
    "SOCKS5 with a password": (
        [
            *SOCKS_BEGIN,
            (BROKER, b"\x05\x02"),
            (CLIENT, b"\x01\x05alice\x07" + SECRET),
            (BROKER, b"\x01\x00"),
            (CLIENT, b"\x05\x01\x00\x01\x0a\x00\x00\x02" + struct.pack(">H", 9092)),
            (BROKER, b"\x05\x00\x00\x04" + bytes(18)),
        ],
        "SOCKS5 to 10.0.0.2:9092",
    ),
    "CONNECT": (
        [(CLIENT, CONNECT), (BROKER, b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")],
        "HTTP CONNECT to broker-1:9092",
    ),
    "CONNECT after a refusal": (
        [
            (CLIENT, b"CONNECT [::1]:9092 HTTP/1.1\r\n\r\n"),
            (BROKER, b"HTTP/1.1 407 Authenticate\r\nContent-Length: 6\r\n\r\nsecret"),
            (CLIENT, CONNECT),
            (BROKER, b"HTTP/1.0 200 OK\r\n\r\n"),
        ],
        "HTTP CONNECT to [::1]:9092; HTTP CONNECT to broker-1:9092",
    ),
    "PROXY, then CONNECT": (
        [(CLIENT, V1), (CLIENT, CONNECT), (BROKER, b"HTTP/1.1 200 OK\r\n\r\n")],
        "HTTP CONNECT to broker-1:9092",
    ),
}


def kafka(scenario: Scenario, count: int = 4) -> Scenario:
    for _ in range(count):
        scenario.request("Heartbeat", 3, groupId="billing", generationId=1, memberId="m")
        scenario.respond("Heartbeat", 3)
    return scenario


def located(scenario: Scenario, tmp_path: Path, **options: object) -> list[Located]:
    path = scenario.save(tmp_path / "made.pcap")
    return list(decode_capture(path, **options))  # type: ignore[arg-type]


def statuses(found: list[Located]) -> list[Status]:
    return [one.row.status for one in found]


def split(scenario: Scenario, side: int, data: bytes, size: int) -> None:
    for at in range(0, len(data), size):
        scenario.send(side, data[at : at + size])


@pytest.mark.parametrize("opened", [True, False], ids=["with SYN", "without SYN"])
@pytest.mark.parametrize("size", [1, 7, 1 << 17])
@pytest.mark.parametrize("name", PROXIED)
def test_the_client_behind_a_proxy(name: str, size: int, opened: bool, tmp_path: Path) -> None:
    prefix, client, says = PROXIED[name]
    scenario = Scenario(opened)
    split(scenario, CLIENT, prefix, 1400 if len(prefix) > 999 else size)
    found = located(kafka(scenario), tmp_path)
    assert statuses(found) == [Status.PROXY] + [Status.OK] * 8
    assert {one.client for one in found} == {client}
    assert says in found[0].row.error
    assert found[0].row.length == len(prefix)
    assert found[0].row.raw == b""


@pytest.mark.parametrize("name", PROXIED)
def test_a_header_in_one_segment_with_the_first_request(name: str, tmp_path: Path) -> None:
    prefix, client, _ = PROXIED[name]
    one = request("Heartbeat", 3, 7, groupId="g", memberId="m")
    scenario = Scenario()
    split(scenario, CLIENT, prefix[:-20], 1 << 14)
    scenario.send(CLIENT, prefix[-20:] + one + one[:9]).send(CLIENT, one[9:])
    found = located(scenario, tmp_path)
    assert statuses(found) == [Status.PROXY, Status.OK, Status.OK]
    assert {each.client for each in found} == {client}


@pytest.mark.parametrize("opened", [True, False], ids=["with SYN", "without SYN"])
@pytest.mark.parametrize("size", [1, 5, 1 << 17])
@pytest.mark.parametrize("name", TUNNELS)
def test_tunnels(name: str, size: int, opened: bool, tmp_path: Path) -> None:
    dialogue, says = TUNNELS[name]
    scenario = Scenario(opened)
    for side, data in dialogue:
        split(scenario, side, data, size)
    found = located(kafka(scenario), tmp_path, ports=(9092,))
    assert statuses(found) == [Status.PROXY] * 2 + [Status.OK] * 8
    mine, theirs = found[0].row, found[1].row
    if mine.direction == "response":
        mine, theirs = theirs, mine
    assert says in mine.error
    assert [mine.length, theirs.length] == [
        sum(len(data) for sender, data in dialogue if sender == side) for side in (CLIENT, BROKER)
    ]
    assert "hunter2" not in repr(found)
    assert "alice" not in repr(found)


@pytest.mark.parametrize("name", TUNNELS)
def test_a_dialogue_that_is_cut_off_shows_no_credentials(name: str, tmp_path: Path) -> None:
    dialogue, _ = TUNNELS[name]
    for count in range(1, len(dialogue) + 1):
        for cut in {1, 9, len(dialogue[count - 1][1]) - 1, len(dialogue[count - 1][1])}:
            scenario = Scenario()
            for side, data in dialogue[: count - 1]:
                scenario.send(side, data)
            side, data = dialogue[count - 1]
            scenario.send(side, data[:cut])
            found = located(scenario, tmp_path)
            assert not any(one.row.is_message for one in found)
            sent = sum(len(data) for _, data in dialogue[: count - 1]) + len(data[:cut])
            assert sum(one.row.length for one in found) == sent
            assert all(b"hunter" not in one.row.raw for one in found)
            assert all(b"alice" not in one.row.raw for one in found)


@pytest.mark.parametrize("name", PROXIED)
def test_a_header_that_is_cut_off(name: str, tmp_path: Path) -> None:
    prefix, _, _ = PROXIED[name]
    for cut in {1, 5, 12, 15, 16, 20, len(prefix) - 1}:
        scenario = Scenario()
        split(scenario, CLIENT, prefix[:cut], 1 << 14)
        found = located(scenario, tmp_path)
        assert sum(one.row.length for one in found) == len(prefix[:cut])
        assert not any(one.row.is_message for one in found)


REQUEST = b"\x05\x01\x00" + HOST
REFUSALS: dict[str, Dialogue] = {
    "methods": [(CLIENT, b"\x05\x01\x02"), (BROKER, b"\x05\xff")],
    "password": [
        (CLIENT, b"\x05\x01\x02"),
        (BROKER, b"\x05\x02"),
        (CLIENT, b"\x01\x01a\x01b"),
        (BROKER, b"\x01\x01"),
    ],
    "request": [
        (CLIENT, b"\x05\x01\x00"),
        (BROKER, b"\x05\x00"),
        (CLIENT, REQUEST),
        (BROKER, b"\x05\x05\x00\x01" + bytes(6)),
    ],
    "CONNECT": [(CLIENT, CONNECT), (BROKER, b"HTTP/1.1 502 Bad Gateway\r\n\r\n")],
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_shown(name: str, tmp_path: Path) -> None:
    scenario = Scenario()
    for side, data in REFUSALS[name]:
        scenario.send(side, data)
    found = located(scenario, tmp_path)
    assert set(statuses(found)) <= {Status.PROXY, Status.UNPARSED}
    assert any("refused" in one.row.error for one in found)


def test_tls_behind_a_proxy_is_decrypted(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    for name in ("v1", "v2 with TLVs"):
        scenario = Scenario().send(CLIENT, PROXIED[name][0])
        pair = TlsPair(scenario, 0, (client_context(), server_context(keys, V13)))
        for number in range(3):
            pair.send(CLIENT, request("Heartbeat", 3, number, groupId="g", memberId="m"))
            pair.send(BROKER, response("Heartbeat", 3, number))
        found = located(scenario, tmp_path, keylog=keys)
        assert statuses(found).count(Status.OK) == 6
        assert set(statuses(found)) == {Status.PROXY, Status.TLS, Status.OK}
        assert {one.client for one in found} == {REAL}


def test_explain_finds_the_packets_of_messages_behind_a_proxy(tmp_path: Path) -> None:
    scenario = Scenario().send(CLIENT, V1)
    one = request("Heartbeat", 3, 7, groupId="g", memberId="m")
    path = scenario.send(CLIENT, one[:9]).send(CLIENT, one[9:]).save(tmp_path / "made.pcap")
    (explained,) = Search(str(path)).packet(5)
    assert explained.boundaries == ((0, 4), (9, 5))


def test_the_table_of_connections_has_the_real_client(tmp_path: Path) -> None:
    path = kafka(Scenario().send(CLIENT, V1).send(BROKER, b"")).close().save(tmp_path / "made.pcap")
    (batch,) = read_table(path, "connections")
    row = batch.to_pylist()[0]
    assert (row["client"], row["protocol"], row["problems"]) == (REAL, "kafka", 0)
    assert row["other_bytes"] == len(V1)


@pytest.mark.parametrize("name", ["v1", "SOCKS5 with a password", "CONNECT after a refusal"])
def test_a_snapshot_in_the_middle_continues(name: str) -> None:
    dialogue = TUNNELS[name][0] if name in TUNNELS else [(CLIENT, V1)]
    scenario = Scenario()
    for side, data in dialogue:
        split(scenario, side, data, 3)
    kafka(scenario)
    parser = PacketParser()
    segments = [wire.segments([packet], parser) for packet in scenario.packets]

    def items(engine: Engine, some: list[object]) -> list[object]:
        return [
            (item.client, getattr(item.item, "error", None), type(item.item).__name__)
            for one in some
            for batch in engine.handle(one)  # type: ignore[arg-type]
            for item in batch
        ]

    whole = items(Engine(), [*segments, None])
    for cut in range(1, len(segments), 4):
        first, second = Engine(), Engine()
        before = items(first, [*segments[:cut]])
        second.restore(first.snapshot())
        assert before + items(second, [*segments[cut:], None]) == whole


# -- hostile bytes


def hostile(rng: random.Random) -> bytes:
    begin = rng.choice(
        [b"PROXY ", SIGNATURE, b"CONNECT a:1 HTTP/1.1\r\n", b"\x05\x01\x00", b"\x05"]
    )
    return begin + rng.randbytes(rng.randrange(200))


def test_every_byte_is_accounted_for(tmp_path: Path) -> None:
    rng = random.Random(4)
    for _ in range(150):
        scenario = Scenario()
        sent = 0
        for _ in range(rng.randrange(1, 6)):
            prefixes = [each for prefix, _, _ in PROXIED.values() if len(each := prefix) < 999]
            data = rng.choice([hostile(rng), rng.choice(prefixes), b"\x05\x00", rng.randbytes(9)])
            scenario.send(rng.choice([CLIENT, BROKER]), data)
            sent += len(data)
        found = located(scenario, tmp_path)
        assert sum(one.row.length for one in found) == sent
        assert not any(one.row.is_message for one in found)


UNENDING: dict[str, Callable[[], list[tuple[int, bytes]]]] = {
    "PROXY v1": lambda: [(CLIENT, b"PROXY "), *[(CLIENT, b"a")] * 300],
    "PROXY v2": lambda: [(CLIENT, SIGNATURE + b"\x21\x11\xff\xff"), *[(CLIENT, b"a" * 64)] * 990],
    "headers": lambda: [(CLIENT, b"CONNECT a:1 HTTP/1.1\r\n"), *[(CLIENT, b"a" * 64)] * 400],
    "the other side": lambda: [
        (CLIENT, b"\x05\x01\x00"),
        (BROKER, b"\x05\x00"),
        *[(BROKER, bytes(1 << 12))] * 80,
    ],
}


@pytest.mark.parametrize("name", UNENDING)
def test_held_bytes_are_bounded(name: str) -> None:
    scenario = Scenario()
    sent = 0
    for side, data in UNENDING[name]():
        scenario.send(side, data)
        sent += len(data)
    engine = Engine()
    rows = []
    for part in [wire.segments(scenario.packets), None]:
        for batch in engine.handle(part):
            rows += [item.item for item in batch]
            for state in engine._conversations.values():
                layer: ProxyLayer | None = state.proxy
                held = 0 if layer is None else sum(len(each.data) for each in layer._sides)
                assert held <= MAX_HELD + (1 << 12)
    assert sum(row.length for row in rows if hasattr(row, "length")) == sent


@pytest.mark.parametrize("file", ["02-proxy-v1-syn", "02-proxy-v2-syn"])
def test_the_cases_from_the_field(file: str) -> None:
    found = list(decode_capture(FIXTURES / "field" / f"{file}.pcap"))
    assert statuses(found) == [Status.PROXY] + [Status.OK] * 60
    assert {one.client for one in found} == {REAL}
