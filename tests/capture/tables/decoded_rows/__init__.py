"""Makes rows of tables of decoded messages, one by one: a second way to the values of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kafkawire.capture.tables.context import Context

from . import exchanges, partitions, records

ROWS: Final[dict[str, Callable[[Context], Iterator[tuple[Any, ...]]]]] = {
    "exchanges": exchanges.rows,
    "partitions": partitions.rows,
    "records": records.rows,
}
"""Table -> what makes its rows."""
