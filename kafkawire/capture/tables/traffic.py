"""Captures in, located rows out: one file, a stream, or a rotated set read as one capture.

Law: files of a set are read in the order of their first packets by one engine, so a connection or a
message may span them; a packet is known by its file and its number there.

    file 0 --.
    file 1 --+--> blocks, numbered on --> engine --> Located | Ended
    file 2 --'
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ...primitives import DEFAULT_LIMITS, Limits
from ..blocks import NO_TIME
from ..connections import Connection
from ..engine import Engine, Located, located
from ..exchanges import Ended
from ..packets import PacketParser
from ..parcels import Told
from ..rows import Row, Status
from ..source import read_capture

Source = str | Path | BinaryIO


class Traffic:
    """Captures that are read as one.

    sources: paths, in any order, or one binary stream. ports: those of brokers, where they are
    known. Iterate it once, or anew for each pass where `repeatable`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.repeatable = all(isinstance(source, str | Path) for source in sources)
        self.sources = sorted(sources, key=_first_time) if len(sources) > 1 else list(sources)
        self.ports = ports
        self.limits = limits
        self._starts: list[int] = []

    def __iter__(self) -> Iterator[Located | Ended]:
        """Read the captures. Raises BadMagic, TruncatedCapture where a file is none at all, OSError
        where it cannot be opened.
        """
        limits = self.limits
        for one in self.sealed():
            yield located(one, limits) if isinstance(one, Told) else one

    def sealed(self) -> Iterator[Told | Ended]:
        """Read the captures, and leave the bodies of messages unread."""
        ended: list[Ended] = []
        engine = Engine(
            self.ports,
            self.limits,
            on_end=lambda connection, client: ended.append(_ended(connection, client)),
        )
        self._starts = []
        packets = 0
        for source in self.sources:
            self._starts.append(packets)
            capture = read_capture(source)
            parser = PacketParser()
            base = packets
            for block in capture:
                packets = base + block.first + len(block) - 1
                numbered = replace(block, first=base + block.first)
                for batch in engine.batches(parser.parse(numbered)):
                    yield from _drain(ended)
                    yield from batch
                yield from _drain(ended)
            for problem in [*capture.problems, *parser.problems]:
                row = Row(packets, NO_TIME, "", 0, Status.UNREADABLE, str(problem))
                yield Told(None, None, None, row)
        for batch in engine.batches(None):
            yield from batch
        yield from _drain(ended)

    def place(self, packet: int) -> tuple[str, int]:
        """Say in which file a packet is, and its number there, from 1."""
        at = max(0, bisect_right(self._starts, packet - 1) - 1)
        source = self.sources[at]
        name = str(source) if isinstance(source, str | Path) else "-"
        return name, packet - self._starts[at]


def _drain(ended: list[Ended]) -> Iterator[Ended]:
    while ended:
        yield ended.pop(0)


def _ended(connection: Connection, client: int) -> Ended:
    return Ended(
        connection.id,
        str(connection.endpoints[client]),
        str(connection.endpoints[1 - client]),
        connection.first_packet,
        connection.last_packet,
        connection.first_ns,
        connection.last_ns,
        connection.reset,
    )


def _first_time(source: Source) -> int:
    """Say when a file's first packet was captured."""
    for block in read_capture(source):
        if len(block):
            return int(block.ts[0])
    return NO_TIME
