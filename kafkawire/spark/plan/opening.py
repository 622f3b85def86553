"""Opens files to plan their reading: their splits, the time of their first packet, their verdict.

Law: a file that can be opened has splits, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...capture.files.blocks import NO_TIME
from ..errors import Unreadable
from ..splitting import Edge, InputFile, Split, plan, read
from . import verdicts
from .verdicts import FileStatus, SkippedInput, Verdict


class OpenedInput(NamedTuple):
    """A file, its splits, when its first packet was captured (NO_TIME without any), and what is
    wrong if there is none. verdict: OK until more is read, unless the file is refused; without
    splits it cannot be opened.
    """

    file: InputFile
    splits: list[Split]
    first_ns: int
    problem: str | None
    verdict: Verdict = Verdict()


def open_input(
    file: InputFile, size: int | None, *, walk: bool, lenient: bool = False
) -> OpenedInput:
    """Cut a file, where there is a size; walk: as `splitting.plan`, for a local one. lenient: a
    file that may not be read, or is gone, has no splits. Raises OSError.
    """
    try:
        splits = [as_one(file)] if size is None else plan(file, size, walk=None if walk else False)
        first_ns, problem = first_packet_time(splits)
        verdict = verdicts.of_head(file) if first_ns == NO_TIME else Verdict()
    except (FileNotFoundError, PermissionError) as error:
        if not lenient:
            raise
        return OpenedInput(file, [], NO_TIME, str(error), verdicts.of_error(error))
    return OpenedInput(file, splits, first_ns, problem, verdict)


def as_one(file: InputFile) -> Split:
    """Make one split of a file."""
    return Split(file, whole=True, start=Edge(0), first=1)


def first_packet_time(splits: Sequence[Split]) -> tuple[int, str | None]:
    """Say when a file's first packet was captured, or NO_TIME and what is wrong with it."""
    problem_text = None
    for split in splits:
        reading = read(split)
        for block in reading:
            if len(block):
                return int(block.ts[0]), None
        problem_text = next(map(str, reading.proof.problems), problem_text)
    return NO_TIME, problem_text


def choose_files(
    opened: Sequence[OpenedInput], *, lenient: bool
) -> tuple[list[OpenedInput], list[SkippedInput]]:
    """Choose the files that are read; lenient: what is refused is not. A directory in which all is
    ignored has an entry of its own among what is left out.
    """
    readable: list[OpenedInput] = []
    skipped: list[SkippedInput] = []
    ignored: dict[str, bool] = {}
    for each in opened:
        is_ignored = each.verdict.status is FileStatus.IGNORED
        ignored[each.file.directory] = ignored.get(each.file.directory, True) and is_ignored
        if is_ignored or (lenient and each.verdict.refused):
            present = each.file if each.splits else None
            skipped.append(SkippedInput(each.file.name, each.verdict, present))
        else:
            readable.append(each)
    nothing = Verdict(FileStatus.UNREADABLE, "a directory without captures", None, 1)
    empty_directories = [
        SkippedInput(name, nothing) for name, all_of_it in ignored.items() if name and all_of_it
    ]
    return readable, [*empty_directories, *skipped]


def raise_first(readable: Iterable[OpenedInput], skipped: Iterable[SkippedInput]) -> None:
    """Raise Unreadable for the first file without a packet that is damaged, or the first input that
    is refused, if there is any (`failOnError`).
    """
    for name, verdict, _ in skipped:
        if verdict.refused:
            raise Unreadable(name, str(verdict))
    for each in readable:
        if each.problem is not None:
            raise Unreadable(each.file.name, each.problem)
