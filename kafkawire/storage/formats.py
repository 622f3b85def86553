"""Reads and writes Kafka's small files: checkpoints, properties, producer snapshots.

A file is replaced as a whole (`disk.replace`), so a crash leaves the old or the new content;
reading is that of `kafkawire.log`, and what it reports as an error raises CorruptFile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, TypeVar

from ..log import FileKind, Finding, LeaderEpoch, LogFile, PartitionOffset, ProducerState, Property
from ..log.producers import COUNT, ENTRY, HEAD, VERSION, read_producer_snapshot
from ..log.texts import read_leader_epochs, read_offsets, read_partition_metadata, read_properties
from ..protocol.json_form import uuid_bytes, uuid_text
from ..records.checksum import crc32c
from .disks.disk import Disk, join, read_whole, replace
from .errors import CorruptFile
from .names import (
    CLEAN_SHUTDOWN,
    CLOSED_SEGMENTS,
    LEADER_EPOCHS,
    META_PROPERTIES,
    MOVE_GENERATION,
    PARTITION_METADATA,
    TopicPartition,
)

ROW = TypeVar("ROW", PartitionOffset, LeaderEpoch, ProducerState, Property, covariant=True)
CHECKPOINT_VERSION: Final = 0
META_VERSION: Final = 1
UNKNOWN_BROKER_EPOCH: Final = -1
ESCAPED: Final = str.maketrans({each: f"\\{each}" for each in ":=#!\\"})


class EpochEntry(NamedTuple):
    """The start offset of a leader epoch."""

    epoch: int
    start_offset: int


class MetaProperties(NamedTuple):
    """What meta.properties says of a log directory. directory_id: 16 bytes; None before 3.7."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None


class _Reader(Protocol[ROW]):
    def __call__(
        self, file: LogFile, stream: BinaryIO, *, verify: bool = True
    ) -> Iterator[ROW | Finding]: ...


def _rows(disk: Disk, path: str, kind: FileKind, read: _Reader[ROW]) -> list[ROW]:
    """Read all rows of a file; raise CorruptFile at the first error."""
    file = LogFile(Path(path), kind, None, None, None)
    rows: list[ROW] = []
    for entry in read(file, BytesIO(read_whole(disk, path))):
        if not isinstance(entry, Finding):
            rows.append(entry)
        elif entry.is_error:
            raise CorruptFile(path, entry.text)
    return rows


def _checkpoint(lines: Sequence[str]) -> bytes:
    return "".join(
        f"{line}\n" for line in (str(CHECKPOINT_VERSION), str(len(lines)), *lines)
    ).encode()


# -- checkpoints


def read_offset_checkpoint(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Read offsets of partitions; none if there is no file."""
    if not disk.exists(path):
        return {}
    rows = _rows(disk, path, FileKind.OFFSETS, read_offsets)
    return {TopicPartition(row.topic, row.partition): row.offset for row in rows}


def write_offset_checkpoint(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Write offsets of partitions."""
    lines = [f"{key.topic} {key.partition} {offset}" for key, offset in offsets.items()]
    replace(disk, path, _checkpoint(lines))


def read_epoch_checkpoint(disk: Disk, folder: str) -> list[EpochEntry]:
    """Read the leader epochs of a partition; none if there is no file."""
    path = join(folder, LEADER_EPOCHS)
    if not disk.exists(path):
        return []
    rows = _rows(disk, path, FileKind.LEADER_EPOCHS, read_leader_epochs)
    return [EpochEntry(row.epoch, row.start_offset) for row in rows]


def write_epoch_checkpoint(disk: Disk, folder: str, epochs: Iterable[EpochEntry]) -> None:
    """Write the leader epochs of a partition."""
    lines = [f"{each.epoch} {each.start_offset}" for each in epochs]
    replace(disk, join(folder, LEADER_EPOCHS), _checkpoint(lines))


# -- keys and values


def _values(disk: Disk, path: str, kind: FileKind, read: _Reader[Property]) -> dict[str, str]:
    return {row.key: row.value for row in _rows(disk, path, kind, read)}


def read_partition_metadata_file(disk: Disk, folder: str) -> bytes | None:
    """Read the topic id of a partition, 16 bytes; None if there is no file."""
    path = join(folder, PARTITION_METADATA)
    if not disk.exists(path):
        return None
    values = _values(disk, path, FileKind.PARTITION_METADATA, read_partition_metadata)
    try:
        return uuid_bytes(values["topic_id"])
    except (KeyError, ValueError):
        raise CorruptFile(path, "topic_id is missing or invalid") from None


def write_partition_metadata_file(disk: Disk, folder: str, topic_id: bytes) -> None:
    """Write the topic id of a partition."""
    text = f"version: {CHECKPOINT_VERSION}\ntopic_id: {uuid_text(topic_id)}"
    replace(disk, join(folder, PARTITION_METADATA), text.encode())


def read_meta_properties(disk: Disk) -> MetaProperties | None:
    """Read meta.properties; None if there is no file."""
    if not disk.exists(META_PROPERTIES):
        return None
    values = _values(disk, META_PROPERTIES, FileKind.PROPERTIES, read_properties)
    node = values.get("node.id", values.get("broker.id", ""))
    if "cluster.id" not in values or not _is_number(node):
        raise CorruptFile(META_PROPERTIES, "cluster.id or node.id is missing or invalid")
    directory = values.get("directory.id")
    try:
        directory_id = None if directory is None else uuid_bytes(directory)
    except ValueError as error:
        raise CorruptFile(META_PROPERTIES, f"directory.id: {error}") from None
    return MetaProperties(values["cluster.id"], int(node), directory_id)


def write_meta_properties(disk: Disk, meta: MetaProperties) -> None:
    """Write meta.properties of version 1."""
    values = {
        "version": str(META_VERSION),
        "cluster.id": meta.cluster_id,
        "node.id": str(meta.node_id),
    }
    if meta.directory_id is not None:
        values["directory.id"] = uuid_text(meta.directory_id)
    text = "".join(f"{key}={value.translate(ESCAPED)}\n" for key, value in values.items())
    replace(disk, META_PROPERTIES, text.encode())


def _is_number(text: str, most: int = 2**31 - 1) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(most))


