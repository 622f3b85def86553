"""Names of files and directories in a log directory, as Kafka's.

topic-3/00000000000000000042.log .index .timeindex .txnindex .snapshot
*.deleted: about to be deleted   *.cleaned: being compacted   *.swap: about to replace segments
topic-3.<32 hexadecimal digits>-delete: a partition that is being deleted
topic-3.<32 hexadecimal digits>-future: a partition that is being moved to this log directory
topic-3.<32 hexadecimal digits>-stray: a partition that the metadata does not have; it is kept
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .disks.disk import join

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
INDEXES: Final = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETE_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"

LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"
MOVE_GENERATION: Final = "move-generation"
"""Not Kafka's: of two copies of a log, the one with the higher number is valid."""
CLOSED_SEGMENTS: Final = "closed-segments"
"""Not Kafka's: the sizes of all segments at a clean shutdown."""
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"

CLUSTER_METADATA: Final = "__cluster_metadata"
"""The topic whose log belongs to the quorum, not to the broker."""
LONGEST_NAME: Final = 255
LONGEST_TOPIC: Final = 249
_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]+)-(0|[1-9][0-9]{0,9})")
_FUTURE: Final = re.compile(rf"(.+)\.[0-9a-f]{{32}}{FUTURE_DIRECTORY}")
_NUMBERED: Final = re.compile(r"([0-9]{20})(\.[a-z]+)(\.[a-z]+)?")


class TopicPartition(NamedTuple):
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class NumberedName(NamedTuple):
    """A file name with an offset: its suffix, and a second one of files that come or go."""

    offset: int
    suffix: str
    state: str


def file_name(folder: str, offset: int, suffix: str) -> str:
    """Return the path of a file with an offset in its name."""
    return join(folder, f"{offset:020}{suffix}")


def numbered(name: str) -> NumberedName | None:
    """Parse a file name with an offset; None for others."""
    match = _NUMBERED.fullmatch(name)
    return None if match is None else NumberedName(int(match[1]), match[2], match[3] or "")


def partition_of(name: str) -> TopicPartition | None:
    """Parse the name of a partition's directory; None for others."""
    match = _PARTITION.fullmatch(name)
    if match is None or len(match[1]) > LONGEST_TOPIC or match[1] in (".", ".."):
        return None
    return TopicPartition(match[1], int(match[2]))


def future_of(name: str) -> TopicPartition | None:
    """Parse the name of the directory of a future log; None for others."""
    match = _FUTURE.fullmatch(name)
    return None if match is None else partition_of(match[1])
