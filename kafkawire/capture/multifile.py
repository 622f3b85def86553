"""Captures in, located rows out: one file, a stream, or a rotated set read as one capture.

Law: files of a set are read in the order of their first packets (then of their names) by one
engine, so a connection or a message may span them; a packet is known by its file and its number
there, and one integer says both.

    file 0 --.
    file 1 --+--> blocks, numbered on --> engine --> Located | Ended
    file 2 --'                            packet     | file (23 bits) | number in the file (40) |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from ..errors import CaptureError
from ..primitives import DEFAULT_LIMITS, Limits
from .engine import Engine, Located, located
from .exchanges.endings import as_ended
from .exchanges.exchanges import Ended
from .files.blocks import NO_TIME, PacketBlock
from .files.source import Watch, read_capture
from .frames.serialised import LocatedItem
from .packets.parser import PacketParser
from .rows import Row, Status
from .tcp.connection import Connection
from .tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits

Source = str | Path | BinaryIO

FILE_BITS: Final = 40
"""Bits of a packet's number that count packets of its file; the file's place stands above them."""


def numbered(file: int, packet: int) -> int:
    """Number a packet of the file at that place of the set."""
    return (file << FILE_BITS) + packet


def place_of(packet: int) -> tuple[int, int]:
    """Say which file of the set a packet is in, and its number there."""
    return packet >> FILE_BITS, packet & ((1 << FILE_BITS) - 1)


class Blocks(Protocol):
    """A file being read: its packet blocks, then its problems."""

    problems: list[CaptureError]

    def __iter__(self) -> Iterator[PacketBlock]: ...


class Traffic:
    """Captures that are read as one.

    sources: paths, in any order, or one binary stream. ports, brokers, reassembly: as in `Engine`.
    watch: told how far reading is. Iterate it once, or anew for each pass where `repeatable`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
        *,
        brokers: Collection[str] = (),
        watch: Watch | None = None,
        reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    ) -> None:
        self.repeatable = all(isinstance(source, str | Path) for source in sources)
        self.sources = sorted(sources, key=_when) if len(sources) > 1 else list(sources)
        self.ports = ports
        self.limits = limits
        self.brokers = brokers
        self.watch = watch
        self.reassembly = reassembly

    def __iter__(self) -> Iterator[Located | Ended]:
        """Read the captures. Raises BadMagic, TruncatedCapture where a file is none at all, OSError
        where it cannot be opened.
        """
        limits = self.limits
        for one in self.sealed():
            yield located(one, limits) if isinstance(one, LocatedItem) else one

    def sealed(self) -> Iterator[LocatedItem | Ended]:
        """Read the captures, and leave the bodies of messages unread."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Do as `sealed`, some rows at a time."""
        ended: list[Ended] = []

        def end(connection: Connection, client: int) -> None:
            ended.append(as_ended(connection, client, connection.id))

        engine = Engine(
            self.ports,
            self.limits,
            self.reassembly,
            on_end=end,
            brokers=self.brokers,
        )
        for file, source in enumerate(self.sources):
            capture = self.open(source)
            parser = PacketParser()
            last = numbered(file, 0)
            for block in capture:
                first = numbered(file, block.first)
                last = first + len(block) - 1
                for batch in engine.batches(parser.parse(replace(block, first=first))):
                    yield [*_drained(ended), *batch]
                if ended:
                    yield _drained(ended)
            problems = [*capture.problems, *parser.problems]
            if problems:
                yield [LocatedItem(None, None, None, about(str(one), last)) for one in problems]
        for batch in engine.batches(None):
            yield list(batch)
        if ended:
            yield _drained(ended)

    def open(self, source: Source) -> Blocks:
        """Begin to read a file."""
        return read_capture(source, self.watch)

    def again(self) -> Traffic:
        """Make another reading of the same captures, for a second pass beside this one."""
        return Traffic(
            self.sources,
            self.ports,
            self.limits,
            brokers=self.brokers,
            watch=self.watch,
            reassembly=self.reassembly,
        )

    def place(self, packet: int) -> tuple[str, int]:
        """Say in which file a packet is, and its number there, from 1."""
        file, number = place_of(packet)
        source = self.sources[file]
        return str(source) if isinstance(source, str | Path) else "-", number


def about(problem: str, packet: int) -> Row:
    """Say what is wrong with a file, at the last packet that was read of it (0 for none)."""
    return Row(packet, NO_TIME, "", 0, Status.UNREADABLE, problem)


def _drained(ended: list[Ended]) -> list[LocatedItem | Ended]:
    found: list[LocatedItem | Ended] = [*ended]
    ended.clear()
    return found


def first_time(source: Source) -> int:
    """Say when a file's first packet was captured; NO_TIME where that is not said."""
    for block in read_capture(source):
        if len(block):
            return int(block.ts[0])
    return NO_TIME


def _when(source: Source) -> tuple[int, str]:
    return first_time(source), str(source)
