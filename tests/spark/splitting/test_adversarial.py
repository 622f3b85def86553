"""Captures inside Kafka messages: payload that looks like packets."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkawire.records import BatchBuilder
from kafkawire.spark.splitting import inputs, plan, probe, stitch

from ...capture import wire
from ...capture.wire import MILLISECOND, START_NS, Packet, pcap, pcapng
from ...capture.written import request
from .law import obeys, obeys_in_one_pass

LOTS = random.Random(3)
INNER = [
    Packet(LOTS.randbytes(LOTS.choice([60, 66, 400, 1500])), START_NS + i * MILLISECOND)
    for i in range(1500)
]


def carried(file: bytes, segment: int) -> list[Packet]:
    """Write the packets of a producer whose records are stretches of a capture file."""
    packets: list[Packet] = []
    seq = 1000
    for number, at in enumerate(range(0, len(file), 200_000)):
        builder = BatchBuilder()
        builder.append(b"key", file[at : at + 200_000], START_NS // 10**6)
        records = b64encode(builder.build()).decode()
        partitions = [{"index": 0, "records": records}]
        topics = [{"name": "captures", "partitionData": partitions}]
        frame = request("Produce", 8, number, acks=1, timeoutMs=1000, topicData=topics)
        for low in range(0, len(frame), segment):
            data = frame[low : low + segment]
            packet = wire.ethernet(wire.ipv4(wire.tcp(50000, 9092, seq, data)))
            packets.append(Packet(packet, START_NS + len(packets) * MILLISECOND))
            seq += len(data)
    return packets


@pytest.mark.parametrize("segment", [1400, 32_768])
@pytest.mark.parametrize("write", [pcap, pcapng])
def test_captures_in_records(
    write: Callable[[list[Packet]], bytes], segment: int, tmp_path: Path
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(write(carried(write(INNER), segment)))
    for split_bytes in (5000, 40_000, 250_000):
        obeys(path, split_bytes, walk=False)
    obeys(path, 40_000, walk=True)
    obeys_in_one_pass(path, 40_000)


def test_wrong_guesses_are_detected(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing. The number of rounds stays small."""
    path = tmp_path / "capture"
    path.write_bytes(pcap(carried(pcap(INNER), 32_768)))
    (file,) = inputs([path])
    splits = plan(file, 70_000, walk=False)
    proofs = [probe(split) for split in splits]
    wrong, rounds = 0, 0
    while redo := stitch(proofs).redo:
        wrong, rounds = wrong + len(redo), rounds + 1
        proofs += map(probe, redo)
    assert wrong >= len(splits) // 3
    # as many as wrong guesses follow one another, not as many as there are
    assert rounds < 12


def test_late_interfaces_cost_one_round(tmp_path: Path) -> None:
    """Every split after one that describes an interface guesses the interfaces wrong."""
    packets = [wire.enhanced(packet, packet.time_ns // 1000) for packet in INNER]
    late = [*packets[:300], wire.interface(113), *packets[300:]]
    path = tmp_path / "capture"
    path.write_bytes(b"".join([wire.section(), wire.interface(1), *late]))
    (file,) = inputs([path])
    splits = plan(file, 20_000, walk=False)
    proofs = [probe(split) for split in splits]
    redo = stitch(proofs).redo
    assert len(splits) > len(redo) > 10
    assert stitch([*proofs, *map(probe, redo)]).redo == ()
    obeys(path, 20_000, walk=False)
