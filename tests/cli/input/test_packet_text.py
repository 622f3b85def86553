"""Packets that tools print as text are read as the capture that they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafkawire_cli.input.captures.packet_text import as_capture, is_packet_text
from kafkawire_cli.input.hex_text import HexError
from tests.capture.wire import Packet, packets_of, read
from tests.cli.reports import run
from tests.conftest import FIXTURES

KCAT = FIXTURES / "captures" / "kcat-kf.pcap"
LINE = 16


def recorded(path: Path = KCAT) -> list[Packet]:
    blocks, _ = read(path.read_bytes())
    times = [time_ns for block in blocks for time_ns in block.ts.tolist()]
    return list(map(Packet, packets_of(blocks), times))


def text_of(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 < byte < 0x7F else "." for byte in data)


def tcpdump(packet: Packet, skipped: int, date: str = "", shows_text: bool = True) -> str:
    """Print a packet without its first bytes, as `tcpdump -X` and `-x` do."""
    moment = datetime.fromtimestamp(packet.time_ns // 10**9, UTC)
    fraction = packet.time_ns % 10**9 // 1000
    lines = [f"{moment:{date}%H:%M:%S}.{fraction:06} IP 10.0.0.1.50000 > 10.0.0.2.9092: Flags [.]"]
    data = packet.data[skipped:]
    for at in range(0, len(data), LINE):
        row = data[at : at + LINE]
        groups = " ".join(row[i : i + 2].hex() for i in range(0, len(row), 2))
        text = f"  {text_of(row)}" if shows_text else ""
        lines.append(f"\t0x{at:04x}:  {groups:39}{text}".rstrip())
    return "\n".join(lines) + "\n"


def tshark(packet: Packet) -> str:
    """Print a packet as `tshark -x` does, with bytes that are not those of the packet."""
    lines = [f"Frame ({len(packet.data)} bytes):"]
    for data in (packet.data, b"E" * 40):
        for at in range(0, len(data), LINE):
            row = data[at : at + LINE]
            lines.append(f"{at:04x}  {row.hex(' '):47}   {text_of(row)}")
        lines += ["Reassembled TCP (40 bytes):"] * (data is packet.data)
    return "\n".join(lines) + "\n\n"


PRINTED: dict[str, Callable[[Packet], str]] = {
    "-X": lambda packet: tcpdump(packet, 14),
    "-x": lambda packet: tcpdump(packet, 14, shows_text=False),
    "-XX": lambda packet: tcpdump(packet, 0),
    "-tttt -xx": lambda packet: tcpdump(packet, 0, "%Y-%m-%d ", shows_text=False),
    "tshark -x": tshark,
}


def rows(*arguments: str | Path, stdin: bytes | None = None) -> list[dict[str, object]]:
    result = run("decode", "--json", *arguments, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [{key: row[key] for key in row if key != "capture"} for row in lines]


@pytest.mark.parametrize("options", PRINTED)
def test_printed_packets_are_the_capture_that_they_were(options: str, tmp_path: Path) -> None:
    text = "".join(map(PRINTED[options], recorded()))
    (tmp_path / "printed.txt").write_text(text)
    printed, expected = rows(tmp_path / "printed.txt"), rows(KCAT)
    times = [
        (str(row.pop("time")), str(other.pop("time")))
        for row, other in zip(printed, expected, strict=True)
    ]
    assert printed == expected
    if options.startswith("-tttt"):
        assert all(one == other for one, other in times)
    elif options.startswith("-"):
        assert all(one == f"1970-01-01{other[10:]}" for one, other in times)
    else:
        assert {one for one, _ in times} == {"None"}


def test_a_pipe_and_linux_cooked_packets() -> None:
    cooked = FIXTURES / "captures" / "aio-sll2.pcap"
    text = "".join(tcpdump(packet, 0, "%Y-%m-%d ") for packet in recorded(cooked))
    assert rows("-", stdin=text.encode()) == rows(cooked)


def test_lines_without_bytes_are_refused_with_what_to_do(tmp_path: Path) -> None:
    lines = [tcpdump(packet, 14).splitlines()[0] for packet in recorded()]
    (tmp_path / "printed.txt").write_text("\n".join(lines))
    result = run("decode", tmp_path / "printed.txt")
    assert result.exit_code == 2
    assert "no bytes of packets: print them with tcpdump -X, or write them" in result.stderr


def test_lines_that_are_missing_are_named() -> None:
    lines = tcpdump(recorded()[3], 14).splitlines()
    del lines[3]
    with pytest.raises(HexError, match="offset 0x30 does not follow 0x20"):
        as_capture("\n".join(lines))


@pytest.mark.parametrize("line", ["25:00:00.000000 IP", "2026-02-31 00:00:00.000000 IP"])
def test_digits_that_are_no_time_are_passed_over(line: str) -> None:
    text = "\n".join([line, *tcpdump(recorded()[3], 14).splitlines()[1:]])
    blocks, _ = read(as_capture(text))
    assert packets_of(blocks) == [recorded()[3].data[14:]]


@pytest.mark.parametrize(
    "text", ["00000024 0012 0003 00000001 0004", "0000  00 00 00 24 00 12 00 03"]
)
def test_frames_as_text_are_no_packets(text: str) -> None:
    assert not is_packet_text(text)
