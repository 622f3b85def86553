"""Orders the files of each set, and lists their parts.

The files of a set are ordered by the time of their first packet, then by name, in whatever
order they were given. Plain small files are only columns.

    SmallFiles | OpenedInputs --sets, times, names--> OrderedFiles --proofs--> Parts
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...capture.files.columns import Ints
from ..options import Sets
from ..splitting import Proof
from ..splitting.file_list import FileList, Indexes
from .opening import OpenedInput
from .part_columns import NO_HEADER, Mostly, Parts
from .parts import Part
from .small_files import SmallFiles
from .verdicts import OK, Verdict


@dataclass(frozen=True, eq=False)
class OrderedFiles:
    """Files by set and in order.

    sets: of each file. small: its row in `columns`, or -1. opened: index -> a file that was opened
    on its own.
    """

    files: FileList
    sets: array[int]
    small: Indexes
    columns: SmallFiles
    opened: dict[int, OpenedInput]

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdicts of the files before they are read."""
        return self.judged({file: each.verdict for file, each in self.opened.items()})

    def judged(self, verdicts: dict[int, Verdict]) -> Sequence[Verdict]:
        """Return the verdicts of all files. verdicts: of those that were opened on their own."""
        return Mostly(
            len(self.files), OK, {file: each for file, each in verdicts.items() if each != OK}
        )

    def unproven(self, *, whole: bool) -> Parts:
        """List the parts as they were cut. whole: files are not cut."""
        parts = {
            file: [Part(file, self.sets[file], split) for split in each.splits]
            for file, each in self.opened.items()
        }
        cut_parts, _ = self._parts(parts, whole=whole)
        return cut_parts

    def proven(self, proofs: Sequence[Proof]) -> tuple[Parts, Indexes]:
        """List the proven parts.

        Also returns the place of each part's index: its row in `columns`, or behind those.
        """
        by_name: dict[str, list[tuple[int, Proof]]] = {}
        for place, proof in enumerate(proofs, len(self.columns.rows)):
            by_name.setdefault(proof.split.file.name, []).append((place, proof))
        parts: dict[int, list[Part]] = {}
        places: list[int] = []
        for file, each in self.opened.items():
            candidates = by_name.get(each.file.name, [])
            packets = sum(proof.packets for _, proof in candidates)
            parts[file] = [
                Part(file, self.sets[file], proof.split, packets) for _, proof in candidates
            ]
            places += [place for place, _ in candidates]
        listed, rows = self._parts(parts, whole=False)
        rows[listed.header == NO_HEADER] = places
        return listed, rows

    def _parts(self, others: dict[int, list[Part]], *, whole: bool) -> tuple[Parts, Indexes]:
        """List parts, with the row of each in `columns`. others: those of files without a row."""
        counts = (self.small >= 0).astype(np.int32)
        for index, parts in others.items():
            counts[index] = len(parts)
        file = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        rows = self.small[file]
        plain = rows >= 0
        header = np.full(len(rows), NO_HEADER, np.int32)
        header[plain] = 0 if whole else self.columns.header[rows[plain]]
        packets = np.zeros(len(rows), np.int32)
        if not whole:
            packets[plain] = self.columns.packets[rows[plain]]
        places = np.flatnonzero(~plain).tolist()
        every = [part for parts in others.values() for part in parts]
        headers = (None,) if whole else self.columns.headers
        return Parts(
            self.files,
            self.sets,
            file,
            packets,
            headers,
            header,
            dict(zip(places, every, strict=True)),
        ), rows


def ordered_files(
    files: FileList,
    small: SmallFiles,
    opened: Sequence[tuple[int, OpenedInput]],
    sets: Sets,
) -> OrderedFiles:
    """Order files. opened: those that were opened on their own, each with its index in `files`."""
    rows = np.concatenate([small.rows, np.array([index for index, _ in opened], np.int32)])
    times = np.concatenate([small.first_ns, np.array([each.first_ns for _, each in opened], "q")])
    ranks = set_ranks(files, rows, sets)
    order = np.lexsort((times, ranks))
    order_by_name(order, (ranks, times), files, rows)
    small_rows = np.where(order < len(small.rows), order, -1).astype(np.int32)
    own = np.flatnonzero(small_rows < 0).tolist()
    return OrderedFiles(
        files.take(rows[order]),
        array("i", ranks[order].tobytes()),
        small_rows,
        small,
        {index: opened[int(order[index]) - len(small.rows)][1] for index in own},
    )


def set_ranks(files: FileList, rows: Indexes, sets: Sets) -> Indexes:
    """Number the sets of files by name."""
    if sets is Sets.ALL:
        return np.zeros(len(rows), np.int32)
    keys = [sets.of(files.names[row]) for row in rows.tolist()]
    numbers = {key: number for number, key in enumerate(sorted({*keys}))}
    return np.array([numbers[key] for key in keys], np.int32)


def order_by_name(order: Ints, keys: tuple[Indexes, Ints], files: FileList, rows: Indexes) -> None:
    """Order files by name where all keys are equal. order: by the keys; it is changed."""
    same = np.ones(max(len(order) - 1, 0), bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    for start, end in edges.reshape(-1, 2).tolist():
        tied = order[start : end + 1].tolist()
        order[start : end + 1] = sorted(tied, key=lambda each: files.names[int(rows[each])])
