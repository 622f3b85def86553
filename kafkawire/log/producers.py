"""Reads producer snapshots: the state of idempotent producers of a partition.

Entries are read one by one; a wrong checksum is reported at the end.

    version: int16 (1) | crc: uint32, CRC-32C of what follows | count: int32 | entry*
    entry   the fields of the schema's ProducerEntry
"""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_END
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from ..messages.producer_snapshot import ProducerEntry
from ..protocol.fields import all_fields
from ..records.checksum import crc32c_function
from .files import LogFile
from .findings import Finding, Rule

HEAD: Final = Struct(">hI")
COUNT: Final = Struct(">i")
VERSION: Final = 1
WIDTHS: Final = {"int16": "h", "int32": "i", "int64": "q"}
ENTRY: Final = Struct(">" + "".join(WIDTHS[field.element] for field in all_fields(ProducerEntry)))


class ProducerState(NamedTuple):
    """The last write of a producer. current_txn_first_offset: -1 outside a transaction."""

    entry: int
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def read_producer_snapshot(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[ProducerState | Finding]:
    """Read a .snapshot."""
    size = stream.seek(0, SEEK_END)
    stream.seek(0)
    first = HEAD.size + COUNT.size
    head = stream.read(first)
    if len(head) < first:
        text = f"file of {len(head)} bytes is too short for a producer snapshot"
        yield Finding(file.path, 0, Rule.ENTRY_SIZE, text)
        return
    version, stored = HEAD.unpack_from(head)
    (count,) = COUNT.unpack_from(head, HEAD.size)
    if version != VERSION:
        yield Finding(
            file.path, 0, Rule.VERSION, f"unsupported version {version}, expected {VERSION}"
        )
        return
    crc = crc32c_function()
    computed = crc(head[HEAD.size :])
    number = 0
    while len(raw := stream.read(ENTRY.size)) == ENTRY.size and number < count:
        computed = crc(raw, computed)
        yield ProducerState(number, *ENTRY.unpack(raw))
        number += 1
    if number != count or raw:
        text = f"count of {count} producers, but the file has {(size - first) / ENTRY.size:g}"
        yield Finding(file.path, HEAD.size, Rule.COUNT, text)
    elif verify and computed != stored:
        text = f"checksum mismatch: computed {computed:08x}, stored {stored:08x}"
        yield Finding(file.path, 2, Rule.CRC, text)
