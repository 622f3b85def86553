"""Connections that a capture has twice, before and after address translation, are counted once.

Copies are made of recordings: each packet again, with other addresses.
"""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture import copies as module
from kafkawire.capture import decode_capture, tables
from kafkawire.capture.copies import Beginning, Copies, Copy
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tcp.connection import Connection
from kafkawire.reports.problems import Payload
from kafkawire.reports.reading import Reading
from kafkawire_cli.input.captures.progress import Progress
from tests.capture.encapsulations import ip_packets
from tests.capture.wire import Packet, ethernet, packets_of, pcap, read
from tests.capture.written import BROKER, CLIENT, Scenario, request, response
from tests.cli.reports import report, run
from tests.conftest import FIXTURES

NAT = FIXTURES / "field" / "08-nat.pcap"
CAPTURES = FIXTURES / "captures"
RECORDINGS = ["kcat-kf", "ck-txn", "ck-group-range", "kjs-all"]


def recorded(name: str) -> list[Packet]:
    """The packets of a recording."""
    blocks, _ = read((CAPTURES / f"{name}.pcap").read_bytes())
    times = [time_ns for block in blocks for time_ns in block.ts.tolist()]
    found = ip_packets(map(Packet, packets_of(blocks), times))
    return [packet._replace(data=ethernet(packet.data)) for packet in found]


def translated(packet: Packet) -> Packet:
    """Replace the address of the broker, as a service address is, and of the client."""
    data = bytearray(packet.data)
    ports = int.from_bytes(data[34:36], "big"), int.from_bytes(data[36:38], "big")
    addresses = ("10.9.9.1", "10.9.9.2") if ports[0] > ports[1] else ("10.9.9.2", "10.9.9.1")
    data[26:30], data[30:34] = (ip_address(one).packed for one in addresses)
    return packet._replace(data=bytes(data))


def twice(packets: Iterable[Packet], lost: Callable[[], bool] = lambda: False) -> list[Packet]:
    """Add the copy of each packet: behind a request, in front of a response."""
    found = []
    for packet in packets:
        client = packet.data[34:36] > packet.data[36:38]
        both = [packet, translated(packet)][:: 1 if client else -1]
        found += [one for one in both if not lost()]
    return found


def decoded(packets: Iterable[Packet]) -> list[Located]:
    return list(decode_capture(io.BytesIO(pcap(packets, magic=0xA1B23C4D))))


def messages(rows: Iterable[Located]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (row.direction, row.api_name, row.correlation_id, row.status, str(row.message))
        for _, _, _, row in rows
        if row.is_message
    )


def test_the_field_capture_counts_once() -> None:
    (topic,) = report("topics", NAT)["topics"]
    assert topic["records"] == 20
    found = [json.loads(line) for line in run("decode", NAT, "--strict").stdout.splitlines()]
    assert [row["status"] for row in found] == ["ok"] * 4 + ["copy"]
    assert found[-1]["connection"] == 1
    assert found[-1]["error"] == (
        "copy of connection 0 (10.244.1.7:51000 - 10.96.0.20:9092), messages left out: 4"
    )
    summary = report("summary", NAT)
    assert summary["connections"]["protocols"] == {"kafka": 1, "copy": 1}
    assert [one["kind"] for one in summary["problems"]] == ["copy"]
    assert summary["unread"] == []
    assert summary["payload"]["unaccounted"] == 0
    protocols = [row["protocol"] for row in rows_of(NAT, "connections")]
    assert protocols == ["kafka", "copy"]
    assert [row["kind"] for row in rows_of(NAT, "problems")] == ["copy"]


def rows_of(path: Path, table: str) -> list[dict[str, Any]]:
    return [row for batch in tables.read(path, table) for row in batch.to_pylist()]


@pytest.mark.parametrize("start", [0, 40])
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_twice(name: str, start: int) -> None:
    """With its beginning, and from the middle on."""
    packets = recorded(name)[start:]
    plain, both = decoded(packets), decoded(twice(packets))
    assert messages(both) == messages(plain)
    named = [row for *_, row in both if row.status is Status.COPY]
    connections = {found.connection for found in plain}
    assert len(named) == len(connections)


@pytest.mark.parametrize("seed", range(6))
def test_what_only_the_copy_has_stays(seed: int) -> None:
    rng = random.Random(seed)
    packets = recorded("ck-txn")
    quiet = len(packets) // 3  # the handshakes
    both = packets[:quiet], packets[quiet:]
    found = decoded([*twice(both[0]), *twice(both[1], lambda: rng.random() < 0.1)])
    missing = messages(decoded(packets)) - messages(found)
    assert not missing or {row.status for *_, row in found} & {Status.GAP, Status.TRUNCATED}
    assert sum((messages(found) & messages(decoded(packets))).values()) > 20


