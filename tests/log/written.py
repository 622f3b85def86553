"""Writes log directories in Kafka's layout, for tests to read and to corrupt."""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from kafkawire.log import Finding, LogFile, Row, read, recognise
from kafkawire.messages import REGISTRY
from kafkawire.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
from kafkawire.protocol.log_records import encode_log_message
from kafkawire.records import (
    BatchBuilder,
    Compression,
    ControlType,
    MessageSetBuilder,
    control_key,
    end_txn_batch,
)
from kafkawire.records.checksum import crc32c

INDEX_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
ABORTED: Final = Struct(">hqqqq")
BASE: Final = 100
TIME: Final = 1_700_000_000_000
TOPIC_ID: Final = "6r4OqGvRQuqoXHZ3uRtXbg"


class Batch(NamedTuple):
    """A written batch."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    data: bytes


class Partition(NamedTuple):
    """A partition directory and the batches of its segment."""

    folder: Path
    batches: list[Batch]

    def file(self, suffix: str) -> Path:
        """Return the path of the segment's file with that suffix."""
        return self.folder / f"{BASE:020}.{suffix}"

    @property
    def segment(self) -> Path:
        return self.file("log")


def batch(
    offset: int,
    count: int = 3,
    codec: Compression = Compression.NONE,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Write a batch of magic 2 with `count` records."""
    builder = BatchBuilder(
        base_offset=offset,
        compression=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    for i in range(count):
        builder.append(b"key %d" % (offset + i), b"value", TIME + offset + i, (("h", b"x"),))
    return builder.build()


def old(offset: int, magic: int, codec: Compression = Compression.NONE) -> bytes:
    """Write messages of magic 0 or 1: three, or one that wraps them."""
    messages = MessageSetBuilder(magic, base_offset=offset, compression=codec)
    for i in range(3):
        messages.append(b"key", b"value %d" % i, TIME + offset + i)
    return messages.build()


def partition(folder: Path, count: int = 12) -> Partition:
    """Write a partition with all files of a broker."""
    folder.mkdir(parents=True)
    made = []
    position = 0
    for n in range(count):
        offset = BASE + 4 * n
        data = batch(offset, 3, list(Compression)[n % 5], producer_id=7, producer_epoch=0)
        made.append(Batch(position, offset, offset + 2, TIME + offset + 2, data))
        position += len(data)
    written = Partition(folder, made)
    written.segment.write_bytes(b"".join(each.data for each in made))
    write_indexes(written)
    written.file("txnindex").write_bytes(
        ABORTED.pack(0, 7, 100, 106, 100) + ABORTED.pack(0, 8, 108, 114, 110)
    )
    written.file("snapshot").write_bytes(snapshot())
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 100\n3 120\n")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    return written


def write_indexes(written: Partition) -> None:
    """Index every third batch, and preallocate space as Kafka does."""
    every = written.batches[3::3]
    index = b"".join(INDEX_ENTRY.pack(b.last_offset - BASE, b.position) for b in every)
    written.file("index").write_bytes(index + bytes(800))
    times = b"".join(TIME_ENTRY.pack(b.max_timestamp, b.last_offset - BASE) for b in every)
    written.file("timeindex").write_bytes(times + bytes(1200))


def snapshot() -> bytes:
    """Write a producer snapshot of two producers."""
    message = ProducerSnapshot(
        producer_entries=[
            ProducerEntry(producer_id=7, epoch=1, last_sequence=35, last_offset=146),
            ProducerEntry(producer_id=8, timestamp=TIME, current_txn_first_offset=-1),
        ]
    )
    body = b"\0\x01" + message.encode(1)
    return body[:2] + crc32c(body, 6, len(body)).to_bytes(4, "big") + body[6:]


def transaction_end(offset: int) -> bytes:
    """Write the marker of an aborted transaction."""
    return end_txn_batch(
        False, producer_id=7, producer_epoch=0, coordinator_epoch=3, timestamp=TIME, offset=offset
    )


def metadata_snapshot() -> bytes:
    """Write a snapshot of the metadata log: header, one record, footer."""
    ends = []
    for offset, kind, name in (
        (0, ControlType.SNAPSHOT_HEADER, "SnapshotHeaderRecord"),
        (2, ControlType.SNAPSHOT_FOOTER, "SnapshotFooterRecord"),
    ):
        builder = BatchBuilder(base_offset=offset, control=True)
        builder.append(control_key(kind), REGISTRY.load(name)().encode(0), TIME)
        ends.append(builder.build())
    builder = BatchBuilder(base_offset=1)
    topic = REGISTRY.load("TopicRecord")(name="orders", topic_id=bytes(range(16)))
    builder.append(None, encode_log_message(topic, 0), TIME)
    return ends[0] + builder.build() + ends[1]


def offset_commits() -> bytes:
    """Write a batch of __consumer_offsets: a commit, and the tombstone that removes it."""
    key = encode_log_message(REGISTRY.load("OffsetCommitKey")(group="g", topic="t", partition=1), 0)
    value = encode_log_message(REGISTRY.load("OffsetCommitValue")(offset=42, metadata="m"), 3)
    builder = BatchBuilder(base_offset=BASE)
    builder.append(key, value, TIME)
    builder.append(key, None, TIME)
    return builder.build()


def known(path: Path) -> LogFile:
    """Recognise a file; its name must be known."""
    file = recognise(path)
    assert file is not None, path
    return file


def rows(path: Path, *, verify: bool = True) -> list[Row]:
    """Read the rows of a file without findings."""
    made, found = both(path, verify=verify)
    assert found == []
    return made


def findings(path: Path, *, verify: bool = True) -> list[Finding]:
    """Read the findings of a file."""
    return both(path, verify=verify)[1]


def both(path: Path, *, verify: bool = True) -> tuple[list[Row], list[Finding]]:
    file = known(path)
    made: list[Row] = []
    found: list[Finding] = []
    for each in read(file, file.log, verify=verify):
        if isinstance(each, Finding):
            found.append(each)
        else:
            made.append(each)
    return made, found
