"""Queries captures in SQL, by DuckDB over the tables of `kafkawire.capture.tables`.

Only the tables that a statement needs are made, and of a table that is read once only the
columns that it needs; a statement can neither read nor write files.

    SQL --needs--> tables, columns --read--> record batches --DuckDB--> record batches

Of kafkawire, this package alone imports duckdb (the extra `sql`).
"""

from ..extras import requires

with requires("pyarrow", "sql"):
    from .database import ONCE, Database, Names, Read
from .needs import Needs
from .statements import Statement, Statements

__all__ = ["ONCE", "Database", "Names", "Needs", "Read", "Statement", "Statements"]
