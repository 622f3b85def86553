"""The parts and verdicts of many files as columns: most files have one plain part, and are read.

They behave as sequences of `Part` and `Verdict`; a value is made when it is used. Only files
that are not plain have values of their own.

    file  headers  packets         others: 2 -> Part(file=2, ...)
     0       0        14
     1       0         9
     2     NO_HEADER   0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ...capture.files.pcap import PcapHeader
from ..splitting import Edge, Split
from ..splitting.file_list import FileList, Indexes, LazySequence
from .parts import Part

T = TypeVar("T")

NO_HEADER: Final = -1
"""The header of a part that is not plain."""


@dataclass(frozen=True, eq=False)
class Parts(LazySequence[Part]):
    """Parts of files, in order.

    file: of each part; sets: of each file. packets: of the file of each part. headers: the distinct
    headers of plain parts, None for one that is read as a whole; header: of each part, or NO_HEADER
    for one in `others`.
    """

    files: FileList
    sets: Sequence[int]
    file: Indexes
    packets: Indexes
    headers: tuple[PcapHeader | None, ...]
    header: Indexes
    others: Mapping[int, Part]

    def __len__(self) -> int:
        return len(self.file)

    def value(self, index: int) -> Part:
        """Make a part."""
        code = self.header[index]
        if code == NO_HEADER:
            return self.others[index]
        number, header = int(self.file[index]), self.headers[code]
        file = self.files.value(number)
        if header is None:
            split = Split(file, whole=True, start=Edge(0), first=1)
        else:
            split = Split(file, header=header, start=Edge(header.size), first=1)
        return Part(number, self.sets[number], split, int(self.packets[index]))


@dataclass(frozen=True, eq=False)
class Selected(LazySequence[T]):
    """Some values of a sequence, by their indexes."""

    values: Sequence[T]
    indexes: range | Indexes

    def __len__(self) -> int:
        return len(self.indexes)

    def value(self, index: int) -> T:
        """Return a value."""
        return self.values[int(self.indexes[index])]


@dataclass(frozen=True, eq=False)
class Mostly(LazySequence[T]):
    """A sequence of equal values, with others at few indexes."""

    size: int
    default: T
    others: Mapping[int, T]

    def __len__(self) -> int:
        return self.size

    def value(self, index: int) -> T:
        """Return a value."""
        return self.others.get(index, self.default)
