"""What a split is: a stretch of a capture, where its packets begin, and what reading it proved.

Law: all of these are small, frozen values that pickle. An `Edge` holds everything the serial reader
knows between two packets, so that whoever resumes there says what the serial reader says.

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
"""The position behind everything: no packet comes any more."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between two packets, and what the serial reader knows there.

    position: offset in the uncompressed file of the next packet's header (pcap) or block (pcapng);
    END behind the last. order, interfaces: of the pcapng section. seconds: time of the packet
    before, which only a search for the end of damage asks for.

    Edges compare by what a reader that guessed its start can know.
    """

    position: int
    order: str = ""
    interfaces: tuple[Interface, ...] = ()
    seconds: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a member of a compressed file begins: offset in the file, offset in what it unpacks
    to.
    """

    packed: int
    position: int


@dataclass(frozen=True, slots=True)
class Split:
    """The packets of a file whose header lies at an offset from `low` on, but before `high`.

    ordinal: which split of its file it is, from 0. low, high: offsets in the uncompressed file;
    high is END for the last split. header: of a pcap; None for a pcapng. start: where its packets
    begin, None where that must be guessed. first: number of its first packet in the file, None
    where that is not known. guess: what a guess takes for granted (byte order, interfaces, time).
    marks: where `low` and `high` lie in a compressed file (the second None for the last split).
    whole: the file is read as one, by the serial reader itself; nothing else matters then.
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
        """About how much there is to read."""
        return max(0, (self.file.size if self.high == END else self.high) - self.low)


@dataclass(frozen=True, slots=True)
class Proof:
    """What reading a split showed.

    start: where its first packet was found; None if a guess found none. end: the first packet that
    is not its own. packets: how many it has. problems: what could not be read, in file order.

    It proves nothing alone: a guess is right only if the split before ends where this one starts
    (`stitch`).
    """

    split: Split
    start: Edge | None
    end: Edge
    packets: int
    problems: tuple[CaptureError, ...] = ()
