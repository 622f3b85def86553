"""Packets that tools print as text are read as the capture that they were."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture import Status, decode_capture
from kafkawire.capture.files.source import Capture, read_capture
from kafkawire.errors import BadMagic, CorruptCapture
from kafkawire.printed import splitter_of
from kafkawire.printed.packets import MAX_BYTES, MAX_LINE, PrintedPackets
from tests.capture.printing import (
    KCAT,
    printed,
    recorded,
    tcpdump,
    tshark,
    tshark_details,
    tshark_line,
)
from tests.capture.wire import Packet, packets_of, read
from tests.cli.reports import report, run
from tests.conftest import FIXTURES

PRINTED: dict[str, Callable[[Packet], str]] = {
    "-X": lambda packet: tcpdump(packet, 14),
    "-x": lambda packet: tcpdump(packet, 14, shows_text=False),
    "-XX": lambda packet: tcpdump(packet, 0),
    "-tttt -xx": lambda packet: tcpdump(packet, 0, "%Y-%m-%d ", shows_text=False),
    "tshark -x": tshark,
    "tshark -P -x": lambda packet: f"{tshark_line(packet)}\n\n{tshark(packet)}",
    "tshark -V -x": lambda packet: f"{tshark_details(packet)}\n\n{tshark(packet)}",
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
    assert all(one == SHOWN_TIMES[options](other) for one, other in times)


def _since_the_first(time: str) -> str:
    first_ns = recorded()[0].time_ns
    second, fraction = time.removesuffix("Z").split(".")
    whole = int(datetime.fromisoformat(second).replace(tzinfo=UTC).timestamp())
    since_ns = whole * 10**9 + int(fraction) - first_ns
    return f"1970-01-01T00:00:{since_ns // 10**9:02}.{since_ns % 10**9:09}Z"


SHOWN_TIMES: dict[str, Callable[[str], str]] = {
    "-X": lambda time: f"1970-01-01{time[10:]}",
    "-x": lambda time: f"1970-01-01{time[10:]}",
    "-XX": lambda time: f"1970-01-01{time[10:]}",
    "-tttt -xx": lambda time: time,
    "tshark -x": lambda _: "None",
    "tshark -P -x": _since_the_first,
    "tshark -V -x": lambda time: time,
}
"""Options -> the time of a packet as text, by that in the capture."""


def test_a_pipe_and_linux_cooked_packets() -> None:
    cooked = FIXTURES / "captures" / "aio-sll2.pcap"
    assert rows("-", stdin=printed(recorded(cooked))) == rows(cooked)


LOOPBACK = {"little-endian": b"\2\0\0\0", "big-endian": b"\0\0\0\2"}


@pytest.mark.parametrize("order", LOOPBACK)
def test_packets_of_a_loopback_interface_of_bsd(order: str) -> None:
    """`tcpdump -i lo0 -xx`: 4 bytes of an address family are in front of the header of IP."""
    loopback = [Packet(LOOPBACK[order] + each.data[14:], each.time_ns) for each in recorded()]
    assert rows("-", stdin=printed(loopback)) == rows(KCAT)


@pytest.mark.parametrize("verb", ["summary", "latency", "clients", "groups", "topics", "diagnose"])
def test_every_report_reads_them(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "printed.txt.gz"
    file.write_bytes(gzip.compress(printed(recorded())))
    of_text, of_capture = (_without_sizes(report(verb, each)) for each in (file, KCAT))
    assert of_text == of_capture


def _without_sizes(report: dict[str, object]) -> dict[str, object]:
    """Leave out what tells two files apart: their names, and their bytes."""
    return json.loads(  # type: ignore[no-any-return]
        json.dumps(report), object_hook=lambda each: {k: each[k] for k in each if k not in FILE}
    )


FILE = {"file", "files", "bytes", "capture", "captures", "name", "size", "file_bytes"}


def test_a_capture_that_begins_at_time_zero_has_a_time() -> None:
    """Times since the first packet: that of the first one is 0."""
    text = "".join(f"{tshark_line(each)}\n{tshark(each)}" for each in recorded())
    assert "1970-01-01 00:00:00 UTC, for 1." in run("summary", "-", stdin=text.encode()).stdout


def test_sql_explain_and_processes_read_them(tmp_path: Path) -> None:
    file = tmp_path / "printed.txt"
    file.write_bytes(printed(recorded()))
    for verb in (
        ("sql", "SELECT api_name, count(*) FROM exchanges GROUP BY ALL ORDER BY ALL"),
        ("decode", "--table", "exchanges", "--jobs", "2"),
        ("explain", "--packet", "4"),
    ):
        of_text, of_capture = (run(*verb, each) for each in (file, KCAT))
        assert (of_text.exit_code, of_text.stderr) == (0, "")
        assert of_text.stdout.replace(str(file), str(KCAT)) == of_capture.stdout


def test_a_pipe_is_read_as_it_is_written() -> None:
    """The first packet is recognised although the pipe has no more bytes yet."""
    first = printed(recorded()[:4]) + b"a line\n"
    ours, theirs = os.pipe()
    try:
        os.write(theirs, first)
        with os.fdopen(ours, "rb", buffering=0) as stream:
            block = next(iter(read_capture(stream)))
            assert packets_of([block]) == [each.data for each in recorded()[:4]]
    finally:
        os.close(theirs)


WITHOUT_BYTES: dict[str, Callable[[Packet], str]] = {
    "tcpdump": lambda packet: tcpdump(packet, 14).splitlines()[0],
    "tshark": tshark_line,
    "tshark -V": tshark_details,
}


@pytest.mark.parametrize("tool", WITHOUT_BYTES)
def test_lines_without_bytes_are_refused_with_what_to_do(tool: str, tmp_path: Path) -> None:
    (tmp_path / "printed.txt").write_text("\n".join(map(WITHOUT_BYTES[tool], recorded())))
    for verb in ("decode", "summary"):
        result = run(verb, tmp_path / "printed.txt")
        assert result.exit_code == 2
        assert (
            "without their bytes: print them with tcpdump -X or tshark -x, or write"
            in result.stderr
        )


EXPORTED = {
    "JSON": '[\n  {\n    "_index": "packets-2026-11-21",\n    "_type": "doc",\n',
    "JSON of ek": '{"index":{"_index":"packets-2026-11-21","_type":"doc"}}\n',
    "XML": '<?xml version="1.0" encoding="utf-8"?>\n<!-- a -->\n<pdml version="0">\n',
}


@pytest.mark.parametrize("form", EXPORTED)
def test_exported_packets_are_refused_with_what_to_do(form: str) -> None:
    for verb in ("decode", "summary"):
        result = run(verb, "-", stdin=EXPORTED[form].encode())
        assert result.exit_code == 2
        assert f"packets as {form.split()[0]} of tshark or Wireshark: read the" in result.stderr


def test_packets_of_which_no_link_type_fits_are_refused_with_what_to_do(tmp_path: Path) -> None:
    text = "".join(
        tcpdump(Packet(b"\x01\x80\xc2" + each.data, each.time_ns), 0) for each in recorded()[:9]
    )
    (tmp_path / "printed.txt").write_text(text)
    for verb in ("decode", "summary"):
        result = run(verb, tmp_path / "printed.txt")
        assert result.exit_code == 2
        assert "none of Ethernet, Linux cooked and IP: print them with tcpdump -X" in result.stderr


def test_a_packet_whose_lines_are_missing_is_named_and_the_others_are_read() -> None:
    packets = recorded()
    lines = printed(packets[3:4]).splitlines()
    before, after = printed(packets[:3]), printed(packets[4:])
    blocks, capture = read(b"\n".join([before[:-1], *lines[:3], *lines[4:], after]))
    assert packets_of(blocks) == [each.data for each in packets[:3] + packets[4:]]
    [problem] = capture.problems
    assert isinstance(problem, CorruptCapture)
    assert problem.reason.endswith("offset 0x30 does not follow 0x20")
    assert problem.offset == len(before) + len(lines[0]) + 1


def test_rows_say_what_is_missing(tmp_path: Path) -> None:
    packets = recorded()
    lines = printed(packets[3:4]).splitlines(keepends=True)
    file = tmp_path / "printed.txt"
    file.write_bytes(b"".join([printed(packets[:3]), *lines[:3], *lines[4:], printed(packets[4:])]))
    statuses = [each.row.status for each in decode_capture(file)]
    assert Status.UNREADABLE in statuses
    assert statuses.count(Status.OK) > 100
    assert run("decode", "--strict", file).exit_code == 1


LINES = b"junk\n\n0000  00 01\n" + printed(recorded()[3:7])


@given(st.lists(st.integers(1, len(LINES)), max_size=20))
def test_text_is_read_in_any_parts(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(LINES)})
    packets = PrintedPackets()
    whole = PrintedPackets()
    in_parts = [
        packet for start, end in pairwise(edges) for packet in packets.feed(LINES[start:end])
    ]
    assert [*in_parts, *packets.finish()] == [*whole.feed(LINES), *whole.finish()]


HOSTILE = {
    "a long line": b"x" * (100 * MAX_LINE),
    "a long dump row": b"0x0000:  " + b"00" * MAX_BYTES,
    "a far offset": b"0xffffffffffff:  4500 0000\n",
    "a packet without end": b"".join(
        b"0x%04x:  %s\n" % (at, b"00" * 16) for at in range(0, 2 * MAX_BYTES, 16)
    ),
    "a packet that begins anew": b"0x0000:  45\n" * 1000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_bounded_and_what_follows_is_read(kind: str) -> None:
    first, rest = printed(recorded()[3:4]), printed(recorded()[4:9])
    data = first + b"\n" + HOSTILE[kind] + b"\n" + rest
    packets = PrintedPackets()
    parts = [data[start : start + 999] for start in range(0, len(data), 999)]
    read_so_far = [each for part in parts for each in packets.feed(part)]
    read_so_far += packets.finish()
    assert all(len(each.data) <= MAX_BYTES for each in read_so_far)
    assert packets_of(read(data)[0])[-5:] == [each.data for each in recorded()[4:9]]


@pytest.mark.parametrize(
    "line", ["25:00:00.000000 IP", "2026-02-31 00:00:00.000000 IP", "9999-01-01 00:00:00.000000 IP"]
)
def test_digits_that_are_no_time_are_passed_over(line: str) -> None:
    text = "\n".join([line, *tcpdump(recorded()[3], 14).splitlines()[1:]])
    blocks, _ = read(text.encode())
    assert packets_of(blocks) == [recorded()[3].data[14:]]


TIMES = {
    "23:59:59.000001 ": 86_399_000_001_000,
    "00:00:01.000000 ": 86_401_000_000_000,
    "23:59:59.900000 ": 86_399_900_000_000,
    "00:00:02.000000 ": 86_402_000_000_000,
    "1700000000.000001 ": 1_700_000_000_000_001_000,
}
"""What is in front of lines, one after the other -> nanoseconds."""


def test_times_without_a_date_go_on_after_midnight_and_seconds_are_times() -> None:
    lines = tcpdump(recorded()[3], 14).splitlines()[1:]
    text = "\n".join("\n".join([f"{each}IP", *lines]) for each in TIMES)
    blocks, _ = read(text.encode())
    assert [time_ns for block in blocks for time_ns in block.ts.tolist()] == list(TIMES.values())


def test_text_in_front_is_passed_over_if_the_user_says_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "printed.txt"
    file.write_bytes(b"a line of a log\n" * 3000 + printed(recorded()))
    assert run("decode", file).exit_code == 2
    assert rows("--input-format", "text", file) == rows(KCAT)


def test_text_that_the_user_says_is_of_packets_and_has_none_is_a_problem() -> None:
    [row] = rows("--input-format", "text", "-", stdin=b"a line of a log\n")
    assert row["status"] == "unreadable"
    assert "lines about packets without their bytes" in str(row["error"])


@pytest.mark.parametrize(
    "text", ["00000024 0012 0003 00000001 0004", "0000  00 00 00 24 00 12 00 03"]
)
def test_frames_as_text_are_no_packets(text: str) -> None:
    assert splitter_of(text.encode()) is None
    with pytest.raises(BadMagic):
        list(Capture([text.encode()]))