def read_move_generation(disk: Disk, folder: str) -> int:
    """Read the number of a log among the copies that moves leave; 0 without one."""
    path = join(folder, MOVE_GENERATION)
    text = read_whole(disk, path).decode("latin-1").strip() if disk.exists(path) else "0"
    if not _is_number(text, 2**63 - 1):
        raise CorruptFile(path, "not a number")
    return int(text)


def write_move_generation(disk: Disk, folder: str, generation: int) -> None:
    """Write the number of a log among the copies that moves leave."""
    replace(disk, join(folder, MOVE_GENERATION), b"%d\n" % generation)


# -- clean shutdown


def write_clean_shutdown(disk: Disk, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
    """Mark that all logs of a log directory were closed."""
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace(disk, CLEAN_SHUTDOWN, text.encode())


def read_clean_shutdown(disk: Disk) -> int | None:
    """Return the broker epoch of the marker of a clean shutdown; None without a marker."""
    if not disk.exists(CLEAN_SHUTDOWN):
        return None
    try:
        content: Any = json.loads(read_whole(disk, CLEAN_SHUTDOWN))
        epoch = int(content["brokerEpoch"])
    except (ValueError, TypeError, KeyError, RecursionError):
        epoch = UNKNOWN_BROKER_EPOCH  # that of Kafka before 3.7 is empty
    return epoch


def remove_clean_shutdown(disk: Disk) -> None:
    """Remove the marker of a clean shutdown: logs are about to change."""
    if disk.exists(CLEAN_SHUTDOWN):
        disk.delete(CLEAN_SHUTDOWN)
        disk.fsync_directory("")


def write_closed_segments(disk: Disk, broker_epoch: int, sizes: Mapping[str, int]) -> None:
    """Write the path and the size of each segment, before the marker of a clean shutdown."""
    content = {"brokerEpoch": broker_epoch, "sizes": dict(sizes)}
    replace(disk, CLOSED_SEGMENTS, json.dumps(content, separators=(",", ":")).encode())


def read_closed_segments(disk: Disk, broker_epoch: int) -> dict[str, int]:
    """Read the sizes of segments at a clean shutdown; none if they are of another one.

    Raises CorruptFile.
    """
    if not disk.exists(CLOSED_SEGMENTS):
        return {}
    try:
        content: Any = json.loads(read_whole(disk, CLOSED_SEGMENTS))
        sizes = {str(path): int(size) for path, size in content["sizes"].items()}
        return sizes if content["brokerEpoch"] == broker_epoch else {}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFile(CLOSED_SEGMENTS, f"invalid: {error}") from None


# -- producer snapshots


def read_snapshot(disk: Disk, path: str) -> list[ProducerState]:
    """Read a producer snapshot."""
    return _rows(disk, path, FileKind.PRODUCER_SNAPSHOT, read_producer_snapshot)


def write_snapshot(disk: Disk, path: str, producers: Iterable[ProducerState]) -> None:
    """Write a producer snapshot."""
    entries = [ENTRY.pack(*producer[1:]) for producer in producers]
    body = COUNT.pack(len(entries)) + b"".join(entries)
    replace(disk, path, HEAD.pack(VERSION, crc32c(body, 0, len(body))) + body)
