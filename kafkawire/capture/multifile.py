"""Reads one file, a stream, or a rotated set of files as one capture.

Files of a set are read in the order of their first packets (then of their names) by one
engine, so a connection or a message may span them; a packet id, one integer, is the index of a
file and the number of the packet in that file. A truncated or corrupt file is reported as a row,
after the rows before the damage.

    file 0 --.
    file 1 --+--> blocks, packet ids --> engine --> Located | Ended
    file 2 --'                            packet     | file (23 bits) | number in the file (40) |
"""

# over 300 lines: reading of files, and what others need of a reader

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, final

from ..errors import CaptureError
from ..primitives import DEFAULT_LIMITS, Limits
from .copies import Copies
from .engine import Engine
from .exchanges.endings import as_ended
from .exchanges.exchanges import Ended
from .files.blocks import NO_TIME, Block
from .files.packet_headers import PcapBlock
from .files.source import Watch, read_capture
from .frames.decoding import LocatedItem, RawFrame, located
from .losses import Losses
from .packets.kinds import Kind, passed_over, udp_ports
from .packets.segment_rows import PASSED_OVER, SegmentRows, ordinary_rows
from .packets.undecoded import Skipped
from .rows import Located, Row, Status
from .tcp.connection import Connection
from .tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from .tls.keylog import KeySource, as_key_log

if TYPE_CHECKING:
    from .packets.parser import PacketParser

Source = str | Path | BinaryIO

FILE_BITS: Final = 40
"""Bits of a packet id for the number of the packet in its file; the file's index is above."""


def packet_id(file: int, packet: int) -> int:
    """Return the id of a packet of the file with that index."""
    return (file << FILE_BITS) + packet


def file_and_packet(packet: int) -> tuple[int, int]:
    """Split a packet id into the index of the file and the number of the packet in it."""
    return packet >> FILE_BITS, packet & ((1 << FILE_BITS) - 1)


OnEnd = Callable[[Connection, int], None]
"""Called for each closed connection, with the side that was the client."""


OnProblem = Callable[[str, CaptureError], None]
"""Called with the file and the problem when a file that is damaged has been read."""


def no_report(file: str, problem: CaptureError) -> None:
    """Do nothing about a problem of a file: it is a row, too."""


class Blocks(Protocol):
    """A file being read: its packet blocks, then its problems; and its TLS key logs so far."""

    problems: list[CaptureError]

    @property
    def key_logs(self) -> list[bytes]:
        """The TLS key logs in the file so far."""

    def blocks(self) -> Iterator[Block]:
        """Read the file."""


class PacketPositions(Protocol):
    """Finds the file of a packet."""

    def place(self, packet: int) -> tuple[str, int]:
        """Return the file of a packet, and its number there, from 1."""


