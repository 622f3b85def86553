"""Finds the finished files of a directory, those that nobody writes to any more.

A file is taken when the rule says that it is finished, never before. Hidden files, and names
of unfinished files, are ignored.

    next      a newer file of the same rotation exists            (tcpdump -C/-G, dumpcap -b)
    still     its size and time did not change for some time
    renamed   every file: files are written elsewhere and renamed into the directory
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

from ..splitting import InputFile, inputs

UNFINISHED: Final = (".tmp", ".temp", ".part", ".partial", ".filepart", ".lock")
"""Suffixes of files that are being written."""


class Finished(StrEnum):
    """The rules, see the module."""

    NEXT = "next"
    STILL = "still"
    RENAMED = "renamed"


class Arrivals:
    """A directory in which captures arrive. clock: seconds, only used by `still`.

    unfinished: how many files were not finished when they were listed last.
    """

    def __init__(
        self, directory: Path, rule: Finished, still_seconds: float, clock: Callable[[], float]
    ) -> None:
        self._directory = directory
        self._rule = rule
        self._still = still_seconds
        self._clock = clock
        self._seen: dict[str, tuple[int, int | None, float]] = {}
        self.unfinished = 0

    def finished(self, *, all: bool = False) -> list[InputFile]:
        """List the finished files; all: every file, as nobody writes any more. Raises OSError."""
        files = self._files()
        complete = files
        if self._rule is not Finished.RENAMED and not all:
            complete = followed(files) if self._rule is Finished.NEXT else self._unchanged(files)
        self.unfinished = len(files) - len(complete)
        return complete

    def _files(self) -> list[InputFile]:
        if not any(self._directory.iterdir()):
            return []
        try:
            files = inputs([self._directory])
        except FileNotFoundError:
            if self._directory.is_dir():
                return []  # only hidden files, or a file was deleted meanwhile
            raise
        return [file for file in files if not file.name.lower().endswith(UNFINISHED)]

    def _unchanged(self, files: Iterable[InputFile]) -> list[InputFile]:
        now, before, self._seen = self._clock(), self._seen, {}
        unchanged = []
        for file in files:
            size, modified, since = before.get(file.name, (-1, None, now))
            if (size, modified) != (file.size, file.modified_ns):
                since = now
            self._seen[file.name] = file.size, file.modified_ns, since
            if now - since >= self._still:
                unchanged.append(file)
        return unchanged


def followed(files: Iterable[InputFile]) -> list[InputFile]:
    """List the files that are followed by a newer one of their rotation."""
    newest: dict[str, tuple[int, list[str | int]]] = {}
    for file in files:
        rotation = rotation_of(file)
        newest[rotation] = max(age(file), newest.get(rotation, (-1, [])))
    return [file for file in files if age(file) < newest[rotation_of(file)]]


def rotation_of(file: InputFile) -> str:
    """Return the rotation of a file: its name without numbers."""
    return re.sub(r"\d+", "", Path(file.name).name)


def age(file: InputFile) -> tuple[int, list[str | int]]:
    """Return the sort key within a rotation: modification time, then the numbers in the name."""
    return file.modified_ns or 0, [int(n) for n in re.findall(r"\d+", Path(file.name).name)]
