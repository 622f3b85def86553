"""The tables: what each is for, and its columns."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

from . import connections, exchanges, group_events, messages, partitions, problems, records
from .arrow.schemas import schema_of
from .columns import Columns


class Table(NamedTuple):
    """A table: its description and its columns."""

    description: str
    columns: Columns

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        return schema_of(self.columns)


TABLES: Final[dict[str, Table]] = {
    "exchanges": Table("One row per exchange: a request with its response.", exchanges.COLUMNS),
    "messages": Table(
        "One row per message (request or response), its body as JSON.",
        messages.COLUMNS,
    ),
    "records": Table("One row per record that was produced or fetched.", records.COLUMNS),
    "partitions": Table(
        "One row per exchange and partition that its request or response refers to.",
        partitions.COLUMNS,
    ),
    "connections": Table("One row per TCP connection.", connections.COLUMNS),
    "group_events": Table(
        "One row per event of a group or one of its members.",
        group_events.COLUMNS,
    ),
    "problems": Table(
        "One row per problem: messages or bytes that were not decoded, are missing from the "
        "capture, or contradict each other.",
        problems.COLUMNS,
    ),
}
"""Every table by name."""

OF_ANY_PACKAGE: Final = frozenset({"messages"})
"""The tables that are not about what Kafka's messages mean."""
