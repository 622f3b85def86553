"""Finds the connections of plain packets of a pcap; the numpy version of `plain_packets.c`.

Both find the same connections, with hashes as of the parsed segments. Only plain packets are
looked at: TCP over IPv4 over Ethernet (`header_hashes`); the numbers of the others are returned.

    data, offsets of packet headers --> connections: hash, bytes, first packet, SYNs | others
                              `--ids--> packets of these connections                | others
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...capture.files.columns import Ints, take_rows
from .header_hashes import header_sums, is_syn, plain_rows
from .packets import Hashes, finish_hashes, is_among


def sum_connections(
    data: bytes, offsets: bytes, header: int, big: bool, set: int
) -> tuple[bytes, bytes]:
    """Sum the packets of each connection, some of them in several parts.

    offsets: of packet headers of `header` bytes, as int64. big: whether these are big-endian.
    Returns four int64 for each connection: its hash, captured bytes, first packet (2 * row, plus 1
    unless it is a SYN), number of SYNs; and the rows of packets that are not plain.
    """
    plain, heads, ids, captured = _plain(data, offsets, header, big, set)
    syn = is_syn(heads["flags"])
    columns = [ids.view(np.int64), captured, 2 * np.flatnonzero(plain) + ~syn, syn.astype(np.int64)]
    return np.stack(columns, axis=1).tobytes(), np.flatnonzero(~plain).tobytes()


def select_packets(
    data: bytes, offsets: bytes, header: int, big: bool, set: int, ids: bytes
) -> tuple[bytes, bytes, bytes]:
    """Select the packets of some connections, sorted hashes.

    Returns their offsets, their rows, and the rows of packets that are not plain.
    """
    plain, _, connections, _ = _plain(data, offsets, header, big, set)
    rows = np.flatnonzero(plain)[is_among(np.frombuffer(ids, np.uint64), connections)]
    selected = np.frombuffer(offsets, np.int64)[rows]
    return selected.tobytes(), rows.tobytes(), np.flatnonzero(~plain).tobytes()


def _plain(
    data: bytes, offsets: bytes, header: int, big: bool, set: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.void], Hashes, Ints]:
    """Return which packets are plain; and their headers, connections and captured bytes."""
    starts = np.frombuffer(offsets, np.int64)
    length = np.dtype([("captured", ">u4" if big else "<u4")])
    captured = take_rows(data, starts + 8, length)["captured"].astype(np.int64)
    plain, heads = plain_rows(data, starts + header, captured)
    return plain, heads, finish_hashes(header_sums(heads), set), captured[plain]
