"""Captures of mirrored and tunnelled traffic through the command line; what is skipped is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.encapsulations import encapsulated, ip_packets, outer4
from tests.capture.wire import Packet, ethernet, ipv4, packets_of, pcap, pcapng, read, udp
from tests.conftest import FIXTURES

from .reports import report, run, text

FIELD = FIXTURES / "field"
ROWS = {
    "03-erspan2": 8,
    "erspan1": 8,
    "mpls": 8,
    "ipip-in-vxlan": 8,
    "vxlan-in-vxlan": 8,
    "nflog-239": 6,
    "ppp-9": 6,
    "radiotap-127": 6,
}
KCAT = FIXTURES / "captures" / "kcat-kf.pcap"
MACSEC = Packet(ethernet(bytes(100), 0x88E5))
ESP = Packet(ethernet(outer4(bytes(80), 50)))
OTHERS = [
    Packet(ethernet(bytes(28), 0x0806)),
    Packet(ethernet(ipv4(udp(53, b"query"), protocol=17))),
    Packet(ethernet(ipv4(bytes(20), protocol=1))),
]


def rows(*arguments: object, code: int = 0) -> list[dict[str, Any]]:
    result = run("decode", *arguments, "--format", "jsonl")
    assert result.exit_code == code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def plain() -> list[Packet]:
    """The IP packets of a recording."""
    blocks, _ = read(KCAT.read_bytes())
    times = [time_ns for block in blocks for time_ns in block.ts.tolist()]
    return ip_packets(map(Packet, packets_of(blocks), times))


@pytest.mark.parametrize("name", ROWS)
def test_field_captures(name: str) -> None:
    found = rows(FIELD / f"{name}.pcap", "--strict")
    assert [row["status"] for row in found] == ["ok"] * ROWS[name]


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_what_is_skipped_is_a_problem(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "a.pcap"
    frames = [Packet(ethernet(one.data), one.time_ns) for one in plain()]
    path.write_bytes(write([*frames, MACSEC, *OTHERS, ESP, MACSEC]))
    *messages, macsec, esp = rows(path, "--strict", code=1)
    assert {row["status"] for row in messages} == {"ok"}
    assert macsec["error"] == "2 packets (228 bytes) not decoded: EtherType 0x88e5 (MACsec)"
    assert esp["error"] == "1 packet (114 bytes) not decoded: IP protocol 50 (ESP, encrypted)"
    assert {row["status"] for row in (macsec, esp)} == {"skipped"}
    found = report("summary", path)
    assert [(one["kind"], one["bytes"]) for one in found["problems"]] == [
        ("skipped", 228),
        ("skipped", 114),
    ]
    assert found["other_packets"] == len(OTHERS)
    assert found["payload"]["unaccounted"] == 0
    assert "(3 without TCP)" in text("summary", path)
    assert "EtherType 0x88e5 (MACsec)" in text("summary", path)
    result = run("decode", path, "--table", "problems")
    assert [json.loads(line)["kind"] for line in result.stdout.splitlines()] == ["skipped"] * 2


def test_other_traffic_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    frames = [Packet(ethernet(one.data), one.time_ns) for one in plain()]
    path.write_bytes(pcap([*OTHERS, *frames, *OTHERS]))
    assert {row["status"] for row in rows(path, "--strict")} == {"ok"}
    found = report("summary", path)
    assert (found["problems"], found["other_packets"]) == ([], 6)


def test_tunnels_on_other_ports(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    packets = [
        one._replace(data=encapsulated(one.data, ["vxlan"]).replace(b"\x12\xb5", b"\x39\xc5", 1))
        for one in plain()
    ]
    path.write_bytes(pcap(packets))
    assert rows(path) == []
    option = "--tunnel", "vxlan:14789"
    found, expected = rows(path, *option), rows(KCAT)
    assert [row.get("body") for row in found] == [row.get("body") for row in expected]
    number = found[0]["packet"]
    for verb in (["summary"], ["decode", "--table", "messages"]):
        assert "ApiVersions" in run(*verb, path, *option).stdout
    assert run("explain", path, "--packet", number, *option).exit_code == 0
    query = "SELECT count(*) AS n FROM messages"
    assert json.loads(run("sql", query, path, *option).stdout) == {"n": len(found)}
    assert run("summary", path, "--tunnel", "vxlan").exit_code == 2
    assert run("decode", path, "--tunnel", "teredo:1").exit_code == 2
