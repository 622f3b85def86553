"""Columns of tables that options change: bodies of one message, decoded keys and values.

--table messages --bodies FetchRequest   bodies of this message are columns
--table records --values avro            keys and values are decoded beside the bytes
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from ..input.inputs import MissingOption
from ..input.names import captured_message
from ..input.values import ValueOptions, counted_values

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.values.record_values import CountedValues

MESSAGES: Final = "messages"
RECORDS: Final = "records"


class TableColumns(NamedTuple):
    """What options change about columns.

    message: the one whose bodies are columns of the table `messages`, which has no other. values:
    decoders of keys and values in the table `records`.
    """

    message: str | None = None
    values: CountedValues | None = None

    def changes(self, name: str) -> bool:
        """Whether the columns of a table are changed."""
        return (name == MESSAGES and self.message is not None) or (
            name == RECORDS and self.values is not None
        )

    def schema(self, name: str) -> pa.Schema:
        """Return the schema of a table."""
        if name == MESSAGES and self.message is not None:
            from kafkawire.capture.tables import bodies

            return bodies.schema(self.message)
        from kafkawire.capture.tables import TABLES

        usual = TABLES[name].schema
        if name == RECORDS and self.values is not None:
            from kafkawire.capture.tables import decoded_values

            return decoded_values.schema(usual, self.values)
        return usual

    def of(self, name: str, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Return a batch of a table with these columns."""
        if name == MESSAGES and self.message is not None:
            from kafkawire.capture.tables import bodies

            return bodies.typed([batch], self.message)
        if name == RECORDS and self.values is not None:
            from kafkawire.capture.tables import decoded_values

            return [decoded_values.with_values(batch, self.values)]
        return [batch]


def table_columns(
    names: list[str] | None, bodies: str | None, decoding: ValueOptions, *, redact: bool
) -> TableColumns:
    """Return what options change about the columns of tables; usage errors."""
    if not names:
        option = "--output" if bodies is None else "--bodies"
        raise typer.BadParameter("only allowed with --table", param_hint=option)
    if bodies is not None and MESSAGES not in names:
        raise typer.BadParameter("only allowed with --table messages", param_hint="--bodies")
    if decoding.first is not None and RECORDS not in names:
        raise MissingOption(f"required by {decoding.first}", param_hint="--table records")
    if decoding.first is not None and redact:
        raise typer.BadParameter("not allowed with --redact", param_hint=decoding.first)
    message = None if bodies is None else captured_message(bodies)
    return TableColumns(message, counted_values(decoding))