def test_payload_of_copies_is_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(twice(recorded("kjs-all"))))
    payload = Payload()
    Reading(Traffic([path]), Progress(0)).read(payload)
    assert payload.kinds()["unaccounted"] == 0
    assert payload.kinds()["repeated"] >= payload.messages


def test_rotated_files(tmp_path: Path) -> None:
    packets = twice(recorded("ck-txn"))
    paths = []
    for number, start in enumerate(range(0, len(packets), 37)):
        paths.append(tmp_path / f"{number:03}.pcap")
        paths[-1].write_bytes(pcap(packets[start : start + 37], magic=0xA1B23C4D))
    assert messages(one for one in Traffic(paths) if isinstance(one, Located)) == messages(
        decoded(recorded("ck-txn"))
    )


def test_processes_find_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(twice(recorded("ck-txn")), magic=0xA1B23C4D))
    for arguments in (["--format", "jsonl"], ["--table", "exchanges"], ["--table", "messages"]):
        one, two = (run("decode", path, *arguments, "--jobs", n).stdout for n in (1, 2))
        assert one == two
        assert one


# -- connections that are no copies


def second(packets: Iterable[Packet]) -> list[Packet]:
    return [translated(packet) for packet in packets]


def test_other_payload_is_no_copy() -> None:
    """The same port and sequence numbers, but other messages: both connections have theirs."""
    one = Scenario().send(CLIENT, request("Metadata", 1, 7, topics=None))
    one.send(BROKER, response("Metadata", 1, 7))
    other = Scenario().send(CLIENT, request("Metadata", 1, 8, topics=None))
    other.send(BROKER, response("Metadata", 1, 8))
    pairs = zip(one.packets, second(other.packets), strict=True)
    both = [each for pair in pairs for each in pair]
    found = decoded(both)
    assert Counter(row.correlation_id for *_, row in found) == {7: 2, 8: 2}
    assert {row.status for *_, row in found} == {Status.OK}


def test_other_sequence_numbers_are_no_copy() -> None:
    one = Scenario().send(CLIENT, request("Metadata", 1, 7, topics=None))
    packets = []
    for packet in one.packets:
        data = bytearray(translated(packet).data)
        data[38] ^= 1
        packets += [packet, packet._replace(data=bytes(data))]
    assert [row.status for *_, row in decoded(packets)] == [Status.OK] * 2


def test_a_response_that_differs_is_kept() -> None:
    one = Scenario().send(CLIENT, request("Heartbeat", 0, 7))
    one.send(BROKER, response("Heartbeat", 0, 7))
    other = Scenario().send(CLIENT, request("Heartbeat", 0, 7))
    other.send(BROKER, response("Heartbeat", 0, 7, errorCode=27))
    pairs = zip(one.packets, second(other.packets), strict=True)
    both = [each for pair in pairs for each in pair]
    found = decoded(both)
    answers: list[Any] = [row.message for *_, row in found if row.direction == "response"]
    assert sorted(answer.error_code for answer in answers) == [0, 27]


# -- memory


def test_memory_is_bounded() -> None:
    connection = Connection(0, bytes(36), 1, 0)
    copy = Copy(connection)
    for number in range(3 * module.MAX_DIGESTS):
        copy.handle_original(number)
    assert len(copy._unmatched) <= module.MAX_DIGESTS
    rows = [row for *_, row in decoded(recorded("kjs-all"))]
    passed = [out for _ in range(40) for row in rows for out in copy.handle_copy(row)]
    assert len(copy._waiting) == module.MAX_WAITING
    assert len(passed) + module.MAX_WAITING == 40 * len(rows)
    assert [*passed, *copy.finish()] == rows * 40
    assert (copy._waiting_for, copy._waiting_bytes) == ({}, 0)
    assert copy.row(1, 0) is None


def test_few_connections_are_remembered() -> None:
    found = Copies()
    for number in range(1, 3 * module.MAX_PORTS):
        key = bytes(16) + number.to_bytes(2, "little") + bytes(18)
        for _ in range(6):
            begun = found.begin(Connection(number, key, 1, 0))
            assert isinstance(begun, Beginning)
    assert len(found._beginnings) <= module.MAX_PORTS
    assert max(map(len, found._beginnings.values())) <= module.MAX_BEGINNINGS
