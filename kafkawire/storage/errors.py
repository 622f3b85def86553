"""Errors of storage: a log directory that failed, files that cannot be used, appends refused."""

from __future__ import annotations

from ..errors import KafkaWireError
from ..protocol import ErrorCode


class StorageError(KafkaWireError):
    """The base of errors of storage."""


class KafkaStorageError(StorageError):
    """A log directory is offline: an operation on its disk failed."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(directory, reason)
        self.directory = directory
        self.reason = reason

    def __str__(self) -> str:
        return f"log directory {self.directory!r} is offline: {self.reason}"


class LogDamaged(KafkaStorageError):
    """The log of a partition could not be loaded: the partition is offline, not its directory."""

    def __str__(self) -> str:
        return f"{self.directory}/{self.reason}"


class LogDirectoryLocked(StorageError):
    """Another process uses a log directory."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.directory = directory

    def __str__(self) -> str:
        return f"log directory {self.directory!r} is in use by another process: .lock is locked"


class LogDirNotFound(StorageError, LookupError):
    """The broker has no log directory of that name."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.directory = directory

    def __str__(self) -> str:
        return f"no log directory {self.directory!r}"


class CorruptFile(StorageError):
    """The content of a file is not what its name says."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class AppendRejected(StorageError):
    """An append breaks a rule of the log. error: the code for the client."""

    def __init__(self, error: ErrorCode, reason: str) -> None:
        super().__init__(error, reason)
        self.error = error
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.error.name}: {self.reason}"


class OffsetOutOfRange(StorageError, LookupError):
    """The offset of a read is outside the log."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(offset, start, end)
        self.offset = offset
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return f"offset {self.offset} is outside {self.start} to {self.end}"
