"""Captures whose packets have no payload: every verb says what is in them, and what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.capture import wire
from tests.capture.written import Scenario
from tests.cli.test_corners import KCAT, VERBS
from tests.conftest import FIXTURES

from .reports import run

ARP = 0x0806
SYN, ACK = 2, 16
ADVICE = "capture while clients send: tcpdump -s 0 -w FILE tcp port 9092"


def handshake() -> list[bytes]:
    """Return frames of a handshake, without a byte of data."""
    segments = (
        wire.tcp(40000, 9092, 1, b"", flags=SYN),
        wire.tcp(40000, 9092, 2, b"", ack=7, flags=ACK),
        wire.tcp(40000, 9092, 2, b"", ack=7, flags=ACK),
    )
    return [wire.ethernet(wire.ipv4(segment)) for segment in segments]


def others() -> list[bytes]:
    """Return a frame of UDP, and one of ARP."""
    return [
        wire.ethernet(wire.ipv4(wire.udp(53, b"?" * 20), protocol=17)),
        wire.ethernet(bytes(28), ARP),
    ]


CONTENTS = {
    "a handshake": (handshake(), "3 packets (3 of TCP without payload)"),
    "no TCP": (others(), "2 packets (2 of other protocols)"),
    "both": (
        handshake() + others(),
        "5 packets (3 of TCP without payload, 2 of other protocols)",
    ),
}
MORE_VERBS = [
    ["sql", "SELECT api_name FROM exchanges"],
    ["sql", "SELECT f.rule FROM findings f, exchanges"],
    ["top"],
    ["top", "--speed", "1000000"],
    ["diagnose"],
    ["report", "-o", "-"],
    ["decode", "--rotated"],
    ["decode", "--table", "records"],
    ["decode", "--table", "problems", "--jobs", "2"],
]


def captured(path: Path, frames: list[bytes]) -> Path:
    data = wire.pcap([wire.Packet(frame) for frame in frames])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("verb", [*VERBS, *MORE_VERBS], ids=" ".join)
def test_what_a_capture_has_instead_is_said(verb: list[str], content: str, tmp_path: Path) -> None:
    frames, counted = CONTENTS[content]
    result = run(*verb, captured(tmp_path / "a.pcap.gz", frames))
    assert result.exit_code == 0
    noted = f"no Kafka messages in {counted}; {ADVICE}\n"
    if verb == ["decode"]:  # reads each file by itself
        noted = f"{tmp_path / 'a.pcap.gz'}: {noted}"
    assert result.stderr == f"kafkawire {verb[0]}: {noted}"


WITHOUT_MESSAGES = [
    *[verb for verb in VERBS if verb not in (["summary"], ["decode"])],
    ["decode", "--table", "records", "--jobs", "2"],
    ["sql", "SELECT api_name FROM exchanges"],
    ["sql", "SELECT f.rule FROM findings f, exchanges"],
    ["top"],
]
"""Verbs that do not show what is missing in a capture."""


@pytest.mark.parametrize("verb", WITHOUT_MESSAGES, ids=" ".join)
def test_packets_cut_to_their_headers_have_no_messages(verb: list[str], tmp_path: Path) -> None:
    frames = [
        wire.Packet(wire.ethernet(wire.ipv4(wire.tcp(40000, 9092, sequence, bytes(100))))[:54], 154)
        for sequence in (1, 101)
    ]
    (tmp_path / "a.pcap").write_bytes(wire.pcap(frames))
    result = run(*verb, tmp_path / "a.pcap")
    assert result.exit_code == 0
    noted = "no Kafka messages in 2 packets; see kafkawire summary"
    assert result.stderr == f"kafkawire {verb[0]}: {noted}\n"


IN_PART = {
    **{
        " ".join(verb): "the report lacks" for verb in VERBS if verb[0] not in ("summary", "decode")
    },
    "decode --table exchanges": "the tables lack",
    "decode --table records --jobs 2": "the tables lack",
    "decode --table messages": "the tables lack",
    "sql": "the tables lack",
}


@pytest.mark.parametrize("verb", IN_PART)
def test_what_is_made_of_parts_of_messages_says_so(verb: str, tmp_path: Path) -> None:
    words = [*verb.split(), *(["SELECT count(*) FROM records"] if verb == "sql" else [])]
    story = Scenario().request("Metadata", 1, topics=[{"name": "orders"}])
    story.respond("Metadata", 1).request("Heartbeat", 3, groupId="g", memberId="m")
    whole = run(*words, story.save(tmp_path / "whole.pcap"))
    assert (whole.exit_code, whole.stderr) == (0, "")
    cut = [one._replace(data=one.data[:82], original=len(one.data)) for one in story.packets]
    (tmp_path / "a.pcap").write_bytes(wire.pcap(cut))
    missing = sum(max(0, len(one.data) - 82) for one in story.packets)
    result = run(*words, tmp_path / "a.pcap")
    assert result.exit_code == 0
    assert result.stderr == (
        f"kafkawire {words[0]}: 2 messages not whole in the capture ({missing} B missing): "
        f"{IN_PART[verb]} what was in them; see kafkawire diagnose\n"
    )


WITHOUT_NOTE = ["problems", "connections", "exchanges --filter answered==no"]
"""Tables that have what is not whole, or only what matches: how much of that is lost is unknown."""


@pytest.mark.parametrize("table", WITHOUT_NOTE)
def test_tables_that_list_what_is_not_whole_have_no_note(table: str, tmp_path: Path) -> None:
    story = Scenario().request("Metadata", 1, topics=[{"name": "orders"}])
    cut = [one._replace(data=one.data[:82], original=len(one.data)) for one in story.packets]
    (tmp_path / "a.pcap").write_bytes(wire.pcap(cut))
    result = run("decode", "--table", *table.split(), tmp_path / "a.pcap")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout


def test_statements_of_a_prompt_have_one_line(tmp_path: Path) -> None:
    statements = b"SELECT count(*) FROM exchanges; SELECT count(*) FROM lag;"
    result = run("sql", captured(tmp_path / "a.pcap", handshake()), stdin=statements)
    assert result.stdout.count("0") == 2
    assert result.stderr.count("no Kafka messages") == 1


@pytest.mark.parametrize("jobs", ["1", "2", "9"])
def test_each_file_has_its_line(jobs: str, tmp_path: Path) -> None:
    files = [captured(tmp_path / f"{number}.pcap", handshake()) for number in range(9)]
    result = run("decode", "--jobs", jobs, KCAT, *files)
    assert result.exit_code == 0
    assert sorted(result.stderr.splitlines()) == [
        f"kafkawire decode: {file}: no Kafka messages in 3 packets "
        f"(3 of TCP without payload); {ADVICE}"
        for file in files
    ]


def test_a_stream_is_named_as_given(tmp_path: Path) -> None:
    data = captured(tmp_path / "a.pcap", others()).read_bytes()
    result = run("decode", "-", stdin=data)
    assert result.stderr.startswith("kafkawire decode: -: no Kafka messages in 2 packets (2 of")


@pytest.mark.parametrize(
    "verb",
    [
        ["decode", "--table", "problems"],
        ["decode", "--table", "problems", "--jobs", "2"],
        ["transactions"],
    ],
    ids=" ".join,
)
def test_messages_without_rows_of_a_table_are_messages(verb: list[str]) -> None:
    result = run(*verb, FIXTURES / "captures" / "ck-848.pcap")
    assert (result.exit_code, result.stderr) == (0, "")
