"""Describes errors in files as values.

Content never raises: of a corrupt file, rows are read up to the error, then a finding gives
the position of the error and the violated rule.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple


class Rule(StrEnum):
    """Rules that a finding can violate."""

    # record batches
    BATCH_LENGTH = "batch-length"
    BATCH_HEADER = "batch-header"
    BATCH_SIZE = "batch-size"
    CRC = "crc"
    RECORDS = "records"
    OFFSET_ORDER = "offset-order"
    SEGMENT_OFFSET = "segment-offset"
    RECORD_OFFSETS = "record-offsets"
    CUT = "cut"
    ACTIVE_TAIL = "active-tail"
    TORN_TAIL = "torn-tail"
    ZERO_TAIL = "zero-tail"
    SNAPSHOT_HEADER = "snapshot-header"
    SNAPSHOT_FOOTER = "snapshot-footer"
    # files of entries
    ENTRY_SIZE = "entry-size"
    ENTRY_ORDER = "entry-order"
    VERSION = "version"
    COUNT = "count"
    LINE = "line"
    MISSING = "missing"
    # an index and its segment
    INDEX_POSITION = "index-position"
    INDEX_OFFSET = "index-offset"
    INDEX_BEYOND = "index-beyond"
    TIME_OFFSET = "time-offset"
    TIME_TIMESTAMP = "time-timestamp"
    NO_SEGMENT = "no-segment"
    # around them
    UNKNOWN_FILE = "unknown-file"
    UNREADABLE = "unreadable"


NOTE_RULES: Final = frozenset(
    {Rule.ACTIVE_TAIL, Rule.INDEX_BEYOND, Rule.NO_SEGMENT, Rule.UNKNOWN_FILE}
)
"""Rules whose findings are notes, not errors."""


class Finding(NamedTuple):
    """An error or a note. position: the byte, in a text file the line from 1."""

    file: Path
    position: int
    rule: Rule
    text: str

    @property
    def is_error(self) -> bool:
        """Whether it is an error, not a note."""
        return self.rule not in NOTE_RULES

    def __str__(self) -> str:
        kind = "" if self.is_error else "note: "
        return f"{self.file}:{self.position}: {kind}{self.text} [{self.rule}]"
