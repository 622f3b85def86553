"""Measures the packet stage: a capture in memory to TCP segments, and to reassembled bytes.

Segments are compared with dpkt.

Every contender reads the same file and has addresses, ports, sequence numbers, flags and
payload position of each segment at the end; figures are nanoseconds per packet.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import dpkt

from kafkawire.capture.files.source import CHUNK, Capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.reassembly import Reassembler

from .captures import grown, recorded
from .measure import Figure, interleave

SUITE: Final = "packets"
SIZE: Final = 16 << 20
ROOT: Final = Path(__file__).resolve().parents[1]
RECORDINGS: Final = {
    "small messages": ("fixtures/captures/fg-max-v0.11.0.pcap", "fixtures/captures/kjs-all.pcap"),
    "many clients": ("fixtures/recordings/live/mixed-a.pcap",),
    "128 kB messages": ("fixtures/recordings/live/ck-bigmsg.pcap",),
}


def chunks(data: bytes) -> Iterator[bytes]:
    """Cut a capture as reading a file does."""
    return (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))


def segments(data: bytes) -> Callable[[], int]:
    """Bind the packet stage; a call returns how many segments it found."""

    def run() -> int:
        parser = PacketParser()
        return sum(len(parser.parse(block)) for block in Capture(chunks(data)))

    return run


def runs(data: bytes) -> Callable[[], int]:
    """Bind the packet stage and reassembly; a call returns how many events there are."""

    def run() -> int:
        parser, reassembler = PacketParser(), Reassembler()
        handle = reassembler.handle
        events = sum(len(handle(parser.parse(block))) for block in Capture(chunks(data)))
        return events + len(reassembler.handle(None))

    return run


def with_dpkt(data: bytes) -> Callable[[], int]:
    """Bind dpkt: its reader, its Ethernet class, the fields read."""

    def run() -> int:
        segments = 0
        for _, packet in dpkt.pcap.Reader(io.BytesIO(data)):
            network = dpkt.ethernet.Ethernet(packet).data
            if isinstance(network, dpkt.ip.IP) and isinstance(network.data, dpkt.tcp.TCP):
                tcp = network.data
                _ = network.src, network.dst, tcp.sport, tcp.dport, tcp.seq, tcp.ack, tcp.flags
                segments += len(tcp.data) >= 0
        return segments

    return run


def run(rounds: int) -> list[Figure]:
    """Measure each recording, grown to SIZE."""
    figures = []
    for case, files in RECORDINGS.items():
        data = b"".join(grown([recorded(ROOT / name) for name in files], SIZE))
        count = segments(data)()
        if with_dpkt(data)() != count:
            raise AssertionError(f"{case}: dpkt finds other segments")
        contenders = {
            "kafkawire": segments(data),
            "dpkt": with_dpkt(data),
            "kafkawire, to runs": runs(data),
        }
        for taken in interleave(SUITE, case, contenders, rounds):
            each = (1000 * value / count for value in (taken.median, taken.low, taken.high))
            figures.append(Figure(SUITE, case, taken.contender, "ns", *each))
    return figures
