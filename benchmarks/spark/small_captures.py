"""Makes directories of many small captures: `python -m benchmarks.spark.small_captures DIR N`.

Each file has one short connection, with an address, a port, a client id, topics, offsets and
sizes of its own. The same seed makes the same files.

    capture-000000.pcap, capture-000001.pcap, ...    SYN, SYN | requests and responses in turn
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import kafkawire

from ..captures import HEADER

SEED: Final = 11
BROKER: Final = 0xAC100001
CLIENTS: Final = 0x0A000000
PORT: Final = 9092
SYN, ACK, PUSH_ACK = 0x02, 0x10, 0x18
EPOCH: Final = 1_700_000_000
TURNS: Final = (2, 6)
"""Fewest and most exchanges of a connection."""

COMMIT_VERSION: Final = 7


class Commit(NamedTuple):
    """An OffsetCommit request and its response, as frames."""

    request: bytes
    response: bytes


def commit(rng: random.Random, client: str, correlation_id: int) -> Commit:
    """Make an exchange."""
    topics = [f"topic-{rng.getrandbits(24)}" for _ in range(rng.randint(1, 3))]
    partitions = {topic: rng.sample(range(64), rng.randint(1, 4)) for topic in topics}
    fields: dict[str, Any] = {
        "groupId": f"group-{rng.getrandbits(16)}",
        "generationIdOrMemberEpoch": rng.getrandbits(10),
        "memberId": f"{client}-{rng.getrandbits(64):016x}",
        "groupInstanceId": None,
        "topics": [
            {
                "name": name,
                "partitions": [
                    {
                        "partitionIndex": index,
                        "committedOffset": rng.getrandbits(40),
                        "committedLeaderEpoch": -1,
                        "committedMetadata": None,
                    }
                    for index in indexes
                ],
            }
            for name, indexes in partitions.items()
        ],
    }
    answered = {
        "throttleTimeMs": 0,
        "topics": [
            {"name": n, "partitions": [{"partitionIndex": i, "errorCode": 0} for i in indexes]}
            for n, indexes in partitions.items()
        ],
    }
    request = kafkawire.from_json("OffsetCommitRequest", COMMIT_VERSION, fields)
    response = kafkawire.from_json("OffsetCommitResponse", COMMIT_VERSION, answered)
    return Commit(
        kafkawire.encode_frame(request, COMMIT_VERSION, correlation_id, client_id=client),
        kafkawire.encode_frame(response, COMMIT_VERSION, correlation_id),
    )


def capture(number: int, seed: int = SEED) -> bytes:
    """Make the capture with a number."""
    rng = random.Random(f"{seed} {number}")
    client, port = CLIENTS + number, rng.randrange(32768, 61000)
    sequence = [rng.getrandbits(32), rng.getrandbits(32)]
    at_us = number * 1_000_000 + rng.randrange(1_000_000)
    pieces = [HEADER]

    def send(side: int, flags: int, data: bytes) -> None:
        nonlocal at_us
        at_us += rng.randrange(50, 5000)
        ends = ((client, port), (BROKER, PORT))
        source, target = ends[side], ends[1 - side]
        tcp = struct.pack(
            ">HHIIBBHHH", source[1], target[1], sequence[side], sequence[1 - side],
            5 << 4, flags, 65535, 0, 0,
        )  # fmt: skip
        ip = struct.pack(
            ">BBHHHBBHII", 0x45, 0, 40 + len(data), 0, 0x4000, 64, 6, 0, source[0], target[0]
        )
        packet = bytes(12) + b"\x08\x00" + ip + tcp + data
        seconds, fraction = divmod(at_us, 1_000_000)
        size = len(packet)
        pieces.append(struct.pack("<IIII", EPOCH + seconds, fraction, size, size) + packet)
        sequence[side] = (sequence[side] + len(data) + (flags & SYN > 0)) % 2**32

    send(0, SYN, b"")
    send(1, SYN | ACK, b"")
    for correlation_id in range(rng.randint(*TURNS)):
        request = commit(rng, f"client-{number}", correlation_id)
        send(0, PUSH_ACK, request.request)
        send(1, PUSH_ACK, request.response)
    return b"".join(pieces)


def make(folder: Path, count: int) -> Iterator[Path]:
    """Write the captures with the numbers below `count`; those that exist are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    present = {path.name for path in folder.iterdir()}
    for number in range(count):
        path = folder / f"capture-{number:06}.pcap"
        if path.name not in present:
            path.write_bytes(capture(number))
        yield path


def main() -> None:
    """Write a directory."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark.small_captures", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    chosen = parser.parse_args()
    print(sum(path.stat().st_size for path in make(chosen.folder, chosen.count)))


if __name__ == "__main__":
    main()
