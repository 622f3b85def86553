"""Splits: a range of a capture, where its packets begin, and what reading it proved.

These are small, frozen values that pickle. An `Edge` holds everything the serial reader knows
between two packets, so a reader resumed there gives what the serial reader gives.

    file      |---- split 0 ----|---- split 1 ----|---- split 2 ----|
    packets   | p | p |   p   |   p   | p | p |   p   | p | p | p |
              ^ start of 0        ^ end of 0 = start of 1   ...
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ...capture.files.interfaces import Interface
from ...capture.files.pcap import PcapHeader
from ...errors import CaptureError
from .stores import InputFile

END: Final = 1 << 62
"""The position after the last packet."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A position between two packets, and what the serial reader knows there.

    position: offset in the uncompressed file of the header of the next packet (pcap) or block
    (pcapng); END after the last one. order, interfaces: of the pcapng section. seconds: time of the
    packet before, which only a search after damage uses.

    Edges are compared by what a reader that guessed its start can know.
    """

    position: int
    order: str = ""
    interfaces: tuple[Interface, ...] = ()
    seconds: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """The start of a member of a compressed file: offset in the file, offset in the content."""

    packed: int
    position: int


@dataclass(frozen=True, slots=True)
class Split:
    """The packets of a file whose header is at an offset from `low` on, but before `high`.

    ordinal: index of the split in its file. low, high: offsets in the uncompressed file; high is
    END for the last split. header: of a pcap; None for a pcapng. start: where its packets begin,
    None if it must be guessed. first: number of its first packet in the file, None if unknown.
    guess: what a guess assumes (byte order, interfaces, time). marks: position of `low` and `high`
    in a compressed file (the second is None for the last split). whole: the file is read by the
    serial reader itself; nothing else matters then.
    """

    file: InputFile
    ordinal: int = 0
    low: int = 0
    high: int = END
    header: PcapHeader | None = None
    start: Edge | None = None
    first: int | None = None
    guess: Edge = field(default=Edge(0), repr=False)
    marks: tuple[Mark, Mark | None] | None = None
    whole: bool = False

    @property
    def bytes(self) -> int:
        """Approximate bytes to read."""
        return max(0, (self.file.size if self.high == END else self.high) - self.low)


@dataclass(frozen=True, slots=True)
class Proof:
    """What reading a split proved.

    start: where its first packet was found; None if a guess found none. end: the first packet of
    the next split. packets: their number. problems: what could not be read, in file order.

    A proof is conditional: a guess is right only if the split before ends where this one starts
    (`stitch`).
    """

    split: Split
    start: Edge | None
    end: Edge
    packets: int
    problems: tuple[CaptureError, ...] = ()
