"""`explain CAPTURE --packet N`: captured messages, and the packets that carried them."""

from __future__ import annotations

import json
import ssl
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import kafkawire
from kafkawire.capture import decode_capture
from kafkawire.capture.packet_messages import Boundary, Known, Search
from kafkawire_cli.main import app
from tests.capture.dialogue import Sent, goodbye, hello, packets
from tests.capture.tls.tls_wire import TlsPair, client_context, server_context
from tests.capture.wire import pcap
from tests.capture.written import CLIENT, Scenario
from tests.conftest import FIXTURES

CAPTURES = FIXTURES / "captures"
KCAT = str(CAPTURES / "kcat-kf.pcap")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def request(correlation_id: int, topics: int = 1) -> bytes:
    body = {"topics": [{"name": f"topic-{at:03}"} for at in range(topics)]}
    message = kafkawire.from_json("MetadataRequest", 9, body)
    return kafkawire.encode_frame(message, 9, correlation_id, client_id="me")


def capture(path: Path, cuts: list[int], data: bytes) -> str:
    """Write a capture in which the client sends data, cut at some places, from packet 4 on."""
    at = [0, *cuts, len(data)]
    sent = [Sent(0, start, data[start:end]) for start, end in pairwise(at)]
    made = [*hello(), *sent, *goodbye(len(data), 0)]
    path.write_bytes(pcap(packets(made)))
    return str(path)


