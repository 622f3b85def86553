"""Recognises files of a broker's log directory by their name and their directory's name.

Names are Kafka's: index files have no magic number. A segment that was copied under another name
is recognised by its first batch.

    topic-3/00000000000000000042.log            record batches, base offset 42
                                .index .timeindex .txnindex
                                .snapshot        producer state up to offset 42
            leader-epoch-checkpoint  partition.metadata
    __cluster_metadata-0/00000000000000000042-0000000007.checkpoint      metadata snapshot: record
    batches *-offset-checkpoint  meta.properties  bootstrap.checkpoint
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from ..magic_numbers import BATCH_HEADER, is_log_segment
from ..protocol.log_types import TOPICS, InternalLog


class FileKind(StrEnum):
    """Kinds of files in a log directory."""

    SEGMENT = "segment"
    METADATA_SNAPSHOT = "metadata-snapshot"
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    TRANSACTION_INDEX = "transaction-index"
    PRODUCER_SNAPSHOT = "producer-snapshot"
    LEADER_EPOCHS = "leader-epochs"
    OFFSETS = "offsets"
    PARTITION_METADATA = "partition-metadata"
    PROPERTIES = "properties"
    QUORUM_STATE = "quorum-state"


RECORD_BATCH_KINDS: Final = frozenset({FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT})
"""Kinds that hold record batches."""

_NAMES: Final = (
    (re.compile(r"(?:(\d{20})|.*)\.log"), FileKind.SEGMENT),
    (re.compile(r"(?:(\d{20})-\d{10}|bootstrap)\.checkpoint"), FileKind.METADATA_SNAPSHOT),
    (re.compile(r"(?:(\d{20})|.*)\.index"), FileKind.OFFSET_INDEX),
    (re.compile(r"(?:(\d{20})|.*)\.timeindex"), FileKind.TIME_INDEX),
    (re.compile(r"(?:(\d{20})|.*)\.txnindex"), FileKind.TRANSACTION_INDEX),
    (re.compile(r"(?:(\d{20})|.*)\.snapshot"), FileKind.PRODUCER_SNAPSHOT),
    (re.compile(r"leader-epoch-checkpoint()"), FileKind.LEADER_EPOCHS),
    (re.compile(r"[a-z-]+-offset-checkpoint()"), FileKind.OFFSETS),
    (re.compile(r"partition\.metadata()"), FileKind.PARTITION_METADATA),
    (re.compile(r"meta\.properties()"), FileKind.PROPERTIES),
    (re.compile(r"quorum-state()"), FileKind.QUORUM_STATE),
)
MAX_INT64: Final = 0x7FFF_FFFF_FFFF_FFFF
_TRANSIENT_SUFFIX: Final = re.compile(r"\.(?:deleted|cleaned|swap|part|tmp)$")
"""Suffixes of files that Kafka is about to delete or to rename."""

_PARTITION: Final = re.compile(r"(.+)-(\d+)(?:\.[0-9a-zA-Z_-]+-(?:delete|future|stray))?")

EMPTY_MARKERS: Final = frozenset(
    {".lock", ".kafka_cleanshutdown", "closed-segments", "move-generation"}
)
"""Marker files of Kafka without content, and files of kafkawire's nodes about its log files."""


class LogFile(NamedTuple):
    """A file and its kind.

    base_offset: the offset in its name, if any.
    topic, partition: those of its directory; None if it is not a partition directory.
    """

    path: Path
    kind: FileKind
    base_offset: int | None
    topic: str | None
    partition: int | None

    @property
    def log(self) -> InternalLog | None:
        """Which of Kafka's internal logs the file belongs to; None for any other topic."""
        if self.kind is FileKind.METADATA_SNAPSHOT:
            return InternalLog.METADATA
        return None if self.topic is None else TOPICS.get(self.topic)

    @property
    def is_active(self) -> bool:
        """Whether this is the last segment of its directory: Kafka may still append to it."""
        if self.base_offset is None:
            return True
        siblings = (recognise(path) for path in self.path.parent.glob("*.log"))
        return not any(
            other is not None
            and other.base_offset is not None
            and other.base_offset > self.base_offset
            for other in siblings
        )

    @property
    def segment(self) -> Path:
        """The segment of an index."""
        name = _TRANSIENT_SUFFIX.sub("", self.path.name)
        rest = self.path.name[len(name) :]
        return self.path.with_name(Path(name).stem + ".log" + rest)


def recognise(path: Path) -> LogFile | None:
    """Recognise a file by its name; None if it is not a Kafka file name."""
    name = _TRANSIENT_SUFFIX.sub("", path.name)
    folder = _PARTITION.fullmatch(path.absolute().parent.name)
    topic, partition = (folder[1], int(folder[2])) if folder else (None, None)
    for pattern, kind in _NAMES:
        match = pattern.fullmatch(name)
        if match is not None:
            return LogFile(path, kind, _offset(match[1]), topic, partition)
    return None


def recognise_segment(path: Path) -> LogFile | None:
    """Recognise a segment by its first batch, whatever its name; None if it is none.

    Raises OSError.
    """
    with path.open("rb") as file:
        head = file.read(BATCH_HEADER.size)
    return LogFile(path, FileKind.SEGMENT, None, None, None) if is_log_segment(head) else None


def _offset(digits: str | None) -> int | None:
    """Parse the offset in a name; None if missing or larger than int64."""
    offset = int(digits) if digits else None
    return None if offset is not None and offset > MAX_INT64 else offset


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files under a directory, sorted by name, its own files before subdirectories."""
    entries = sorted(folder.iterdir())
    yield from (path for path in entries if path.is_file() and path.name not in EMPTY_MARKERS)
    for path in entries:
        if path.is_dir() and not path.is_symlink():
            yield from walk(path)
