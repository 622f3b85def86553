"""Makes bodies of one message columns of the table `messages` (`decode --bodies`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGES: Final = "messages"


def schema_of(name: str, message: str | None) -> pa.Schema:
    """Return the schema of a table."""
    if name == MESSAGES and message is not None:
        from kafkawire.capture.tables import bodies

        return bodies.schema(message)
    from kafkawire.capture.tables import TABLES

    return TABLES[name].schema


def with_bodies(name: str, message: str | None, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    """Make the bodies of a message columns, in the table of messages."""
    if name != MESSAGES or message is None:
        return [batch]
    from kafkawire.capture.tables import bodies

    return bodies.typed([batch], message)
