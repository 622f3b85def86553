"""Connections by their first packets."""

from __future__ import annotations

from pathlib import Path

from kafkawire.capture.engine import Engine
from kafkawire.capture.exchanges.endings import Endings, as_ended, count_frames
from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.frames.decoding import LocatedItem, RawFrame
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.connection import Connection

CAPTURE = Path(__file__).parents[3] / "fixtures" / "captures" / "ck-848.pcap"


def read(path: Path, engine: Engine) -> list[LocatedItem]:
    """Take all rows of a capture."""
    parser = PacketParser()
    blocks = [*map(parser.parse, read_capture(path)), None]
    return [one for block in blocks for batch in engine.handle(block) for one in batch]


def test_connections_go_by_their_first_packets_and_nothing_else_differs() -> None:
    connections: dict[int, Ended] = {}

    def end(connection: Connection, client: int) -> None:
        ended = connections[connection.id] = as_ended(connection, client, connection.id)
        for field in Ended._fields[3:10]:
            assert getattr(ended, field) == getattr(connection, field)
        ends = connection.endpoints[client], connection.endpoints[1 - client]
        assert (ended.connection, ended.client, ended.broker) == (connection.id, *map(str, ends))

    endings = Endings()
    by_number = read(CAPTURE, Engine(on_end=end))
    by_packet = read(CAPTURE, Engine(on_end=endings.end, by_packet=True))
    firsts = {number: ended.first_packet for number, ended in connections.items()}
    assert len(firsts) > 1
    assert [one.connection for one in by_packet] == [
        None if one.connection is None else firsts[one.connection] for one in by_number
    ]
    assert [(one.client, one.broker, one.known_at) for one in by_packet] == [
        (one.client, one.broker, one.known_at) for one in by_number
    ]
    expected = [one._replace(connection=one.first_packet) for one in connections.values()]
    assert endings.drained() == expected
    assert endings.drained() == []
    assert endings.firsts == [one.first_packet for one in expected]
    assert endings.repeated_bytes == sum(one.repeated_bytes for one in expected)
    frames = [one.item.frame for one in by_packet if isinstance(one.item, RawFrame)]
    assert count_frames(by_packet) == (len(frames), sum(map(len, frames)))
    assert count_frames([]) == (0, 0)
