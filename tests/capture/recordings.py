"""Messages of a recording of which a part was taken away: which packet still completes each.

Worked out from sequence numbers and lengths alone, apart from the engine: byte n of a side has
its SYN's number + 1 + n.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkawire.capture.files.source import read_capture

ETHERNET: Final = 14
SYN: Final = 2


class Segment(NamedTuple):
    """A TCP segment: from which port to which, its sequence number, its captured payload."""

    ports: tuple[int, int]
    seq: int
    size: int
    syn: bool


@cache
def segments(path: Path) -> list[Segment]:
    """Take the segments of an Ethernet and IPv4 capture, packet by packet."""
    made: list[Segment] = []
    for block in read_capture(path):
        for start, size in zip(block.start.tolist(), block.captured.tolist(), strict=True):
            packet = block.data[start : start + size]
            tcp = ETHERNET + (packet[ETHERNET] & 15) * 4
            source, destination, seq, _, offset, flags = struct.unpack_from(">HHIIBB", packet, tcp)
            end = min(size, ETHERNET + struct.unpack_from(">H", packet, ETHERNET + 2)[0])
            payload = max(0, end - tcp - (offset >> 4) * 4)
            made.append(Segment((source, destination), seq, payload, bool(flags & SYN)))
    return made


def completing(parent: Path, left: Path, rows: list[dict[str, Any]]) -> list[int | None]:
    """Find the packet of what is left that brings the last byte of each message of the parent."""
    initial = {one.ports: one.seq for one in segments(parent) if one.syn}
    broker = next(to for of, to in initial if of == rows[0]["client_port"])
    brought: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, one in enumerate(segments(left), 1):
        position = (one.seq - initial[one.ports] - 1) & 0xFFFFFFFF
        if one.size:
            brought[one.ports].append((position, position + one.size, number))
    ends: Counter[tuple[int, int]] = Counter()
    made: list[int | None] = []
    for row in rows:
        port = row["client_port"]
        ports = (port, broker) if row["dir"] == "req" else (broker, port)
        ends[ports] += row["len"] + 4
        last = ends[ports] - 1
        found = [number for first, end, number in brought[ports] if first <= last < end]
        made.append(found[0] if found else None)
    return made
