"""The connections of all splits as columns: planning does nothing for each split in Python.

Work and memory grow with the number of connections of splits, never with the number of splits
times the number of anything else.

    SmallFiles | SplitIndexes --in the order of the parts--> IndexColumns
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...capture.files.columns import Ints
from ..shuffle.packets import Hashes, finish_hashes
from ..splitting.file_list import Indexes
from .small_files import SmallFiles
from .split_index import SplitIndex


@dataclass(frozen=True)
class IndexColumns:
    """The connections of splits, one split after the other.

    starts: where each split begins in the columns, and the end of the last one. ids, sizes: as in
    SplitIndex. has_problems: of each split. fragments: whether any split has IP fragments.
    """

    starts: Ints
    ids: Hashes
    sizes: Ints
    has_problems: npt.NDArray[np.bool_]
    fragments: bool

    def __len__(self) -> int:
        return len(self.has_problems)

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of the packets of each split."""
        return self.sums(self.sizes)

    def sums(self, values: Ints | npt.NDArray[np.bool_]) -> Ints:
        """Sum the values of the connections of each split."""
        total: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
        return total[self.starts[1:]] - total[self.starts[:-1]]

    def region(self, start: int, end: int) -> tuple[Hashes, Ints]:
        """Return the connections of adjacent splits, and their bytes."""
        rows = slice(int(self.starts[start]), int(self.starts[end]))
        return self.ids[rows], self.sizes[rows]

    def splits_with(self, ids: Hashes) -> Ints:
        """Return the splits that have packets of some connections."""
        order, ordered = self._order
        first = np.searchsorted(ordered, ids, "left")
        rows = order[ranges(first, np.searchsorted(ordered, ids, "right") - first)]
        return np.unique(np.searchsorted(self.starts, rows, "right") - 1)

    @cached_property
    def _order(self) -> tuple[Ints, Hashes]:
        order = np.argsort(self.ids)
        return order, self.ids[order]


def ranges(begins: Ints, counts: Ints) -> Ints:
    """Return the numbers of several ranges, one after the other."""
    before = np.cumsum(counts) - counts
    numbers: Ints = np.repeat(begins - before, counts) + np.arange(int(counts.sum()))
    return numbers


def index_columns(
    small: SmallFiles,
    split_indexes: Sequence[SplitIndex],
    places: Indexes,
    sets: Ints,
) -> IndexColumns:
    """Arrange the connections of splits.

    places: for each split its row in `small`, or, behind those, its place in `split_indexes`. sets:
    of each split.
    """
    which = places
    counts = np.concatenate(
        [small.connections, np.array([len(one.hashes) for one in split_indexes], np.int64)]
    )
    begins = np.cumsum(counts) - counts
    rows = ranges(begins[which], counts[which])
    small_count = len(small.sums)  # the others have the set already
    rows_sets = np.repeat(sets.astype(np.uint64), counts[which])
    ids = np.concatenate([small.sums, *(one.hashes for one in split_indexes)])[rows]
    plain = rows < small_count
    ids[plain] = finish_hashes(ids[plain], rows_sets[plain])
    del rows_sets, plain
    own_sizes = [one.volumes for one in split_indexes]
    sizes = np.concatenate([small.sizes, *own_sizes, np.empty(0, np.int64)])[rows]
    problems = np.zeros(len(counts), bool)
    problems[len(small.connections) :] = [one.has_problems for one in split_indexes]
    starts: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[which])])
    return IndexColumns(
        starts, ids, sizes, problems[which], any(one.fragments for one in split_indexes)
    )
