"""Writes files of tables while connections are decoded, without spilling rows first.

The rows are the finished ones. That needs the first packets of all connections, which the plan
may know, and names of topics that the task knows; other rows are spilled. Files are discarded if
first packets were not right, or another task found another name.

    first packets of the plan --> Finish, directory of each table
    batches of a task --with names stated so far--> files of its tables
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from ..decode.columns import keep
from ..options import Options
from ..plan.facts import AllFacts, Facts
from ..plan.planning import Plan
from .finishing import Finish
from .writing import TableDirectory, TableWriter

MakeDirectory: TypeAlias = Callable[[str, Finish], TableDirectory | None]
"""Returns the directory of a table's files; None for a table that has none before its end."""

Folders: TypeAlias = Mapping[str, tuple[Finish, TableDirectory]]
"""The directory of each table, with what finishes its rows."""

NO_FOLDERS: Final[Folders] = {}


def early_facts(plan: Plan) -> AllFacts:
    """Return what a plan knows of the connections."""
    firsts = np.empty(0, np.int64) if plan.first_packets is None else plan.first_packets
    return AllFacts(firsts, {}, Counter(), fragments=False)


def directories(
    plan: Plan,
    schemas: Mapping[str, pa.Schema],
    options: Options,
    directory: MakeDirectory | None,
) -> Folders:
    """Return the empty directories of tables in which visits write files, with what finishes rows.

    There are none if the plan does not know the first packets of connections.
    """
    if directory is None or plan.first_packets is None:
        return {}
    by_table: dict[str, tuple[Finish, TableDirectory]] = {}
    for table, schema in schemas.items():
        finish = Finish(early_facts(plan), plan.sets, keep(table, options), schema)
        folder = directory(table, finish)
        if folder is not None:
            folder.empty()
            by_table[table] = finish, folder
    return by_table


class FileWriters:
    """Writes batches of tables in one task. Use it as a context manager."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._writers: dict[str, TableWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> FileWriters:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, table: str, batch: pa.RecordBatch, facts: Facts) -> bool:
        """Write a batch; returns False if it has topic ids whose names the task does not know."""
        if table not in self._folders:
            return False
        finish, folder = self._folders[table]
        with_names = finish.with_stated(batch, facts.names)
        if with_names is None:
            return False
        if table not in self._writers:
            self._writers[table] = self._stack.enter_context(TableWriter(folder))
        self._writers[table].add(with_names.batch(batch))
        return True

    def finish(self) -> dict[str, list[tuple[str, int]]]:
        """Write everything; returns the files of each table, and their rows."""
        return {table: writer.finish() for table, writer in self._writers.items()}
