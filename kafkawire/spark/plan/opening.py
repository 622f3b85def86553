"""Opens files for planning: their splits, the time of their first packet, their verdict.

A file that can be opened has splits, whatever its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...capture.files.blocks import NO_TIME
from ..errors import Unreadable
from ..splitting import Edge, InputFile, Split, plan, read
from ..splitting.file_list import FileList, Indexes
from . import verdicts
from .verdicts import FileStatus, SkippedInput, Verdict


class OpenedInput(NamedTuple):
    """An opened file.

    first_ns: time of the first packet, or NO_TIME; problem: why there is no packet. verdict: OK
    until more is read, unless the file is refused. A file that cannot be opened has no splits.
    """

    file: InputFile
    splits: list[Split]
    first_ns: int
    problem: str | None
    verdict: Verdict = verdicts.OK


def open_input(
    file: InputFile, size: int | None, *, walk: bool, lenient: bool = False
) -> OpenedInput:
    """Open a file and cut it into splits of `size` bytes (None: one split).

    walk: as in `splitting.plan`, for local files. lenient: a missing file, or one without
    permission, gets no splits. Raises OSError.
    """
    try:
        splits = [as_one(file)] if size is None else plan(file, size, walk=None if walk else False)
        first_ns, problem = first_packet_time(splits)
        verdict = verdicts.of_head(file) if first_ns == NO_TIME else verdicts.OK
    except (FileNotFoundError, PermissionError) as error:
        if not lenient:
            raise
        return OpenedInput(file, [], NO_TIME, str(error), verdicts.of_error(error))
    return OpenedInput(file, splits, first_ns, problem, verdict)


def as_one(file: InputFile) -> Split:
    """Return a split for the whole file."""
    return Split(file, whole=True, start=Edge(0), first=1)


def first_packet_time(splits: Sequence[Split]) -> tuple[int, str | None]:
    """Return the time of the first packet of a file, or NO_TIME and the problem."""
    problem_text = None
    for split in splits:
        reading = read(split)
        for block in reading:
            if len(block):
                return int(block.ts[0]), None
        problem_text = next(map(str, reading.proof.problems), problem_text)
    return NO_TIME, problem_text


class Chosen(NamedTuple):
    """The files to read that are not plain, each with its index, and the inputs to skip."""

    readable: list[tuple[int, OpenedInput]]
    skipped: list[SkippedInput]


def choose_files(
    files: FileList, plain: Indexes, opened: Iterable[tuple[int, OpenedInput]], *, lenient: bool
) -> Chosen:
    """Choose the files to read; lenient: refused files are skipped.

    plain: indexes of files that are read. A directory whose files are all ignored gets an entry of
    its own among the skipped inputs.
    """
    chosen = Chosen([], [])
    directories = [each.directory for each in files.origins]
    present = np.unique(files.codes).tolist()
    ignored = {directories[code]: True for code in present}
    ignored |= {directories[code]: False for code in np.unique(files.codes[plain]).tolist()}
    for row, each in opened:
        is_ignored = each.verdict.status is FileStatus.IGNORED
        ignored[each.file.directory] &= is_ignored
        if is_ignored or (lenient and each.verdict.refused):
            file = each.file if each.splits else None
            chosen.skipped.append(SkippedInput(each.file.name, each.verdict, file))
        else:
            chosen.readable.append((row, each))
    nothing = Verdict(FileStatus.UNREADABLE, "a directory without captures", None, 1)
    chosen.skipped[:0] = [
        SkippedInput(name, nothing) for name, all_of_it in ignored.items() if name and all_of_it
    ]
    return chosen


def raise_first(readable: Iterable[OpenedInput], skipped: Iterable[SkippedInput]) -> None:
    """Raise Unreadable for the first refused input (`failOnError`).

    Without one, for the first damaged file without packets.
    """
    for name, verdict, _ in skipped:
        if verdict.refused:
            raise Unreadable(name, str(verdict))
    for each in readable:
        if each.problem is not None:
            raise Unreadable(each.file.name, each.problem)
