"""Reads a capture as tables of Arrow record batches, for the command line, Parquet and Spark.

A table's columns never depend on the capture; rows come in bounded batches while the capture
is read, and a capture of any size takes bounded memory.

    capture(s) --> rows --> exchanges --> a table's rows --> record batches
                     `--> topic names --------------------------^  resolved when a batch is made

Of the capture engine, this package alone imports pyarrow, and only where batches are made:
`context`, `extraction` and others that reports use do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ...extras import requires

if TYPE_CHECKING:
    from .reading import BATCH_ROWS, read, read_tables
    from .tables import TABLES, Table

__all__ = ["BATCH_ROWS", "TABLES", "Table", "read", "read_tables"]

_HOME: Final = {
    "BATCH_ROWS": "reading",
    "TABLES": "tables",
    "Table": "tables",
    "read": "reading",
    "read_tables": "reading",
}
"""Name -> the module that has it, imported where the name is first used: both import pyarrow."""


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with requires("pyarrow", "tables"):
        value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
