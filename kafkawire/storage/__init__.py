"""The log directories of a broker: logs of partitions on a disk, in Kafka's file formats.

What is flushed survives a crash, and nothing incomplete does; time and ids come in as
arguments. Errors of a disk take a log directory offline, not the broker.

    LogManager -> log directories -> UnifiedLog -> LogSegment -> Disk: FileDisk or MemoryDisk
"""

from .appending import LogAppendInfo
from .cleanup.cleaner_manager import LogToClean, compact, filthiest, log_to_clean
from .cleanup.retention import delete_old_segments
from .config import LogConfig, LogManagerConfig
from .directory_logs import Damaged, Recovered
from .disks.disk import Disk
from .disks.files import FileDisk
from .disks.memory import MemoryDisk
from .disks.memory_file import SharedBytes
from .epochs import EpochEnd
from .errors import (
    AppendRejected,
    CorruptFile,
    KafkaStorageError,
    LogDamaged,
    LogDirectoryLocked,
    LogDirNotFound,
    OffsetOutOfRange,
    StorageError,
)
from .formats import EpochEntry, MetaProperties
from .loader import LogCheckpoint
from .log_manager import LogManager, Stray
from .lookup import FoundOffset, find_offset
from .names import TopicPartition
from .producer_entry import AppendOrigin
from .segment_files.indexes import AbortedTxn
from .unified_log import UnifiedLog

__all__ = [
    "AbortedTxn",
    "AppendOrigin",
    "AppendRejected",
    "CorruptFile",
    "Damaged",
    "Disk",
    "EpochEnd",
    "EpochEntry",
    "FileDisk",
    "FoundOffset",
    "KafkaStorageError",
    "LogAppendInfo",
    "LogCheckpoint",
    "LogConfig",
    "LogDamaged",
    "LogDirNotFound",
    "LogDirectoryLocked",
    "LogManager",
    "LogManagerConfig",
    "LogToClean",
    "MemoryDisk",
    "MetaProperties",
    "OffsetOutOfRange",
    "SharedBytes",
    "Recovered",
    "StorageError",
    "Stray",
    "TopicPartition",
    "UnifiedLog",
    "compact",
    "delete_old_segments",
    "filthiest",
    "find_offset",
    "log_to_clean",
]
