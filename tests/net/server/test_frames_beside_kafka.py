"""Frames that are not valid requests: a real Apache Kafka and our broker do the same.

Each is sent on a connection of its own, with an ApiVersions request behind it, which is answered if
the connection stays open.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from kafkawire.net.nodes.cluster_thread import ClusterThread

from ...real.broker import Broker

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("kafka")]

CORRELATION: Final = bytes.fromhex("0000002a")
CLIENT: Final = bytes.fromhex("000474657374")
BEHIND: Final = bytes.fromhex("0000000e 0012 0000 0000002b 0004 74657374".replace(" ", ""))
"""ApiVersions v0 with correlation id 43."""
WAIT_S: Final = 30.0


class Outcome(NamedTuple):
    """What a broker did with a frame. response: its correlation id and the two bytes after it."""

    response: bytes | None
    stays_open: bool


def head(key: int, version: int, client: bytes = CLIENT) -> bytes:
    return (
        key.to_bytes(2, "big", signed=True)
        + version.to_bytes(2, "big", signed=True)
        + CORRELATION
        + client
    )


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


METADATA: Final = bytes.fromhex("00000000")  # no topics
FRAMES: Final = {
    "unknown_key": sized(head(999, 0)),
    "greatest_key": sized(head(32767, 0)),
    "negative_key": sized(head(-1, 0)),
    "key_without_more": sized(b"\0\3"),
    "key_of_a_controller": sized(head(52, 0) + bytes(20)),
    "removed_key": sized(head(4, 0) + bytes(20)),
    "api_versions_negative": sized(head(18, -1)),
    "api_versions_newer": sized(head(18, 100)),
    "metadata_negative": sized(head(3, -1) + METADATA),
    "metadata_newer": sized(head(3, 100) + METADATA),
    "produce_dropped": sized(head(0, 2) + bytes(10)),
    "empty": sized(b""),
    "one_byte": sized(b"\0"),
    "negative_size": b"\xff\xff\xff\xff",
    "smallest_size": b"\x80\0\0\0",
    "too_large": (104_857_601).to_bytes(4, "big"),
    "valid": sized(head(3, 1) + METADATA),
    "null_client_id": sized(head(3, 1, b"\xff\xff") + METADATA),
    "negative_client_id": sized(head(3, 1, b"\xff\xfe") + METADATA),
    "long_client_id": sized(head(3, 1, b"\x7f\xff") + METADATA),
    "without_body": sized(head(3, 1)),
    "body_cut": sized(head(3, 1) + b"\0\0\0\1\0\5ab"),
    "negative_count": sized(head(3, 1) + b"\xff\xff\xff\xfe"),
    "count_of_more_than_there_is": sized(head(3, 1) + b"\x7f\xff\xff\xff"),
    "bytes_behind": sized(head(3, 1) + METADATA + b"more"),
    "unknown_tag_in_the_header": sized(head(3, 9) + b"\1\x63\2ab" + b"\1\0\0\0\0"),
    "tag_twice": sized(head(3, 9) + b"\2\x63\1a\x63\1a" + b"\1\0\0\0\0"),
    "tags_cut": sized(head(3, 9) + b"\5\x63"),
    "endless_varint": sized(head(3, 9) + b"\xff\xff\xff\xff\xff\xff"),
    "sasl_handshake": sized(head(17, 1) + b"\0\5PLAIN"),
    "sasl_authenticate": sized(head(36, 0) + b"\0\0\0\2ab"),
}

NOT_UTF8: Final = sized(head(3, 1, b"\0\2\xff\xfe") + METADATA)


@pytest.fixture(scope="module")
def ours() -> Iterator[int]:
    """The port of a node of ours."""
    with ClusterThread() as cluster:
        yield cluster.ports()[1]


def received(connection: socket.socket) -> bytes | None:
    """Receive a frame without its size; None at the end, also if that was a reset."""
    try:
        size = int.from_bytes(exactly(connection, 4), "big")
        return exactly(connection, size)
    except (EOFError, ConnectionError):
        return None


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def outcome(port: int, frame: bytes) -> Outcome:
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as connection:
        connection.sendall(frame + BEHIND)
        response = received(connection)
        if response is None or response[:4] != CORRELATION:
            return Outcome(None, response is not None)
        return Outcome(response[:6], received(connection) is not None)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_has_the_same_outcome(kafka: Broker, ours: int, frame: bytes) -> None:
    assert outcome(ours, frame) == outcome(kafka.port, frame)


def test_text_that_is_not_utf8_is_refused_where_kafka_reads_replacements(
    kafka: Broker, ours: int
) -> None:
    assert outcome(kafka.port, NOT_UTF8) == Outcome(CORRELATION + bytes(2), True)
    assert outcome(ours, NOT_UTF8) == Outcome(None, False)
