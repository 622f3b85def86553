"""Verdicts of input files: read as a whole, read in part, refused.

Every input has a verdict, the one that `kafkawire decode` gives to the same file.

    ok                                read as a whole
    truncated, corrupt, unsupported   read as far as possible; `problems` has rows for them
    not_a_capture, unreadable         refused and named; the other files are read, exit code 2
    ignored                           found in a directory; neither name nor content of a capture
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ...capture.files.listing import CAPTURE_NAME
from ...capture.files.recognition import HEAD, check_head
from ...errors import (
    CaptureError,
    CorruptCapture,
    TruncatedCapture,
    UnsupportedBlockType,
    UnsupportedLinkType,
)
from ..splitting import InputFile
from ..splitting.stores import Reader, opened

PROBLEMS: Final = "problems"
"""The table whose rows are findings."""


class FileStatus(StrEnum):
    """Status of a file, see the module."""

    OK = "ok"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    UNSUPPORTED = "unsupported"
    NOT_A_CAPTURE = "not_a_capture"
    UNREADABLE = "unreadable"
    IGNORED = "ignored"


REFUSED: Final = frozenset({FileStatus.NOT_A_CAPTURE, FileStatus.UNREADABLE})
"""Statuses that make the exit code 2."""

BY_PROBLEM: Final[tuple[tuple[type[CaptureError], FileStatus], ...]] = (
    (CorruptCapture, FileStatus.CORRUPT),
    (TruncatedCapture, FileStatus.TRUNCATED),
    (UnsupportedLinkType, FileStatus.UNSUPPORTED),
    (UnsupportedBlockType, FileStatus.UNSUPPORTED),
    (CaptureError, FileStatus.CORRUPT),
)
"""Problem -> status; of several problems the first in this order decides."""


class Verdict(NamedTuple):
    """The verdict of a file.

    reason, offset: of the problem that decides; offset: byte of the uncompressed file, or None.
    problems: how many there are.
    """

    status: FileStatus = FileStatus.OK
    reason: str | None = None
    offset: int | None = None
    problems: int = 0

    @property
    def refused(self) -> bool:
        """Whether the file was not read although it was given."""
        return self.status in REFUSED

    def __str__(self) -> str:
        place = "" if self.offset is None else f" (at byte {self.offset})"
        more = f", and {self.problems - 1} more" if self.problems > 1 else ""
        start = "" if self.refused else f"{self.status}: "
        return f"{start}{self.reason}{place}{more}" if self.reason else str(self.status)

    def as_json(self) -> dict[str, Any]:
        """Return the fields for the entry of the manifest."""
        if self.reason is None:
            return {"status": self.status.value}
        return {
            "status": self.status.value,
            "reason": self.reason,
            "offset": self.offset,
            "problems": self.problems,
        }


OK: Final = Verdict()
"""The verdict of a file that was read as a whole, the same object for all of them."""


class SkippedInput(NamedTuple):
    """An input that is not read. file: None if it does not exist or cannot be opened."""

    name: str
    verdict: Verdict
    file: InputFile | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}"


def of_problems(problems: Sequence[CaptureError]) -> Verdict:
    """Return the verdict for the problems that reading a file found."""
    for kind, status in BY_PROBLEM:
        for problem in problems:
            if isinstance(problem, kind):
                return Verdict(status, problem.reason, problem.offset, len(problems))
    return OK


def of_head(file: InputFile) -> Verdict:
    """Return the verdict of a file without packets from its first bytes.

    Raises OSError if it cannot be read.
    """
    try:
        with opened(file) as reader:
            check_head(_parts(reader))
    except CaptureError as error:
        if file.directory and not CAPTURE_NAME.search(file.name):
            return Verdict(FileStatus.IGNORED, error.reason, None, 1)
        return Verdict(FileStatus.NOT_A_CAPTURE, error.reason, None, 1)
    return OK


def _parts(reader: Reader) -> Iterator[bytes]:
    """Read a file from its start, part by part."""
    position = 0
    while part := reader.read(position, HEAD):
        yield part
        position += len(part)


def of_error(error: OSError) -> Verdict:
    """Return the verdict of a file that cannot be opened."""
    return Verdict(FileStatus.UNREADABLE, error.strerror or str(error), None, 1)


def code(*, refused: bool, findings: bool) -> int:
    """Return the exit code: 2 if an input was refused, 1 for findings, else 0."""
    return 2 if refused else int(findings)
