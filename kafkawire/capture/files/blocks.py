"""A packet block: thousands of captured packets as columns over one buffer, the unit that capture
readers hand on.

Law: a block names every packet of its stretch of the file, in file order and with consecutive
numbers; it copies none.

    data    [ header | packet | header | packet | ... ]      bytes of the file
    start            ^                 ^                     int64, index into data
    captured         |--------|        |--------|            int64, bytes there are
    original         |------------|    |--------|            int64, bytes there were on the wire
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ...errors import CaptureError

Ints: TypeAlias = npt.NDArray[np.int64]
Octets: TypeAlias = npt.NDArray[np.uint8]

NO_TIME: Final = -(1 << 63)
"""The time of a packet that has none (a pcapng Simple Packet Block)."""

MAX_PACKETS: Final = 1 << 15
"""Packets of one block at most."""

MAX_PACKET_BYTES: Final = 1 << 18
"""What libpcap writes at most for one packet; a header that says more is believed only if the
file's snaplen does.
"""


@dataclass(frozen=True, slots=True)
class PacketBlock:
    """Packets `first`, `first + 1`, ... of a file.

    position: offset in the (uncompressed) file of data[0]. ts: nanoseconds since the epoch, or
    NO_TIME.
    link: the link type of each packet (LINKTYPE_ registry); -1 where the file does not say.
    """

    data: bytes
    position: int
    first: int
    ts: Ints
    start: Ints
    captured: Ints
    original: Ints
    link: Ints

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: slice) -> PacketBlock:
        """Take a stretch of the packets; the slice has step 1."""
        return PacketBlock(
            self.data,
            self.position,
            self.first + rows.indices(len(self))[0],
            self.ts[rows],
            self.start[rows],
            self.captured[rows],
            self.original[rows],
            self.link[rows],
        )


class CaptureDecoder(Protocol):
    """Bytes of a capture file in, packet blocks out, as far as the bytes go.

    problems: what could not be read so far, in file order; they are values, reading goes on where
    it can.
    """

    problems: list[CaptureError]

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Take the next bytes of the file; exhaust the iterator before feeding again."""

    def finish(self) -> Iterator[PacketBlock]:
        """Take note that the file ends here."""


def kinds(values: npt.NDArray[np.integer[Any]]) -> list[int]:
    """List the values that occur, ascending. Mostly there is one; `np.unique` hashes all the same,
    and loads what it knows of masked arrays.
    """
    if not len(values):
        return []
    if (values == values[0]).all():
        return [int(values[0])]
    return sorted(set(values.tolist()))


def take_rows(data: bytes, at: Ints, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Copy a structure of `dtype` from each offset of `data`; every one must lie inside."""
    size = dtype.itemsize
    if not len(at):
        return np.empty(0, dtype)
    octets = np.frombuffer(data, np.uint8)
    windows = np.lib.stride_tricks.as_strided(
        octets, (len(data) - size + 1, size), (1, 1), writeable=False
    )
    rows = windows.view(f"V{size}")[:, 0]
    return rows[at].view(dtype)
