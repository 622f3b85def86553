"""What is measured of connections: round-trip times, maximum segment sizes, zero windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.capture.exchanges.exchanges import UNMEASURED, Ended, TcpSide
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.tables.connections import MEASURED
from tests.capture.wire import ACK, MILLISECOND
from tests.capture.written import BROKER, CLIENT, Scenario

MS = MILLISECOND


def measured(story: Scenario, folder: Path) -> tuple[TcpSide, TcpSide]:
    """Return what is measured of the client and the broker of the only connection."""
    path = story.save(folder / "a.pcap")
    (ended,) = [each for each in Traffic([path]) if isinstance(each, Ended)]
    return ended.client_tcp, ended.broker_tcp


def window(story: Scenario, side: int, size: int) -> None:
    """Send an acknowledgment with a window."""
    story.window = size
    story.segment(0, side, ACK, b"")
    story.window = 65535


def test_round_trip_times_of_the_handshake(tmp_path: Path) -> None:
    story = Scenario()
    story.handshake = 0.020, 0.003
    client, broker = measured(story.request("Metadata", 5).wait(1).respond("Metadata", 5), tmp_path)
    assert (client.rtt_ns, broker.rtt_ns) == (3 * MS, 20 * MS)
    assert (client.mss, broker.mss) == (1460, 1460)
    assert (client.opened, broker.opened) == (True, True)


def test_a_connection_whose_handshake_was_not_captured(tmp_path: Path) -> None:
    story = Scenario(opened=False).request("Metadata", 5).respond("Metadata", 5)
    assert measured(story, tmp_path) == (UNMEASURED, UNMEASURED)


def test_a_syn_that_was_sent_again(tmp_path: Path) -> None:
    story = Scenario()
    story.handshake = 0.020, 0.003
    story.request("Metadata", 5)
    first = story.packets[0]
    story.packets.insert(0, first._replace(time_ns=first.time_ns - 10**9))
    assert measured(story, tmp_path)[BROKER].rtt_ns == 20 * MS


@pytest.mark.parametrize("busy", [False, True])
def test_zero_windows(busy: bool, tmp_path: Path) -> None:
    story = Scenario().request("Metadata", 5).respond("Metadata", 5)
    for _ in range(2):
        window(story, CLIENT, 0)
        if busy:  # the other side goes on, and the closed window is announced again
            story.send(BROKER, b"")
            window(story, CLIENT, 0)
        story.wait(2)
        window(story, CLIENT, 100)
        story.request("Metadata", 5).respond("Metadata", 5)
    client, broker = measured(story, tmp_path)
    assert client.zero_windows == 2
    assert client.closed_ns == 2 * (2000 + (3 if busy else 1)) * MS
    assert (broker.zero_windows, broker.closed_ns) == (0, 0)


def test_a_window_that_stays_closed(tmp_path: Path) -> None:
    story = Scenario().request("Metadata", 5).respond("Metadata", 5)
    window(story, CLIENT, 0)
    story.wait(4)
    window(story, BROKER, 500)
    client, _ = measured(story, tmp_path)
    assert (client.zero_windows, client.closed_ns) == (1, 4001 * MS)


def test_resets_have_no_window(tmp_path: Path) -> None:
    story = Scenario().request("Metadata", 5).respond("Metadata", 5)
    story.window = 0
    assert measured(story.reset(), tmp_path)[BROKER].zero_windows == 0


def test_columns_that_no_message_has() -> None:
    client, broker = TcpSide(True, True, 1, 2, 3, 4), TcpSide(True, True, 5, 6, 7, 8)
    ended = Ended(1, "c:1", "b:2", 1, 2, 0, 0, False, 10, 9, client, broker)
    assert {column.name: value(ended) for column, value in MEASURED} == {
        "retransmitted_bytes": 9,
        "client_rtt_ns": 1,
        "broker_rtt_ns": 5,
        "client_mss": 2,
        "broker_mss": 6,
        "client_zero_windows": 3,
        "broker_zero_windows": 7,
        "client_window_closed_ns": 4,
        "broker_window_closed_ns": 8,
    }
