"""Streams that Wireshark and tshark follow, as text, are read as the connections that they were."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture import Status, decode_capture
from kafkawire.printed import splitter_of
from kafkawire.printed.conversation import UNKNOWN
from kafkawire.printed.streams import MAX_BYTES, MAX_LINE, FollowedStream
from tests.capture.printing import BROKER_PORT, KCAT, Sent, streams, text_of
from tests.cli.reports import run

LINE = 16
RULE = "=" * 67


# -- the forms, as the tools write them


def dump(stream: Sequence[Sent], indent: str = "\t") -> str:
    lines = []
    for each in stream:
        for start in range(0, len(each.data), LINE):
            row = each.data[start : start + LINE]
            halves = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
            text = f"{text_of(row[:8])} {text_of(row[8:])}"
            lines.append(f"{indent * each.side}{each.at + start:08X}  {halves:48}  {text}")
    return "\n".join(lines) + "\n"


def heading(form: str, port: int) -> str:
    nodes = f"Node 0: 127.0.0.1:{port}\nNode 1: 127.0.0.1:{BROKER_PORT}"
    return f"\n{RULE}\nFollow: tcp,{form}\nFilter: tcp.stream eq 0\n{nodes}\n"


def raw(stream: Sequence[Sent]) -> str:
    return "".join("\t" * each.side + each.data.hex() + "\n" for each in stream)


def arrays(stream: Sequence[Sent]) -> str:
    out, count = [], [0, 0]
    for number, each in enumerate(stream):
        name = f"peer{each.side}_{count[each.side]}"
        count[each.side] += 1
        rows = ",\n".join(
            ", ".join(f"0x{byte:02x}" for byte in each.data[start : start + 8])
            for start in range(0, len(each.data), 8)
        )
        out.append(f"char {name}[] = {{ /* Packet {number} */\n{rows} }};\n")
    return "".join(out)


def yaml(stream: Sequence[Sent], port: int) -> str:
    ports = enumerate((port, BROKER_PORT))
    peers = [f"  - peer: {side}\n    host: 127.0.0.1\n    port: {port}" for side, port in ports]
    packets = []
    for number, each in enumerate(stream):
        seconds, fraction = divmod(each.time_ns, 10**9)
        digits = base64.encodebytes(each.data).decode().splitlines()
        data = "\n".join(f"      {line}" for line in digits)
        packets.append(
            f"  - packet: {number}\n    peer: {each.side}\n    index: {number}\n"
            f"    timestamp: {seconds}.{fraction:09}\n    data: !!binary |\n{data}"
        )
    return "\n".join(["peers:", *peers, "packets:", *packets]) + "\n"


FOLLOWED: dict[str, Callable[[int, Sequence[Sent]], str]] = {
    "tshark hex": lambda port, sent: f"{heading('hex', port)}{dump(sent)}{RULE}\n",
    "tshark raw": lambda port, sent: f"{heading('raw', port)}{raw(sent)}{RULE}\n",
    "tshark raw of TLS": lambda port, sent: f"{heading('raw', port)}{raw(sent)}{RULE}\n".replace(
        "tcp,", "tls,"
    ),
    "tshark yaml": lambda port, sent: yaml(sent, port),
    "Wireshark hex dump": lambda _, sent: dump(sent, "    "),
    "Wireshark hex dump of Windows": lambda _, sent: dump(sent, "    ").replace("\n", "\r\n"),
    "Wireshark C arrays": lambda _, sent: arrays(sent),
}
WITHOUT_ADDRESSES = {each for each in FOLLOWED if each.startswith("Wireshark")}


def bodies(*arguments: str | Path, stdin: bytes | None = None) -> list[tuple[object, ...]]:
    result = run("decode", "--json", *arguments, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    kept = ("client", "direction", "api_name", "correlation_id", "status", "body", "time")
    return [tuple(row[key] for key in kept) for row in rows]


@pytest.mark.parametrize("form", FOLLOWED)
def test_followed_streams_are_the_connections_that_they_were(form: str, tmp_path: Path) -> None:
    expected = bodies(KCAT)
    for port, sent in streams().items():
        file = tmp_path / f"{port}.txt"
        file.write_bytes(FOLLOWED[form](port, sent).encode())
        client = f"127.0.0.1:{port}"
        wanted = [row for row in expected if row[0] == client]
        unknown = "0.0.0.1:1" if form in WITHOUT_ADDRESSES else client
        times = [row[-1] for row in wanted] if "yaml" in form else [None] * len(wanted)
        assert bodies(file) == [
            (unknown, *row[1:-1], time) for row, time in zip(wanted, times, strict=True)
        ]
        assert len(wanted) > 1


def test_several_streams_of_a_file_are_connections() -> None:
    text = "".join(FOLLOWED["tshark hex"](port, sent) for port, sent in streams().items())
    rows = bodies("-", stdin=text.encode())
    assert {row[0] for row in rows} == {f"127.0.0.1:{port}" for port in streams()}
    assert {row[4] for row in rows} == {"ok"}
    assert len(rows) == len(bodies(KCAT))
    assert "10 Kafka" in run("summary", "-", stdin=text.encode()).stdout


def test_lines_that_are_missing_are_a_problem_and_a_gap(tmp_path: Path) -> None:
    port, sent = max(streams().items(), key=lambda each: len(each[1]))
    lines = FOLLOWED["tshark hex"](port, sent).splitlines(keepends=True)
    middle = len(lines) // 2
    file = tmp_path / "stream.txt"
    file.write_text("".join(lines[:middle] + lines[middle + 2 :]))
    rows = [each.row for each in decode_capture(file)]
    [problem] = [each for each in rows if each.status is Status.UNREADABLE]
    assert "does not follow" in (problem.error or "")
    assert {each.status for each in rows} > {Status.OK, Status.UNREADABLE}
    assert sum(each.status is Status.OK for each in rows) >= 2


def test_ascii_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "stream.txt").write_text(heading("ascii", 50000) + "$....rdkafka\n")
    for verb in ("decode", "summary"):
        result = run(verb, tmp_path / "stream.txt")
        assert result.exit_code == 2
        assert "followed as ascii, which does not have all of its bytes" in result.stderr


PORT, SENT = min(streams().items(), key=lambda each: len(each[1]))


@given(st.sampled_from(sorted(FOLLOWED)), st.lists(st.integers(1, 9_999), max_size=20))
def test_text_is_read_in_any_parts(form: str, cuts: list[int]) -> None:
    text = FOLLOWED[form](PORT, SENT).encode()
    edges = sorted({0, *(cut % len(text) for cut in cuts), len(text)})
    whole, in_parts = splitter_of(text), splitter_of(text)
    assert whole is not None
    assert in_parts is not None
    read = [each for start, end in pairwise(edges) for each in in_parts.feed(text[start:end])]
    assert [*read, *in_parts.finish()] == [*whole.feed(text), *whole.finish()]


HOSTILE = {
    "raw": b"00" * MAX_LINE + b"\n",
    "hex": b"FFFFFFFF  00 00 00 00\n00000000  00 00 00 00\n\t00000000  01\n\t00000000  01\n",
    "c": b"char peer0_0[] = {\n" + b"0x00, 0x00, 0x00, 0x00,\n" * (MAX_BYTES // 3),
    "yaml": b"peers:\n  - peer: 7\n    host: x\n    port: 99999\n  - packet: 1\n    data: x\n"
    + b"      AAAA====\n" * (MAX_BYTES // 8),
}


@pytest.mark.parametrize("form", HOSTILE)
def test_hostile_text_is_bounded(form: str) -> None:
    stream = FollowedStream(form)
    packets = [*stream.feed(HOSTILE[form]), *stream.finish()]
    assert all(len(each.data) < 1 << 16 for each in packets)
    assert any(each.problem for each in packets) == (form != "c")


@pytest.mark.parametrize(
    "text",
    [
        dump([Sent(0, b"\0\0\0\x24" * 9, 0, 0)]),  # one side: a dump of frames
        "char frame[] = {0x00, 0x00, 0x00, 0x24};",
        "peers:\n  nobody: here\n",
    ],
)
def test_what_is_no_stream(text: str) -> None:
    assert splitter_of(text.encode()) is None


def test_unknown_addresses_are_those_of_no_host() -> None:
    assert [str(each.address) for each in UNKNOWN] == ["0.0.0.1", "0.0.0.2"]
