"""Finishes rows with what only all partitions together know, and filters.

Everything is done column by column, and gives the rows of a single process.

    connection   first packet --> number in order of appearance
    topics       id --> the name stated first, anywhere in the set
    then         rows by topic and `where`; columns by name
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...capture.files.columns import Ints
from ...capture.multifile import FILE_BITS
from ...protocol.json_form import uuid_bytes, uuid_text
from ..decode.columns import Keep
from ..plan.facts import AllFacts

UUID_TEXT: Final = len(uuid_text(bytes(16)))
"""The length of a topic id in text."""

StatedNames: TypeAlias = Mapping[tuple[int, bytes], Mapping[str, int]]
"""Set and topic id -> the names that messages state for it, each with the packet that did first."""


def ints(values: pa.Array) -> Ints:
    """Return integers without nulls for numpy.

    They are not copied. `to_numpy` would import pandas, in each worker.
    """
    size, data = values.type.bit_width // 8, values.buffers()[1]
    if not len(values):
        return np.empty(0, f"i{size}")
    return np.frombuffer(data, f"i{size}", len(values), values.offset * size)


class Finish:
    """Finishes batches of a table.

    schema: of the finished batches. sets: the set of each file. keep: the filter of rows, if any.
    """

    def __init__(
        self,
        facts: AllFacts,
        sets: Sequence[int],
        keep: Keep | None,
        schema: pa.Schema,
    ) -> None:
        self._firsts = facts.firsts
        self.schema = schema
        self._keep = keep
        self._sets = np.array(sets, np.int64)
        # Number of the first connection of each set among the connections of all sets.
        starts = np.searchsorted(self._sets, np.unique(self._sets)) << FILE_BITS
        self._before = np.searchsorted(self._firsts, starts)
        self._several = len(starts) > 1
        self._set_names(facts.names)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Finish batches."""
        return (self.batch(batch) for batch in batches if len(batch))

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Finish one batch."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if "connection" in columns:
            connections = columns["connection"]
            firsts = ints(pc.fill_null(connections, 0))
            sets = self._sets[firsts >> FILE_BITS]
            numbers = np.searchsorted(self._firsts, firsts) - self._before[sets]
            unknown = ints(pc.is_null(connections).cast(pa.int8())).view(bool)
            columns["connection"] = pa.array(numbers, pa.int64(), mask=unknown)
            if len(self._ids):
                self._name(columns, sets)
        finished = pa.RecordBatch.from_arrays(
            [columns[name].cast(self.schema.field(name).type) for name in self.schema.names],
            schema=self.schema,
        )
        return finished if self._keep is None else finished.filter(self._keep(columns))

    # -- topics

    def with_stated(self, batch: pa.RecordBatch, stated: StatedNames) -> Finish | None:
        """Return what finishes a batch with names that one task knows; None if one is missing.

        stated: set and topic id -> the names stated for it.
        """
        ids = {id for each in map(_topic_ids, batch.schema.names, batch.columns) for id in each}
        if not ids or "connection" not in batch.schema.names:
            return self
        firsts = ints(pc.fill_null(batch.column("connection"), 0))
        names: dict[tuple[int, bytes], str] = {}
        for key in product(np.unique(self._sets[firsts >> FILE_BITS]).tolist(), ids):
            stated_names = stated.get(key, {})
            if len(stated_names) != 1:
                return None
            (names[key],) = stated_names
        copied = copy(self)
        copied._set_names(names)
        return copied

    def _set_names(self, names: Mapping[tuple[int, bytes], str]) -> None:
        ids = [self._mark(uuid_text(id), set) for set, id in names]
        self._ids = pa.array(ids, pa.string())
        self._names = pa.array(list(names.values()), pa.string())

    def _mark(self, id: str, set: int) -> str:
        return f"{set}:{id}" if self._several else id

    def _name(self, columns: dict[str, pa.Array], sets: Ints) -> None:
        if "topic" in columns and "topic_id" in columns:
            columns["topic"] = self._known(columns["topic_id"], columns["topic"], sets)
        for name, column in columns.items():
            if not pa.types.is_list(column.type):
                continue
            inside = column.type.value_type
            if pa.types.is_struct(inside) and inside.get_field_index("topic_id") >= 0:
                columns[name] = _inside(column, sets, self._structs)
            elif name == "topics":
                columns[name] = self._listed(column, sets)

    def _known(self, ids: pa.Array, otherwise: pa.Array, sets: Ints) -> pa.Array:
        """Return the names of ids, or `otherwise` for unknown ids."""
        if self._several:
            ids = pc.binary_join_element_wise(pa.array(sets).cast(pa.string()), ids, ":")
        indexes = pc.index_in(ids, self._ids, skip_nulls=True)
        return pc.coalesce(self._names.take(indexes), otherwise)

    def _structs(self, values: pa.Array, sets: Ints) -> pa.Array:
        fields = list(values.type)
        columns = {field.name: pc.struct_field(values, field.name) for field in fields}
        columns["topic"] = self._known(columns["topic_id"], columns["topic"], sets)
        return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)

    def _listed(self, column: pa.Array, sets: Ints) -> pa.Array:
        """Replace ids by names in lists of topics; each name is listed once."""
        named = _inside(column, sets, lambda values, own: self._known(values, values, own))
        rows = ints(pc.list_parent_indices(named))
        values = ints(pc.dictionary_encode(named.flatten()).indices)
        pairs = rows.astype(np.int64) << 32 | values
        if len(np.unique(pairs)) == len(pairs):
            return named
        lists = named.to_pylist()
        return pa.array([v and list(dict.fromkeys(v)) for v in lists], column.type)


def _topic_ids(name: str, column: pa.Array) -> Iterator[bytes]:
    """Yield what may be topic ids in a column: as `topic_id`, or in `topics` in place of names."""
    if name != "topic_id":
        if not pa.types.is_list(column.type):
            return
        column = column.flatten()
        if pa.types.is_struct(column.type):
            if column.type.get_field_index("topic_id") < 0:
                return
            column = pc.struct_field(column, "topic_id")
        elif name == "topics":
            length = pa.scalar(UUID_TEXT, pa.int32())  # to find a type, pyarrow imports pandas
            column = column.filter(pc.equal(pc.binary_length(column), length))
        else:
            return
    for text in column.unique().drop_null().to_pylist():
        with suppress(ValueError):  # a name of that length
            yield uuid_bytes(text)


def _inside(column: pa.Array, sets: Ints, change: Callable[[Any, Ints], pa.Array]) -> pa.Array:
    """Change the values inside lists. sets: of the rows."""
    plain = pa.array(column.to_pylist(), column.type) if column.offset else column
    offsets = plain.offsets
    values = change(plain.values, np.repeat(sets, np.diff(ints(offsets))))
    mask = pc.is_null(plain) if plain.null_count else None
    return pa.ListArray.from_arrays(offsets, values, type=plain.type, mask=mask)
