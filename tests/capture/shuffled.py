"""Captures of connections whose responses come in any order."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import kafkawire
from tests.capture.dialogue import Sent, hello, packets
from tests.capture.wire import pcap

CLIENT, BROKER = 0, 1


def request(id: int, name: str = "Heartbeat", version: int = 4, **fields: object) -> bytes:
    """Encode a request."""
    fields = fields or {"groupId": "g", "memberId": f"member-{id}"}
    message = kafkawire.from_json(f"{name}Request", version, fields)
    return kafkawire.encode_frame(message, version, id, client_id="tester")


def response(id: int, name: str = "Heartbeat", version: int = 4, **fields: object) -> bytes:
    """Encode a response."""
    message = kafkawire.from_json(f"{name}Response", version, fields)
    return kafkawire.encode_frame(message, version, id)


def fetch(id: int, session: int = 7) -> tuple[bytes, bytes]:
    """Encode an incremental Fetch of one more partition, and its response."""
    topics = [{"topic": "orders", "partitions": [{"partition": id, "fetchOffset": id}]}]
    sent = request(id, "Fetch", 12, sessionId=session, sessionEpoch=id, topics=topics)
    return sent, response(id, "Fetch", 12, sessionId=session)


def written(
    frames: Iterable[tuple[int, bytes]], lost: Sequence[int] = (), begins: bool = True
) -> bytes:
    """Write a capture of a connection, with a packet for each frame.

    lost: indexes of the packets that were not captured. begins: whether its beginning was captured.
    """
    at = [0, 0]
    sent = hello() if begins else []
    for index, (side, frame) in enumerate(frames):
        if index not in lost:
            sent.append(Sent(side, at[side], frame, acked=at[1 - side]))
        at[side] += len(frame)
    return pcap(packets(sent))


def shuffled(rng: random.Random, count: int, window: int = 9) -> list[tuple[int, bytes]]:
    """Make requests of a connection, and their responses in another order.

    window: how far a response moves at most, about.
    """
    frames: list[tuple[float, int, bytes]] = []
    for id in range(1, count + 1):
        asked, answer = (request(id), response(id)) if rng.random() < 0.7 else fetch(id)
        frames.append((id, CLIENT, asked))
        frames.append((id + 0.5 + rng.random() * window, BROKER, answer))
    frames.sort(key=lambda each: each[0])
    return [(side, frame) for _, side, frame in frames]