def explained(path: str, *arguments: str) -> list[dict[str, Any]]:
    result = run(path, *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", ["kcat-kf.pcap", "kcat-kf--ng.pcapng", "kcat-kf--z.pcap.gz"])
def test_every_message_can_be_explained(name: str) -> None:
    path = str(CAPTURES / name)
    by_packet: dict[int, list[Any]] = {}
    for one in decode_capture(path):
        by_packet.setdefault(one.row.packet, []).append(one)
    chosen = sorted(by_packet)[::7] + [
        number for number, each in by_packet.items() if len(each) > 1
    ]
    for number in chosen:
        wanted = [
            (one.row.api_name, one.row.direction, one.row.correlation_id, one.row.length)
            for one in by_packet[number]
        ]
        found = explained(path, "--packet", str(number))
        names = ("api_name", "direction", "correlation_id", "length")
        assert [tuple(one[each] for each in names) for one in found] == wanted
        assert all(one["packets"][-1]["packet"] == number for one in found)


def test_several_messages_that_end_in_one_packet(tmp_path: Path) -> None:
    """Three requests in two packets: the second is cut, and the third follows it."""
    frames = [request(1), request(2), request(3)]
    path = capture(tmp_path / "a.pcap", [len(frames[0]) + 10], b"".join(frames))
    first, second, third = (one for number in (4, 5) for one in Search(path).packet(number))
    assert [one.data for one in (first, second, third)] == frames
    assert first.boundaries == (Boundary(0, 4),)
    assert second.boundaries == (Boundary(0, 4), Boundary(10, 5))
    assert third.boundaries == (Boundary(0, 5),)
    shown = run(path, "--packet", "5").stdout
    assert shown.count("Metadata v9 request") == 2
    assert "packets 4 and 5" in shown
    assert "packet 4\n" in shown
    assert "! packet 5 from byte 10" in shown
    assert "byte 0" not in shown


def test_packets_that_begin_with_a_field_have_a_row(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", [4, 12], request(1))
    shown = [line.split() for line in run(path, "--packet", "6").stdout.splitlines()]
    assert ["4", "packet", "5"] in shown
    assert ["12", "packet", "6"] in shown
    assert shown.index(["12", "packet", "6"]) < next(
        at for at, words in enumerate(shown) if "client_id" in words
    )
    assert explained(path, "--packet", "6")[0]["packets"] == [
        {"packet": 4, "offset": 0}, {"packet": 5, "offset": 4}, {"packet": 6, "offset": 12},
    ]  # fmt: skip


@pytest.mark.parametrize("step", [1, 7, 100])
def test_messages_in_many_packets(step: int, tmp_path: Path) -> None:
    data = request(1, topics=30)
    cuts = list(range(step, len(data), step))
    path = capture(tmp_path / "a.pcap", cuts, data)
    (found,) = Search(path).packet(4 + len(cuts))
    assert found.data == data
    assert found.boundaries == tuple(Boundary(at, 4 + i) for i, at in enumerate([0, *cuts]))
    assert run(path, "--packet", str(4 + len(cuts))).exit_code == 0


def test_packets_that_were_sent_again_or_out_of_order(tmp_path: Path) -> None:
    """Early bytes belong to the packet that filled the gap; retransmissions carry nothing."""
    data = request(1)
    sent = [Sent(0, 0, data[:10]), Sent(0, 20, data[20:]), Sent(0, 0, data[:10]),
            Sent(0, 10, data[10:20])]  # fmt: skip
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(packets([*hello(), *sent, *goodbye(len(data), 0)])))
    (row,) = [one.row for one in decode_capture(path) if one.row.is_message]
    (found,) = Search(str(path)).packet(row.packet)
    assert found.data == data
    assert found.boundaries == (Boundary(0, 4), Boundary(10, 7))


def test_a_field_in_many_packets_has_few_notes(tmp_path: Path) -> None:
    body = {"topics": [{"name": "t" * 200}]}
    message = kafkawire.from_json("MetadataRequest", 9, body)
    frame = kafkawire.encode_frame(message, 9, 1, client_id="me")
    path = capture(tmp_path / "a.pcap", list(range(1, len(frame))), frame)
    shown = run(path, "--packet", str(3 + len(frame))).stdout
    assert "more packets; the last is packet" in shown
    assert len(shown.splitlines()) < 60


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_messages_inside_tls(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """A request in three TLS records belongs to their three packets; without keys it is hidden."""
    keys, scenario = tmp_path / "keys", Scenario()
    pair = TlsPair(scenario, 0, (client_context(), server_context(keys, version)))
    data = request(1)
    for piece in (data[:10], data[10:20], data[20:]):
        pair.send(CLIENT, piece)
    path = str(scenario.save(tmp_path / "a.pcap"))
    (row,) = [one.row for one in decode_capture(path, keylog=keys) if one.row.is_message]
    (found,) = Search(path, Known(keylog=keys)).packet(row.packet)
    assert found.data == data
    assert [each.offset for each in found.boundaries] == [0, 10, 20]
    packets = [each.packet for each in found.boundaries]
    assert packets == sorted(set(packets))
    assert packets[-1] == row.packet
    assert explained(path, "--keylog", str(keys), "--packet", str(row.packet))[0]["packets"] == [
        {"packet": each.packet, "offset": each.offset} for each in found.boundaries
    ]
    assert run(path, "--packet", str(row.packet)).exit_code == 2


@pytest.mark.parametrize("name", ["kp-tls13-aes128", "resumed-tls12", "java-agent-tls13"])
def test_recordings_of_tls(name: str) -> None:
    path, keys = str(FIXTURES / "tls" / f"{name}.pcap"), FIXTURES / "tls" / f"{name}.keys"
    wanted: dict[int, list[Any]] = {}
    for one in decode_capture(path, keylog=keys):
        if one.row.is_message:
            wanted.setdefault(one.row.packet, []).append((one.row.api_name, one.row.length))
    for number in sorted(wanted)[::4]:
        found = explained(path, "--packet", str(number), "--keylog", str(keys))
        assert [(one["api_name"], one["length"]) for one in found] == wanted[number]


@pytest.mark.parametrize("number", ["162", "163"])
def test_exchanges_have_both_messages(number: str) -> None:
    found = explained(KCAT, "--exchange", number)
    assert [(one["packet"], one["direction"]) for one in found] == [
        (162, "request"), (163, "response"),
    ]  # fmt: skip
    shown = run(KCAT, "--exchange", number).stdout
    assert "79 MEMBER_ID_REQUIRED" in shown
    assert shown.index("JoinGroupRequest") < shown.index("JoinGroupResponse")


def test_truncated_messages_are_explained_up_to_their_end() -> None:
    path = str(CAPTURES / "kcat-kf--loss.pcap")
    rows = [one.row for one in decode_capture(path) if one.row.status == "truncated"]
    for row in rows[:3]:
        result = run(path, "--packet", str(row.packet))
        assert result.exit_code == 1
        assert "truncated" in result.stdout


MISTAKES = [
    ([KCAT, "--packet", "5"], "no Kafka message ends in packet 5; the nearest that do: 4 and 6"),
    ([KCAT, "--exchange", "1"], "no Kafka message ends in packet 1; the nearest that does: 4"),
    ([KCAT, "--packet", "9999"], "no packet 9999: the capture has 203"),
    ([KCAT, "--packet", "0"], "0 is not in the range"),
    ([KCAT, KCAT, "--packet", "4"], "expected one capture file"),
    ([KCAT, "--packet", "4", "--exchange", "4"], "expected one of --packet and --exchange"),
    ([KCAT, "--packet", "4", "--api", "Fetch"], "not allowed with --api"),
    (["00", "--port", "9092", "--frame"], "only allowed with --packet or --exchange"),
    (["-", "--packet", "4"], "a stream can be read only once"),
    (["/nowhere.pcap", "--packet", "4"], "/nowhere.pcap: No such file"),
    ([__file__, "--packet", "4"], "not a capture file"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_secrets_are_hidden(tmp_path: Path) -> None:
    body = {"authBytes": "AGFsaWNlAHNlY3JldA=="}
    message = kafkawire.from_json("SaslAuthenticateRequest", 2, body)
    data = kafkawire.encode_frame(message, 2, 1, client_id="me")
    path = capture(tmp_path / "a.pcap", [], data)
    for options, shown in (([], False), (["--show-secrets"], True)):
        assert ("73 65 63 72 65 74" in run(path, "--packet", "4", *options).stdout) is shown
        tree = run(path, "--packet", "4", "--json", *options).stdout
        assert ("736563726574" in tree or "c2VjcmV0" in tree or "AGFsaWNl" in tree) is shown
