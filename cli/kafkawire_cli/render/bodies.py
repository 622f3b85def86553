"""Makes bodies of one message columns of the table `messages` (`decode --bodies`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import typer

from ..input.names import captured_message

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


def message_of_bodies(names: list[str] | None, bodies: str | None) -> str | None:
    """Find the message whose bodies are columns; a usage error without a table for it."""
    if not names:
        option = "--output" if bodies is None else "--bodies"
        raise typer.BadParameter("only allowed with --table", param_hint=option)
    if bodies is None:
        return None
    if "messages" not in names:
        raise typer.BadParameter("only allowed with --table messages", param_hint="--bodies")
    return captured_message(bodies)
