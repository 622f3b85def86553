"""What depends on more than one message: pairing, segments, tokens, ports and detection."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkawire.messages import REGISTRY
from kafkawire.protocol.error_code import ErrorCode
from tests.capture.wire import Packet
from tests.capture.written import BROKER, CLIENT, Scenario, request, response
from tests.conftest import FIXTURES
from tests.fuzzing import SOAK

from . import frames
from .frames import frame
from .tshark import Item, dissect, fields, run

ANY_PORT = "-o", "kafkawire.ports:9999"
"""Brokers of our scenarios are on port 9092: detection has to find them."""


def titles(capture: Path, *arguments: str) -> list[str]:
    """The info column of each packet with a message."""
    rows = fields(capture, ["_ws.col.Protocol", "_ws.col.Info"], *arguments)
    return [info for protocol, info in rows if protocol == "KAFKAWIRE"]


def experts(item: Item) -> list[str]:
    return [each.show for each in item.walk() if each.name == "_ws.expert.message"]


def messages(scenario: Scenario, path: Path, *arguments: str) -> list[Item]:
    return [item for _, item in dissect(scenario.save(path / "made.pcap"), *arguments).messages]


@pytest.fixture
def exchange() -> Scenario:
    return Scenario().request("Metadata", 9).respond("Metadata", 9)


def test_the_info_column_names_api_and_version(exchange: Scenario, tmp_path: Path) -> None:
    capture = exchange.save(tmp_path / "made.pcap")
    assert titles(capture) == ["Metadata v9 Request", "Metadata v9 Response"]


def test_request_and_response_refer_to_each_other(exchange: Scenario, tmp_path: Path) -> None:
    """The frame of the response is known in the second pass, as with any dissector."""
    request, responded = messages(exchange, tmp_path, "-2")
    assert request.value("response_in") == "4"
    assert responded.value("request_in") == "3"
    assert responded.value("time") == "0.001000000"
    assert responded.value("api_key") == "3"


def test_a_second_pass_shows_the_same() -> None:
    capture = FIXTURES / "captures" / "ck-txn.pcap"
    names = ["frame.number", "kafkawire.correlation_id", "kafkawire.api_key", "kafkawire.elements"]
    assert fields(capture, names) == fields(capture, names, "-2")


def test_responses_in_another_order(tmp_path: Path) -> None:
    scenario = Scenario()
    for number in (1, 2):
        scenario.send(CLIENT, request("Heartbeat", number, number))
    scenario.send(BROKER, response("Heartbeat", 2, 2) + response("Heartbeat", 1, 1))
    found = messages(scenario, tmp_path)
    assert [item.value("api_version") for item in found] == ["1", "2", "2", "1"]


def test_correlation_ids_of_two_connections(tmp_path: Path) -> None:
    scenario = Scenario()
    scenario.send(CLIENT, request("Heartbeat", 1, 7), 0).send(CLIENT, request("Metadata", 4, 7), 1)
    scenario.send(BROKER, response("Metadata", 4, 7), 1).send(BROKER, response("Heartbeat", 1, 7))
    assert titles(scenario.save(tmp_path / "made.pcap"))[2:] == [
        "Metadata v4 Response",
        "Heartbeat v1 Response",
    ]


def test_several_messages_in_a_segment_and_a_message_in_several(tmp_path: Path) -> None:
    data = b"".join(request("Metadata", 9, number) for number in range(5))
    scenario = Scenario().send(CLIENT, data[:70]).send(CLIENT, data[70:101])
    scenario.send(CLIENT, data[101:])
    found = messages(scenario, tmp_path)
    assert [item.value("correlation_id") for item in found] == ["0", "1", "2", "3", "4"]
    assert not any(experts(item) for item in found)


def test_segments_of_one_byte(tmp_path: Path) -> None:
    scenario = Scenario()
    for byte in request("Metadata", 9, 1):
        scenario.send(CLIENT, bytes([byte]))
    (only,) = messages(scenario, tmp_path)
    assert only.value("api_version") == "9"
    assert not experts(only)


def test_error_35_of_api_versions_comes_in_version_0(tmp_path: Path) -> None:
    scenario = Scenario().send(CLIENT, request("ApiVersions", 4, 1))
    keys = [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]
    scenario.send(BROKER, response("ApiVersions", 0, 1, errorCode=35, apiKeys=keys))
    responded = messages(scenario, tmp_path)[1]
    assert responded.value("error") == str(int(ErrorCode.UNSUPPORTED_VERSION))
    assert responded.value("api_versions.api_keys.max_version") == "3"
    assert not experts(responded)


def test_error_35_in_the_requested_version(tmp_path: Path) -> None:
    scenario = Scenario().send(CLIENT, request("ApiVersions", 3, 1))
    scenario.send(BROKER, response("ApiVersions", 3, 1, errorCode=35))
    responded = messages(scenario, tmp_path)[1]
    assert responded.value("api_versions.throttle_time_ms") == "0"
    assert not experts(responded)


def test_errors_and_apis_have_names(tmp_path: Path) -> None:
    scenario = Scenario().request("Heartbeat", 3).respond("Heartbeat", 3, errorCode=27)
    text = run(scenario.save(tmp_path / "made.pcap"), "-V", "-O", "kafkawire")
    assert "API key: Heartbeat (12)" in text
    assert "ErrorCode: REBALANCE_IN_PROGRESS (27)" in text
    found = fields(tmp_path / "made.pcap", ["frame.number"], "-Y", "kafkawire.error == 27")
    assert found == [["4"]]


def test_a_request_without_acknowledgement(tmp_path: Path) -> None:
    """No response comes to Produce with acks 0; its correlation id may be used again."""
    scenario = Scenario()
    for number in range(70):
        scenario.send(CLIENT, request("Produce", 7, number, acks=0))
    scenario.send(CLIENT, request("Heartbeat", 3, 0)).send(BROKER, response("Heartbeat", 3, 0))
    found = messages(scenario, tmp_path)
    assert (found[-1].value("api_key"), experts(found[-1])) == ("12", [])


def test_tokens_after_a_sasl_handshake_of_version_0(tmp_path: Path) -> None:
    token = b"\0alice\0secret"
    scenario = Scenario().request("SaslHandshake", 0, mechanism="PLAIN")
    scenario.respond("SaslHandshake", 0, errorCode=0, mechanisms=["PLAIN"])
    scenario.send(CLIENT, frame(token)).send(BROKER, frame(b""))
    scenario.request("Metadata", 4).respond("Metadata", 4)
    found = messages(scenario, tmp_path, "-2")
    tokens = [item.find("sasl_token") for item in found]
    assert [each is not None for each in tokens] == [False, False, True, True, False, False]
    assert tokens[2] is not None
    assert bytes.fromhex(tokens[2].data) == token
    assert found[-1].value("api_key") == "3"


def test_a_response_without_its_request(tmp_path: Path) -> None:
    scenario = Scenario().send(BROKER, response("Metadata", 4, 3))
    (only,) = messages(scenario, tmp_path)
    assert (only.value("correlation_id"), only.value("api_key")) == ("3", None)
    assert experts(only) == ["the request of this response was not captured"]


def test_apis_and_versions_of_the_future(tmp_path: Path) -> None:
    scenario = Scenario().request("Metadata", 9).respond("Metadata", 9)
    future = bytes.fromhex("02bc 0001 00000005 0002 6d65") + b"rest"
    newer = bytes.fromhex("0003 003c 00000006 0002 6d65") + b"\0rest"
    scenario.send(CLIENT, frame(future)).send(CLIENT, frame(newer))
    unknown, later = messages(scenario, tmp_path)[2:]
    assert experts(unknown) == ["unknown API key 700"]
    assert experts(later) == ["version 60 is not among 0 to 13"]
    assert [item.value("client_id") for item in (unknown, later)] == ["me", "me"]


def test_trailing_bytes_are_a_deviation(tmp_path: Path) -> None:
    data = request("Heartbeat", 3, 1)[4:] + b"xy"
    (only,) = messages(Scenario().send(CLIENT, frame(data)), tmp_path)
    assert experts(only) == ["2 bytes after the last field"]


def test_a_malformed_message_names_the_field(tmp_path: Path) -> None:
    data = request("Heartbeat", 3, 1)[4:-3]
    (only,) = messages(Scenario().send(CLIENT, frame(data)), tmp_path)
    assert experts(only) == ["kafkawire.heartbeat.member_id: 2 bytes wanted, 1 left (at byte 26)"]


def test_a_frame_that_the_snaplen_cut(tmp_path: Path) -> None:
    """What was captured of it is shown, and its response finds it."""
    scenario = Scenario().request("Metadata", 4, topics=[{"name": "orders"}])
    scenario.respond("Metadata", 4)
    packet = scenario.packets[2]
    scenario.packets[2] = Packet(packet.data[:-4], packet.time_ns, len(packet.data))
    request, responded = messages(scenario, tmp_path)
    assert experts(request) == ["4 bytes at the end of the frame not captured"]
    assert responded.value("request_in") == "3"


def test_bytes_after_a_loss_are_not_taken_for_a_frame(tmp_path: Path) -> None:
    """The middle of a message, then whole messages: these are found again."""
    data = request("Metadata", 4, 1, topics=[{"name": "o" * 60}])
    scenario = Scenario().request("Heartbeat", 3).send(CLIENT, data[30:])
    scenario.request("Heartbeat", 3).respond("Heartbeat", 3)
    found = messages(scenario, tmp_path)
    assert [item.value("api_key") for item in found] == ["12", None, "12", "12"]
    assert experts(found[1]) == ["these bytes are not the beginning of a frame"]


# -- ports and detection


def test_detection_on_any_port(exchange: Scenario, tmp_path: Path) -> None:
    capture = exchange.save(tmp_path / "made.pcap")
    assert len(titles(capture, *ANY_PORT)) == 2
    assert not titles(capture, *ANY_PORT, "-o", "kafkawire.heuristics:FALSE")
    assert len(titles(capture, "-o", "kafkawire.ports:", "-d", "tcp.port==9092,kafkawire")) == 2


def test_detection_of_a_large_first_request(tmp_path: Path) -> None:
    """It is not in the first segment as a whole."""
    text = "x" * 200
    topics = [{"name": f"{text}{number}"} for number in range(20)]
    data = request("Metadata", 9, 1, topics=topics)
    scenario = Scenario().send(CLIENT, data[:1400]).send(CLIENT, data[1400:])
    assert titles(scenario.save(tmp_path / "made.pcap"), *ANY_PORT) == ["Metadata v9 Request"]


OTHERS = {
    "http": b"GET /topics/orders HTTP/1.1\r\nHost: broker:9092\r\n\r\n",
    "tls": bytes.fromhex("160301 00c8 0100 00c4 0303") + bytes(range(200)),
    "ssh": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    "zeros": bytes(100),
    "redis": b"*2\r\n$3\r\nGET\r\n$6\r\norders\r\n",
    "postgres": bytes.fromhex("00000054 00030000") + b"user\0alice\0database\0orders\0\0" * 3,
    "zookeeper": bytes.fromhex("0000002c 00000000 0000000000000000 00007530 0000000000000000")
    + bytes.fromhex("00000010") + bytes(16),
    "trailing": frame(request("Heartbeat", 3, 1)[4:] + b"garbage"),
    "unknown version": frame(bytes.fromhex("0003 003c 00000006 0002 6d65") + b"\0"),
    "a response": response("Metadata", 9, 1),
}  # fmt: skip


NEVER_KAFKA = ("http", "tls", "ssh", "zeros", "redis")
"""Those that are not taken even on the port of a broker."""


def test_other_protocols_are_not_taken(tmp_path: Path) -> None:
    scenario = Scenario()
    for connection, data in enumerate(OTHERS.values()):
        scenario.send(CLIENT, data, connection)
    assert not titles(scenario.save(tmp_path / "made.pcap"), *ANY_PORT)


def test_other_protocols_on_the_port_of_a_broker_are_not_taken(tmp_path: Path) -> None:
    scenario = Scenario()
    for connection, name in enumerate(NEVER_KAFKA):
        scenario.send(CLIENT, OTHERS[name], connection)
    assert not titles(scenario.save(tmp_path / "made.pcap"))


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "name", ["aio-tls12-aes128", "ck-tls13-aes256"][: 1 if SOAK == 1 else None]
)
def test_connections_inside_tls(name: str) -> None:
    """Detection finds Kafka in what Wireshark decrypts."""
    folder = FIXTURES / "tls"
    keys = f"tls.keylog_file:{folder / name}.keys"
    found = dissect(folder / f"{name}.pcap", "-o", keys).messages
    lines = (folder / f"{name}.tshark").read_text().splitlines()
    wanted = [
        (int(packet), direction, number)
        for packet, direction, _, numbers in (line.split("\t") for line in lines)
        for number in numbers.split(",")
    ]
    shown = [(packet, i.value("direction"), i.value("correlation_id")) for packet, i in found]
    assert sorted(map(str, shown)) == sorted(map(str, wanted))


def test_plausible_headers_alone_are_not_taken(tmp_path: Path) -> None:
    """Known API, version and client id, but a body of other bytes: a hundred connections."""
    rng = random.Random(0)
    scenario = Scenario()
    apis = [info for info in REGISTRY if info.type == "request"]
    for connection in range(100):
        info = rng.choice(apis)
        assert info.api_key is not None
        version = rng.randint(info.first, info.last)
        body = b"\xff" + rng.randbytes(rng.randint(40, 400))
        scenario.send(CLIENT, frames.request(info.api_key, version, 1, body), connection)
    assert not titles(scenario.save(tmp_path / "made.pcap"), *ANY_PORT)