class Reader(PacketPositions, Protocol):
    """What tables read: captures (`Traffic`), or some of their connections (`kafkawire.spark`).

    repeatable: whether it can be read several times.
    """

    repeatable: bool

    def __iter__(self) -> Iterator[Located | Ended]: ...

    def raw_frames(self) -> Iterator[LocatedItem | Ended]:
        """Read with undecoded bodies."""

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Do as `raw_frames`, in batches."""

    def again(self) -> Reader:
        """Return another reader of the same, if it is repeatable."""


@final
class PacketReader:
    """Parses the packets of a capture for reassembly: without numpy, if they are ordinary.

    tunnels: as in `PacketParser`. others: packets that carry no TCP; complete after `finish`.
    Raises ValueError for an invalid tunnel.
    """

    def __init__(self, tunnels: Sequence[str] = ()) -> None:
        self.others = 0
        self._tunnels = tunnels
        self._passed_over = passed_over(udp_ports(tunnels)) if tunnels else PASSED_OVER
        self._parser: PacketParser | None = None

    @property
    def problems(self) -> list[CaptureError]:
        """The problems so far: unsupported link types."""
        return [] if self._parser is None else self._parser.problems

    def read(self, block: Block) -> SegmentRows:
        """Parse the segments of a block."""
        if isinstance(block, PcapBlock):
            rows = ordinary_rows(block, self._passed_over)
            if rows is not None:
                self.others += len(block) - len(rows)
                return rows
        if self._parser is None:
            from .packets.parser import PacketParser  # imports numpy

            self._parser = PacketParser(self._tunnels)
        return self._parser.parse(block).rows()

    def finish(self) -> list[Skipped]:
        """Return the problems with packets that were not decoded, when the file has ended."""
        if self._parser is None:
            return []
        self._parser.finish()
        self.others += self._parser.skipped[Kind.OTHER]
        return self._parser.undecoded.problems()


class Traffic:
    """One or more captures that are read as one.

    sources: paths, in any order, or one binary stream. ports, brokers, reassembly: as in `Engine`.
    watch: called with the progress. keylog: a TLS key log, or the path of one. package: as in
    `Engine`. tunnels: as in `PacketParser`. leave_out_copies: see `copies`. Iterate it once;
    several times only if `repeatable`. Raises OSError and KeyLogError for the key log, ValueError
    for an invalid tunnel.
    first_ns: when the first packet was captured; None before it is read. other_packets: packets of
    the files read so far that carry no TCP. has_rows, has_messages: whether there was a row so far,
    and one of a message. losses: what the rows so far lack. on_problem: called for each problem of
    a file; other readers, made by `again`, do not call it.
    """

    def __init__(  # noqa: PLR0913 - options of a reader, by name
        self,
        sources: Sequence[Source],
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
        *,
        brokers: Collection[str] = (),
        watch: Watch | None = None,
        reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
        keylog: KeySource = None,
        package: str | None = None,
        tunnels: Sequence[str] = (),
        leave_out_copies: bool = True,
    ) -> None:
        self.repeatable = all(isinstance(source, str | Path) for source in sources)
        self.sources = (
            sorted(sources, key=_first_time_and_name) if len(sources) > 1 else list(sources)
        )
        self.ports = ports
        self.limits = limits
        self.brokers = brokers
        self.watch = watch
        self.reassembly = reassembly
        self.first_ns: int | None = None
        self.key_log = as_key_log(keylog)
        self.package = package
        self.tunnels = tunnels
        self.leave_out_copies = leave_out_copies
        self.other_packets = 0
        self.has_rows = self.has_messages = False
        self.losses = Losses()
        self.on_problem: OnProblem = no_report

    def __iter__(self) -> Iterator[Located | Ended]:
        """Read the captures.

        Raises BadMagic or TruncatedCapture if a file is not a capture, OSError if it does not open.
        """
        limits = self.limits
        for item in self.raw_frames():
            yield located(item, limits) if isinstance(item, LocatedItem) else item

    def raw_frames(self) -> Iterator[LocatedItem | Ended]:
        """Read the captures, and leave bodies undecoded."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Do as `raw_frames`, in batches."""
        ended: list[Ended] = []

        def end(connection: Connection, client: int) -> None:
            ended.append(as_ended(connection, client, connection.id))

        for batch in self._read(end):
            self._note(batch)
            items: list[LocatedItem | Ended] = [*ended, *batch]
            ended.clear()
            if items:
                yield items

    def item_batches(self) -> Iterator[list[LocatedItem]]:
        """Do as `batches`, without the ends of connections."""
        for batch in self._read(None):
            if batch:
                self._note(batch)
                yield batch

    def _note(self, batch: Sequence[LocatedItem]) -> None:
        if batch and not self.has_messages:
            self.has_rows = True
            self.has_messages = any(map(_is_message, batch))
        for entry in batch:
            if isinstance(entry.item, Row):
                self.losses.add(entry.item)

    def _read(self, on_end: OnEnd | None) -> Iterator[list[LocatedItem]]:
        """Read the captures; yields an empty batch after each block, so that ends are not late."""
        engine = Engine(
            self.ports,
            self.limits,
            self.reassembly,
            on_end=on_end,
            brokers=self.brokers,
            key_log=self.key_log,
            package=self.package,
            copies=Copies() if self.leave_out_copies else None,
        )
        self.other_packets = 0
        problems: list[LocatedItem] = []
        for file, source in enumerate(self.sources):
            yield problems
            capture = self.open(source)
            packets = PacketReader(self.tunnels)
            last = packet_id(file, 0)
            for block in capture.blocks():
                if self.first_ns is None and len(block):
                    self.first_ns = block.first_ns
                first = packet_id(file, block.first)
                last = first + len(block) - 1
                while capture.key_logs:
                    self.key_log.add(capture.key_logs.pop(0))
                yield from engine.handle(packets.read(block.numbered(first)))
                yield []
            all_problems = [*capture.problems, *packets.problems]
            for problem in all_problems:
                self.on_problem(self.place(last)[0], problem)
            problems = [
                LocatedItem(None, None, None, problem_row(str(each), last)) for each in all_problems
            ]
            problems += [
                LocatedItem(None, None, None, skipped_row(each, last)) for each in packets.finish()
            ]
            self.other_packets += packets.others
        yield from engine.handle(None)
        yield problems

    def open(self, source: Source) -> Blocks:
        """Open a file."""
        return read_capture(source, self.watch)

    def again(self) -> Traffic:
        """Return another reader of the same captures, for a second, parallel pass."""
        return Traffic(
            self.sources,
            self.ports,
            self.limits,
            brokers=self.brokers,
            watch=self.watch,
            reassembly=self.reassembly,
            keylog=self.key_log,
            package=self.package,
            tunnels=self.tunnels,
            leave_out_copies=self.leave_out_copies,
        )

    def place(self, packet: int) -> tuple[str, int]:
        """Return the file of a packet, and its number there, from 1."""
        file, number = file_and_packet(packet)
        source = self.sources[file]
        return str(source) if isinstance(source, str | Path) else "-", number


def _is_message(entry: LocatedItem) -> bool:
    """Return whether an item has the header of a message."""
    item = entry.item
    return (item.request if isinstance(item, RawFrame) else item.api_key) is not None


def problem_row(problem: str, packet: int) -> Row:
    """Make the row of a problem of a file, at its last packet (0 for none)."""
    return Row(packet, NO_TIME, "", 0, Status.UNREADABLE, problem)


def skipped_row(skipped: Skipped, packet: int) -> Row:
    """Make the row of packets of a file that were not decoded, at its last packet."""
    return Row(packet, NO_TIME, "", skipped.bytes, Status.SKIPPED, skipped.text)


def first_time(source: Source) -> int:
    """Return the time of a file's first packet; NO_TIME if unknown."""
    for block in read_capture(source).blocks():
        if len(block):
            return block.first_ns
    return NO_TIME


def _first_time_and_name(source: Source) -> tuple[int, str]:
    return first_time(source), str(source)
