"""Rules about TCP, TLS and the capture: what TCP shows of connections, and handshakes that fail."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from tests.capture.tls.tls_wire import V12, client_context, server_context
from tests.capture.wire import ACK, SYN
from tests.capture.written import BROKER, CLIENT, request, response
from tests.cli.reports import report
from tests.conftest import FIXTURES

from .stories import Story, rules

NAT = FIXTURES / "field" / "08-nat.pcap"
"""A connection before and after address translation."""


def alert(level: int, number: int) -> bytes:
    return bytes([0x15, 3, 3, 0, 2, level, number])


def client_hello() -> bytes:
    """Return what a TLS client sends first."""
    sent = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="broker.example").do_handshake()
    return sent.read()


def windows(side: int, seconds: float, times: int = 1) -> Story:
    """Close the window of a side, several times."""
    story = Story().exchange("Metadata", 5)
    for _ in range(times):
        story.window = 0
        story.segment(0, side, ACK, b"")
        story.wait(seconds)
        story.window = 65535
        story.segment(0, side, ACK, b"")
    return story


@pytest.mark.parametrize(("side", "name"), [(CLIENT, "client"), (BROKER, "broker")])
def test_windows_that_are_closed_for_long(side: int, name: str, tmp_path: Path) -> None:
    by_rule = rules(windows(side, 2, times=3), tmp_path)
    assert list(by_rule) == ["zero-windows"]
    finding = by_rule["zero-windows"]
    assert finding["count"] == 3
    assert 6 * 10**9 <= finding["cost"]["time_ns"] < 6.1 * 10**9
    assert finding["subject"]["client"] == "tester"
    assert name in finding["what"]
    assert finding["severity"] == "warning"
    critical = rules(windows(side, 61), tmp_path)["zero-windows"]
    assert critical["severity"] == "critical"


def test_windows_that_are_closed_for_a_moment(tmp_path: Path) -> None:
    assert rules(windows(CLIENT, 0.01, times=9), tmp_path) == {}


def segments(mss: int, size: int = 1_100_000) -> Story:
    story = Story()
    story.mss = mss
    for _ in range(size // 10_000):
        story.exchange("Metadata", 5, client_id="c" * 10_000)
    return story


def test_small_segments(tmp_path: Path) -> None:
    by_rule = rules(segments(536), tmp_path)
    assert list(by_rule) == ["small-segments"]
    assert by_rule["small-segments"]["subject"]["broker"] == "10.0.0.2:9092"
    assert rules(segments(1220), tmp_path) == {}
    assert rules(segments(536, 900_000), tmp_path) == {}


def distant(near: float, far: float, latency: float, times: int = 30) -> Story:
    """A client whose handshake shows how far it and the broker are from the capture."""
    story = Story()
    story.handshake = near, far
    for _ in range(times):
        story.exchange("Heartbeat", 3, groupId="billing", memberId="m", latency=latency)
    return story


def test_requests_that_are_mostly_in_the_network(tmp_path: Path) -> None:
    by_rule = rules(distant(0.040, 0.010, 0.041), tmp_path)  # captured between them
    assert list(by_rule) == ["network-latency"]
    finding = by_rule["network-latency"]
    assert finding["cost"]["time_ns"] == 30 * 50_000_000
    assert finding["subject"]["client"] == "tester"
    assert "network-latency" in rules(distant(0.001, 0.040, 0.001), tmp_path)  # at the broker
    assert "network-latency" in rules(distant(0.040, 0.001, 0.041), tmp_path)  # at the client


def test_requests_that_are_mostly_in_the_broker_or_fast(tmp_path: Path) -> None:
    assert rules(distant(0.040, 0.010, 0.150), tmp_path) == {}
    assert rules(distant(0.010, 0.005, 0.011), tmp_path) == {}
    assert rules(distant(0.040, 0.010, 0.041, times=10), tmp_path) == {}


def attempts(times: int, *, reset: bool, port: int = 9092) -> Story:
    """Connect to a port that does not answer, or that refuses, beside a connection that works."""
    story = Story().exchange("Metadata", 5, 99)
    for connection in range(times):
        story.broker_ports[connection] = port
        story.start(connection)
        story.segment(connection, CLIENT, SYN, b"")
        if reset:
            story.reset(connection)
        story.wait(1)
    return story


@pytest.mark.parametrize("reset", [True, False])
def test_connections_that_fail(reset: bool, tmp_path: Path) -> None:
    by_rule = rules(attempts(3, reset=reset), tmp_path)
    assert list(by_rule) == ["failed-connections"]
    finding = by_rule["failed-connections"]
    assert finding["count"] == 3
    assert ("RST" in finding["what"]) == reset
    assert rules(attempts(2, reset=reset), tmp_path) == {}
    assert rules(attempts(3, reset=reset, port=443), tmp_path) == {}


def handshakes(*sent: tuple[int, bytes], times: int = 1) -> Story:
    """Open connections, on each of which the sides send these bytes, and then close it."""
    story = Story()
    for connection in range(times):
        for side, data in sent:
            story.send(side, data, connection)
        story.close(connection)
    return story


def failed(story: Story, folder: Path) -> dict[str, object] | None:
    return rules(story, folder, "--disable", "undecoded-connections").get("tls-handshakes")


def test_alerts_that_are_not_encrypted(tmp_path: Path) -> None:
    hello = client_hello()
    finding = failed(handshakes((CLIENT, hello), (BROKER, alert(2, 40))), tmp_path)
    assert finding is not None
    assert "handshake_failure" in str(finding["what"])
    assert finding["count"] == 1
    many = failed(handshakes((CLIENT, hello), (BROKER, alert(2, 40)), times=10), tmp_path)
    assert many is not None
    assert many["severity"] == "critical"
    assert failed(handshakes((CLIENT, hello), (BROKER, alert(1, 112))), tmp_path) is None


def test_tls_at_a_listener_without_it(tmp_path: Path) -> None:
    finding = failed(handshakes((CLIENT, client_hello())), tmp_path)
    assert finding is not None
    assert {"key": "security.protocol", "value": None} in list(finding["settings"])  # type: ignore[call-overload]
    story = handshakes((CLIENT, client_hello()))
    del story.packets[1]  # without the SYN of the broker, other packets of it may be missing, too
    assert failed(story, tmp_path) is None
    story = handshakes((CLIENT, client_hello()))
    story.packets = story.packets[:3]  # the capture may end before the ServerHello
    assert failed(story, tmp_path) is None


@pytest.mark.parametrize(("trusted", "count"), [(False, 1), (True, None)])
def test_a_certificate_that_is_not_trusted(
    trusted: bool, count: int | None, tmp_path: Path
) -> None:
    """With TLS 1.2, the alert follows the ServerHello and is not encrypted."""
    client = client_context() if trusted else ssl.create_default_context()
    to_client, to_server = bios = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context(tmp_path / "keys", V12)
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    story = Story()
    for _ in range(3):
        for side in (CLIENT, BROKER):
            with suppress(ssl.SSLError):
                ends[side].do_handshake()
            sent = bios[1 - side].read()
            bios[1 - side].write(sent)
            if sent:
                story.send(side, sent)
    story.close()
    finding = failed(story, tmp_path)
    assert (None if finding is None else finding["count"]) == count
    if finding is not None:
        assert "unknown_ca" in str(finding["what"])


def test_failed_handshakes_are_not_undecoded_connections_too(tmp_path: Path) -> None:
    hello = client_hello()
    assert list(rules(handshakes((CLIENT, hello)), tmp_path)) == ["tls-handshakes"]
    alerted = handshakes((CLIENT, hello), (BROKER, alert(2, 40)))
    assert list(rules(alerted, tmp_path)) == ["tls-handshakes"]


@pytest.mark.parametrize(
    "options", [("--disable", "tls-handshakes"), ("--set", "tls-handshakes.handshakes=3")]
)
def test_handshakes_that_are_not_reported_are_undecoded(
    options: tuple[str, str], tmp_path: Path
) -> None:
    story = handshakes((CLIENT, client_hello()), times=2)
    found = rules(story, tmp_path, *options)
    assert {name: one["count"] for name, one in found.items()} == {"undecoded-connections": 2}


def test_other_connections_of_the_same_client_stay_undecoded(tmp_path: Path) -> None:
    """Three connections have the same client, broker and reason; the handshake of two fails."""
    story = handshakes((CLIENT, client_hello()), times=2)
    story.send(CLIENT, client_hello(), 2)  # the capture ends before the ServerHello
    found = rules(story, tmp_path)
    counts = {name: one["count"] for name, one in found.items()}
    assert counts == {"tls-handshakes": 2, "undecoded-connections": 1}
    assert "ServerHello" in found["undecoded-connections"]["what"]


def test_a_client_without_tls_at_a_listener_with_it(tmp_path: Path) -> None:
    story = Story()
    story.request("ApiVersions", 3)
    story.send(BROKER, alert(2, 80)).close()
    finding = failed(story, tmp_path)
    assert finding is not None
    assert "without TLS" in str(finding["what"])
    assert failed(Story().exchange("ApiVersions", 3), tmp_path) is None


def test_a_capture_on_both_sides_of_address_translation() -> None:
    reported = report("diagnose", NAT)["findings"]
    (copied,) = [one for one in reported if one["rule"] == "copied-connections"]
    assert (copied["count"], copied["severity"]) == (1, "notice")
    assert copied["subject"]["broker"] == "10.244.2.9:9092"


def test_connections_with_the_same_messages_are_no_copies(tmp_path: Path) -> None:
    """Two clients of one program send the same; only the packets of a copy have the same data."""
    story = Story()
    for connection in range(2):
        for number in range(12):
            story.send(CLIENT, request("Metadata", 5, number, client_id="tester"), connection)
            story.send(BROKER, response("Metadata", 5, number), connection)
    assert "copied-connections" not in rules(story, tmp_path)


@pytest.mark.parametrize("size", [10, 100, 3000])
def test_a_file_that_is_cut_off(size: int, tmp_path: Path) -> None:
    whole = (FIXTURES / "captures" / "kcat-kf.pcap").read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[:size])
    (finding,) = report("diagnose", path)["findings"]
    assert (finding["rule"], finding["severity"]) == ("damaged-captures", "warning")
    assert "byte" in finding["what"]


def test_files_that_end_with_a_packet_are_whole(tmp_path: Path) -> None:
    for size in (24, (FIXTURES / "captures" / "kcat-kf.pcap").stat().st_size):
        path = tmp_path / f"{size}.pcap"
        path.write_bytes((FIXTURES / "captures" / "kcat-kf.pcap").read_bytes()[:size])
        assert report("diagnose", path)["findings"] == []


def test_tls_without_keys_is_not_another_protocol(tmp_path: Path) -> None:
    """The reason has the version of TLS, or what of the handshake was not captured."""
    story = handshakes((CLIENT, client_hello()))
    story.packets = story.packets[:3]  # the capture ends before the ServerHello
    finding = rules(story, tmp_path)["undecoded-connections"]
    assert str(finding["what"]).startswith("1 connection: protocol is TLS")
    assert str(finding["cause"]).startswith("TLS without keys")
    assert "--keylog" in str(finding["advice"])
